// Everstep's own operations in workflow code: each takes a number, is recorded under a fixed name and replayed. Outside
// workflow code they just run.
import { sleep } from '../../base/clock.js';
import { PORTABLE_FORMAT, type WorkflowSerializationFormat } from '../../codec/serializer.js';
import type { SerializationOptions } from '../../control/runs/storable.js';
import { DBOSError, DBOSInvalidWorkflowTransitionError } from '../../model/errors/errors.js';
import { type Context, currentContext, isWorkflowCode } from './ambient.js';
import type { Engine } from '../engine.js';
import type { Run, RunStep } from './run.js';
import { replayOutcome } from './step.js';
import type { WaitLimits } from '../../control/runs/row-watcher.js';

const SLEEP = 'DBOS.sleep';

export interface OperationOptions {
  readonly name: string;
  /** Whether the operation changes something that others can see. Then all before it must be durable first. */
  readonly isEffect: boolean;
  /** The format that is named with the record; none means the configured serializer. */
  readonly format?: 'portable';
  /** The workflow that the record speaks of. */
  readonly childWorkflowID?: string;
}

/** Runs an operation, recorded if called in workflow code. */
export async function operation<R>(options: OperationOptions, body: () => Promise<R>): Promise<R> {
  const context = currentContext();
  refuseInTransaction(context, options.name);
  if (!isWorkflowCode(context)) return body();
  return recorded(context.run, context.run.nextStepID(), options, body);
}

/** Runs an operation under a number that was reserved before. */
export async function recorded<R>(
  run: Run,
  stepID: number,
  options: OperationOptions,
  body: () => Promise<R>,
): Promise<R> {
  const record = run.replay(stepID, options.name);
  run.check();
  if (record) return (await replayOutcome(run, record)) as R;
  if (options.isEffect) await run.barrier();
  const { clock, codec } = run.engine;
  const startedAt = clock.now();
  const base = { stepID, name: options.name, childWorkflowID: options.childWorkflowID ?? null, startedAt };
  try {
    const value = await body();
    run.check();
    const encoded = await codec.roundTripValue(value, { format: options.format });
    const serialization = options.format ? encoded.serialization : null;
    run.record({ ...base, completedAt: clock.now(), output: encoded.text, error: null, serialization });
    return encoded.value as R;
  } catch (error) {
    run.check();
    const encoded = await codec.encodeError(error);
    run.record({ ...base, completedAt: clock.now(), output: null, error: encoded.text, serialization: null });
    throw error;
  }
}

/** The format of a value: the one asked for, else that of whoever it comes from. */
export function formatOf(
  run: Run | undefined,
  { serializationType }: SerializationOptions,
): WorkflowSerializationFormat | undefined {
  const ownFormat = run ? (run.isPortable ? 'portable' : undefined) : currentContext()?.serialization;
  return serializationType ?? ownFormat;
}

/** The run whose workflow code this is. Elsewhere the operation is not allowed. */
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

/** Whether history holds the operation. An error in it is thrown. */
export async function wasDone(run: Run, stepID: number, name: string): Promise<boolean> {
  const record = run.replay(stepID, name);
  run.check();
  if (record) await replayOutcome(run, record);
  return record !== undefined;
}

/** Records a point in time and returns it; the same after a recovery. For sleeps and time limits. */
export async function recordTime(run: Run, stepID: number, at: number, completedAt: number): Promise<number> {
  const recordedAt = await replayTime(run, stepID);
  run.check();
  if (recordedAt !== undefined) return recordedAt;
  run.record({ ...portableStep(run, { stepID, name: SLEEP, output: JSON.stringify(at) }), completedAt });
  return at;
}

/** The point in time that history holds under a number. */
async function replayTime(run: Run, stepID: number): Promise<number | undefined> {
  const record = run.replay(stepID, SLEEP);
  return record ? Number(await replayOutcome(run, record)) : undefined;
}

/** The record of an operation that gives nothing, or plain JSON. */
export function portableStep(
  run: Run,
  { stepID, name, output = 'null' }: { readonly stepID: number; readonly name: string; readonly output?: string },
): RunStep {
  const now = run.engine.clock.now();
  const times = { startedAt: now, completedAt: now };
  return { stepID, name, output, error: null, childWorkflowID: null, serialization: PORTABLE_FORMAT, ...times };
}

/** Records that an operation has failed, and throws the error. */
export async function recordFailure(run: Run, step: RunStep, error: unknown): Promise<never> {
  const { text, serialization } = await run.engine.codec.encodeError(error);
  run.record({ ...step, output: null, error: text, serialization });
  throw error;
}

/** The limits of a wait in workflow code. The deadline is recorded when it is needed, and kept after a recovery. */
export async function limitsOf(run: Run, timerID: number, givenDeadline: number | undefined): Promise<WaitLimits> {
  const { signal } = run;
  if (givenDeadline === undefined) return { signal };
  const { clock } = run.engine;
  const recordedAt = await replayTime(run, timerID);
  const deadlineAt = recordedAt ?? givenDeadline;
  if (recordedAt !== undefined || givenDeadline <= clock.now()) return { signal, deadlineAt };
  const timer = { stepID: timerID, name: SLEEP, output: JSON.stringify(deadlineAt) };
  // The deadline is known to nobody but this wait, whose end is a commit of its own. If a crash of the server takes the
  // record away, the wait begins anew, as it would after a crash just before.
  const onEmpty = (): void => run.record(portableStep(run, timer), { mayBeLost: true });
  return { signal, deadlineAt, onEmpty };
}

/** A sleep that goes on where it was after a recovery, and ends at once when the workflow is cancelled. */
export async function durableSleep(engine: Engine, durationMs: number): Promise<void> {
  if (!Number.isFinite(durationMs))
    throw new DBOSError(`The duration of a sleep must be a finite number, not ${durationMs}.`);
  const context = currentContext();
  refuseInTransaction(context, SLEEP);
  if (!isWorkflowCode(context)) return sleep(engine.clock, Math.max(durationMs, 0));
  const { run } = context;
  const stepID = run.nextStepID();
  run.check();
  if (durationMs <= 0) return;
  const { clock } = run.engine;
  // Times are stored in whole milliseconds.
  const wakeAt = clock.now() + Math.ceil(durationMs);
  await sleepUntil(run, await recordTime(run, stepID, wakeAt, wakeAt));
  run.check();
}

export async function sleepUntil(run: Run, at: number): Promise<void> {
  const { clock } = run.engine;
  // A timer may fire a fraction of a millisecond before its time by the clock.
  for (let remainingMs = at - clock.now(); remainingMs > 0; remainingMs = at - clock.now()) {
    await run.waitFor(sleep(clock, remainingMs, run.signal));
  }
}
