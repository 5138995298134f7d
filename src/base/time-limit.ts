// Time limits for promises. The work behind the promise continues after the limit; a late rejection is ignored.
import type { Clock } from './clock.js';
import { deferred } from './deferred.js';

/** Settles like the promise, or, after `limitMs`, with what `onTimeout` returns or throws. */
export async function withTimeLimit<T, Late>(
  clock: Clock,
  limitMs: number,
  promise: Promise<T>,
  onTimeout: () => Late,
): Promise<T | Late> {
  const settled = deferred<T | Late>();
  const timer = clock.after(limitMs, () => {
    try {
      settled.resolve(onTimeout());
    } catch (error) {
      settled.reject(error);
    }
  });
  promise.then(
    (value) => settled.resolve(value),
    (error: unknown) => settled.reject(error),
  );
  try {
    return await settled.promise;
  } finally {
    timer.cancel();
  }
}
