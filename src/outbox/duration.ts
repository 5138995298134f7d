// Durations in options: milliseconds, or a number with a unit, such as `30s`.
import { Check, wrong } from '../model/validation/validation.js';

export type Duration = number | `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`;

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const PATTERN = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/;
const WANTS = 'a duration: milliseconds, or a number with a unit such as 500ms, 30s, 10m, 2h or 7d';
/** About 100 years. Later times overflow timestamps. */
const MAX_MS = 3_155_760_000_000;

export const duration: Check<Duration> = new Check({
  wants: WANTS,
  find: (value) => (Number.isFinite(toMs(value)) ? undefined : wrong(WANTS, value)),
});

export function msOf(checked: Duration): number {
  return toMs(checked);
}

function toMs(value: unknown): number {
  const [, digits, unit = ''] = typeof value === 'string' ? (PATTERN.exec(value) ?? []) : [];
  const ms = digits === undefined ? value : Number(digits) * (UNITS[unit] ?? NaN);
  return typeof ms === 'number' && ms >= 0 && ms <= MAX_MS ? ms : NaN;
}
