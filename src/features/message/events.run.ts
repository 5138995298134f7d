// Events: values that a workflow publishes under keys, readable from anywhere.
import type { DurationText } from '../../kernel/base/duration.js';
import { DBOSInvalidWorkflowTransitionError } from '../../kernel/errors/errors.js';
import type { EventKey } from './events.sql.js';
import { currentContext, isWorkflowCode } from '../../run/ambient.js';
import type { Runtime } from '../../run/runtime.js';
import { formatOf, type GivenLimits, limitsOf, workflowCode } from '../../run/operation.js';
import { encodedAs, joined, perform, portable } from '../../run/perform.js';
import type { Run } from '../../run/run.js';
import { checkName, encodeStorable, type SerializationOptions } from '../../operator/storable.js';
import { deadlineOf, pollMsOf, type TimeLimit } from '../../operator/time-limit.js';

export type GetEventOptions = TimeLimit;

const GET_EVENT_TIMEOUT_SECONDS = 60;

/** Sets an event of the current workflow, in one commit with its checkpoint. Resolves when it is durable. */
export async function setEvent(key: string, value: unknown, options: SerializationOptions = {}): Promise<void> {
  const name = 'DBOS.setEvent';
  const run = workflowCode(name);
  checkName('key', key);
  const { runtime, workflowID, owner } = run;
  await perform(
    run,
    { name, isEffect: false, identity: [key] },
    joined(async (step) => {
      const encoded = await encodeStorable(runtime.codec, value, formatOf(run, options));
      const written = runtime.store.writer.setEvent({
        event: { workflowID, owner, stepID: step.stepID, key, ...encoded },
        checkpoint: step.checkpoint(portable()),
      });
      const verdict = await step.commit(written, (given) => given);
      if (verdict === 'recorded') runtime.watchers.onEventSet({ workflowID, key });
    }),
  );
}

/** The value of an event; null on timeout. In workflow code it takes two numbers: its own and its timer's. */
export async function getEvent(
  runtime: Runtime,
  event: EventKey,
  limit?: number | DurationText | GetEventOptions,
): Promise<unknown> {
  const context = currentContext();
  if (context?.step !== undefined || context?.transactionID !== undefined) {
    throw new DBOSInvalidWorkflowTransitionError('Invalid call to `DBOS.getEvent` inside a step or transaction');
  }
  checkName('workflowID', event.workflowID);
  checkName('key', event.key);
  const deadlineAt = deadlineOf(runtime.databaseClock, limit, GET_EVENT_TIMEOUT_SECONDS);
  const given = { deadlineAt, pollMs: pollMsOf(limit) };
  if (isWorkflowCode(context)) return getEventIn(context.run, event, given);
  const found = await runtime.watchers.events.waitUntil(event, given);
  return found ? runtime.codec.decodeValue(found.text, found.serialization) : null;
}

function getEventIn(run: Run, event: EventKey, given: GivenLimits): Promise<unknown> {
  const stepID = run.nextStepID();
  const timerID = run.nextStepID();
  const { codec, watchers } = run.runtime;
  return perform(
    run,
    { name: 'DBOS.getEvent', stepID, timerID, isEffect: false, identity: [event.workflowID, event.key] },
    // The event's stored text is recorded as is.
    joined(async (step) => {
      const limits = await limitsOf(run, timerID, given);
      const found = (await watchers.events.waitUntil(event, limits)) ?? (await codec.encodeValue(null));
      step.record(encodedAs(found));
      return codec.decodeValue(found.text, found.serialization);
    }),
  );
}
