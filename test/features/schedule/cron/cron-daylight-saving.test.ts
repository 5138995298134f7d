// What is due when clocks are changed. The tables were worked out by hand from the rules of each zone. An expression is
// in local time; the window and the runs are in UTC.
import { afterEach, describe, expect, test, vi } from 'vitest';
import { parseCron } from '../../../../src/features/schedule/cron/cron.js';

/** All runs from one UTC time to another, as `MM-DD HH:MM`. */
function runs(expression: string, timeZone: string, window: readonly [from: string, to: string]): string[] {
  const [from, to] = window.map((text) => Date.parse(`${text}:00Z`));
  const cron = parseCron(expression, { timeZone });
  return [...cron.between(from! - 1, to!)].map((due) => new Date(due).toISOString().slice(5, 16).replace('T', ' '));
}

interface Change {
  readonly zone: string;
  readonly what: string;
  readonly window: readonly [from: string, to: string];
  readonly table: readonly (readonly [expression: string, ...due: string[]])[];
}

const CHANGES: Change[] = [
  {
    zone: 'America/New_York',
    what: 'forward from 02:00 to 03:00 at 07:00 UTC',
    window: ['2026-03-08T05:00', '2026-03-09T08:00'],
    table: [
      ['30 1 * * *', '03-08 06:30', '03-09 05:30'],
      ['0 2 * * *', '03-08 07:00', '03-09 06:00'],
      ['30 2 * * *', '03-08 07:00', '03-09 06:30'],
      ['0 3 * * *', '03-08 07:00', '03-09 07:00'],
      ['0,30 2 * * *', '03-08 07:00', '03-09 06:00', '03-09 06:30'],
      ['30 1-3 * * *', '03-08 06:30', '03-08 07:00', '03-08 07:30', '03-09 05:30', '03-09 06:30', '03-09 07:30'],
      ['30 2 8 3 *', '03-08 07:00'],
      ['30 2 9 3 *', '03-09 06:30'],
      ['15 30 2 8 * *', '03-08 07:00'],
      ['*/30 2 * * *', '03-09 06:00', '03-09 06:30'],
      ['*/60 30 2 * * *', '03-09 06:30'],
    ],
  },
  {
    zone: 'America/New_York',
    what: 'forward, hourly and oftener',
    window: ['2026-03-08T06:00', '2026-03-08T09:00'],
    table: [
      ['0 * * * *', '03-08 06:00', '03-08 07:00', '03-08 08:00'],
      ['30 * * * *', '03-08 06:30', '03-08 07:30', '03-08 08:30'],
      ['30 0-23 * * *', '03-08 06:30', '03-08 07:30', '03-08 08:30'],
      ['*/30 * * * *', '03-08 06:00', '03-08 06:30', '03-08 07:00', '03-08 07:30', '03-08 08:00', '03-08 08:30'],
      ['*/30 1-3 * * *', '03-08 06:00', '03-08 06:30', '03-08 07:00', '03-08 07:30'],
    ],
  },
  {
    zone: 'America/New_York',
    what: 'back from 02:00 to 01:00 at 06:00 UTC',
    window: ['2026-11-01T04:00', '2026-11-02T08:00'],
    table: [
      ['30 0 * * *', '11-01 04:30', '11-02 05:30'],
      ['0 1 * * *', '11-01 05:00', '11-02 06:00'],
      ['30 1 * * *', '11-01 05:30', '11-02 06:30'],
      ['0 2 * * *', '11-01 07:00', '11-02 07:00'],
      ['0,30 1 * * *', '11-01 05:00', '11-01 05:30', '11-02 06:00', '11-02 06:30'],
      ['30 1-2 * * *', '11-01 05:30', '11-01 07:30', '11-02 06:30', '11-02 07:30'],
      ['30 1 1 11 *', '11-01 05:30'],
    ],
  },
  {
    zone: 'America/New_York',
    what: 'back, hourly and oftener',
    window: ['2026-11-01T05:00', '2026-11-01T08:00'],
    table: [
      ['0 * * * *', '11-01 05:00', '11-01 06:00', '11-01 07:00'],
      ['30 * * * *', '11-01 05:30', '11-01 06:30', '11-01 07:30'],
      ['*/30 * * * *', '11-01 05:00', '11-01 05:30', '11-01 06:00', '11-01 06:30', '11-01 07:00', '11-01 07:30'],
      ['*/30 1 * * *', '11-01 05:00', '11-01 05:30', '11-01 06:00', '11-01 06:30'],
    ],
  },
  {
    zone: 'Europe/Berlin',
    what: 'forward from 02:00 to 03:00 at 01:00 UTC',
    window: ['2026-03-29T00:00', '2026-03-30T02:00'],
    table: [
      ['30 2 * * *', '03-29 01:00', '03-30 00:30'],
      ['0 3 * * *', '03-29 01:00', '03-30 01:00'],
      ['30 2 * * MON', '03-30 00:30'],
      ['30 2 * * 0L', '03-29 01:00'],
    ],
  },
  {
    zone: 'Europe/Berlin',
    what: 'back from 03:00 to 02:00 at 01:00 UTC',
    window: ['2026-10-25T00:00', '2026-10-26T02:00'],
    table: [
      ['0 2 * * *', '10-25 00:00', '10-26 01:00'],
      ['30 2 * * *', '10-25 00:30', '10-26 01:30'],
      ['30 */2 25 10 *', '10-25 00:30', ...everyTwoHours('10-25', 3, 21)],
      ['0 2,3 * * *', '10-25 00:00', '10-25 02:00', '10-26 01:00'],
    ],
  },
  {
    zone: 'Australia/Lord_Howe',
    what: 'forward by half an hour, from 02:00 to 02:30 at 15:30 UTC',
    window: ['2026-10-03T14:00', '2026-10-04T16:00'],
    table: [
      ['15 2 * * *', '10-03 15:30', '10-04 15:15'],
      ['30 2 * * *', '10-03 15:30', '10-04 15:30'],
      ['45 1 * * *', '10-03 15:15', '10-04 14:45'],
      ['15 2 4 10 *', '10-03 15:30'],
    ],
  },
  {
    zone: 'Australia/Lord_Howe',
    what: 'back by half an hour, from 02:00 to 01:30 at 15:00 UTC',
    window: ['2026-04-04T14:00', '2026-04-05T16:00'],
    table: [
      ['15 1 * * *', '04-04 14:15', '04-05 14:45'],
      ['45 1 * * *', '04-04 14:45', '04-05 15:15'],
      ['0 2 * * *', '04-04 15:30', '04-05 15:30'],
    ],
  },
  {
    zone: 'Australia/Lord_Howe',
    what: 'back by half an hour, oftener than hourly',
    window: ['2026-04-04T14:00', '2026-04-04T16:00'],
    // The clock shows 01:45 twice, half an hour apart, and no full hour in between.
    table: [
      ['45 * * * *', '04-04 14:45', '04-04 15:15'],
      ['*/30 * * * *', '04-04 14:00', '04-04 14:30', '04-04 15:00', '04-04 15:30'],
      ['0 * * * *', '04-04 14:00', '04-04 15:30'],
    ],
  },
  {
    zone: 'Australia/Sydney',
    what: 'forward in spring, from 02:00 to 03:00 at 16:00 UTC',
    window: ['2026-10-03T15:00', '2026-10-04T17:00'],
    table: [
      ['30 2 * * *', '10-03 16:00', '10-04 15:30'],
      ['30 2 * * SUN', '10-03 16:00'],
      ['30 1 * * *', '10-03 15:30', '10-04 14:30'],
    ],
  },
  {
    zone: 'Australia/Sydney',
    what: 'back in autumn, from 03:00 to 02:00 at 16:00 UTC',
    window: ['2026-04-04T15:00', '2026-04-05T17:00'],
    table: [
      ['30 2 * * *', '04-04 15:30', '04-05 16:30'],
      ['30 * 5 4 *', ...everyHour('04-04', 15, 23), ...everyHour('04-05', 0, 13)],
    ],
  },
  {
    zone: 'America/Santiago',
    what: 'forward at midnight, from 00:00 to 01:00 at 04:00 UTC',
    window: ['2026-09-05T00:00', '2026-09-08T00:00'],
    table: [
      ['0 0 * * *', '09-05 04:00', '09-06 04:00', '09-07 03:00'],
      ['30 0 * * SUN', '09-06 04:00'],
      ['0 0 6 9 *', '09-06 04:00'],
      ['59 23 * * *', '09-05 03:59', '09-06 03:59', '09-07 02:59'],
      ['@weekly', '09-06 04:00'],
    ],
  },
  {
    zone: 'America/Santiago',
    what: 'back at midnight, from 24:00 to 23:00 at 03:00 UTC',
    window: ['2026-04-04T00:00', '2026-04-07T00:00'],
    table: [
      ['30 23 * * *', '04-04 02:30', '04-05 02:30', '04-06 03:30'],
      ['0 0 * * *', '04-04 03:00', '04-05 04:00', '04-06 04:00'],
      ['30 23 4 4 *', '04-05 02:30'],
      ['*/30 23 4 4 *', '04-05 02:00', '04-05 02:30', '04-05 03:00', '04-05 03:30'],
    ],
  },
  {
    zone: 'Africa/Cairo',
    what: 'forward at midnight of a Friday, at 22:00 UTC',
    window: ['2026-04-22T00:00', '2026-04-25T00:00'],
    table: [
      ['0 0 * * *', '04-22 22:00', '04-23 22:00', '04-24 21:00'],
      ['0 0 * * FRI', '04-23 22:00'],
    ],
  },
  {
    zone: 'Africa/Cairo',
    what: 'back at midnight after a Thursday, at 21:00 UTC',
    window: ['2026-10-28T12:00', '2026-10-31T00:00'],
    table: [
      ['30 23 * * *', '10-28 20:30', '10-29 20:30', '10-30 21:30'],
      ['0 0 * * *', '10-28 21:00', '10-29 22:00', '10-30 22:00'],
    ],
  },
  {
    zone: 'Asia/Kolkata',
    what: 'never changed',
    window: ['2026-03-28T00:00', '2026-03-30T00:00'],
    table: [
      ['30 2 * * *', '03-28 21:00', '03-29 21:00'],
      ['0 0 29 3 *', '03-28 18:30'],
    ],
  },
  {
    zone: 'Asia/Pyongyang',
    what: 'back for good, from 00:00 to 23:30 at 15:00 UTC in 2015',
    window: ['2015-08-13T12:00', '2015-08-15T16:00'],
    table: [
      ['45 23 * * *', '08-13 14:45', '08-14 14:45', '08-15 15:15'],
      ['0 0 * * *', '08-13 15:00', '08-14 15:30', '08-15 15:30'],
    ],
  },
  {
    zone: 'Asia/Pyongyang',
    what: 'forward for good, from 23:30 to 00:00 at 15:00 UTC in 2018',
    window: ['2018-05-03T12:00', '2018-05-05T16:00'],
    table: [
      ['45 23 * * *', '05-03 15:15', '05-04 15:00', '05-05 14:45'],
      ['0 0 * * *', '05-03 15:30', '05-04 15:00', '05-05 15:00'],
      ['45 23 4 5 *', '05-04 15:00'],
    ],
  },
  {
    zone: 'Pacific/Apia',
    what: 'over the date line, without a 30 December 2011',
    window: ['2011-12-29T00:00', '2012-01-01T00:00'],
    table: [
      ['0 12 * * *', '12-29 22:00', '12-30 22:00', '12-31 22:00'],
      ['0 0 * * *', '12-29 10:00', '12-30 10:00', '12-31 10:00'],
      ['0 12 30 12 *'],
    ],
  },
];

function everyHour(date: string, first: number, last: number): string[] {
  return Array.from({ length: last - first + 1 }, (_, index) => `${date} ${String(first + index).padStart(2, '0')}:30`);
}

function everyTwoHours(date: string, first: number, last: number): string[] {
  return everyHour(date, first, last).filter((_, index) => index % 2 === 0);
}

describe.each(CHANGES)('the clocks of $zone, $what', ({ zone, window, table }) => {
  test.each(table)('%s', (expression, ...due) => {
    expect(runs(expression, zone, window)).toEqual(due);
  });

  test.each(table)('%s matches at its runs and at no other minute', (expression, ...due) => {
    const cron = parseCron(expression, { timeZone: zone });
    const [from, to] = window.map((text) => Date.parse(`${text}:00Z`));
    const minutes = Array.from({ length: (to! - from!) / 60_000 }, (_, index) => from! + index * 60_000);

    const matched = minutes.filter((minute) => cron.matches(minute));

    expect(matched.map((minute) => new Date(minute).toISOString().slice(5, 16).replace('T', ' '))).toEqual(due);
  });
});

describe('over the years', () => {
  const FROM = Date.parse('2020-01-01T00:00:00Z');
  const TO = Date.parse('2040-01-01T00:00:00Z');

  test.each(['America/New_York', 'Europe/Dublin', 'Australia/Lord_Howe', 'America/Santiago', 'Africa/Casablanca'])(
    'a daily run comes once on each local day in %s',
    (timeZone) => {
      const localDate = new Intl.DateTimeFormat('en-CA', { timeZone, dateStyle: 'short' });

      const dates = [...parseCron('15 2 * * *', { timeZone }).between(FROM, TO)].map((due) => localDate.format(due));

      expect(dates).toHaveLength(20 * 365 + 5);
      expect(new Set(dates).size).toBe(dates.length);
    },
  );

  test.each(['America/New_York', 'Europe/Dublin', 'America/Santiago', 'Asia/Kolkata'])(
    'an hourly run comes every 60 minutes in %s',
    (timeZone) => {
      const due = [...parseCron('30 * * * *', { timeZone }).between(FROM, TO)];

      expect(new Set(due.slice(1).map((instant, index) => instant - due[index]!))).toEqual(new Set([3_600_000]));
    },
  );
});

describe('a repeated hour in the zone of a test', () => {
  afterEach(() => {
    vi.unstubAllGlobals();
  });

  // What is known of a zone is kept in blocks of six days, and no zone there is has a change that reaches over the end
  // of one. This one is put back by two hours, one hour before such an end.
  test('is not due again when it reaches over the end of a block', () => {
    const changeAt = 3000 * 6 * 86_400_000 - 3_600_000;
    stubZone((instant) => (instant < changeAt ? 2 : 0));
    const local = new Date(changeAt + 2 * 3_600_000);
    const [hour, minute] = [local.getUTCHours() - 1, 30];

    const due = parseCron(`${minute} ${hour} * * *`, { timeZone: 'Test/Zone' }).nextRuns(changeAt - 7_200_000, 2);

    expect(due).toEqual([changeAt - 1_800_000, changeAt - 1_800_000 + 26 * 3_600_000]);
  });

  function stubZone(offsetHours: (instant: number) => number): void {
    class DateTimeFormat {
      resolvedOptions = () => ({ timeZone: 'Test/Zone' });
      format(instant: number): string {
        const [date, time] = new Date(instant + offsetHours(instant) * 3_600_000).toISOString().split(/[T.]/);
        const [year, month, day] = date!.split('-');
        return `${month}/${day}/${year}, ${time}`;
      }
    }
    vi.stubGlobal('Intl', { DateTimeFormat });
  }
});
