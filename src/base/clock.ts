// The only door to time. Everything that reads the clock or waits takes a Clock, so tests can move time by hand.

export interface Timer {
  cancel(): void;
}

export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Calls `run` once after `delayMs`, unless the timer is cancelled first. */
  after(delayMs: number, run: () => void): Timer;
}

/** The longest delay that Node's timers take; a longer one would fire at once. */
const TIMER_MAX_MS = 2_147_483_647;

export const systemClock: Clock = {
  now: () => Date.now(),
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

/** Waits for `delayMs`. An abort ends the wait early with the signal's reason. */
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
