// All access to time goes through a Clock, so that tests can control it.

export interface Timer {
  cancel(): void;
}

export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Milliseconds since some moment. Never set back, but stands still while the machine is suspended. */
  monotonic(): number;
  /** Calls `run` once after `delayMs`, unless the timer is cancelled first. */
  after(delayMs: number, run: () => void): Timer;
}

/** The longest delay that Node's timers accept; a longer one would fire immediately. */
const TIMER_MAX_MS = 2_147_483_647;

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(delayMs, run) {
    let handle: NodeJS.Timeout;
    const arm = (remainingMs: number): void => {
      const chunkMs = Math.min(Math.max(remainingMs, 0), TIMER_MAX_MS);
      handle = setTimeout(() => {
        if (remainingMs > chunkMs) arm(remainingMs - chunkMs);
        else run();
      }, chunkMs);
    };
    arm(delayMs);
    return { cancel: () => clearTimeout(handle) };
  },
};

/** Resolves after `delayMs`. An abort rejects with the signal's reason. */
export function sleep(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason as Error);
    const timer = clock.after(delayMs, () => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    });
    const onAbort = (): void => {
      timer.cancel();
      reject(signal?.reason as Error);
    };
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}
