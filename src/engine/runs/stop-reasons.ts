// Why runs were stopped. Everything that the code of a stopped run waits for rejects with the reason, including what it
// does not await yet. The code cannot prevent that, so such a rejection must never end the process as an unhandled one.
import { processWide } from '../process-wide.js';

/** Process-wide, because unhandled rejections are reported to the process: a second listener would see the first one. */
const { stopReasons, onUnhandled } = processWide('stopReasons', () => {
  const reasons = new WeakSet<Error>();
  return { stopReasons: reasons, onUnhandled: listenerFor(reasons) };
});

/** Call it before anything is rejected with the reason. */
export function addStopReason(reason: Error): void {
  stopReasons.add(reason);
  // Not earlier: a process that never stops a run keeps Node's own handling.
  if (!process.listeners('unhandledRejection').includes(onUnhandled)) process.on('unhandledRejection', onUnhandled);
}

/** For promises that the code has made from ours, such as a `Promise.all`: those cannot be shielded. */
function listenerFor(reasons: WeakSet<Error>): (reason: unknown) => void {
  return function onRejection(reason) {
    if (reason instanceof Error && reasons.has(reason)) return;
    if (process.listenerCount('unhandledRejection') > 1) return;
    // Ours is the only listener. Hand the rejection back to Node, which acts as if there were none.
    process.off('unhandledRejection', onRejection);
    // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- It is what the code has rejected with.
    void Promise.reject(reason);
    setImmediate(() => process.on('unhandledRejection', onRejection));
  };
}
