// Time limits of waits: a number of seconds, or options with a timeout or deadline.
import type { Clock } from '../../base/clock.js';
import { checkThat, finiteNumber, optional, positiveNumber } from '../../model/validation/validation.js';

export interface PollingOptions {
  /** How often to poll without notifications. */
  readonly pollingIntervalMs?: number;
}

export interface TimeLimit extends PollingOptions {
  readonly timeoutSeconds?: number;
  /** Overrides `timeoutSeconds`. */
  readonly deadlineEpochMS?: number;
}

const intervalCheck = optional(positiveNumber);
/** Infinity waits without a limit. */
export const timeoutCheck = checkThat<number>(
  'a number of at least 0',
  (value) => typeof value === 'number' && value >= 0,
);

export function checkPolling({ pollingIntervalMs }: PollingOptions): void {
  intervalCheck.read(pollingIntervalMs, 'pollingIntervalMs');
}

/** The deadline in whole milliseconds by the engine's clock; undefined for none. */
export function deadlineOf(
  clock: Clock,
  limit: number | TimeLimit | undefined,
  defaultSeconds?: number,
): number | undefined {
  const options: TimeLimit = typeof limit === 'number' ? { timeoutSeconds: limit } : (limit ?? {});
  checkPolling(options);
  const { deadlineEpochMS, timeoutSeconds = defaultSeconds } = options;
  if (deadlineEpochMS !== undefined) {
    return Math.ceil(finiteNumber.read(deadlineEpochMS, 'deadlineEpochMS'));
  }
  if (timeoutSeconds === undefined || timeoutSeconds === Infinity) return undefined;
  return clock.now() + Math.ceil(timeoutCheck.read(timeoutSeconds, 'timeoutSeconds') * 1000);
}
