// Messages to workflows. A send from workflow code commits together with its checkpoint; so does the receipt of a message
// with its consumption. Sends from elsewhere share commits with all else that the process writes.
import {
  type BulkMessage,
  checkMessage,
  encodeMessage,
  keyOfMessage,
  missingDestinations,
  NO_TOPIC,
} from '../../control/messaging/messages.js';
import {
  insertTogether,
  messageKey,
  type NewMessage,
  type Sending,
  type StoredMessage,
} from '../../store/messaging/messages.js';
import { insertCheckpoints } from '../../store/runs/steps.js';
import { type CheckpointVerdict, judgeCheckpoints } from '../../store/writer/writer-verdicts.js';
import { currentContext, isWorkflowCode } from '../runs/ambient.js';
import type { Engine } from '../engine.js';
import {
  formatOf,
  limitsOf,
  portableStep,
  recordFailure,
  refuseInTransaction,
  wasDone,
  workflowCode,
} from '../runs/operation.js';
import type { Run, RunStep } from '../runs/run.js';
import { replayOutcome } from '../runs/step.js';
import { checkName } from '../../control/runs/storable.js';
import type { WaitLimits } from '../../control/runs/row-watcher.js';
import { deadlineOf, type TimeLimit } from '../../control/runs/time-limit.js';

export type RecvOptions = TimeLimit;

const RECV = 'DBOS.recv';
const RECV_TIMEOUT_SECONDS = 60;

/** Sends a message. From workflow code it is a step, sent once; from a step it is not recorded. */
export async function send(engine: Engine, outgoing: BulkMessage): Promise<void> {
  const name = 'DBOS.send';
  const context = currentContext();
  refuseInTransaction(context, name);
  checkMessage(outgoing);
  if (isWorkflowCode(context)) {
    await sendFrom(context.run, { name, output: 'null' }, outgoing);
    return;
  }
  await engine.store.writer.room();
  const message = await encodeIn(engine, context?.run, outgoing);
  const { sent } = await deliver(engine, context?.run, { message });
  if (sent === 'missing') throw missingDestinations([message]);
}

/** Sends from workflow code, as a step that gives what `output` is the JSON of. */
export async function sendFrom(
  run: Run,
  { name, output }: { readonly name: string; readonly output: string },
  outgoing: BulkMessage,
): Promise<unknown> {
  const stepID = run.nextStepID();
  const record = run.replay(stepID, name);
  run.check();
  if (record) return replayOutcome(run, record);
  const message = await encodeIn(run.engine, run, outgoing);
  const step = portableStep(run, { stepID, name, output });
  const { sent } = await deliver(run.engine, run, { message, step });
  if (sent === 'missing') await recordFailure(run, step, missingDestinations([message]));
  return JSON.parse(output);
}

interface Delivery {
  readonly message: NewMessage;
  /** The sender's record of it. */
  readonly step?: RunStep;
}

async function deliver(engine: Engine, run: Run | undefined, { message, step }: Delivery) {
  const checkpoint = step && run && { ...run.checkpoint(step), sentID: message.messageID };
  const key = keyOfMessage(message);
  const isAnnounced = engine.watchers.isForOthers(key);
  const written = engine.store.writer.send({ sending: { message, sender: run }, checkpoint, isAnnounced });
  const verdict = await (run
    ? run.commit(written, step?.stepID ?? -1, ({ sent, checkpoint }) => (sent === 'sent' ? checkpoint : lostOnly(sent)))
    : written);
  if (verdict.sent === 'sent') engine.watchers.onSent(key, { isAnnounced });
  return verdict;
}

function lostOnly(sent: 'missing' | 'lost'): CheckpointVerdict | undefined {
  return sent === 'lost' ? 'lost' : undefined;
}

/** Sends many messages in one commit: all of them, or none if one of the destinations is missing. */
export async function sendBulk(engine: Engine, outgoing: readonly BulkMessage[]): Promise<void> {
  const name = 'DBOS.sendBulk';
  const context = currentContext();
  refuseInTransaction(context, name);
  outgoing.forEach(checkMessage);
  const run = context?.run;
  const stepID = isWorkflowCode(context) ? context.run.nextStepID() : undefined;
  if (run && stepID !== undefined && (await wasDone(run, stepID, name))) return;
  const messages: NewMessage[] = [];
  for (const one of outgoing) messages.push(await encodeIn(engine, run, one));
  await run?.barrier();
  const step = run && stepID !== undefined ? portableStep(run, { stepID, name }) : undefined;
  const failure = await deliverTogether(engine, run, { messages, step });
  if (failure && run && step) await recordFailure(run, step, failure);
  if (failure) throw failure;
  const keys = new Map(messages.map((message) => [messageKey(keyOfMessage(message)), keyOfMessage(message)]));
  for (const key of keys.values()) engine.watchers.onSent(key);
}

/** Writes all or nothing; gives the error if there were workflows missing. */
async function deliverTogether(
  engine: Engine,
  run: Run | undefined,
  { messages, step }: { readonly messages: readonly NewMessage[]; readonly step?: RunStep },
): Promise<Error | undefined> {
  const { database } = engine.store;
  const sendings: Sending[] = messages.map((message) => ({ message, sender: run }));
  const checkpoints = run && step ? [run.checkpoint(step)] : [];
  const extra = checkpoints.length === 0 ? undefined : insertCheckpoints(checkpoints);
  const written = engine.retrying(async () => {
    const { verdicts, extra: recorded } = await insertTogether(database, sendings, extra);
    const isSent = verdicts.every((verdict) => verdict === 'sent');
    const [checkpoint] = isSent ? await judgeCheckpoints(database, checkpoints, recorded) : [];
    return { verdicts, checkpoint: verdicts.includes('lost') ? ('lost' as const) : checkpoint };
  });
  const { verdicts } = await (run ? run.commit(written, step?.stepID ?? -1, ({ checkpoint }) => checkpoint) : written);
  const absent = messages.filter((_, index) => verdicts[index] === 'missing');
  return absent.length === 0 ? undefined : missingDestinations(absent);
}

function encodeIn(engine: Engine, run: Run | undefined, outgoing: BulkMessage): Promise<NewMessage> {
  return encodeMessage(engine.codec, outgoing, formatOf(run, outgoing));
}

/** Receives the oldest message of the topic; null when the time is up. Takes two numbers: its own and its timer's. */
export async function recv(engine: Engine, topic: string | undefined, limit?: number | RecvOptions): Promise<unknown> {
  const run = workflowCode(RECV);
  checkName('topic', topic);
  return receive(run, topic ?? NO_TOPIC, deadlineOf(engine.clock, limit, RECV_TIMEOUT_SECONDS));
}

/** Receives until a deadline, or for as long as it takes. */
export async function receive(run: Run, topic: string, givenDeadline: number | undefined): Promise<unknown> {
  const stepID = run.nextStepID();
  const timerID = run.nextStepID();
  const record = run.replay(stepID, RECV);
  run.check();
  if (record) return replayOutcome(run, record);
  const receiving = run.inbox.begin(topic);
  try {
    return await receiveNew({ run, topic, stepID, receiving }, await limitsOf(run, timerID, givenDeadline));
  } finally {
    run.inbox.end(topic);
  }
}

interface Receive {
  readonly run: Run;
  readonly topic: string;
  readonly stepID: number;
  readonly receiving: { readonly isShared: boolean };
}

async function receiveNew({ run, topic, stepID, receiving }: Receive, limits: WaitLimits): Promise<unknown> {
  const { clock, codec, watchers } = run.engine;
  const base = { stepID, name: RECV, childWorkflowID: null, error: null, startedAt: clock.now() };
  for (;;) {
    await run.inbox.settled();
    const found = await watchers.messages.waitUntil({ workflowID: run.workflowID, topic }, limits);
    run.check();
    if (!found) {
      const { text, serialization } = await codec.encodeValue(null);
      run.record({ ...base, completedAt: clock.now(), output: text, serialization });
      return null;
    }
    const { text: output, serialization } = found;
    const step = { ...base, completedAt: clock.now(), output, serialization };
    if (!receiving.isShared) takeAtOnce(run, found, step);
    else if (!(await takeIfFirst(run, found, step))) continue;
    return codec.decodeValue(output, serialization);
  }
}

/** Nobody else can take the message. Its receipt is durable before anything that follows from it. */
function takeAtOnce(run: Run, message: StoredMessage, step: RunStep): void {
  run.follow(writeReceipt(run, message, step), step.stepID, (verdict) => verdict);
  run.inbox.expect(run.lastWrite);
}

/** False if another receive of the same run was faster. */
async function takeIfFirst(run: Run, message: StoredMessage, step: RunStep): Promise<boolean> {
  const written = writeReceipt(run, message, step);
  const verdict = await run.commit(written, step.stepID, (given) => (given === 'refused' ? undefined : given));
  return verdict === 'recorded';
}

function writeReceipt(run: Run, { messageID }: StoredMessage, step: RunStep): Promise<CheckpointVerdict> {
  return run.engine.store.writer.receive({ ...run.checkpoint(step), receivedID: messageID });
}
