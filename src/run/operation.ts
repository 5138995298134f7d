// Everstep's own operations, such as `sleep`. In workflow code each takes a number, is recorded under a fixed name and
// replayed. Outside of workflow code they just run.
import type { MaybePromise } from '../kernel/codec/maybe-promise.js';
import type { StepRecord } from '../kernel/workflow/records.js';
import { eitherOf } from '../kernel/base/abortable.js';
import { type Clock, sleep } from '../kernel/base/clock.js';
import type { WorkflowSerializationFormat } from '../kernel/codec/serializer.js';
import type { SerializationOptions } from '../operator/storable.js';
import { refuseTooLong } from '../operator/time-limit.js';
import { DBOSInvalidWorkflowTransitionError } from '../kernel/errors/errors.js';
import { finiteNumber } from '../kernel/check/validation.js';
import { type Context, currentContext, isWorkflowCode } from './ambient.js';
import { type Operation, own, perform, portable, replayOutcome } from './perform.js';
import type { Run } from './run.js';
import type { WaitLimits } from '../operator/row-watcher.js';

const SLEEP = 'DBOS.sleep';

/** Runs an operation. In workflow code it is recorded. */
export async function operation<R>(options: Operation<R>, body: () => Promise<R>): Promise<R> {
  const context = currentContext();
  refuseInTransaction(context, options.name);
  if (!isWorkflowCode(context)) return body();
  return perform(context.run, options, own(body));
}

/**
 * Reads what is stored. In workflow code it first waits until what the run has written is stored, its own row included, so that
 * a workflow sees itself from its first operation on.
 */
export async function readStored<R>(read: () => Promise<R>): Promise<R> {
  const context = currentContext();
  if (isWorkflowCode(context)) await context.run.barrier();
  return read();
}

/** The format to encode a value in: the requested one, else that of the workflow or of the caller's context. */
export function formatOf(
  run: Run | undefined,
  { serializationType }: SerializationOptions,
): WorkflowSerializationFormat | undefined {
  const ownFormat = run ? (run.isPortable ? 'portable' : undefined) : currentContext()?.serialization;
  return serializationType ?? ownFormat;
}

/** The current run. Throws outside of workflow code, where the operation is not allowed. */
export function workflowCode(name: string): Run {
  const context = currentContext();
  if (isWorkflowCode(context)) return context.run;
  throw new DBOSInvalidWorkflowTransitionError(`Invalid call to \`${name}\` outside of workflow code`);
}

export function refuseInTransaction(context: Context | undefined, name: string): void {
  if (context?.transactionID !== undefined) {
    throw new DBOSInvalidWorkflowTransitionError(`Invalid call to \`${name}\` inside a \`transaction\``);
  }
}

/** Records a time, for sleeps and timeouts. A replay returns the recorded one. */
export async function recordTime(run: Run, stepID: number, at: number, completedAt: number): Promise<number> {
  const time = { name: SLEEP, stepID, isEffect: false, format: 'portable', completedAt } as const;
  const recorded = perform(
    run,
    time,
    own(() => Promise.resolve(at)),
  );
  return Number(await recorded);
}

/** What the caller of a wait asked for. */
export type GivenLimits = Pick<WaitLimits, 'deadlineAt' | 'pollMs'>;

/** The limits of a wait in workflow code. The deadline is recorded only if nothing is there yet, and kept on replay. */
export function limitsOf(run: Run, timerID: number, given: GivenLimits): MaybePromise<WaitLimits> {
  const { signal } = run;
  const { deadlineAt: givenDeadline, pollMs } = given;
  if (givenDeadline === undefined) return { signal, pollMs };
  const { clock, databaseClock } = run.runtime;
  // Not `perform`: a wait that finds something at once does not record its timer.
  const record = run.replay(timerID, SLEEP);
  if (record) return replayLimits(run, record, pollMs);
  const deadlineAt = givenDeadline;
  if (deadlineAt <= databaseClock.earliest()) return { signal, deadlineAt, pollMs };
  // Relaxed: only this wait depends on the deadline. If a server crash loses the record, the wait starts over, as it
  // would after a crash just before.
  let isRecorded = false;
  const onEmpty = (): void => {
    // A wait may be suspended and begin again.
    if (isRecorded) return;
    isRecorded = true;
    const now = clock.now();
    const times = { startedAt: now, completedAt: now };
    const timer = { stepID: timerID, name: SLEEP, error: null, childWorkflowID: null, ...times };
    run.record({ ...timer, ...portable(JSON.stringify(deadlineAt)) }, { relaxed: true });
  };
  return { signal, deadlineAt, pollMs, onEmpty };
}

async function replayLimits(run: Run, record: StepRecord, pollMs: number | undefined): Promise<WaitLimits> {
  const deadlineAt = Number(await replayOutcome(run, await run.completed(record)));
  return { signal: run.signal, deadlineAt, pollMs };
}

/** Sleeps. In workflow code the wake-up time is recorded, and a cancellation ends the sleep at once. */
export async function durableSleep(clock: Clock, durationMs: number): Promise<void> {
  finiteNumber.read(durationMs, 'durationMs');
  refuseTooLong(durationMs, 'durationMs');
  const context = currentContext();
  refuseInTransaction(context, SLEEP);
  if (!isWorkflowCode(context)) return sleep(clock, Math.max(durationMs, 0));
  const { run } = context;
  const stepID = run.nextStepID();
  run.check();
  if (durationMs <= 0) return;
  const { databaseClock } = run.runtime;
  const settling = databaseClock.settle();
  if (settling) await settling;
  // By the database's clock: the workflow may wake up in a process whose own clock differs. Stored times are whole
  // milliseconds.
  const wakeAt = Math.ceil(databaseClock.latest()) + Math.ceil(durationMs);
  const sleeping = { name: SLEEP, stepID, isWait: true };
  run.unawaited.begin(sleeping);
  const firesAt = await recordTime(run, stepID, wakeAt, wakeAt);
  await sleepUntil(run, firesAt);
  run.unawaited.end(sleeping);
  run.journal.timerFired(stepID, firesAt);
  run.check();
}

export async function sleepUntil(run: Run, at: number): Promise<void> {
  const { databaseClock } = run.runtime;
  const timer = { awaited: undefined, endsAt: at, isOperation: false };
  // A sleep that is too short for the run to leave needs no second signal.
  const wait = at - databaseClock.latest() >= run.parkAfterMs ? timer : undefined;
  await run.waits.waitFor((suspended) => databaseClock.reached(at, eitherOf(run.signal, suspended)), wait);
}
