import { expect, test } from 'vitest';
import { RecentSet } from '../../../src/database/notify/recent-set.js';

test('remembers at least as many as it should, forgets older ones, and each can be deleted once', () => {
  const recent = new RecentSet<number>(3);
  for (let n = 1; n <= 7; n += 1) recent.add(n);

  expect([7, 6, 5, 4, 1].map((n) => recent.delete(n))).toEqual([true, true, true, true, false]);
  expect(recent.delete(7)).toBe(false);
});

test('a value of both generations is deleted from both', () => {
  const recent = new RecentSet<string>(2);
  for (const value of ['a', 'b', 'a']) recent.add(value);

  expect([recent.delete('a'), recent.delete('a')]).toEqual([true, false]);
});
