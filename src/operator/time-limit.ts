// Time limits of waits: a number of seconds, or options with a timeout or deadline.
import { type DurationText, inMs, inSeconds, isDuration } from '../kernel/base/duration.js';
import type { RemoteClock } from '../kernel/base/remote-clock.js';
import { DURATION_MAX_MS } from '../kernel/check/durations.js';
import { DBOSInvalidArgumentError } from '../kernel/errors/errors.js';
import {
  anything,
  checkThat,
  finiteNumber,
  isRecord,
  nullish,
  optional,
  positiveNumber,
  lenientRecord,
} from '../kernel/check/validation.js';

export interface PollingOptions {
  /** How often to query while no notification arrives. Default: 2,000 ms, or 500 ms where none can arrive. */
  readonly pollingIntervalMs?: number | DurationText;
}

export interface TimeLimit extends PollingOptions {
  readonly timeoutSeconds?: number | DurationText;
  /** Overrides `timeoutSeconds`. */
  readonly deadlineEpochMS?: number;
}

const intervalCheck = optional(positiveNumber);
/** The values are checked where they are used. */
const limitFields = lenientRecord({
  pollingIntervalMs: optional(anything),
  timeoutSeconds: optional(anything),
  deadlineEpochMS: optional(anything),
} satisfies Record<keyof TimeLimit, unknown>);
const pollingFields = nullish(
  lenientRecord({ pollingIntervalMs: optional(anything) } satisfies Record<keyof PollingOptions, unknown>),
);
const limitCheck = nullish(
  checkThat(
    'a number of seconds, a duration such as 30s, or an object',
    (value) => typeof value === 'number' || isDuration(value) || isRecord(value),
  ),
);
/** Infinity waits without a limit. */
export const timeoutCheck = checkThat<number>(
  'a number of at least 0',
  (value) => typeof value === 'number' && value >= 0,
);

/** Refuses a time that is too long to be stored. Other checks see to the rest. */
export function refuseTooLong(durationMs: number | null | undefined, argument: string): void {
  if (durationMs == null || !Number.isFinite(durationMs) || durationMs <= DURATION_MAX_MS) return;
  throw new DBOSInvalidArgumentError(`${argument} must not be longer than 30,000 years.`, argument);
}

/** The interval in milliseconds; undefined for the default. */
export function pollMsOf(options: number | DurationText | PollingOptions | undefined): number | undefined {
  return isRecord(options) ? intervalCheck.read(inMs(options.pollingIntervalMs), 'pollingIntervalMs') : undefined;
}

/** The same for waits without a time limit, with a check of the names. */
export function pollMsOfWait(options: PollingOptions | null | undefined): number | undefined {
  pollingFields.read(options, 'options');
  return pollMsOf(options ?? undefined);
}

/** The deadline in whole milliseconds by the operator's clock; undefined for none. */
export function deadlineOf(
  clock: RemoteClock,
  limit: number | DurationText | TimeLimit | undefined,
  defaultSeconds?: number,
): number | undefined {
  limitCheck.read(limit, 'timeoutSeconds');
  if (isRecord(limit)) limitFields.read(limit, 'options');
  const options: TimeLimit = isRecord(limit) ? limit : { timeoutSeconds: limit ?? undefined };
  pollMsOf(options);
  const { deadlineEpochMS } = options;
  const timeoutSeconds = inSeconds(options.timeoutSeconds) ?? defaultSeconds;
  if (deadlineEpochMS !== undefined) {
    return Math.ceil(finiteNumber.read(deadlineEpochMS, 'deadlineEpochMS'));
  }
  if (timeoutSeconds === undefined || timeoutSeconds === Infinity) return undefined;
  return Math.ceil(clock.latest()) + Math.ceil(timeoutCheck.read(timeoutSeconds, 'timeoutSeconds') * 1000);
}
