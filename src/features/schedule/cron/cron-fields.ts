// Parses a cron expression into the values that each field allows. `cron-calendar.ts` maps them to dates, `cron.ts` to
// instants in a time zone.
import { InvalidCronExpressionError } from '../../../kernel/errors/errors-schedule.js';

/** The values that an expression allows, ascending. Months count from 1, weekdays from Sunday as 0. */
export interface CronFields {
  readonly seconds: readonly number[];
  readonly minutes: readonly number[];
  readonly hours: readonly number[];
  readonly daysOfMonth: readonly DayOfMonth[];
  readonly months: readonly number[];
  readonly daysOfWeek: readonly DayOfWeek[];
  /** Whether the expression means an interval rather than times of day. */
  readonly isInterval: boolean;
}

export type DayOfMonth =
  | { readonly kind: 'days'; readonly days: readonly number[] }
  /** Days before the last of the month. */
  | { readonly kind: 'fromLast'; readonly days: number }
  /** The weekday (Monday to Friday) nearest to the day within the month. */
  | { readonly kind: 'workdayNear'; readonly day: number | 'last' };

export type DayOfWeek =
  | { readonly kind: 'every'; readonly weekdays: readonly number[] }
  | { readonly kind: 'nth'; readonly weekday: number; readonly nth: number }
  | { readonly kind: 'last'; readonly weekday: number };

interface FieldRule {
  readonly name: string;
  readonly min: number;
  readonly max: number;
  /** Full names in order, from `min` on; the first three letters are accepted too. */
  readonly names?: readonly string[];
  /** What the field accepts, besides what all fields do. */
  readonly advice: string;
}

const MONTHS = 'january february march april may june july august september october november december'.split(' ');
const WEEKDAYS = 'sunday monday tuesday wednesday thursday friday saturday'.split(' ');

const SECOND: FieldRule = { name: 'second', min: 0, max: 59, advice: '0 to 59' };
const MINUTE: FieldRule = { name: 'minute', min: 0, max: 59, advice: '0 to 59' };
const HOUR: FieldRule = { name: 'hour', min: 0, max: 23, advice: '0 to 23' };
const DAY_OF_MONTH: FieldRule = {
  name: 'day of month',
  min: 1,
  max: 31,
  advice: '1 to 31, ?, L (the last day), L-3 (three days before it), 15W or LW (the workday nearest to it)',
};
const MONTH: FieldRule = { name: 'month', min: 1, max: 12, names: MONTHS, advice: '1 to 12 or a name (JAN)' };
const WEEKDAY: FieldRule = {
  name: 'week day',
  min: 0,
  max: 6,
  names: WEEKDAYS,
  advice: '0 to 7 or a name (SUN is 0 and 7), ?, 5#3 (the third Friday of the month), 5L (the last Friday)',
};

const NICKNAMES: Readonly<Record<string, string>> = {
  '@yearly': '0 0 1 1 *',
  '@annually': '0 0 1 1 *',
  '@monthly': '0 0 1 * *',
  '@weekly': '0 0 * * 0',
  '@daily': '0 0 * * *',
  '@midnight': '0 0 * * *',
  '@hourly': '0 * * * *',
};

/** Parses five fields, six with seconds first, or a nickname. Throws if malformed. */
export function readCronFields(expression: string): CronFields {
  const texts = splitFields(expression);
  const [second, minute, hour, dayOfMonth, month, dayOfWeek] = texts;
  const read = <T>(text: string, rule: FieldRule, readToken: TokenReader<T>): T[] => {
    const values = text.split(',').map((token) => readToken(token.toUpperCase(), rule));
    if (values.every((value) => value !== undefined)) return values;
    throw new InvalidCronExpressionError(expression, describeMistake(text, rule));
  };
  const hours = ascending(read(hour, HOUR, readNumbers));
  return {
    seconds: ascending(read(second, SECOND, readNumbers)),
    minutes: ascending(read(minute, MINUTE, readNumbers)),
    hours,
    daysOfMonth: read(dayOfMonth === '?' ? '*' : dayOfMonth, DAY_OF_MONTH, readDayOfMonth),
    months: ascending(read(month, MONTH, readNumbers)),
    daysOfWeek: read(dayOfWeek === '?' ? '*' : dayOfWeek, WEEKDAY, readDayOfWeek),
    isInterval: hours.length === 24 || minute.startsWith('*') || second.startsWith('*'),
  };
}

type SixTexts = [string, string, string, string, string, string];

function splitFields(expression: string): SixTexts {
  // Plain JavaScript and stored rows may hold anything.
  if (typeof expression !== 'string') {
    throw new InvalidCronExpressionError(String(expression), 'The cron pattern must be a string!');
  }
  const trimmed = expression.trim();
  const name = trimmed.toLowerCase();
  const nickname = Object.hasOwn(NICKNAMES, name) ? NICKNAMES[name] : undefined;
  if (nickname === undefined && trimmed.startsWith('@')) {
    const known = Object.keys(NICKNAMES).join(', ');
    throw new InvalidCronExpressionError(expression, `${trimmed} is not a nickname. Use one of ${known}.`);
  }
  const texts = (nickname ?? trimmed).split(/\s+/).filter((text) => text !== '');
  if (texts.length === 5) texts.unshift('0');
  if (texts.length !== 6) {
    throw new InvalidCronExpressionError(
      expression,
      `expected 5 or 6 fields but got ${texts.length}. ` +
        'Write minute, hour, day of month, month and day of week, with seconds first if you need them.',
    );
  }
  return texts as SixTexts;
}

/** DBOS words the first sentence like this. */
function describeMistake(text: string, rule: FieldRule): string {
  return (
    `${text} is a invalid expression for ${rule.name}. Write ${rule.advice}; ` +
    `or * for all, ${rule.min}-${rule.max}/2 or */2 for every other one, and commas between several.`
  );
}

/** Parses one item of a comma-separated field; undefined if malformed. */
type TokenReader<T> = (token: string, rule: FieldRule) => T | undefined;

function readNumbers(token: string, rule: FieldRule): number[] | undefined {
  const match = /^(?:(\*)|(\w+)(?:-(\w+))?)(?:\/(\d+))?$/.exec(token);
  if (match === null) return undefined;
  const [, star, firstText, lastText, stepText] = match;
  const step = Number(stepText ?? 1);
  if (step < 1) return undefined;
  if (star !== undefined) return countUp(rule.min, rule.max, step);
  // A step needs a range: neither DBOS nor classic cron accepts `5/10`.
  if (lastText === undefined && stepText !== undefined) return undefined;
  const first = readValue(firstText ?? '', rule);
  const last = lastText === undefined ? first : readValue(lastText, rule);
  if (first === undefined || last === undefined) return undefined;
  return countRange(first, last, step, rule);
}

/** From first to last. A descending range wraps around: 22-2 is 22, 23, 0, 1, 2. */
function countRange(first: number, last: number, step: number, { min, max }: FieldRule): number[] {
  const size = max - min + 1;
  const end = first <= last ? last : last + size;
  return countUp(first, end, step).map((value) => ((value - min) % size) + min);
}

function countUp(first: number, last: number, step: number): number[] {
  return Array.from({ length: Math.floor((last - first) / step) + 1 }, (_, index) => first + index * step);
}

/** A number within bounds, or a name. Sunday may be 7, also at the end of a range. */
function readValue(text: string, { min, max, names }: FieldRule): number | undefined {
  if (/^\d+$/.test(text)) {
    const value = Number(text);
    return value >= min && value <= (names === WEEKDAYS ? 7 : max) ? value : undefined;
  }
  const lowerCase = text.toLowerCase();
  const index = names?.findIndex((name) => name === lowerCase || name.slice(0, 3) === lowerCase) ?? -1;
  return index === -1 ? undefined : min + index;
}

function readDayOfMonth(token: string, rule: FieldRule): DayOfMonth | undefined {
  if (token === 'L') return { kind: 'fromLast', days: 0 };
  if (token === 'LW') return { kind: 'workdayNear', day: 'last' };
  const [, fromLast, near] = /^(?:L-(\d+)|(\d+)W)$/.exec(token) ?? [];
  if (fromLast !== undefined) {
    const days = Number(fromLast);
    return days >= 1 && days <= 30 ? { kind: 'fromLast', days } : undefined;
  }
  if (near !== undefined) {
    const day = readValue(near, rule);
    return day === undefined ? undefined : { kind: 'workdayNear', day };
  }
  const days = readNumbers(token, rule);
  return days === undefined ? undefined : { kind: 'days', days };
}

function readDayOfWeek(token: string, rule: FieldRule): DayOfWeek | undefined {
  const [, dayText, nth] = /^(\w+)(?:#([1-5])|L)$/.exec(token) ?? [];
  const day = dayText === undefined ? undefined : readValue(dayText, rule);
  if (day !== undefined) {
    const weekday = day % 7;
    return nth === undefined ? { kind: 'last', weekday } : { kind: 'nth', weekday, nth: Number(nth) };
  }
  const weekdays = readNumbers(token, rule);
  return weekdays === undefined ? undefined : { kind: 'every', weekdays };
}

function ascending(values: readonly (readonly number[])[]): readonly number[] {
  return [...new Set(values.flat())].sort((a, b) => a - b);
}
