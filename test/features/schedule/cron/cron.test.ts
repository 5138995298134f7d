import { describe, expect, test } from 'vitest';
import { TimeZones } from '../../../../src/features/schedule/cron/cron-time-zone.js';
import { parseCron } from '../../../../src/features/schedule/cron/cron.js';
import { InvalidCronExpressionError, InvalidTimeZoneError } from '../../../../src/kernel/errors/errors.js';

/** A Saturday, between two seconds. */
const START = '2026-01-10T12:34:56.500Z';

function runs(expression: string, count: number, from = START): string[] {
  return parseCron(expression)
    .nextRuns(Date.parse(from), count)
    .map((due) => new Date(due).toISOString().replace(/:00\.000Z$|\.000Z$/, ''));
}

/** The days of the coming runs, as month and day. */
function days(expression: string, count: number, from = START): string[] {
  return runs(expression, count, from).map((text) => text.slice(5, 10));
}

describe('a cron expression', () => {
  test.each([
    ['* * * * *', '2026-01-10T12:35', '2026-01-10T12:36'],
    ['*/20 * * * *', '2026-01-10T12:40', '2026-01-10T13:00'],
    ['5 * * * *', '2026-01-10T13:05', '2026-01-10T14:05'],
    ['1,40,2 * * * *', '2026-01-10T12:40', '2026-01-10T13:01', '2026-01-10T13:02'],
    ['5-7 * * * *', '2026-01-10T13:05', '2026-01-10T13:06', '2026-01-10T13:07', '2026-01-10T14:05'],
    ['10-50/20 * * * *', '2026-01-10T12:50', '2026-01-10T13:10', '2026-01-10T13:30'],
    ['0,30-32,*/45 * * * *', '2026-01-10T12:45', '2026-01-10T13:00', '2026-01-10T13:30', '2026-01-10T13:31'],
    ['*/70 * * * *', '2026-01-10T13:00', '2026-01-10T14:00'],
    ['0 9-17/4 * * *', '2026-01-10T13:00', '2026-01-10T17:00', '2026-01-11T09:00'],
    ['0 0 1 1 *', '2027-01-01T00:00', '2028-01-01T00:00'],
    ['59 23 31 12 *', '2026-12-31T23:59', '2027-12-31T23:59'],
    ['007 08 * * *', '2026-01-11T08:07'],
  ])('of five fields: %s', (expression, ...expected) => {
    expect(runs(expression, expected.length)).toEqual(expected);
  });

  test.each([
    ['* * * * * *', '2026-01-10T12:34:57', '2026-01-10T12:34:58'],
    ['*/15 * * * * *', '2026-01-10T12:35', '2026-01-10T12:35:15'],
    ['30 0 12 * * *', '2026-01-11T12:00:30', '2026-01-12T12:00:30'],
    ['50-10/10 59 23 31 12 *', '2026-12-31T23:59', '2026-12-31T23:59:10', '2026-12-31T23:59:50'],
  ])('of six fields begins with seconds: %s', (expression, ...expected) => {
    expect(runs(expression, expected.length)).toEqual(expected);
  });

  test('may have any white space between and around its fields', () => {
    expect(runs('  0 \t 6\n* *  *  ', 1)).toEqual(['2026-01-11T06:00']);
  });

  test.each([
    ['@yearly', '0 0 1 1 *'],
    ['@annually', '0 0 1 1 *'],
    ['@monthly', '0 0 1 * *'],
    ['@weekly', '0 0 * * 0'],
    ['@daily', '0 0 * * *'],
    ['@midnight', '0 0 * * *'],
    ['@hourly', '0 * * * *'],
    [' @Daily ', '0 0 * * *'],
  ])('may be the nickname %s', (nickname, expression) => {
    expect(runs(nickname, 5)).toEqual(runs(expression, 5));
  });

  test.each([
    ['0 0 1 feb *', '0 0 1 2 *'],
    ['0 0 1 February,DECEMBER *', '0 0 1 2,12 *'],
    ['0 0 1 mar-Sep/2 *', '0 0 1 3-9/2 *'],
    ['0 0 1 Nov-2 *', '0 0 1 11-2 *'],
    ['0 0 * * mon-FRI', '0 0 * * 1-5'],
    ['0 0 * * Sunday,wednesday', '0 0 * * 0,3'],
    ['0 0 * * FRI#2', '0 0 * * 5#2'],
    ['0 0 * * fridayL', '0 0 * * 5L'],
    ['0 0 lw * *', '0 0 LW * *'],
    ['0 0 l-3,15w * *', '0 0 L-3,15W * *'],
  ])('may have names and letters in any case: %s', (named, numbered) => {
    expect(runs(named, 20)).toEqual(runs(numbered, 20));
  });

  test.each([
    ['0 0 * * 7', '0 0 * * 0'],
    ['0 0 * * 5-7', '0 0 * * 0,5,6'],
    ['0 0 * * 7-2', '0 0 * * 0,1,2'],
    ['0 0 * * 6-0', '0 0 * * 0,6'],
    ['0 0 * * 0-7', '0 0 * * *'],
    ['0 0 * * 7L', '0 0 * * 0L'],
    ['0 0 * * 7#1', '0 0 * * 0#1'],
  ])('takes 7 for Sunday: %s', (withSeven, withZero) => {
    expect(runs(withSeven, 20)).toEqual(runs(withZero, 20));
  });

  test.each([
    ['0 22-2 * * *', '0 22,23,0,1,2 * * *'],
    ['50-10/5 * * * *', '50,55,0,5,10 * * * *'],
    ['0 0 28-3 * *', '0 0 28,29,30,31,1,2,3 * *'],
    ['0 0 1 11-2 *', '0 0 1 11,12,1,2 *'],
    ['0 0 * * FRI-MON', '0 0 * * 5,6,0,1'],
    ['0 22-3/2 * * *', '0 22,0,2 * * *'],
  ])('has ranges that go on from the smallest value: %s', (range, list) => {
    expect(runs(range, 40)).toEqual(runs(list, 40));
  });

  test('takes ? for * as the whole of a day field', () => {
    expect(runs('0 0 ? * MON', 5)).toEqual(runs('0 0 * * MON', 5));
    expect(runs('0 0 1 * ?', 5)).toEqual(runs('0 0 1 * *', 5));
    expect(runs('0 0 ? * ?', 5)).toEqual(runs('0 0 * * *', 5));
  });

  test('matches when the day of the month and the day of the week both do', () => {
    expect(runs('0 0 13 * FRI', 4)).toEqual([
      '2026-02-13T00:00',
      '2026-03-13T00:00',
      '2026-11-13T00:00',
      '2027-08-13T00:00',
    ]);
    expect(days('0 0 8-14 * MON', 3)).toEqual(['01-12', '02-09', '03-09']);
  });
});

describe('days counted within a month', () => {
  test.each([
    ['L is the last day', '0 0 L * *', ['01-31', '02-28', '03-31', '04-30']],
    ['L-n lies n days before it', '0 0 L-3 * *', ['01-28', '02-25', '03-28', '04-27']],
    ['L-n is left out where the month is too short', '0 0 L-29 * *', ['03-02', '04-01', '05-02', '06-01']],
    ['L stands in lists', '0 0 15,L * *', ['01-15', '01-31', '02-15', '02-28']],
    // 15 February and 15 March 2026 are Sundays, 15 August is a Saturday, in 2027 a Sunday.
    ['nW moves Sunday to Monday', '0 0 15W * *', ['01-15', '02-16', '03-16', '04-15']],
    ['nW moves Saturday to Friday', '0 0 15W 8 *', ['08-14', '08-16', '08-15', '08-15']],
    // 1 August 2026 is a Saturday, 1 November a Sunday.
    ['nW stays in its month at the beginning', '0 0 1W 8-11 *', ['08-03', '09-01', '10-01', '11-02']],
    // 31 May 2026 is a Sunday, 31 January a Saturday.
    ['nW stays in its month at the end', '0 0 31W * *', ['01-30', '03-31', '05-29', '07-31']],
    ['LW is the last workday', '0 0 LW * *', ['01-30', '02-27', '03-31', '04-30']],
    ['nL is the last such day of the week', '0 0 * * 5L', ['01-30', '02-27', '03-27', '04-24']],
    ['n#m is the m-th such day of the week', '0 0 * * 5#3', ['01-16', '02-20', '03-20', '04-17']],
    ['n#5 waits for a month with five', '0 0 * * 0#5', ['03-29', '05-31', '08-30', '11-29']],
    ['n#m stands in lists', '0 0 * * 1#1,1#3', ['01-19', '02-02', '02-16', '03-02']],
  ])('%s', (_, expression, expected) => {
    expect(days(expression, 4)).toEqual(expected);
  });

  test('a day that a month does not have is left out, never moved', () => {
    expect(days('0 0 31 * *', 4)).toEqual(['01-31', '03-31', '05-31', '07-31']);
    expect(days('0 0 30 * *', 3)).toEqual(['01-30', '03-30', '04-30']);
  });

  test('nor moved to the workday before it', () => {
    // 30 April 2027 is a Friday, 31 May a Monday.
    expect(days('0 0 31W 4,5 *', 1, '2027-04-01T00:00:00Z')).toEqual(['05-31']);
  });

  test('29 February comes in leap years', () => {
    const leapYears = runs('0 0 29 2 *', 4, '2090-01-01T00:00:00Z').map((text) => text.slice(0, 4));

    expect(leapYears).toEqual(['2092', '2096', '2104', '2108']);
    expect(runs('0 0 29 2 *', 1, '1999-01-01T00:00:00Z')).toEqual(['2000-02-29T00:00']);
    expect(days('0 0 L 2 *', 3, '2027-01-01T00:00:00Z')).toEqual(['02-28', '02-29', '02-28']);
    expect(days('0 0 L-1 2 *', 2, '2027-03-01T00:00:00Z')).toEqual(['02-28', '02-27']);
  });

  test('the longest wait of all, 40 years, is found at once', () => {
    expect(runs('0 0 29 2 MON', 2, '2072-01-01T00:00:00Z')).toEqual(['2072-02-29T00:00', '2112-02-29T00:00']);
    expect(runs('0 0 29 2 WED', 2, '2068-03-01T00:00:00Z')).toEqual(['2096-02-29T00:00', '2108-02-29T00:00']);
  });
});

describe('a malformed expression', () => {
  const REFUSED: [string, string][] = [
    ['60 * * * *', '60 is a invalid expression for minute'],
    ['a * * * *', 'a is a invalid expression for minute'],
    ['*/0 * * * *', '*/0 is a invalid expression for minute'],
    ['*/ * * * *', '*/ is a invalid expression for minute'],
    ['5/10 * * * *', '5/10 is a invalid expression for minute'],
    ['-1 * * * *', '-1 is a invalid expression for minute'],
    ['1- * * * *', '1- is a invalid expression for minute'],
    ['1-2-3 * * * *', '1-2-3 is a invalid expression for minute'],
    ['1-70 * * * *', '1-70 is a invalid expression for minute'],
    ['1,,2 * * * *', '1,,2 is a invalid expression for minute'],
    ['1, * * * *', '1, is a invalid expression for minute'],
    ['1.5 * * * *', '1.5 is a invalid expression for minute'],
    ['1e1 * * * *', '1e1 is a invalid expression for minute'],
    ['? * * * *', '? is a invalid expression for minute'],
    ['L * * * *', 'L is a invalid expression for minute'],
    ['60 * * * * *', '60 is a invalid expression for second'],
    ['* 24 * * *', '24 is a invalid expression for hour'],
    ['* jan * * *', 'jan is a invalid expression for hour'],
    ['* * 0 * *', '0 is a invalid expression for day of month'],
    ['* * 32 * *', '32 is a invalid expression for day of month'],
    ['* * L-0 * *', 'L-0 is a invalid expression for day of month'],
    ['* * L-31 * *', 'L-31 is a invalid expression for day of month'],
    ['* * 32W * *', '32W is a invalid expression for day of month'],
    ['* * 1-15W * *', '1-15W is a invalid expression for day of month'],
    ['* * W * *', 'W is a invalid expression for day of month'],
    ['* * 1,? * *', '1,? is a invalid expression for day of month'],
    ['* * 5L * *', '5L is a invalid expression for day of month'],
    ['* * * 0 *', '0 is a invalid expression for month'],
    ['* * * 13 *', '13 is a invalid expression for month'],
    ['* * * janfeb *', 'janfeb is a invalid expression for month'],
    ['* * * ? *', '? is a invalid expression for month'],
    ['* * * * 8', '8 is a invalid expression for week day'],
    ['* * * * L', 'L is a invalid expression for week day'],
    ['* * * * 5#0', '5#0 is a invalid expression for week day'],
    ['* * * * 5#6', '5#6 is a invalid expression for week day'],
    ['* * * * 8L', '8L is a invalid expression for week day'],
    ['* * * * 1-5L', '1-5L is a invalid expression for week day'],
    ['* * * * tues', 'tues is a invalid expression for week day'],
    ['* * * *', 'expected 5 or 6 fields but got 4'],
    ['* * * * * * *', 'expected 5 or 6 fields but got 7'],
    ['', 'expected 5 or 6 fields but got 0'],
    ['2026-01-01T00:00:00Z', 'expected 5 or 6 fields but got 1'],
    ['@reboot', '@reboot is not a nickname'],
    ['constructor', 'expected 5 or 6 fields but got 1'],
    ['__proto__', 'expected 5 or 6 fields but got 1'],
    ['toString', 'expected 5 or 6 fields but got 1'],
    ['0 0 * constructor *', 'constructor is a invalid expression for month'],
    ['0 0 * * __proto__', '__proto__ is a invalid expression for week day'],
  ];

  test.each(REFUSED)('%s is refused, by the name of the field', (expression, start) => {
    expect(() => parseCron(expression)).toThrow(InvalidCronExpressionError);
    expect(() => parseCron(expression)).toThrow(
      expect.objectContaining({ expression, code: 'INVALID_CRON_EXPRESSION' }),
    );
    expect(() => parseCron(expression)).toThrow(`${start}. `);
  });

  test.each([
    ['0 0 30 2 *', '30 2 is an impossible day of month for the given month'],
    ['0 0 31 2,4,6,9,11 ?', '31 2,4,6,9,11 is an impossible day of month for the given month'],
    ['0 0 31W 2 *', '31W 2 is an impossible day of month for the given month'],
    ['0 0 L-29 2 *', 'L-29 2 is an impossible day of month for the given month'],
    ['0 0 8 * MON#1', '8 * MON#1 is an impossible combination of day of month, month and week day'],
    ['0 0 LW * SUN', 'LW * SUN is an impossible combination of day of month, month and week day'],
  ])('%s never comes and is refused', (expression, start) => {
    expect(() => parseCron(expression)).toThrow(InvalidCronExpressionError);
    expect(() => parseCron(expression)).toThrow(start);
  });

  test.each(['0 0 29 2 MON', '0 0 30,31 2,3 *', '0 0 31 * *', '0 0 L-30 1 *', '0 0 29W 2 *', '0 0 22 * MON#4'])(
    '%s comes some day and is taken',
    (expression) => {
      expect(parseCron(expression).next(Date.parse(START))).toBeGreaterThan(Date.parse(START));
    },
  );

  test('says what to write instead', () => {
    expect(() => parseCron('0 25 * * *')).toThrow(
      '25 is a invalid expression for hour. Write 0 to 23; or * for all, 0-23/2 or */2 for every other one, ' +
        'and commas between several. The cron expression is "0 25 * * *".',
    );
  });

  test('may be no text at all', () => {
    expect(() => parseCron(undefined as unknown as string)).toThrow('The cron pattern must be a string!');
  });
});

describe('a time zone', () => {
  test.each([undefined, null, '', 'UTC', 'utc', 'Etc/UTC'])('is UTC when it is %s', (timeZone) => {
    const cron = parseCron('0 6 * * *', { timeZone });

    expect(cron.timeZone).toBe('UTC');
    expect(cron.next(Date.parse(START))).toBe(Date.parse('2026-01-11T06:00:00Z'));
  });

  test.each(['Mars/Olympus', 'Berlin', 'UTC+2'])('that is not known is refused: %s', (timeZone) => {
    expect(() => parseCron('* * * * *', { timeZone })).toThrow(InvalidTimeZoneError);
    expect(() => parseCron('* * * * *', { timeZone })).toThrow(`Invalid timezone: '${timeZone}'. Use an IANA name`);
  });

  test('may be written in any case', () => {
    expect(parseCron('0 6 * * *', { timeZone: 'europe/BERLIN' }).timeZone).toBe('Europe/Berlin');
  });

  test('is shared by the expressions that are given the same zones', () => {
    const zones = new TimeZones();

    expect(zones.get('Europe/Berlin')).toBe(zones.get('europe/berlin'));
    expect(parseCron('0 6 * * *', { timeZone: 'Europe/Berlin', zones }).next(Date.parse(START))).toBe(
      Date.parse('2026-01-11T05:00:00Z'),
    );
  });
});

describe('the runs of an expression', () => {
  test('come strictly after the time they are asked for', () => {
    const cron = parseCron('0 0 * * *');
    const midnight = Date.parse('2026-01-11T00:00:00Z');

    expect(cron.next(midnight - 1)).toBe(midnight);
    expect(cron.next(midnight - 0.5)).toBe(midnight);
    expect(cron.next(midnight)).toBe(midnight + 86_400_000);
  });

  test('between two times leave both out', () => {
    const cron = parseCron('0 0 * * *');

    const found = [...cron.between(Date.parse('2026-01-11T00:00:00Z'), Date.parse('2026-01-14T00:00:00Z'))];

    expect(found).toEqual([Date.parse('2026-01-12T00:00:00Z'), Date.parse('2026-01-13T00:00:00Z')]);
    expect([...cron.between(found[0]!, found[0]!)]).toEqual([]);
  });

  test('are worked out one by one', () => {
    const endless = parseCron('* * * * * *').between(0, Infinity);

    expect([endless.next().value, endless.next().value]).toEqual([1000, 2000]);
  });

  test('are as many as are asked for', () => {
    expect(parseCron('* * * * *').nextRuns(0, 0)).toEqual([]);
    expect(parseCron('* * * * *').nextRuns(0, 3)).toEqual([60_000, 120_000, 180_000]);
  });

  test('are instants at which the expression matches', () => {
    const cron = parseCron('30 6 * * *', { timeZone: 'Asia/Tokyo' });

    expect(cron.matches(Date.parse('2026-01-10T21:30:00Z'))).toBe(true);
    expect(cron.matches(Date.parse('2026-01-10T21:30:01Z'))).toBe(false);
    expect(cron.matches(Date.parse('2026-01-11T06:30:00Z'))).toBe(false);
  });

  test('exist before 1970, and end with the years of four digits', () => {
    expect(runs('0 0 1 1 *', 1, '1899-06-01T00:00:00Z')).toEqual(['1900-01-01T00:00']);
    expect(parseCron('0 0 1 1 *').next(Date.UTC(9999, 5))).toBeUndefined();
    expect(parseCron('0 0 1 1 *', { timeZone: 'America/New_York' }).next(Date.UTC(9999, 5))).toBeUndefined();
    expect(parseCron('0 0 1 1 *').next(Infinity)).toBeUndefined();
    expect(parseCron('0 0 1 1 *').next(-Infinity)).toBe(Date.UTC(1000, 0, 1));
  });
});
