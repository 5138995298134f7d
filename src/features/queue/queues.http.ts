// Routes for queues.
import {
  changeQueue,
  deleteQueue,
  findQueueRecord,
  getQueueStats,
  listQueueRecords,
  pauseQueue,
  registerQueue,
  resumeQueue,
} from './queues.js';
import type { QueueParameters, QueueRecord } from './queue.js';
import { getQueueDetails } from './queue-details.js';
import { findPausedQueues } from './queues.sql.js';
import { queueDetails, queueStats, type QueueView, queueView, viewQueue } from './queue-view.http.js';
import { invalid, notFound } from '../../faces/http/http/refusal.js';
import { type Call, type Route, route } from '../../faces/http/http/route.js';
import {
  boolean,
  type Check,
  integer,
  INT_MAX,
  nullable,
  number,
  oneOf,
  optional,
  record,
} from '../../kernel/check/validation.js';
import { nonEmpty, listOf } from '../../faces/http/shape.js';
import { localEngine } from '../../faces/http/source.js';
import { changeResult } from '../lifecycle/workflow-actions.http.js';

const tag = 'Queues';
const ONE = '/queues/{name}';

const rateLimit = record({ limitPerPeriod: integer({ min: 1, max: INT_MAX }), periodSec: number() });
const count = integer({ min: 1, max: INT_MAX });
const pollingMs = number({ min: 1, max: INT_MAX });

const parameters = {
  globalConcurrency: optional(count),
  workerConcurrency: optional(count),
  rateLimit: optional(rateLimit),
  partitionConcurrency: optional(count),
  partitionWorkerConcurrency: optional(count),
  partitionRateLimit: optional(rateLimit),
  minPollingIntervalMs: optional(pollingMs),
  priorityEnabled: optional(boolean),
  partitionQueue: optional(boolean),
  releaseSlotWhileParked: optional(boolean),
};

/** In an update, null removes a limit. */
function removable<T>(shape: Check<T>): Check<T | null | undefined> {
  return optional(nullable(shape));
}

const change = record({
  globalConcurrency: removable(count),
  workerConcurrency: removable(count),
  rateLimit: removable(rateLimit),
  partitionConcurrency: removable(count),
  partitionWorkerConcurrency: removable(count),
  partitionRateLimit: removable(rateLimit),
  minPollingIntervalMs: optional(pollingMs),
  partitionQueue: optional(boolean),
  releaseSlotWhileParked: optional(boolean),
});

export const QUEUE_ROUTES: readonly Route[] = [
  route({
    method: 'GET',
    path: '/queues',
    tag,
    summary: 'Lists the queues of the database, and the in-memory queues of this process.',
    query: { applicationName: optional(listOf(nonEmpty)) },
    result: record({ queues: listOf(queueView) }),
    async handle(call) {
      const records = await listQueueRecords(call.operator, call.query.applicationName);
      const inMemory = localEngine(call.environment.source)?.memoryQueues() ?? [];
      const names = new Set(inMemory.map(({ name }) => name));
      const stored = records.filter(({ name }) => !names.has(name));
      const paused = await pausedQueues(call);
      return {
        queues: [
          ...inMemory.map((record) => viewQueue(record, paused, true)),
          ...stored.map((record) => viewQueue(record, paused)),
        ],
      };
    },
  }),
  route({
    method: 'GET',
    path: ONE,
    tag,
    summary: 'Returns a queue.',
    result: queueView,
    handle: async (call) => view(call, await requireQueue(call)),
  }),
  route({
    method: 'GET',
    path: `${ONE}/details`,
    tag,
    summary: 'Returns its depth, rate, executors and largest partitions.',
    result: queueDetails,
    handle: (call) => getQueueDetails(call.operator, nameIn(call)),
  }),
  route({
    method: 'PUT',
    path: ONE,
    tag,
    summary: 'Registers a queue. Replaces the settings of an existing one unless onConflict says otherwise.',
    body: record({
      ...parameters,
      onConflict: optional(oneOf(['always_update', 'never_update', 'update_if_latest_version'])),
      applicationName: optional(nonEmpty),
    }),
    result: queueView,
    async handle(call) {
      const { operator, environment } = call;
      const { onConflict = 'always_update', applicationName = operator.applicationName, ...given } = call.body;
      const applicationVersion = localEngine(environment.source)?.applicationVersion ?? null;
      if (onConflict === 'update_if_latest_version' && applicationVersion === null) {
        throw invalid("onConflict cannot be 'update_if_latest_version' here: a client has no application version.");
      }
      const name = nameIn(call);
      const registration = { name, parameters: given, onConflict, applicationName, applicationVersion };
      return view(call, await registerQueue(operator, registration));
    },
  }),
  route({
    method: 'PATCH',
    path: ONE,
    tag,
    summary: 'Changes the given settings; null removes a limit.',
    body: change,
    result: queueView,
    async handle(call) {
      await requireQueue(call);
      const entries = Object.entries(call.body).map(([key, value]) => [key, value ?? undefined] as const);
      // Each field has the type of its setting; undefined removes it.
      const settings = Object.fromEntries(entries) as QueueParameters;
      return view(call, await changeQueue(call.operator, nameIn(call), settings));
    },
  }),
  route({
    method: 'DELETE',
    path: ONE,
    tag,
    summary: 'Deletes a queue. Its workflows wait until it is registered again.',
    async handle(call) {
      await requireQueue(call);
      await deleteQueue(call.operator, nameIn(call));
    },
  }),
  route({
    method: 'POST',
    path: `${ONE}/pause`,
    tag,
    summary: 'Stops processes from claiming its workflows until it is resumed.',
    result: changeResult,
    handle: async (call) => ({ changed: await pauseQueue(call.operator, nameIn(call)) }),
  }),
  route({
    method: 'POST',
    path: `${ONE}/resume`,
    tag,
    summary: 'Lets processes claim its workflows again.',
    result: changeResult,
    handle: async (call) => ({ changed: await resumeQueue(call.operator, nameIn(call)) }),
  }),
  route({
    method: 'GET',
    path: '/queue-stats',
    tag,
    summary: 'Counts waiting, delayed and running workflows by queue or partition.',
    query: { queueName: optional(listOf(nonEmpty)), byPartition: optional(boolean) },
    result: record({ queues: listOf(queueStats) }),
    async handle({ operator, query }) {
      return { queues: await getQueueStats(operator, query) };
    },
  }),
];

type AnyCall = Pick<Call, 'operator' | 'path'>;

function nameIn({ path }: AnyCall): string {
  return path['name'] ?? '';
}

async function requireQueue(call: AnyCall): Promise<QueueRecord> {
  const found = await findQueueRecord(call.operator, nameIn(call));
  if (found) return found;
  throw notFound(`Queue ${JSON.stringify(nameIn(call))} not found in the database.`);
}

function pausedQueues({ operator }: AnyCall): Promise<Map<string, number>> {
  return operator.retrying(() => findPausedQueues(operator.database));
}

async function view(call: AnyCall, record: QueueRecord): Promise<QueueView> {
  return viewQueue(record, await pausedQueues(call));
}
