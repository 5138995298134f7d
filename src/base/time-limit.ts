// A promise with a time limit. The work behind it goes on after the limit; a rejection that comes then is ignored.
import type { Clock } from './clock.js';

/** The promise's outcome. If it takes longer than `limitMs`, what `onTimeout` returns or throws. */
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
