// Retry strategies: how long to wait before the next attempt, or that there is none.
import { type Duration, durationMs } from '../../../kernel/base/duration.js';
import { invariant } from '../../../kernel/base/assert.js';
import {
  duration,
  number,
  optional,
  positiveInteger,
  positiveNumber,
  record,
} from '../../../kernel/check/validation.js';

export interface FailedAttempt {
  /** Handler runs so far, this one included. */
  readonly attempts: number;
  /** Epoch milliseconds. */
  readonly firstAttemptAt: number;
  readonly lastAttemptAt: number;
  readonly error: unknown;
}

/** The delay in milliseconds before the next attempt; undefined for none, which makes the message a dead letter. */
export type RetryStrategy = (failed: FailedAttempt) => number | undefined;

export interface RetryLimits {
  /** The most attempts. Default: no limit. */
  readonly attempts?: number;
  /** No attempt starts later than this after the first one failed. Default: no limit. */
  readonly within?: Duration;
  /** From 0 to 2: the delay varies by up to half of this share in either direction. Default: 0. */
  readonly jitter?: number;
}

const LIMITS = {
  attempts: optional(positiveInteger),
  within: optional(duration),
  jitter: optional(number({ max: 2 })),
};
const CONSTANT = record({ ...LIMITS, delay: duration });
const LINEAR = record({ ...LIMITS, initial: duration, step: duration });
const EXPONENTIAL = record({
  ...LIMITS,
  initial: optional(duration),
  multiplier: optional(positiveNumber),
  max: optional(duration),
});

/** About 100 years. Later times overflow timestamps. */
const DELAY_MAX_MS = 3_155_760_000_000;

/** The first failure is the last. */
export function noRetry(): RetryStrategy {
  return () => undefined;
}

export function constant(options: RetryLimits & { readonly delay: Duration }): RetryStrategy {
  CONSTANT.read(options, 'options');
  return limited(options, () => durationMs(options.delay));
}

export function linear(options: RetryLimits & { readonly initial: Duration; readonly step: Duration }): RetryStrategy {
  LINEAR.read(options, 'options');
  return limited(options, (attempts) => durationMs(options.initial) + durationMs(options.step) * (attempts - 1));
}

export function exponential(
  options: RetryLimits & { readonly initial?: Duration; readonly multiplier?: number; readonly max?: Duration } = {},
): RetryStrategy {
  EXPONENTIAL.read(options, 'options');
  const { initial = 1000, multiplier = 2, max } = options;
  return limited(options, (attempts) => durationMs(initial) * multiplier ** (attempts - 1), max);
}

/** That of faststream-outbox. */
export const defaultStrategy: RetryStrategy = exponential({ max: '5m', attempts: 10, jitter: 0.2 });

function limited(
  { attempts: attemptsMax = Infinity, within, jitter = 0 }: RetryLimits,
  delayMs: (attempts: number) => number,
  max?: Duration,
): RetryStrategy {
  return ({ attempts, firstAttemptAt, lastAttemptAt }) => {
    invariant(attempts > 0, 'a failed attempt counts');
    if (attempts >= attemptsMax) return undefined;
    if (within !== undefined && lastAttemptAt - firstAttemptAt >= durationMs(within)) return undefined;
    const varied = delayMs(attempts) * (1 + jitter * (Math.random() - 0.5));
    return Math.min(varied, max === undefined ? DELAY_MAX_MS : durationMs(max), DELAY_MAX_MS);
  };
}
