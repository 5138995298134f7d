// Workflow starts and messages to workflows as messages of the outbox. They are prepared when they are published, so a bad
// argument fails in the caller's hands, and handed over as they are.
import type { Duration } from '../../../kernel/base/duration.js';
import { newID } from '../../../kernel/base/ids.js';
import type { Handoff, NewMessage, PreparedWorkflow, UserFunction } from '../../../run/plugin.js';
import { duration, optional, record } from '../../../kernel/check/validation.js';
import { bodyOf, type FetchedRow } from '../consume/message.js';
import type { Work } from '../consume/handoff.js';
import { type Topic, topic, topicName } from '../topic.js';

export interface StartOptions {
  /** Default: a fresh one. */
  readonly workflowID?: string;
  /** Default: the internal queue, which has no limits. */
  readonly queueName?: string;
  readonly queuePartitionKey?: string;
  /** How long until the workflow is enqueued. Default: 0. */
  readonly delay?: Duration;
}

type Forwarded = { readonly start: PreparedWorkflow } | { readonly send: NewMessage };

/** The queue of everything that is forwarded. Its name is reserved. */
export const INTERNAL_TOPIC: Topic<Forwarded> = topic<Forwarded>('_everstep.forward');

const START_OPTIONS = record({
  workflowID: optional(topicName),
  queueName: optional(topicName),
  queuePartitionKey: optional(topicName),
  delay: optional(duration),
});

export async function toStart(
  engine: Handoff,
  workflow: UserFunction,
  { args, options }: { readonly args: readonly unknown[]; readonly options: StartOptions },
): Promise<{ readonly workflowID: string; readonly body: Forwarded }> {
  START_OPTIONS.read(options, 'options');
  const { workflowID = newID(), queueName = engine.internalQueue, queuePartitionKey } = options;
  const start = await engine.prepare(workflow, args, { workflowID, queueName, queuePartitionKey });
  return { workflowID, body: { start } };
}

export async function toSend(
  engine: Handoff,
  destinationID: string,
  { message, topic: messageTopic }: { readonly message: unknown; readonly topic: string | undefined },
): Promise<Forwarded> {
  return { send: await engine.encode({ destinationID, message, topic: messageTopic, idempotencyKey: newID() }) };
}

export async function workOf(row: FetchedRow): Promise<Work> {
  const forwarded = await bodyOf(row, INTERNAL_TOPIC);
  return 'start' in forwarded
    ? { kind: 'workflows', prepared: [forwarded.start] }
    : { kind: 'send', message: forwarded.send };
}
