// Everstep's own operations in workflow code: each takes a number, is recorded under a fixed name and replayed. Outside
// workflow code they just run.
import { sleep } from '../../base/clock.js';
import type { WorkflowSerializationFormat } from '../../codec/serializer.js';
import type { SerializationOptions } from '../../control/runs/storable.js';
import { DBOSError, DBOSInvalidWorkflowTransitionError } from '../../model/errors/errors.js';
import { type Context, currentContext, isWorkflowCode } from './ambient.js';
import type { Runtime } from '../runtime.js';
import { type Operation, own, perform, portable, replayOutcome } from './perform.js';
import type { Run } from './run.js';
import type { WaitLimits } from '../../control/runs/row-watcher.js';

const SLEEP = 'DBOS.sleep';

/** Runs an operation, recorded if called in workflow code. */
export async function operation<R>(options: Operation<R>, body: () => Promise<R>): Promise<R> {
  const context = currentContext();
  refuseInTransaction(context, options.name);
  if (!isWorkflowCode(context)) return body();
  return perform(context.run, options, own(body));
}

/** The format of a value: the one asked for, else that of the workflow or caller it comes from. */
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

/** Records a point in time and returns it; the same after a recovery. For sleeps and time limits. */
export async function recordTime(run: Run, stepID: number, at: number, completedAt: number): Promise<number> {
  const time = { name: SLEEP, stepID, isEffect: false, format: 'portable', completedAt } as const;
  const recorded = perform(
    run,
    time,
    own(() => Promise.resolve(at)),
  );
  return Number(await recorded);
}

/** The limits of a wait in workflow code. The deadline is recorded when the wait has to wait, and kept after a recovery. */
export async function limitsOf(run: Run, timerID: number, givenDeadline: number | undefined): Promise<WaitLimits> {
  const { signal } = run;
  if (givenDeadline === undefined) return { signal };
  const { clock } = run.runtime;
  // Not `perform`: a wait that finds something at once leaves its timer unrecorded.
  const record = run.replay(timerID, SLEEP);
  const deadlineAt = record ? Number(await replayOutcome(run, record)) : givenDeadline;
  if (record || givenDeadline <= clock.now()) return { signal, deadlineAt };
  // Relaxed: only this wait knows the deadline, and its end is a commit of its own. If a crash of the server undoes the
  // record, the wait begins anew, as it would after a crash just before.
  const onEmpty = (): void => {
    const now = clock.now();
    const times = { startedAt: now, completedAt: now };
    const timer = { stepID: timerID, name: SLEEP, error: null, childWorkflowID: null, ...times };
    run.record({ ...timer, ...portable(JSON.stringify(deadlineAt)) }, { relaxed: true });
  };
  return { signal, deadlineAt, onEmpty };
}

/** A sleep that survives a recovery with its end, and stops at once when the workflow is cancelled. */
export async function durableSleep(runtime: Runtime, durationMs: number): Promise<void> {
  if (!Number.isFinite(durationMs))
    throw new DBOSError(`The duration of a sleep must be a finite number, not ${durationMs}.`);
  const context = currentContext();
  refuseInTransaction(context, SLEEP);
  if (!isWorkflowCode(context)) return sleep(runtime.clock, Math.max(durationMs, 0));
  const { run } = context;
  const stepID = run.nextStepID();
  run.check();
  if (durationMs <= 0) return;
  const { clock } = run.runtime;
  // Times are stored in whole milliseconds.
  const wakeAt = clock.now() + Math.ceil(durationMs);
  await sleepUntil(run, await recordTime(run, stepID, wakeAt, wakeAt));
  run.check();
}

export async function sleepUntil(run: Run, at: number): Promise<void> {
  const { clock } = run.runtime;
  // A timer may fire a fraction of a millisecond before its time by the clock.
  for (let remainingMs = at - clock.now(); remainingMs > 0; remainingMs = at - clock.now()) {
    await run.waitFor(sleep(clock, remainingMs, run.signal));
  }
}
