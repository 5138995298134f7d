// Waits for several workflows or promises, and records which came first, so that a replay takes the same path.
import { type DurationText, inMs } from '../../base/duration.js';
import { sleep } from '../../base/clock.js';
import {
  allEnded,
  checkAreHandles,
  checkHandles,
  firstToEnd,
  type WorkflowHandle,
} from '../../control/runs/outcome.js';
import { currentContext, isWorkflowCode } from './ambient.js';
import type { Runtime } from '../runtime.js';
import { abortable } from '../../base/abortable.js';
import { Handle } from './handles.js';
import { operation } from './operation.js';
import { pollMsOfWait, type PollingOptions } from '../../control/runs/time-limit.js';

/** Resolves to the handle of the first workflow that has ended. */
export async function waitFirst(
  runtime: Runtime,
  handles: readonly WorkflowHandle<unknown>[],
  options: PollingOptions = {},
): Promise<WorkflowHandle<unknown>> {
  const pollMs = pollMsOfWait(options);
  checkHandles(handles);
  Handle.refuseOthers(runtime, handles);
  const workflowIDs = handles.map((handle) => handle.workflowID);
  const workflowID = await operation({ name: 'DBOS.waitFirst', isEffect: false, isPassive: true }, () =>
    firstToEnd(runtime, workflowIDs, { signal: runSignal(), pollMs }),
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
    await allEnded(
      runtime,
      handles.map((handle) => handle.workflowID),
      { signal: runSignal(), pollMs },
    );
    return null;
  });
  return [...handles];
}

function runSignal(): AbortSignal | undefined {
  const context = currentContext();
  return isWorkflowCode(context) ? context.run.signal : undefined;
}

export interface WaitOptions {
  readonly timeoutMs?: number | DurationText;
  /** Return when all promises have settled, when the first has, or when the first has failed. Default: `all`. */
  readonly returnWhen?: 'all' | 'first' | 'firstError';
}

/** The promises that had settled when the wait ended, and those that had not. */
export interface WaitResult<P> {
  readonly done: P[];
  readonly pending: P[];
}

/**
 * Waits for promises and records which of them had settled, so that a replay takes the same path. On replay, awaits
 * those that had settled.
 */
export async function waitPromises<P extends Promise<unknown>>(
  runtime: Runtime,
  promises: readonly P[],
  options: WaitOptions = {},
): Promise<WaitResult<P>> {
  for (const promise of promises) promise.catch(() => {});
  const indexes = await operation({ name: 'DBOS.wait', isEffect: false, isPassive: true }, () =>
    settledIndexes(runtime, promises, options),
  );
  const done = indexes.map((index) => promises[index] as P);
  await Promise.allSettled(done);
  return { done, pending: promises.filter((_, index) => !indexes.includes(index)) };
}

/** The indexes of the settled promises, in the order in which they settled. */
async function settledIndexes(
  runtime: Runtime,
  promises: readonly Promise<unknown>[],
  { timeoutMs: timeout, returnWhen = 'all' }: WaitOptions,
): Promise<number[]> {
  const timeoutMs = inMs(timeout);
  const settled: number[] = [];
  const finished = new AbortController();
  const over = new Promise<void>((resolve) => {
    const note = (index: number, isError: boolean): void => {
      settled.push(index);
      const isEnough = returnWhen === 'first' || (returnWhen === 'firstError' && isError);
      if (isEnough || settled.length === promises.length) resolve();
    };
    promises.forEach((promise, index) => {
      promise.then(
        () => note(index, false),
        () => note(index, true),
      );
    });
    if (promises.length === 0) resolve();
    if (timeoutMs !== undefined) sleep(runtime.clock, timeoutMs, finished.signal).then(resolve, () => {});
  });
  try {
    await abortable(over, runSignal());
    return [...settled];
  } finally {
    finished.abort();
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
  const winner = await operation({ name: 'DBOS.any', isEffect: false, isPassive: true }, () =>
    abortable(
      Promise.any(started.map((promise, index) => promise.then(() => index))).catch(() => -1),
      runSignal(),
    ),
  );
  return await (started[winner] ?? Promise.any(started));
}
