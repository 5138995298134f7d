// Sends and receives messages. A send from workflow code commits together with its checkpoint, and so does the
// consumption of a message with its receipt. Other sends share commits with everything else that the process writes.
import type { DurationText } from '../../kernel/base/duration.js';
import { isPromise, type MaybePromise } from '../../kernel/codec/maybe-promise.js';
import {
  type BulkMessage,
  checkMessage,
  encodeMessage,
  keyOfMessage,
  missingDestinations,
  NO_TOPIC,
} from './messages.js';
import { insertTogether, messageKey, type NewMessage, type Sending, type StoredMessage } from './messages.sql.js';
import { statementsOf } from '../history/facts.sql.js';
import { checkpointWrite } from '../history/step-facts.sql.js';
import type { Checkpoint } from '../../run/rows/steps.js';
import { type CheckpointVerdict, judgeCheckpoints } from '../../run/writer/writer-verdicts.js';
import { callersOf, currentContext, isWorkflowCode } from '../../run/ambient.js';
import type { Runtime } from '../../run/runtime.js';
import { formatOf, type GivenLimits, limitsOf, refuseInTransaction, workflowCode } from '../../run/operation.js';
import { type ActiveStep, encodedAs, joined, perform, portable } from '../../run/perform.js';
import type { Run, VerdictOf } from '../../run/run.js';
import { checkOptionalName } from '../../operator/storable.js';
import type { WaitLimits } from '../../operator/row-watcher.js';
import { deadlineOf, pollMsOf, type TimeLimit } from '../../operator/time-limit.js';

export type RecvOptions = TimeLimit;

const RECV = 'DBOS.recv';
const RECV_TIMEOUT_SECONDS = 60;

/** Sends a message. In workflow code it is recorded and sent once; in a step it is not recorded. */
export async function send(runtime: Runtime, outgoing: BulkMessage): Promise<void> {
  const name = 'DBOS.send';
  const context = currentContext();
  refuseInTransaction(context, name);
  checkMessage(outgoing);
  if (isWorkflowCode(context)) {
    await sendFrom(context.run, { name, output: 'null' }, outgoing);
    return;
  }
  const room = runtime.store.writer.room({ isFromOutside: !context?.run });
  if (room) await room;
  await deliver({ runtime, run: context?.run }, outgoing);
}

/** Sends from workflow code, as an operation whose result is the JSON in `output`. */
export function sendFrom(
  run: Run,
  { name, output }: { readonly name: string; readonly output: string },
  outgoing: BulkMessage,
): Promise<unknown> {
  return perform(
    run,
    { name, isEffect: false, format: 'named', identity: [outgoing.destinationID, outgoing.topic] },
    joined(async (step) => {
      await deliver({ runtime: run.runtime, run, step, output }, outgoing);
      return JSON.parse(output) as unknown;
    }),
  );
}

/** The sender: workflow code, a step, or code outside workflows. */
interface Sender {
  readonly runtime: Runtime;
  readonly run: Run | undefined;
  /** The sending operation, in workflow code. */
  readonly step?: ActiveStep;
  readonly output?: string;
}

/** Sends the message together with the sender's checkpoint. A missing destination is recorded and thrown. */
async function deliver({ runtime, run, step, output }: Sender, outgoing: BulkMessage): Promise<void> {
  const encoding = encodeIn(runtime, run, outgoing);
  const message = isPromise(encoding) ? await encoding : encoding;
  const key = keyOfMessage(message);
  const isAnnounced = runtime.watchers.isForOthers(key);
  const checkpoint = step && { ...step.checkpoint(portable(output)), sentID: message.messageID };
  const sending = { sending: { message, sender: run }, checkpoint, isAnnounced };
  const { writer } = runtime.store;
  const written = writer.send(sending, { isFromOutside: !run });
  const settled = run ? written : writer.inTime(sending, written);
  const { sent } = await committed(step ?? run, settled, ({ sent, checkpoint }) =>
    sent === 'sent' ? checkpoint : lostOnly(sent),
  );
  if (sent === 'missing') return refuse(step, missingDestinations([message]));
  runtime.watchers.onSent(key, { isAnnounced });
}

/** Waits for the write. If the sender is a run that has lost its workflow, throws the reason. */
function committed<V>(sender: ActiveStep | Run | undefined, written: Promise<V>, verdictOf: VerdictOf<V>): Promise<V> {
  return sender ? sender.commit(written, verdictOf) : written;
}

function lostOnly(sent: 'missing' | 'lost'): CheckpointVerdict | undefined {
  return sent === 'lost' ? 'lost' : undefined;
}

/** Throws the error, and records it as the outcome if the sender is an operation. */
async function refuse(step: ActiveStep | undefined, error: Error): Promise<never> {
  if (step) return step.fail(error);
  throw error;
}

/** Sends messages in one commit: all of them, or none if a destination is missing. */
export async function sendBulk(runtime: Runtime, outgoing: readonly BulkMessage[]): Promise<void> {
  const name = 'DBOS.sendBulk';
  const context = currentContext();
  refuseInTransaction(context, name);
  outgoing.forEach(checkMessage);
  if (isWorkflowCode(context)) {
    const { run } = context;
    const body = joined((step) => deliverTogether({ runtime, run, step }, outgoing));
    return perform(run, { name, isEffect: true, format: 'named' }, body);
  }
  await context?.run?.barrier();
  await deliverTogether({ runtime, run: context?.run }, outgoing);
}

async function deliverTogether({ runtime, run, step }: Sender, outgoing: readonly BulkMessage[]): Promise<void> {
  const messages: NewMessage[] = [];
  for (const one of outgoing) messages.push(await encodeIn(runtime, run, one));
  const checkpoint = step?.checkpoint(portable());
  const written = callersOf(runtime).retrying(() => insertAll(runtime, run, { messages, checkpoint }));
  const { verdicts } = await committed(step ?? run, written, (given) => given.checkpoint);
  const absent = messages.filter((_, index) => verdicts[index] === 'missing');
  if (absent.length > 0) return refuse(step, missingDestinations(absent));
  const keys = new Map(messages.map((message) => [messageKey(keyOfMessage(message)), keyOfMessage(message)]));
  for (const key of keys.values()) runtime.watchers.onSent(key);
}

/** Inserts all or none, with the sender's checkpoint. */
async function insertAll(
  runtime: Runtime,
  run: Run | undefined,
  { messages, checkpoint }: { readonly messages: readonly NewMessage[]; readonly checkpoint: Checkpoint | undefined },
) {
  const { database } = runtime.store;
  const sendings: Sending[] = messages.map((message) => ({ message, sender: run }));
  const checkpoints = checkpoint ? [checkpoint] : [];
  const extra = checkpoint && statementsOf(database.dialect, checkpointWrite, checkpoints);
  const { verdicts, extra: recorded } = await insertTogether(database, sendings, extra);
  const isSent = verdicts.every((verdict) => verdict === 'sent');
  const [judged] = isSent ? await judgeCheckpoints(database, checkpoints, recorded) : [];
  return { verdicts, checkpoint: verdicts.includes('lost') ? ('lost' as const) : judged };
}

function encodeIn(runtime: Runtime, run: Run | undefined, outgoing: BulkMessage): MaybePromise<NewMessage> {
  return encodeMessage(runtime.codec, outgoing, formatOf(run, outgoing));
}

/** Receives the oldest message of the topic; null on timeout. Takes two numbers: its own and its timer's. */
export function recv(
  runtime: Runtime,
  topic: string | undefined,
  limit?: number | DurationText | RecvOptions,
): Promise<unknown> {
  const run = workflowCode(RECV);
  checkOptionalName('topic', topic);
  const deadlineAt = deadlineOf(runtime.databaseClock, limit, RECV_TIMEOUT_SECONDS);
  return receive(run, topic ?? NO_TOPIC, { deadlineAt, pollMs: pollMsOf(limit) });
}

/** Receives, up to a deadline if there is one. */
export function receive(run: Run, topic: string, given: GivenLimits): Promise<unknown> {
  const stepID = run.nextStepID();
  const timerID = run.nextStepID();
  return perform(
    run,
    { name: RECV, stepID, timerID, isEffect: false, identity: [topic] },
    joined(async (step) => {
      // Before the first await, so that receives that overlap see each other.
      const receiving = run.inbox.begin(topic);
      try {
        const limits = limitsOf(run, timerID, given);
        return await receiveNext(step, { topic, limits: isPromise(limits) ? await limits : limits, receiving });
      } finally {
        run.inbox.end(topic);
      }
    }),
  );
}

interface Receive {
  readonly topic: string;
  readonly limits: WaitLimits;
  readonly receiving: { readonly isShared: boolean };
}

/** Records the message's stored text, in one commit with its consumption. */
async function receiveNext(step: ActiveStep, { topic, limits, receiving }: Receive): Promise<unknown> {
  const { run } = step;
  const { codec, watchers } = run.runtime;
  for (;;) {
    await run.inbox.receiptsSettled();
    const found = await watchers.messages.waitUntil({ workflowID: run.workflowID, topic }, limits);
    if (!found) {
      step.record(encodedAs(await codec.encodeValue(null)));
      return null;
    }
    if (!receiving.isShared) consumeAtOnce(step, found);
    else if (!(await consumeIfFirst(step, found))) continue;
    return codec.decodeValue(found.text, found.serialization);
  }
}

/** No other receive can consume the message. Its receipt is durable before any later effect of the run. */
function consumeAtOnce(step: ActiveStep, message: StoredMessage): void {
  const { run } = step;
  step.follow(writeReceipt(step, message), (verdict) => verdict);
  run.inbox.trackReceipt(run.lastWrite);
}

/** False if another receive of the same run has consumed the message. */
async function consumeIfFirst(step: ActiveStep, message: StoredMessage): Promise<boolean> {
  const written = writeReceipt(step, message);
  const verdict = await step.commit(written, (given) => (given === 'refused' ? undefined : given));
  return verdict === 'recorded';
}

function writeReceipt(step: ActiveStep, message: StoredMessage): Promise<CheckpointVerdict> {
  const checkpoint = step.checkpoint(encodedAs(message));
  return step.run.runtime.store.writer.receive({ ...checkpoint, receivedID: message.messageID });
}
