import { describe, expect, test } from 'vitest';
import {
  sanitize,
  longValue,
  type RenderContext,
  shortValue,
  toJSONText,
} from '../../../src/faces/cli/render-context.js';
import { type Column, formatFields, formatTable, shorten, textWidth, wrap } from '../../../src/faces/cli/table.js';
import { ProgressLine } from '../../../src/faces/cli/commands/progress.js';
import type { Terminal } from '../../../src/faces/cli/terminal.js';
import { formatDuration, formatRelative, parseDuration, parseMoment } from '../../../src/faces/cli/time.js';

const NOW = Date.parse('2026-01-31T12:00:00Z');

function rendering(fields: Partial<RenderContext> = {}): RenderContext {
  return { width: Infinity, hasColours: false, now: NOW, ...fields };
}

interface Row {
  readonly id: string;
  readonly name: string;
  readonly queue: string | null;
  readonly count: number;
}

const COLUMNS: readonly Column<Row>[] = [
  { title: 'ID', text: (row) => row.id },
  { title: 'NAME', text: (row) => row.name, isShortenable: true },
  { title: 'QUEUE', text: (row) => row.queue, rank: 1 },
  { title: 'COUNT', text: (row) => row.count, isRight: true, colour: () => 'green' },
];
const ROWS: readonly Row[] = [
  { id: 'order-17', name: 'fulfil', queue: 'mail', count: 3 },
  { id: 'order-4', name: 'a workflow with a rather long name', queue: null, count: 1200 },
];

test('a value whose parts are shared over and over ends', () => {
  let chain: unknown = 'leaf';
  for (let level = 0; level < 60; level += 1) chain = [chain, chain];

  expect(shortValue(chain).length).toBeLessThan(20_000);
  expect(longValue(chain).length).toBeLessThan(2_000_000);
});

test('a value that contains itself, or is very deep, is JSON all the same', () => {
  const circle: Record<string, unknown> = { a: 1 };
  circle['self'] = circle;
  let deep: unknown = 1;
  for (let level = 0; level < 100_000; level += 1) deep = [deep];

  expect(toJSONText({ circle })).toBe('{"circle":{"a":1,"self":"[Circular]"}}');
  expect(toJSONText(deep)).toContain('…');
});

describe('a table', () => {
  test('is aligned', () => {
    expect(formatTable(rendering(), COLUMNS, ROWS)).toBe(
      [
        'ID        NAME                                QUEUE  COUNT',
        'order-17  fulfil                              mail       3',
        'order-4   a workflow with a rather long name          1200',
      ].join('\n'),
    );
  });

  test.each([60, 50, 40, 30, 20])('fits into %i columns', (width) => {
    const lines = formatTable(rendering({ width }), COLUMNS, ROWS).split('\n');

    expect(Math.max(...lines.map(textWidth))).toBeLessThanOrEqual(Math.max(width, 29));
    expect(lines[1]).toContain('order-17');
  });

  test('leaves out what is of lower rank before it cuts an ID', () => {
    expect(formatTable(rendering({ width: 30 }), COLUMNS, ROWS)).toBe(
      ['ID        NAME           COUNT', 'order-17  fulfil             3', 'order-4   a workflow w…   1200'].join('\n'),
    );
  });

  test('has colours only where they are wanted', () => {
    expect(formatTable(rendering(), COLUMNS, ROWS)).not.toContain('\u001b');
    expect(formatTable(rendering({ hasColours: true }), COLUMNS, ROWS)).toContain('\u001b[32m    3\u001b[0m');
  });

  test('leaves out columns that are empty', () => {
    const rows = ROWS.map((row) => ({ ...row, queue: null }));

    expect(formatTable(rendering(), COLUMNS, rows)).not.toContain('QUEUE');
  });

  test('shows nothing that a terminal would obey', () => {
    const rows = [{ id: '\u001b]0;owned\u0007', name: 'two\nlines\u009b2J', queue: null, count: 1 }];

    const table = formatTable(rendering(), COLUMNS, rows);

    expect(table.replaceAll('\n', '')).not.toMatch(/[\u0000-\u001f\u007f-\u009f]/);
    expect(table.split('\n')).toHaveLength(2);
  });

  test('counts wide and combining characters as terminals do', () => {
    expect(textWidth('日本')).toBe(4);
    expect(textWidth('e\u0301')).toBe(1);
    expect(shorten('日本語です', 5)).toBe('日本…');
  });
});

describe('fields', () => {
  test('stand below each other, without those that have no value', () => {
    expect(
      formatFields(rendering(), [
        ['ID', 'a'],
        ['queue', undefined],
        ['attempts', 0],
        ['input', '[\n  1\n]'],
      ]),
    ).toBe(['ID        a', 'attempts  0', 'input     [', '            1', '          ]'].join('\n'));
  });

  test('break between words', () => {
    expect(wrap('one two three four', 9)).toBe('one two\nthree\nfour');
  });
});

describe('progress', () => {
  function progressOn(isOverwritable: boolean) {
    let now = 0;
    let told = '';
    const terminal = { isOverwritable, printStderr: (text: string) => void (told += text) } as Terminal;
    const line = new ProgressLine(terminal, () => now);
    return { line, pass: (ms: number) => void (now += ms), told: () => told };
  }

  test('is not shown for work that is done in a moment', () => {
    const { line, told } = progressOn(true);

    line.show('1 done');
    line.done();

    expect(told()).toBe('');
  });

  test('overwrites its line on a terminal, and leaves none behind', () => {
    const { line, pass, told } = progressOn(true);

    for (const count of [1, 2, 3, 4]) {
      pass(60);
      line.show(`${count} done`);
    }
    line.done();

    expect(told()).toBe('\r\u001b[K2 done\r\u001b[K4 done\r\u001b[K');
  });

  test('has a bar and the time left if the total is known', () => {
    const { line, pass, told } = progressOn(true);

    pass(3000);
    line.show('30 done', { done: 30, total: 120 });

    expect(told()).toBe('\r\u001b[K██████░░░░░░░░░░░░░░░░░░  25 %  30 done, 9 s left');
  });

  test('stays at the end if there is more to do than was counted', () => {
    const { line, pass, told } = progressOn(true);

    pass(3000);
    line.show('30 done', { done: 30, total: 20 });

    expect(told()).toBe(`\r\u001b[K${'█'.repeat(24)} 100 %  30 done`);
  });

  test('has no bar if there is nothing to count', () => {
    const { line, pass, told } = progressOn(true);

    pass(3000);
    line.show('0 done', { done: 0, total: 0 });

    expect(told()).toBe('\r\u001b[K0 done');
  });

  test('has no bar where nothing can be overwritten', () => {
    const { line, pass, told } = progressOn(false);

    pass(6000);
    line.show('30 done', { done: 30, total: 120 });
    line.done();

    expect(told()).toBe('30 done\n');
  });

  test('is a line every five seconds where nothing can be overwritten', () => {
    const { line, pass, told } = progressOn(false);

    for (const count of [1, 2, 3, 4]) {
      pass(3000);
      line.show(`${count} done`);
    }
    line.done();

    expect(told()).toBe('2 done\n4 done\n');
  });
});

describe('values', () => {
  test('are shown on one line without control characters', () => {
    expect(shortValue({ a: [1, 'x\u001b[2J'] })).toBe("{ a: [ 1, 'x\\x1B[2J' ] }");
    expect(shortValue(new TypeError('bad\nthing'))).toBe('TypeError: bad⏎thing');
    expect(sanitize('a\u202eb')).toBe('a\\u202eb');
    expect(longValue(new Error('no'))).toContain("message: 'no'");
  });

  test('become JSON in the nearest form', () => {
    const value = { big: 10n, map: new Map([['a', 1]]), set: new Set([1]), error: new Error('no'), nan: NaN };

    expect(JSON.parse(toJSONText(value))).toEqual({
      big: '10',
      map: { a: 1 },
      set: [1],
      error: { name: 'Error', message: 'no' },
      nan: 'NaN',
    });
    expect(toJSONText(undefined)).toBe('null');
  });
});

describe('times', () => {
  test.each([
    ['90', 90_000],
    ['1.5h', 5_400_000],
    ['2h30m', 9_000_000],
    ['7d', 604_800_000],
    ['250ms', 250],
    ['', undefined],
    ['-5s', undefined],
    ['5 m', undefined],
    ['1y', undefined],
  ])('the duration %j is %j ms', (written, expected) => {
    expect(parseDuration(written)).toBe(expected);
  });

  test.each([
    ['2026-01-31T11:00:00Z', NOW - 3_600_000],
    ['2026-01-31 11:00:00Z', NOW - 3_600_000],
    ['2026-01-31', Date.parse('2026-01-31')],
    ['2h', NOW - 7_200_000],
    ['now', NOW],
    ['17', undefined],
    ['2026-02-31T00:00:00Zzz', undefined],
  ])('the time %j is %j', (written, expected) => {
    expect(parseMoment(written, NOW)).toBe(expected);
  });

  test.each([
    [0, '0 ms'],
    [999, '999 ms'],
    [12_340, '12.3 s'],
    [59_999, '1 m'],
    [250_000, '4 m 10 s'],
    [7_500_000, '2 h 5 m'],
    [273_600_000, '3 d 4 h'],
    [-5, '0 ms'],
  ])('%i ms are shown as %s', (durationMs, expected) => {
    expect(formatDuration(durationMs)).toBe(expected);
  });

  test.each([
    [0, 'just now'],
    [-5000, '5 s ago'],
    [-180_000, '3 m ago'],
    [-100_000_000, '27 h ago'],
    [-900_000_000, '10 d ago'],
    [7_300_000, 'in 2 h'],
  ])('a time %i ms away is %s', (distanceMs, expected) => {
    expect(formatRelative(NOW + distanceMs, NOW)).toBe(expected);
  });
});
