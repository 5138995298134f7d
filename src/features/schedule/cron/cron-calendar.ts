// The calendar of a cron expression: the local times that match it, without time zones. Local times are milliseconds, read
// as UTC.
import type { CronFields, DayOfMonth, DayOfWeek } from './cron-fields.js';

const SECOND_MS = 1000;
const DAY_SECONDS = 86_400;
const DAY_MS = DAY_SECONDS * SECOND_MS;
/** The longest gap between matching dates is 40 years: 29 February on a given weekday, across 2100. */
const SEARCH_MONTHS_MAX = 12 * 100;
const MONTH_LENGTHS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
const LENGTH_MIN = 28;
const SHAPES = 4 * 7;
const SUNDAY = 0;
const SATURDAY = 6;
/** 1 January 1970 was a Thursday. */
const FIRST_WEEKDAY = 4;

export interface CronCalendar extends Pick<CronFields, 'seconds' | 'minutes' | 'hours' | 'months'> {
  /** The matching days of each shape of month; bit 0 is the first. */
  readonly days: Int32Array;
}

/** A month's length and first weekday. There are 28 shapes, and in time each month takes all that it can. */
interface MonthShape {
  readonly length: number;
  /** The weekday of the first. */
  readonly firstWeekday: number;
}

/** Computes the matching days; undefined if no month ever has one. */
export function buildCalendar(fields: CronFields): CronCalendar | undefined {
  const { seconds, minutes, hours, months } = fields;
  const days = tabulateDays(fields);
  const lengths = months.flatMap((month) => (month === 2 ? [28, 29] : [MONTH_LENGTHS[month - 1]!]));
  const isPossible = days.some((mask, index) => mask !== 0 && lengths.includes(shapeAt(index).length));
  return isPossible ? { seconds, minutes, hours, months, days } : undefined;
}

/** The day of the month and the day of the week must both match. */
function tabulateDays({ daysOfMonth, daysOfWeek }: CronFields): Int32Array {
  const byMonth = daysOfMonth.map(matchDayOfMonth);
  const byWeek = daysOfWeek.map(matchDayOfWeek);
  return Int32Array.from({ length: SHAPES }, (_, index) => {
    const shape = shapeAt(index);
    return anyOf(byMonth, shape) & anyOf(byWeek, shape);
  });
}

function shapeAt(index: number): MonthShape {
  return { length: LENGTH_MIN + Math.floor(index / 7), firstWeekday: index % 7 };
}

/** The first matching local time at or after the given one. */
export function findLocalTime(calendar: CronCalendar, fromLocal: number): number | undefined {
  const from = Math.ceil(fromLocal / SECOND_MS);
  const fromDay = Math.floor(from / DAY_SECONDS);
  const timeOfDay = findTimeOfDay(calendar, from - fromDay * DAY_SECONDS);
  const day = findDay(calendar, timeOfDay === undefined ? fromDay + 1 : fromDay);
  if (day === undefined) return undefined;
  const time = day === fromDay && timeOfDay !== undefined ? timeOfDay : firstTimeOfDay(calendar);
  return (day * DAY_SECONDS + time) * SECOND_MS;
}

/** Times of the day are in seconds. */
function findTimeOfDay({ hours, minutes, seconds }: CronCalendar, from: number): number | undefined {
  const fromHour = Math.floor(from / 3600);
  const fromMinute = Math.floor(from / 60) % 60;
  if (hours.includes(fromHour)) {
    if (minutes.includes(fromMinute)) {
      const second = seconds.find((value) => value >= from % 60);
      if (second !== undefined) return fromHour * 3600 + fromMinute * 60 + second;
    }
    const minute = minutes.find((value) => value > fromMinute);
    if (minute !== undefined) return fromHour * 3600 + minute * 60 + seconds[0]!;
  }
  const hour = hours.find((value) => value > fromHour);
  return hour === undefined ? undefined : hour * 3600 + minutes[0]! * 60 + seconds[0]!;
}

function firstTimeOfDay({ hours, minutes, seconds }: CronCalendar): number {
  return hours[0]! * 3600 + minutes[0]! * 60 + seconds[0]!;
}

/** Days are counted from 1 January 1970. */
function findDay(calendar: CronCalendar, fromDay: number): number | undefined {
  const date = new Date(fromDay * DAY_MS);
  let year = date.getUTCFullYear();
  let month = date.getUTCMonth() + 1;
  let daysPassed = date.getUTCDate() - 1;
  let monthStart = fromDay - daysPassed;
  for (let searched = 0; searched < SEARCH_MONTHS_MAX; searched++) {
    const length = lengthOfMonth(year, month);
    if (calendar.months.includes(month)) {
      const ahead = calendar.days[shapeIndex(length, monthStart)]! & (-1 << daysPassed);
      if (ahead !== 0) return monthStart + lowestBit(ahead);
    }
    monthStart += length;
    daysPassed = 0;
    month = (month % 12) + 1;
    if (month === 1) year += 1;
  }
  return undefined;
}

function lengthOfMonth(year: number, month: number): number {
  const isLeapYear = (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0;
  return month === 2 && isLeapYear ? 29 : MONTH_LENGTHS[month - 1]!;
}

function shapeIndex(length: number, monthStart: number): number {
  const firstWeekday = (((monthStart + FIRST_WEEKDAY) % 7) + 7) % 7;
  return (length - LENGTH_MIN) * 7 + firstWeekday;
}

function lowestBit(mask: number): number {
  return 31 - Math.clz32(mask & -mask);
}

/** The days of a month that match, as bits. */
type DayMatcher = (shape: MonthShape) => number;

function anyOf(matchers: readonly DayMatcher[], shape: MonthShape): number {
  return matchers.reduce((mask, matcher) => mask | matcher(shape), 0);
}

function matchDayOfMonth(rule: DayOfMonth): DayMatcher {
  switch (rule.kind) {
    case 'days': {
      const mask = rule.days.reduce((bits, day) => bits | (1 << (day - 1)), 0);
      return (shape) => mask & allDays(shape);
    }
    case 'fromLast':
      return (shape) => dayBit(shape.length - rule.days, shape);
    case 'workdayNear':
      return (shape) => dayBit(nearestWorkday(rule.day === 'last' ? shape.length : rule.day, shape), shape);
  }
}

function matchDayOfWeek(rule: DayOfWeek): DayMatcher {
  switch (rule.kind) {
    case 'every': {
      const week = rule.weekdays.reduce((bits, weekday) => bits | (1 << weekday), 0);
      return (shape) => {
        const fromFirst = ((week | (week << 7)) >> shape.firstWeekday) & 0b111_1111;
        return [0, 7, 14, 21, 28].reduce((mask, later) => mask | (fromFirst << later), 0) & allDays(shape);
      };
    }
    case 'nth':
      return (shape) => dayBit(firstOfMonth(rule.weekday, shape) + 7 * (rule.nth - 1), shape);
    case 'last':
      return (shape) => {
        const fourth = firstOfMonth(rule.weekday, shape) + 21;
        return dayBit(fourth + 7, shape) || dayBit(fourth, shape);
      };
  }
}

function firstOfMonth(weekday: number, { firstWeekday }: MonthShape): number {
  return 1 + ((weekday - firstWeekday + 7) % 7);
}

function allDays({ length }: MonthShape): number {
  return 0x7fff_ffff >> (31 - length);
}

/** Empty for a day that the month does not have. */
function dayBit(day: number, { length }: MonthShape): number {
  return day >= 1 && day <= length ? 1 << (day - 1) : 0;
}

/** Saturday moves to Friday and Sunday to Monday, but never into another month. */
function nearestWorkday(day: number, { length, firstWeekday }: MonthShape): number {
  // A 31st that the month does not have must not become its 30th.
  if (day > length) return day;
  const weekday = (firstWeekday + day - 1) % 7;
  if (weekday === SATURDAY) return day === 1 ? 3 : day - 1;
  if (weekday === SUNDAY) return day === length ? day - 2 : day + 1;
  return day;
}
