import { describe, expect, test } from 'vitest';
import { InvalidTimeZoneError } from '../../../../src/kernel/errors/errors.js';
import { TimeMatcher } from '../../../../src/features/schedule/cron/time-matcher.js';

describe('the TimeMatcher of the shared API', () => {
  test('matches through the whole second', () => {
    const matcher = new TimeMatcher('0 12 * * *');

    expect(matcher.match(new Date('2026-01-10T12:00:00.999Z'))).toBe(true);
    expect(matcher.match(Date.parse('2026-01-10T12:00:01.000Z'))).toBe(false);
  });

  test('gives the first match after a date, in its zone', () => {
    expect(new TimeMatcher('0 12 * * *').nextWakeupTime(new Date('2026-01-10T12:34:56Z'))).toEqual(
      new Date('2026-01-11T12:00:00Z'),
    );
    expect(
      new TimeMatcher('0 12 * * *', 'America/New_York').nextWakeupTime(Date.parse('2026-01-10T12:34:56Z')),
    ).toEqual(new Date('2026-01-10T17:00:00Z'));
  });

  test('refuses what parseCron refuses', () => {
    expect(() => new TimeMatcher('61 * * * *')).toThrow('61 is a invalid expression for minute');
    expect(() => new TimeMatcher('* * * * *', 'Nowhere')).toThrow(InvalidTimeZoneError);
  });
});
