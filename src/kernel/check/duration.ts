// The check for durations.
import { type Duration, DURATION_WANTS, inMs, isDuration } from '../base/duration.js';
import { Check, wrong } from './check.js';

export const duration: Check<Duration> = new Check({
  wants: DURATION_WANTS,
  find: (value) => (isDuration(value) ? undefined : wrong(DURATION_WANTS, value)),
});

/** A check of a number of milliseconds or seconds that also accepts a number with a unit, such as `30s`. */
export function timed<T>(check: Check<T>, convert: <V>(value: V) => unknown = inMs): Check<T> {
  return new Check({
    ...check,
    find: (value) => {
      if (typeof value !== 'string') return check.find(value);
      const problem = check.find(convert(value));
      return problem && { ...problem, hint: 'A duration is a number with a unit: 500ms, 30s, 10m, 2h or 30 days.' };
    },
  });
}
