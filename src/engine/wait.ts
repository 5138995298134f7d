// Waiting for several workflows, and for several promises in a way that gives the same answer after a recovery.
import { sleep } from '../base/clock.js';
import { currentContext, isWorkflowCode } from './ambient.js';
import type { Engine } from './engine.js';
import { abortable, type WorkflowHandle } from './handles.js';
import { operation } from './operation.js';
import { checkPolling, type PollingOptions } from '../control/time-limit.js';

/** Resolves to the handle of the first workflow that has ended. */
export async function waitFirst(
  engine: Engine,
  handles: readonly WorkflowHandle<unknown>[],
  options: PollingOptions = {},
): Promise<WorkflowHandle<unknown>> {
  checkPolling(options);
  if (handles.length === 0) throw new Error('handles must not be empty');
  const seen = new Set<string>();
  for (const { workflowID } of handles) {
    if (seen.has(workflowID)) throw new Error(`Duplicate workflow ID in waitFirst: ${workflowID}`);
    seen.add(workflowID);
  }
  const workflowID = await operation({ name: 'DBOS.waitFirst', isEffect: false }, async () => {
    const rest = new AbortController();
    const signal = withRunSignal(rest.signal);
    try {
      return (await Promise.race(handles.map((handle) => engine.watches.outcomes.wait(handle.workflowID, { signal }))))
        .workflowID;
    } finally {
      rest.abort();
    }
  });
  return handles.find((handle) => handle.workflowID === workflowID) as WorkflowHandle<unknown>;
}

/** Resolves when all workflows have ended, however they have. */
export async function waitAll<R>(
  engine: Engine,
  handles: readonly WorkflowHandle<R>[],
  options: PollingOptions = {},
): Promise<WorkflowHandle<R>[]> {
  checkPolling(options);
  if (handles.length === 0) return [];
  await operation({ name: 'DBOS.waitAll', isEffect: false }, async () => {
    const signal = withRunSignal();
    await Promise.all(handles.map((handle) => engine.watches.outcomes.wait(handle.workflowID, { signal })));
    return null;
  });
  return [...handles];
}

function withRunSignal(signal?: AbortSignal): AbortSignal | undefined {
  const context = currentContext();
  if (!isWorkflowCode(context)) return signal;
  return signal ? AbortSignal.any([signal, context.run.signal]) : context.run.signal;
}

export interface WaitOptions {
  readonly timeoutMs?: number;
  /** When to return: when all promises have settled, the first has, or the first has failed. */
  readonly returnWhen?: 'all' | 'first' | 'firstError';
}

/** The promises that had settled when the wait was over, and those that had not. */
export interface WaitResult<P> {
  readonly done: P[];
  readonly pending: P[];
}

/**
 * Waits for promises and records which of them had settled, so that a recovered workflow takes the same way. Promises
 * that were settled in the record are awaited until they are so again.
 */
export async function waitPromises<P extends Promise<unknown>>(
  engine: Engine,
  promises: readonly P[],
  options: WaitOptions = {},
): Promise<WaitResult<P>> {
  for (const promise of promises) promise.catch(() => {});
  const indexes = await operation({ name: 'DBOS.wait', isEffect: false }, () =>
    settledIndexes(engine, promises, options),
  );
  const done = indexes.map((index) => promises[index] as P);
  await Promise.allSettled(done);
  return { done, pending: promises.filter((_, index) => !indexes.includes(index)) };
}

/** The indexes of the settled promises, in the order in which they settled. */
async function settledIndexes(
  engine: Engine,
  promises: readonly Promise<unknown>[],
  { timeoutMs, returnWhen = 'all' }: WaitOptions,
): Promise<number[]> {
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
    if (timeoutMs !== undefined) sleep(engine.clock, timeoutMs, finished.signal).then(resolve, () => {});
  });
  try {
    await abortable(over, withRunSignal());
    return [...settled];
  } finally {
    finished.abort();
  }
}

/** `Promise.race`, with the winner recorded. */
export async function race<T>(engine: Engine, promises: readonly (T | PromiseLike<T>)[]): Promise<Awaited<T>> {
  const started = promises.map((promise) => Promise.resolve(promise));
  const { done } = await waitPromises(engine, started, { returnWhen: 'first' });
  return await (done[0] ?? new Promise(() => {}));
}

/** `Promise.any`, with the winner recorded. */
export async function any<T>(engine: Engine, promises: readonly (T | PromiseLike<T>)[]): Promise<Awaited<T>> {
  const started = promises.map((promise) => Promise.resolve(promise));
  for (const promise of started) promise.catch(() => {});
  const winner = await operation({ name: 'DBOS.any', isEffect: false }, () =>
    abortable(
      Promise.any(started.map((promise, index) => promise.then(() => index))).catch(() => -1),
      withRunSignal(),
    ),
  );
  return await (started[winner] ?? Promise.any(started));
}
