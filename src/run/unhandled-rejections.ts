// Rejections of what workflow code gets from us, and does not await. None of them may end the process: the workflow would be
// recovered and end the next one as well.
//
// - Everything that the code of a stopped run waits for rejects with the reason for the stop, including what it does not
//   await yet. The code cannot prevent that, so such a rejection counts as handled.
// - An operation that fails without being awaited fails its workflow.
import { processWide } from './process-wide.js';

/** The operations of the run in whose code one has failed. */
export interface FailingOperations {
  /** True if the run fails because of the error. False if the run itself has ended with it, and another gets it. */
  fail(error: unknown): boolean;
}

/** Process-wide, because unhandled rejections are reported to the process: a second listener would see the first one. */
const { stopReasons, runs, onUnhandled } = processWide('unhandledRejections', () => {
  const known = { stopReasons: new WeakSet<Error>(), runs: new WeakMap<object, FailingOperations>() };
  return { ...known, onUnhandled: listenerFor(known) };
});

/** Call it before anything is rejected with the reason. */
export function addStopReason(reason: Error): void {
  stopReasons.add(reason);
  listen();
}

/** An operation of the run has failed with the error, and its code got the promise. */
export function noteRejection(run: FailingOperations, promise: Promise<unknown>, error: unknown): void {
  runs.set(promise, run);
  // Code makes promises of its own from ours, such as that of an async function or a `Promise.all`.
  if (typeof error === 'object' && error !== null) runs.set(error, run);
  listen();
}

/** Not earlier: a process in which no operation fails keeps Node's own handling. */
function listen(): void {
  if (!process.listeners('unhandledRejection').includes(onUnhandled)) process.on('unhandledRejection', onUnhandled);
}

function listenerFor(known: {
  readonly stopReasons: WeakSet<Error>;
  readonly runs: WeakMap<object, FailingOperations>;
}): NodeJS.UnhandledRejectionListener {
  return function onRejection(reason, promise) {
    if (reason instanceof Error && known.stopReasons.has(reason)) return;
    // The application has its own way to handle them.
    if (process.listenerCount('unhandledRejection') > 1) return;
    const operations = known.runs.get(promise) ?? (reason instanceof Object ? known.runs.get(reason) : undefined);
    if (operations?.fail(reason)) return;
    // Ours is the only listener. Hand the rejection back to Node, which acts as if there were none.
    process.off('unhandledRejection', onRejection);
    // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- It is what the code has rejected with.
    void Promise.reject(reason);
    setImmediate(() => process.on('unhandledRejection', onRejection));
  };
}
