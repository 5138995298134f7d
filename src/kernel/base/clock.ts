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
  after(delayMs: number, run: () => void, options?: TimerOptions): Timer;
}

/** A moment by both clocks. One stands still while the machine is suspended, the other may be set. */
export interface Moment {
  readonly at: number;
  readonly monotonicMs: number;
}

export function momentOf(clock: Clock): Moment {
  return { at: clock.now(), monotonicMs: clock.monotonic() };
}

/** How long ago that was, by the clock that says more. */
export function elapsedSince(clock: Clock, moment: Moment): number {
  return Math.max(clock.now() - moment.at, clock.monotonic() - moment.monotonicMs);
}

export interface TimerOptions {
  /**
   * Timers stand still while the machine is suspended. With this, the time that `now` has leapt over counts as well, soon
   * after. The caller has to check the time again: the clock may have been set.
   */
  readonly byWallClock?: boolean;
}

/** The longest delay that Node's timers accept; a longer one would fire immediately. */
const TIMER_MAX_MS = 2_147_483_647;
/** How often a timer by the wall clock looks at it. */
const WALL_CLOCK_CHECK_MS = 5_000;
const LEAP_MS = 1_000;

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(delayMs, run, { byWallClock = false } = {}) {
    let handle: NodeJS.Timeout;
    const chunkMaxMs = byWallClock ? WALL_CLOCK_CHECK_MS : TIMER_MAX_MS;
    const arm = (remainingMs: number): void => {
      const chunkMs = Math.min(Math.max(remainingMs, 0), chunkMaxMs);
      const armedAt = Date.now();
      handle = setTimeout(() => {
        const leaptMs = byWallClock ? Date.now() - armedAt - chunkMs : 0;
        const leftMs = remainingMs - chunkMs - (leaptMs > LEAP_MS ? leaptMs : 0);
        if (leftMs > 0) arm(leftMs);
        else run();
      }, chunkMs);
    };
    arm(delayMs);
    return { cancel: () => clearTimeout(handle) };
  },
};

/** Resolves after `delayMs`. An abort rejects with the signal's reason. */
export function sleep(clock: Clock, delayMs: number, signal?: AbortSignal, options?: TimerOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason as Error);
    const timer = clock.after(
      delayMs,
      () => {
        signal?.removeEventListener('abort', onAbort);
        resolve();
      },
      options,
    );
    const onAbort = (): void => {
      timer.cancel();
      reject(signal?.reason as Error);
    };
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}

/** A time in UTC as text. What a damaged row has instead of a time stays the number that it is. */
export function utcText(epochMs: number): string {
  const date = new Date(epochMs);
  return Number.isNaN(date.getTime()) ? String(epochMs) : date.toISOString();
}
