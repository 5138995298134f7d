import { describe, expect, test } from 'vitest';
import {
  countOf,
  formatBytes,
  formatCount,
  formatDuration,
  formatRelative,
  formatTime,
  visibleText,
} from '../src/parts/format';

describe('formats', () => {
  test.each([
    [-5, '0 ms'],
    [0, '0 ms'],
    [999, '999 ms'],
    [1000, '1.0 s'],
    [9999, '9.9 s'],
    [12_900, '12 s'],
    [60_000, '1 min'],
    [243_000, '4 min 3 s'],
    [3_600_000, '1 h'],
    [7_500_000, '2 h 5 min'],
    [86_400_000, '1 d'],
    [273_600_000, '3 d 4 h'],
  ])('a duration of %i ms as %s', (ms, text) => {
    expect(formatDuration(ms)).toBe(text);
  });

  test.each([
    [-500, 'now'],
    [500, 'now'],
    [-12_000, '12 s ago'],
    [-240_000, '4 min ago'],
    [7_200_000, 'in 2 h'],
    [-47 * 3_600_000, '47 h ago'],
    [-48 * 3_600_000, '2 d ago'],
  ])('a time %i ms from now as %s', (distance, text) => {
    expect(formatRelative(1_000_000_000 + distance, 1_000_000_000)).toBe(text);
  });

  test('numbers, sizes and counted nouns', () => {
    expect(formatCount(1_234_567)).toBe('1,234,567');
    expect([512, 2048, 3_145_728].map(formatBytes)).toEqual(['512 B', '2.0 KB', '3.0 MB']);
    expect([countOf(0, 'step'), countOf(1, 'step'), countOf(1204, 'step')]).toEqual([
      '0 steps',
      '1 step',
      '1,204 steps',
    ]);
  });

  test('a moment to the millisecond, and nothing for what is none', () => {
    expect(formatTime(Date.UTC(2026, 0, 5, 10, 0, 0, 7))).toContain('.007');
    expect(formatTime(Number.NaN)).toBe('');
  });

  test('text with what hides or turns it around made visible', () => {
    expect(visibleText('a\u202Eb\u0000c\u200Bd')).toBe('a\\u202eb\\u0000c\\u200bd');
    expect(visibleText('line\n\ttab é 漢 <b>')).toBe('line\n\ttab é 漢 <b>');
  });
});
