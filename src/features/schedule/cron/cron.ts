// When a cron expression is due in its time zone. Pure: the caller passes the time.
//
// At daylight-saving transitions the result depends on what the expression means:
//
//                     clocks put forward: a time does not exist   clocks put back: a time comes twice
//   times of the day  due once, at the moment of the change       due once, the first time
//   intervals         not due; the next one exists                due both times
//
// An expression means intervals if its hour field allows every hour, or if its minute or second field starts with `*`. So
// a daily run happens once each day, and an hourly or more frequent one stays evenly spaced. A transition of a day or more,
// where a country crosses the date line, is not made up for: that day did not exist.
import { invariant } from '../../../kernel/base/assert.js';
import { buildCalendar, findLocalTime, type CronCalendar } from './cron-calendar.js';
import { readCronFields } from './cron-fields.js';
import { TimeZones, type Span, type TimeZone } from './cron-time-zone.js';
import { InvalidCronExpressionError } from '../../../kernel/errors/errors-schedule.js';

const DAY_MS = 86_400_000;
/** Longer than any transition. */
const CHANGE_MS_MAX = 2 * DAY_MS;
/** The search ends with four-digit years, as in the identifiers made of them. */
const FIRST_INSTANT = Date.UTC(1000, 0, 1);
const END_INSTANT = Date.UTC(10_000, 0, 1);

export interface CronOptions {
  /** An IANA name; UTC by default. */
  readonly timeZone?: string | null | undefined;
  /** A cache of zones, shared with other expressions. */
  readonly zones?: TimeZones;
}

/** Parses a cron expression. Throws if it or the time zone is malformed, or if it only names impossible dates. */
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

  /** The first instant after the given one at which the expression is due; undefined after the year 9999. */
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
      // No earlier local time matches, unless a transition soon after `from` repeats some.
      const isFarFromChange = span.end - from > CHANGE_MS_MAX;
      from = isFarFromChange ? Math.max(span.end, found - CHANGE_MS_MAX) : span.end;
    }
    return undefined;
  }

  /** Whether the expression is due at exactly this instant. */
  matches(instant: number): boolean {
    return this.next(instant - 1) === instant;
  }

  /** All instants after the start and before the end, computed lazily. */
  *between(start: number, end: number): Generator<number, void, void> {
    for (let due = this.next(start); due !== undefined && due < end; due = this.next(due)) yield due;
  }

  /** The next `count` instants. */
  nextRuns(after: number, count: number): number[] {
    const runs: number[] = [];
    let due = runs.length < count ? this.next(after) : undefined;
    while (due !== undefined) {
      runs.push(due);
      due = runs.length < count ? this.next(due) : undefined;
    }
    return runs;
  }

  /** Whether the clocks skip a matching time of day at this instant. */
  #isDueAtChange(span: Span, from: number): boolean {
    const startLocal = span.start + span.offset;
    const skipped = startLocal - span.unseen;
    if (this.#isInterval || from !== span.start || skipped <= 0 || skipped >= DAY_MS) return false;
    const local = findLocalTime(this.#calendar, span.unseen);
    return local !== undefined && local < startLocal;
  }
}
