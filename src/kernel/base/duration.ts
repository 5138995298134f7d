// Durations in options: milliseconds, or a number with a unit, such as `30s` or `30 days`.

type Short = 'ms' | 's' | 'm' | 'h' | 'd';
type Long = 'second' | 'minute' | 'hour' | 'day' | 'week';

/** Milliseconds, or a number with a unit: `500ms`, `30s`, `10m`, `2h`, `7d`, `10 minutes`, `30 days`. */
export type Duration = number | `${number}${Short}` | `${number} ${Long | `${Long}s`}`;

/** A number with a unit, for options that are also given as a number in a unit of their own. */
export type DurationText = Exclude<Duration, number>;

/** What an error says a duration must be. */
export const DURATION_WANTS =
  'a duration: milliseconds, or a number with a unit such as 500ms, 30s, 10m, 2h or 30 days';

const SECOND = 1000;
const DAY = 86_400 * SECOND;
const UNITS: Readonly<Record<string, number>> = {
  ...{ ms: 1, s: SECOND, m: 60 * SECOND, h: 3600 * SECOND, d: DAY },
  ...{ second: SECOND, minute: 60 * SECOND, hour: 3600 * SECOND, day: DAY, week: 7 * DAY },
};
const PATTERN = /^(\d+(?:\.\d+)?)(?:(ms|s|m|h|d)| (second|minute|hour|day|week)s?)$/;
/** About 100 years. Later times overflow timestamps. */
const MAX_MS = 3_155_760_000_000;

/** The milliseconds of a duration. Throws a TypeError that names `what` if it is none. */
export function durationMs(value: unknown, what = 'value'): number {
  const ms = toMs(value);
  if (ms === undefined) throw new TypeError(`${what} must be ${DURATION_WANTS}.`);
  return ms;
}

/** Milliseconds. What is no duration is returned unchanged, for a check to refuse. */
export function inMs<T>(value: T): Exclude<T, DurationText> {
  const ms = typeof value === 'string' ? toMs(value) : undefined;
  return (ms ?? value) as Exclude<T, DurationText>;
}

/** The same in seconds, for options whose numbers are seconds. */
export function inSeconds<T>(value: T): Exclude<T, DurationText> {
  const ms = typeof value === 'string' ? toMs(value) : undefined;
  return (ms === undefined ? value : ms / 1000) as Exclude<T, DurationText>;
}

export function isDuration(value: unknown): value is Duration {
  return toMs(value) !== undefined;
}

function toMs(value: unknown): number | undefined {
  const [, digits, short, long] = typeof value === 'string' ? (PATTERN.exec(value) ?? []) : [];
  const ms = digits === undefined ? value : Number(digits) * (UNITS[short ?? long ?? ''] ?? NaN);
  return typeof ms === 'number' && ms >= 0 && ms <= MAX_MS ? ms : undefined;
}
