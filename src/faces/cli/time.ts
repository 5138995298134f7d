// Parses and formats times and durations.
import { utcText } from '../../kernel/base/clock.js';

const UNITS_MS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const;

/** Parses `90s`, `1.5h`, `2h30m`, or a plain number of seconds. Undefined for anything else. */
export function parseDuration(text: string): number | undefined {
  const trimmed = text.trim();
  if (/^\d+(\.\d+)?$/.test(trimmed)) return Math.round(Number(trimmed) * 1000);
  if (!/^(\d+(\.\d+)?(ms|s|m|h|d|w))+$/.test(trimmed)) return undefined;
  let totalMs = 0;
  for (const [, amount, unit] of trimmed.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d|w)/g)) {
    totalMs += Number(amount) * UNITS_MS[unit as keyof typeof UNITS_MS];
  }
  return Number.isSafeInteger(Math.round(totalMs)) ? Math.round(totalMs) : undefined;
}

/** Parses an ISO 8601 time, `now`, or a duration before now. Undefined for anything else. */
export function parseMoment(text: string, now: number): number | undefined {
  const trimmed = text.trim();
  if (trimmed === 'now') return now;
  // As in JavaScript, a time without a zone is local, but a bare date is UTC.
  if (/^\d{4}-\d\d(-\d\d)?([T ]\d\d:\d\d.*)?$/.test(trimmed)) {
    const parsed = Date.parse(trimmed.replace(' ', 'T'));
    return Number.isNaN(parsed) ? undefined : parsed;
  }
  const ago = /[a-z]/i.test(trimmed) ? parseDuration(trimmed) : undefined;
  return ago === undefined ? undefined : now - ago;
}

/** `340 ms`, `12.3 s`, `4 m 10 s`, `2 h 5 m`, `3 d 4 h`. */
export function formatDuration(durationMs: number): string {
  const ms = Math.max(0, durationMs);
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${(ms / 1000).toFixed(1).replace(/\.0$/, '')} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 3600) return pair(`${Math.floor(seconds / 60)} m`, seconds % 60, 's');
  const minutes = Math.round(seconds / 60);
  if (minutes < 1440) return pair(`${Math.floor(minutes / 60)} h`, minutes % 60, 'm');
  const hours = Math.round(minutes / 60);
  return pair(`${Math.floor(hours / 24)} d`, hours % 24, 'h');
}

function pair(large: string, small: number, smallUnit: string): string {
  return small === 0 ? large : `${large} ${small} ${smallUnit}`;
}

/** `just now`, `5 m ago`, `in 2 h`: rounded down to one unit. */
export function formatRelative(at: number, now: number): string {
  const distanceMs = Math.abs(now - at);
  if (distanceMs < 1000) return 'just now';
  const [amount, unit] =
    distanceMs < UNITS_MS.m
      ? [distanceMs / UNITS_MS.s, 's']
      : distanceMs < UNITS_MS.h
        ? [distanceMs / UNITS_MS.m, 'm']
        : distanceMs < 2 * UNITS_MS.d
          ? [distanceMs / UNITS_MS.h, 'h']
          : [distanceMs / UNITS_MS.d, 'd'];
  const text = `${Math.floor(amount)} ${unit}`;
  return at > now ? `in ${text}` : `${text} ago`;
}

/** The time with its distance from now. */
export function formatMoment(at: number, now: number): string {
  return `${utcText(at)} (${formatRelative(at, now)})`;
}
