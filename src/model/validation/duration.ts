// The check for durations.
import { type Duration, DURATION_WANTS, isDuration } from '../../base/duration.js';
import { Check, wrong } from './check.js';

export const duration: Check<Duration> = new Check({
  wants: DURATION_WANTS,
  find: (value) => (isDuration(value) ? undefined : wrong(DURATION_WANTS, value)),
});
