// Compares the search with a walk through every minute. The walk asks the runtime what the clocks show and knows
// nothing of how the search works.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { TimeZones } from '../../../../src/features/schedule/cron/cron-time-zone.js';
import { parseCron } from '../../../../src/features/schedule/cron/cron.js';

const MINUTE_MS = 60_000;
const DAY_MS = 1440 * MINUTE_MS;

interface Field {
  readonly text: string;
  readonly values: readonly number[];
}

/** A field, and all that it allows, made without reading it. */
function fieldOf(min: number, max: number): fc.Arbitrary<Field> {
  const all = Array.from({ length: max - min + 1 }, (_, index) => min + index);
  const value = fc.integer({ min, max });
  const step = fc.integer({ min: 1, max: max - min });
  return fc.oneof(
    fc.constant({ text: '*', values: all }),
    step.map((by) => ({ text: `*/${by}`, values: all.filter((each) => (each - min) % by === 0) })),
    fc.uniqueArray(value, { minLength: 1, maxLength: 4 }).map((values) => ({ text: values.join(), values })),
    fc.tuple(value, value).map(([first, last]) => ({
      text: `${first}-${last}`,
      values: all.filter((each) => (first <= last ? each >= first && each <= last : each >= first || each <= last)),
    })),
  );
}

interface Expression {
  readonly text: string;
  readonly names: (wall: Wall) => boolean;
  readonly isInterval: boolean;
}

/** Without impossible dates: there is a month of 31 days, or a day that each month has. */
const expressions: fc.Arbitrary<Expression> = fc
  .tuple(fieldOf(0, 59), fieldOf(0, 23), fieldOf(1, 31), fieldOf(1, 12), fieldOf(0, 6))
  .filter(
    ([, , day, month]) =>
      month.values.some((each) => [1, 3, 5, 7].includes(each)) || day.values.some((each) => each < 29),
  )
  .map(([minute, hour, day, month, weekday]) => ({
    text: [minute, hour, day, month, weekday].map((field) => field.text).join(' '),
    names: (wall) =>
      minute.values.includes(wall.minute) &&
      hour.values.includes(wall.hour) &&
      day.values.includes(wall.day) &&
      month.values.includes(wall.month) &&
      weekday.values.includes(wall.weekday),
    isInterval: minute.text.startsWith('*') || hour.values.length === 24,
  }));

interface Wall {
  readonly minute: number;
  readonly hour: number;
  readonly day: number;
  readonly month: number;
  readonly weekday: number;
  /** Milliseconds that read as UTC. */
  readonly local: number;
}

function wallOf(local: number): Wall {
  const date = new Date(local);
  return {
    minute: date.getUTCMinutes(),
    hour: date.getUTCHours(),
    day: date.getUTCDate(),
    month: date.getUTCMonth() + 1,
    weekday: date.getUTCDay(),
    local,
  };
}

/** What the clocks of a zone show at every minute of a window. */
function readClocks(timeZone: string, start: number, days: number): (readonly [instant: number, wall: Wall])[] {
  const format = new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short', timeStyle: 'short' });
  return Array.from({ length: days * 1440 }, (_, index) => {
    const instant = start + index * MINUTE_MS;
    return [instant, wallOf(Date.parse(`${format.format(instant).replace(' ', 'T')}Z`))];
  });
}

/** The runs in a window, by the rules in words: intervals as the clock shows them, times of the day once each. */
function walk({ names, isInterval }: Expression, clocks: ReturnType<typeof readClocks>): number[] {
  let shownUntil = clocks[0]![1].local - MINUTE_MS;
  const due: number[] = [];
  for (const [instant, wall] of clocks) {
    const skipped: Wall[] = [];
    for (let local = shownUntil + MINUTE_MS; local < wall.local; local += MINUTE_MS) skipped.push(wallOf(local));
    const isNew = wall.local > shownUntil;
    const isDue = isInterval ? names(wall) : (isNew && names(wall)) || skipped.some(names);
    if (isDue) due.push(instant);
    shownUntil = Math.max(shownUntil, wall.local);
  }
  return due;
}

const zones = new TimeZones();
const WINDOWS: [zone: string, start: string][] = [
  ['UTC', '2027-12-30'],
  ['UTC', '2028-02-27'],
  ['America/New_York', '2026-03-06'],
  ['America/New_York', '2026-10-30'],
  ['Australia/Lord_Howe', '2026-04-03'],
  ['Australia/Lord_Howe', '2026-10-02'],
  ['America/Santiago', '2026-04-03'],
  ['America/Santiago', '2026-09-04'],
  ['Antarctica/Troll', '2026-03-27'],
  ['Antarctica/Troll', '2026-10-23'],
  ['Asia/Pyongyang', '2015-08-13'],
  ['Asia/Pyongyang', '2018-05-03'],
];

describe.each(WINDOWS)('in %s from %s', (timeZone, date) => {
  const start = Date.parse(`${date}T00:00:00Z`);
  const clocks = readClocks(timeZone, start, 5);

  test('the runs are those that a walk through every minute finds', () => {
    fc.assert(
      fc.property(expressions, (expression) => {
        const cron = parseCron(expression.text, { timeZone, zones });

        expect([...cron.between(start - 1, start + 5 * DAY_MS)]).toEqual(walk(expression, clocks));
      }),
      { numRuns: 60 },
    );
  });

  test('the next run from anywhere is strictly later, matches, and is the first that does', () => {
    fc.assert(
      fc.property(expressions, fc.integer({ min: 0, max: 4 * DAY_MS }), (expression, elapsed) => {
        const cron = parseCron(expression.text, { timeZone, zones });
        const after = start + elapsed;

        const next = cron.next(after)!;

        expect(next).toBeGreaterThan(after);
        expect(cron.matches(next)).toBe(true);
        const first = walk(expression, clocks).find((instant) => instant > after);
        if (first === undefined) expect(next).toBeGreaterThanOrEqual(start + 5 * DAY_MS);
        else expect(next).toBe(first);
        expect(clocks.filter(([instant]) => instant > after && instant < next).some(([it]) => cron.matches(it))).toBe(
          false,
        );
      }),
      { numRuns: 40 },
    );
  });
});

describe('at any time', () => {
  test('runs follow one another without end and without a step back', () => {
    const instants = fc.integer({ min: Date.UTC(1970), max: Date.UTC(2100) });
    const names = fc.constantFrom('UTC', 'America/New_York', 'Africa/Casablanca', 'Asia/Tehran', 'Pacific/Apia');
    fc.assert(
      fc.property(expressions, instants, names, (expression, after, timeZone) => {
        const cron = parseCron(expression.text, { timeZone, zones });

        const runs = cron.nextRuns(after, 5);

        expect(runs).toHaveLength(5);
        runs.forEach((due, index) => {
          expect(due).toBeGreaterThan(index === 0 ? after : runs[index - 1]!);
          expect(cron.matches(due)).toBe(true);
        });
      }),
    );
  });
});
