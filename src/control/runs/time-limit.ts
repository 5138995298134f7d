// How long to wait: a number of seconds, or options that also know a point in time.
import type { Clock } from '../../base/clock.js';
import { checkThat, finiteNumber, optional, positiveNumber } from '../../model/validation/validation.js';

export interface PollingOptions {
  /** How often to look when no wake-up comes. */
  readonly pollingIntervalMs?: number;
}

export interface TimeLimit extends PollingOptions {
  readonly timeoutSeconds?: number;
  /** Wins over `timeoutSeconds`. */
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

/** The deadline that is meant, in whole milliseconds by the engine's clock; undefined for none. */
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
