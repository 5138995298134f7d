// When a cron expression is due, in the time zone it is meant for. Pure: the caller says what time it is.
//
// Twice a year the clocks of many zones are changed. What then happens depends on what the expression asks for:
//
//                     clocks put forward: a time does not exist   clocks put back: a time comes twice
//   times of the day  due once, at the moment of the change       due once, the first time
//   intervals         not due; the next one exists                due both times
//
// An expression asks for intervals when its hour field allows every hour, or when its minute or second field begins
// with `*`. So a daily run happens once on each day, and an hourly or more frequent one goes on evenly. A change of a
// day or more, where a country crosses the date line, makes up for nothing: the day was not there.
import { invariant } from '../../base/assert.js';
import { buildCalendar, findLocalTime, type CronCalendar } from './cron-calendar.js';
import { readCronFields } from './cron-fields.js';
import { TimeZones, type Span, type TimeZone } from './cron-time-zone.js';
import { InvalidCronExpressionError } from '../errors/errors-schedule.js';

const DAY_MS = 86_400_000;
/** More than the clocks of a zone are ever changed by. */
const CHANGE_MS_MAX = 2 * DAY_MS;
/** Times are looked for in years of four digits, as in the identifiers that are made of them. */
const FIRST_INSTANT = Date.UTC(1000, 0, 1);
const END_INSTANT = Date.UTC(10_000, 0, 1);

export interface CronOptions {
  /** An IANA name; UTC when there is none. */
  readonly timeZone?: string | null | undefined;
  /** Zones shared with other expressions, which saves each its own knowledge of them. */
  readonly zones?: TimeZones;
}

/** Reads a cron expression. Throws when it, or the time zone, is malformed, or when it names a date that never comes. */
export function parseCron(expression: string, { timeZone, zones = new TimeZones() }: CronOptions = {}): Cron {
  const fields = readCronFields(expression);
  const calendar = buildCalendar(fields);
  if (calendar === undefined) {
    throw new InvalidCronExpressionError(expression, describeImpossible(expression));
  }
  return new Cron(calendar, zones.get(timeZone), { isInterval: fields.isInterval });
}

function describeImpossible(expression: string): string {
  const [day, month, weekday] = expression.trim().split(/\s+/).slice(-3);
  const advice = 'The day, the month and the week day must all match on some date: change one of them.';
  return weekday === '*' || weekday === '?'
    ? `${day} ${month} is an impossible day of month for the given month. ${advice}`
    : `${day} ${month} ${weekday} is an impossible combination of day of month, month and week day. ${advice}`;
}

/** A cron expression in a time zone. Instants are epoch milliseconds. */
export class Cron {
  readonly #calendar: CronCalendar;
  readonly #zone: TimeZone;
  readonly #isInterval: boolean;

  constructor(calendar: CronCalendar, zone: TimeZone, { isInterval }: { isInterval: boolean }) {
    this.#calendar = calendar;
    this.#zone = zone;
    this.#isInterval = isInterval;
  }

  /** The zone's canonical name. */
  get timeZone(): string {
    return this.#zone.name;
  }

  /** The first instant after the one given at which the expression is due; undefined after the year 9999. */
  next(after: number): number | undefined {
    invariant(!Number.isNaN(after), 'the time to look from is a number');
    let from = Math.max(Math.floor(after) + 1, FIRST_INSTANT);
    while (from < END_INSTANT) {
      const span = this.#zone.spanAt(from);
      if (this.#isDueAtChange(span, from)) return span.start;
      const fromLocal = this.#isInterval ? from + span.offset : Math.max(from + span.offset, span.unseen);
      const local = findLocalTime(this.#calendar, fromLocal);
      if (local === undefined) return undefined;
      const found = local - span.offset;
      if (found < span.end) return found < END_INSTANT ? found : undefined;
      // No clock shows a matching time before that one, unless a change soon after `from` repeats earlier times.
      const isFarFromChange = span.end - from > CHANGE_MS_MAX;
      from = isFarFromChange ? Math.max(span.end, found - CHANGE_MS_MAX) : span.end;
    }
    return undefined;
  }

  /** True when the expression is due at exactly this instant. */
  matches(instant: number): boolean {
    return this.next(instant - 1) === instant;
  }

  /** All instants after the start and before the end, worked out one by one as they are asked for. */
  *between(start: number, end: number): Generator<number, void, void> {
    for (let due = this.next(start); due !== undefined && due < end; due = this.next(due)) yield due;
  }

  /** The next so many instants. */
  nextRuns(after: number, count: number): number[] {
    const runs: number[] = [];
    let due = runs.length < count ? this.next(after) : undefined;
    while (due !== undefined) {
      runs.push(due);
      due = runs.length < count ? this.next(due) : undefined;
    }
    return runs;
  }

  /** True at the moment when clocks are put forward over a time of the day that is named. */
  #isDueAtChange(span: Span, from: number): boolean {
    const startLocal = span.start + span.offset;
    const skipped = startLocal - span.unseen;
    if (this.#isInterval || from !== span.start || skipped <= 0 || skipped >= DAY_MS) return false;
    const local = findLocalTime(this.#calendar, span.unseen);
    return local !== undefined && local < startLocal;
  }
}
