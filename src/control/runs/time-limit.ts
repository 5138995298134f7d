// How long to wait: a number of seconds, or options that also know a point in time.
import type { Clock } from '../../base/clock.js';
import { DBOSError } from '../../model/errors/errors.js';

export interface PollingOptions {
  /** How often to look when no wake-up comes. */
  readonly pollingIntervalMs?: number;
}

export interface TimeLimit extends PollingOptions {
  readonly timeoutSeconds?: number;
  /** Wins over `timeoutSeconds`. */
  readonly deadlineEpochMS?: number;
}

export function checkPolling({ pollingIntervalMs }: PollingOptions): void {
  if (pollingIntervalMs === undefined || (Number.isFinite(pollingIntervalMs) && pollingIntervalMs > 0)) return;
  throw new DBOSError('pollingIntervalMs must be a positive finite number');
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
    if (Number.isFinite(deadlineEpochMS)) return Math.ceil(deadlineEpochMS);
    throw new DBOSError(`deadlineEpochMS must be a finite number, not ${deadlineEpochMS}.`);
  }
  if (timeoutSeconds === undefined || timeoutSeconds === Infinity) return undefined;
  if (timeoutSeconds >= 0) return clock.now() + Math.ceil(timeoutSeconds * 1000);
  throw new DBOSError(`timeoutSeconds must be a number and not negative, but is ${timeoutSeconds}.`);
}
