// Time limits for promises. The work behind the promise continues after the limit; a late rejection is ignored.
import type { Clock } from './clock.js';

/** Settles like the promise, or, after `limitMs`, with what `onTimeout` returns or throws. */
export function withTimeLimit<T, Late>(
  clock: Clock,
  limitMs: number,
  promise: Promise<T>,
  onTimeout: () => Late,
): Promise<T | Late> {
  return new Promise((resolve, reject) => {
    const timer = clock.after(limitMs, () => {
      try {
        resolve(onTimeout());
      } catch (error) {
        reject(error as Error);
      }
    });
    promise.then(
      (value) => {
        timer.cancel();
        resolve(value);
      },
      (error: unknown) => {
        timer.cancel();
        reject(error as Error);
      },
    );
  });
}
