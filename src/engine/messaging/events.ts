// Events: values that a workflow publishes under keys, for everybody to read.
import { DBOSInvalidWorkflowTransitionError } from '../../model/errors/errors.js';
import type { EventKey, StoredEvent } from '../../store/messaging/events.js';
import { currentContext, isWorkflowCode } from '../runs/ambient.js';
import type { Engine } from '../engine.js';
import { formatOf, limitsOf, portableStep, wasDone, workflowCode } from '../runs/operation.js';
import type { Run } from '../runs/run.js';
import { replayOutcome } from '../runs/step.js';
import { checkName, encodeStorable, type SerializationOptions } from '../../control/runs/storable.js';
import { deadlineOf, type TimeLimit } from '../../control/runs/time-limit.js';

export type GetEventOptions = TimeLimit;

const GET_EVENT_TIMEOUT_SECONDS = 60;

/** Sets an event of the workflow around. Resolves when it is durable; it commits together with its checkpoint. */
export async function setEvent(key: string, value: unknown, options: SerializationOptions = {}): Promise<void> {
  const name = 'DBOS.setEvent';
  const run = workflowCode(name);
  checkName('key of an event', key);
  const stepID = run.nextStepID();
  if (await wasDone(run, stepID, name)) return;
  const { engine, workflowID, owner } = run;
  const encoded = await encodeStorable(engine.codec, value, formatOf(run, options));
  const written = engine.store.writer.setEvent({
    event: { workflowID, owner, stepID, key, ...encoded },
    checkpoint: run.checkpoint(portableStep(run, { stepID, name })),
  });
  if ((await run.commit(written, stepID, (verdict) => verdict)) === 'recorded')
    engine.watchers.onEventSet({ workflowID, key });
}

/** The value of an event; null when the time is up. In workflow code it takes two numbers: its own and its timer's. */
export async function getEvent(engine: Engine, event: EventKey, limit?: number | GetEventOptions): Promise<unknown> {
  const context = currentContext();
  if (context?.step !== undefined || context?.transactionID !== undefined) {
    throw new DBOSInvalidWorkflowTransitionError('Invalid call to `DBOS.getEvent` inside a step or transaction');
  }
  checkName('ID of the workflow', event.workflowID);
  checkName('key of an event', event.key);
  const deadlineAt = deadlineOf(engine.clock, limit, GET_EVENT_TIMEOUT_SECONDS);
  if (isWorkflowCode(context)) return getEventIn(context.run, event, deadlineAt);
  const found = await engine.watchers.events.waitUntil(event, { deadlineAt });
  return found ? engine.codec.decodeValue(found.text, found.serialization) : null;
}

async function getEventIn(run: Run, event: EventKey, givenDeadline: number | undefined): Promise<unknown> {
  const name = 'DBOS.getEvent';
  const stepID = run.nextStepID();
  const timerID = run.nextStepID();
  const record = run.replay(stepID, name);
  run.check();
  if (record) return replayOutcome(run, record);
  const { clock, codec, watchers } = run.engine;
  const startedAt = clock.now();
  const found: Pick<StoredEvent, 'text' | 'serialization'> =
    (await watchers.events.waitUntil(event, await limitsOf(run, timerID, givenDeadline))) ??
    (await codec.encodeValue(null));
  run.check();
  const { text: output, serialization } = found;
  const times = { startedAt, completedAt: clock.now() };
  run.record({ stepID, name, output, error: null, childWorkflowID: null, serialization, ...times });
  return codec.decodeValue(output, serialization);
}
