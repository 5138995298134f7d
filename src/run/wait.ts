// Waits for several workflows or promises, and records which came first, so that a replay takes the same path.
import { abortable } from '../kernel/base/abortable.js';
import { sleep } from '../kernel/base/clock.js';
import { deferred } from '../kernel/base/deferred.js';
import { type DurationText, inMs } from '../kernel/base/duration.js';
import { allEnded, checkAreHandles, checkHandles, firstToEnd, type WorkflowHandle } from '../operator/outcome.js';
import { pollMsOfWait, type PollingOptions, refuseTooLong, timeoutCheck } from '../operator/time-limit.js';
import { nullish, oneOf, optional, record, timed } from '../kernel/check/validation.js';
import type { Runtime } from './runtime.js';
import { currentContext, isWorkflowCode } from './ambient.js';
import { Handle } from './handles.js';
import { limitsOf, operation } from './operation.js';
import type { Run } from './run.js';

/** Resolves to the handle of the first workflow that has ended. */
export async function waitFirst(
  runtime: Runtime,
  handles: readonly WorkflowHandle<unknown>[],
  options: PollingOptions = {},
): Promise<WorkflowHandle<unknown>> {
  const pollMs = pollMsOfWait(options);
  checkHandles(handles);
  Handle.refuseOthers(runtime, handles);
  const workflowID = await operation({ name: 'DBOS.waitFirst', isEffect: false, isPassive: true }, () =>
    firstToEnd(runtime, handles, { signal: currentRun()?.signal, pollMs }),
  );
  return handles.find((handle) => handle.workflowID === workflowID) as WorkflowHandle<unknown>;
}

/** Resolves when all workflows have ended, in whatever way. */
export async function waitAll<R>(
  runtime: Runtime,
  handles: readonly WorkflowHandle<R>[],
  options: PollingOptions = {},
): Promise<WorkflowHandle<R>[]> {
  const pollMs = pollMsOfWait(options);
  checkAreHandles(handles);
  Handle.refuseOthers(runtime, handles);
  if (handles.length === 0) return [];
  await operation({ name: 'DBOS.waitAll', isEffect: false, isPassive: true }, async () => {
    await allEnded(runtime, handles, { signal: currentRun()?.signal, pollMs });
    return null;
  });
  return [...handles];
}

/** Some of the promises are not waited for to the end. */
function noteRace(): void {
  currentContext()?.run?.unawaited.race();
}

function currentRun(): Run | undefined {
  const context = currentContext();
  return isWorkflowCode(context) ? context.run : undefined;
}

export interface WaitOptions {
  readonly timeoutMs?: number | DurationText;
  /** Return when all promises have settled, when the first has, or when the first has failed. Default: `all`. */
  readonly returnWhen?: 'all' | 'first' | 'firstError';
}

const waitCheck = nullish(
  record({
    timeoutMs: optional(timed(timeoutCheck)),
    returnWhen: optional(oneOf(['all', 'first', 'firstError'])),
  } satisfies Record<keyof WaitOptions, unknown>),
);

/** The promises that had settled when the wait ended, and those that had not. */
export interface WaitResult<P> {
  readonly done: P[];
  readonly pending: P[];
}

/**
 * Waits for promises and records which of them had settled, so that a replay takes the same path. On replay, awaits
 * those that had settled. With a timeout it takes two numbers: its own and its timer's.
 */
export async function waitPromises<P extends Promise<unknown>>(
  runtime: Runtime,
  promises: readonly P[],
  options?: WaitOptions | null,
): Promise<WaitResult<P>> {
  waitCheck.read(options, 'options');
  const { returnWhen = 'all', timeoutMs: timeout } = options ?? {};
  const timeoutMs = inMs(timeout) ?? Infinity;
  refuseTooLong(timeoutMs, 'timeoutMs');
  for (const promise of promises) promise.catch(() => {});
  noteRace();
  const run = currentRun();
  const stepID = run?.nextStepID();
  const limit = timeoutMs === Infinity ? undefined : timeLimit(runtime, run, timeoutMs);
  const indexes = await operation({ name: 'DBOS.wait', stepID, isEffect: false, isPassive: true }, () =>
    settledIndexes(promises, { returnWhen, limit, signal: run?.signal }),
  );
  const done = indexes.map((index) => promises[index] as P);
  await Promise.allSettled(done);
  return { done, pending: promises.filter((_, index) => !indexes.includes(index)) };
}

/** Resolves when the time is up; an abort of the signal ends it. */
type Limit = (ended: AbortSignal) => Promise<void>;

function timeLimit(runtime: Runtime, run: Run | undefined, timeoutMs: number): Limit {
  if (!run) return (ended) => sleep(runtime.clock, timeoutMs, ended);
  const timerID = run.nextStepID();
  const { databaseClock } = runtime;
  const given = { deadlineAt: Math.ceil(databaseClock.latest()) + Math.ceil(timeoutMs) };
  return async (ended) => {
    const { deadlineAt = given.deadlineAt, onEmpty } = await limitsOf(run, timerID, given);
    onEmpty?.();
    const wait = { awaited: undefined, endsAt: deadlineAt, isOperation: false, isLimit: true };
    const either = (suspended?: AbortSignal): AbortSignal => AbortSignal.any(suspended ? [ended, suspended] : [ended]);
    await run.waits.waitFor((suspended) => databaseClock.reached(deadlineAt, either(suspended)), wait);
    // What had settled when the process ended counts, however late the workflow is recovered.
    await run.history?.settled();
  };
}

interface Settling {
  readonly returnWhen: NonNullable<WaitOptions['returnWhen']>;
  readonly limit: Limit | undefined;
  readonly signal: AbortSignal | undefined;
}

/** The indexes of the settled promises, in the order in which they settled. */
async function settledIndexes(
  promises: readonly Promise<unknown>[],
  { returnWhen, limit, signal }: Settling,
): Promise<number[]> {
  const settled: number[] = [];
  const over = deferred<void>();
  const ended = new AbortController();
  const end = (): void => {
    ended.abort(ended);
    over.resolve();
  };
  const note = (index: number, isError: boolean): void => {
    settled.push(index);
    const isEnough = returnWhen === 'first' || (returnWhen === 'firstError' && isError);
    if (isEnough || settled.length === promises.length) end();
  };
  promises.forEach((promise, index) => {
    promise.then(
      () => note(index, false),
      () => note(index, true),
    );
  });
  if (promises.length === 0) end();
  // Promises that have settled before are noted now.
  await Promise.resolve();
  if (!ended.signal.aborted) limit?.(ended.signal).then(end, (error: unknown) => over.reject(error));
  try {
    await abortable(over.promise, signal);
    return [...settled];
  } finally {
    ended.abort(ended);
  }
}

/** `Promise.race` that records the winner. */
export async function race<T>(runtime: Runtime, promises: readonly (T | PromiseLike<T>)[]): Promise<Awaited<T>> {
  const started = promises.map((promise) => Promise.resolve(promise));
  const { done } = await waitPromises(runtime, started, { returnWhen: 'first' });
  return await (done[0] ?? new Promise(() => {}));
}

/** `Promise.any` that records the winner. */
export async function any<T>(runtime: Runtime, promises: readonly (T | PromiseLike<T>)[]): Promise<Awaited<T>> {
  const started = promises.map((promise) => Promise.resolve(promise));
  for (const promise of started) promise.catch(() => {});
  noteRace();
  const winner = await operation({ name: 'DBOS.any', isEffect: false, isPassive: true }, () =>
    abortable(
      Promise.any(started.map((promise, index) => promise.then(() => index))).catch(() => -1),
      currentRun()?.signal,
    ),
  );
  return await (started[winner] ?? Promise.any(started));
}
