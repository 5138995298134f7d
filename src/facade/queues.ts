// The queue members of `DBOS`: the verbs of the control room, and the news of them for running workers.
import {
  changeQueue,
  deleteQueue as deleteRecord,
  findQueueRecord,
  listQueueRecords,
  pauseQueue as pause,
  queueNotFound,
  registerQueue as register,
  resumeQueue as resume,
} from '../control/queues.js';
import type { Engine } from '../engine/engine.js';
import type { QueueRecord, RegisterQueueOptions } from '../model/queues.js';
import { StoredQueue, WorkflowQueue } from './workflow-queue.js';

export async function registerQueue(
  engine: Engine,
  name: string,
  { onConflict = 'update_if_latest_version', ...parameters }: RegisterQueueOptions,
): Promise<WorkflowQueue> {
  const { config, applicationVersion, logger, store } = engine;
  const registration = { name, parameters, onConflict, applicationName: config.name, applicationVersion };
  const { record, isNew } = await engine.retrying(() => register(store.database, registration));
  if (isNew) logger.info(`Registered new queue: ${name}`);
  await engine.queueing.announceChange();
  return toQueue(engine, record);
}

export async function retrieveQueue(engine: Engine, name: string): Promise<WorkflowQueue | null> {
  const record = await engine.retrying(() => findQueueRecord(engine.store.database, name));
  return record && toQueue(engine, record);
}

export async function deleteQueue(engine: Engine, name: string): Promise<void> {
  await engine.retrying(() => deleteRecord(engine.store.database, name));
  await engine.queueing.announceChange();
}

export async function listQueues(engine: Engine, applicationName?: string | string[]): Promise<WorkflowQueue[]> {
  const names = [applicationName ?? engine.config.name].flat();
  const records = await engine.retrying(() => listQueueRecords(engine.store.database, names));
  return records.map((record) => toQueue(engine, record));
}

export async function pauseQueue(engine: Engine, name: string): Promise<void> {
  await engine.retrying(() => pause(engine.store.database, name));
}

export async function resumeQueue(engine: Engine, name: string): Promise<void> {
  await engine.retrying(() => resume(engine.store.database, name));
  engine.queueing.announce([{ queueName: name }]);
}

function toQueue(engine: Engine, record: QueueRecord): WorkflowQueue {
  const { database } = engine.store;
  const read = async (name: string): Promise<QueueRecord> => {
    const found = await engine.retrying(() => findQueueRecord(database, name));
    if (!found) throw queueNotFound(name);
    return found;
  };
  const change: StoredQueue['change'] = async (name, parameters) => {
    const changed = await engine.retrying(() => changeQueue(database, name, parameters));
    await engine.queueing.announceChange();
    return changed;
  };
  return new WorkflowQueue(new StoredQueue(record, read, change));
}
