// How long dead letters are kept, and how that is done.
import { type Duration, durationMs } from '../../../kernel/base/duration.js';
import {
  duration,
  Check,
  func,
  integer,
  oneOf,
  optional,
  record,
  string,
  wrong,
} from '../../../kernel/check/validation.js';
import { type Every, monthsBefore } from '../../../database/partitions/periods.js';
import type { DeadLetter } from '../dead-letters/letter.js';

/** `90d`, or `12 months`. */
export type Keep = Duration | `${number} months`;

export interface RetentionOptions {
  /** How long dead letters are kept, whether archived or not. */
  readonly keep: Keep;
  /** How much a partition holds. Only for a partitioned table. Default: a month. */
  readonly every?: Every;
  /** How many partitions exist in advance. Default: 12 months, or 30 days. */
  readonly ahead?: number;
  /** What becomes of an old partition. `detach` leaves it as a table of its own. Default: `drop`. */
  readonly drop?: 'drop' | 'detach';
  /** Called with what is about to be deleted, up to 1,000 at a time. If it throws, that is kept. It may be called twice. */
  readonly archive?: (letters: readonly DeadLetter[]) => Promise<void> | void;
  /** A cron expression: runs as a scheduled workflow. Call `retention` before launch. */
  readonly schedule?: string;
}

export interface RetentionSettings extends Required<Pick<RetentionOptions, 'every' | 'ahead' | 'drop'>> {
  readonly archive: RetentionOptions['archive'];
  /** What failed before this time is deleted. */
  readonly cutoffMs: (nowMs: number) => number;
}

const MONTHS = /^(\d+) months?$/;
const WANTS = 'a duration such as 90d, or a number of months such as 12 months';
const keep = new Check<Keep>({
  wants: WANTS,
  find: (value) =>
    (typeof value === 'string' && MONTHS.test(value)) || duration.accepts(value) ? undefined : wrong(WANTS, value),
});
const AHEAD_MAX = 1000;
const OPTIONS = record({
  keep,
  every: optional(oneOf(['month', 'day'])),
  ahead: optional(integer({ min: 1, max: AHEAD_MAX })),
  drop: optional(oneOf(['drop', 'detach'])),
  archive: optional(func),
  schedule: optional(string({ min: 1 })),
});

export function retentionSettings(options: RetentionOptions): RetentionSettings {
  OPTIONS.read(options, 'options');
  const { every = 'month', drop = 'drop', archive } = options;
  const months = MONTHS.exec(String(options.keep))?.[1];
  return {
    every,
    drop,
    archive,
    ahead: options.ahead ?? (every === 'month' ? 12 : 30),
    cutoffMs: (nowMs) =>
      months === undefined ? nowMs - durationMs(options.keep) : monthsBefore(nowMs, Number(months)),
  };
}
