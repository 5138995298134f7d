import { describe, expect, test } from 'vitest';
import type { Command } from '../../../src/faces/cli/command.js';
import { command } from '../../../src/faces/cli/command.js';
import { COMMANDS } from '../../../src/faces/cli/commands.js';
import { longName } from '../../../src/faces/cli/option.js';
import {
  duration,
  flag,
  json,
  moment,
  required,
  repeatable,
  text,
  wholeNumber,
  withDefault,
} from '../../../src/faces/cli/option.js';
import { parseCommandLine, type Parsed } from '../../../src/faces/cli/parse.js';
import { call } from './terminals.js';

const NOW = Date.parse('2026-01-31T12:00:00Z');

const TABLE: readonly Command[] = [
  command({
    name: 'workflow list',
    about: 'List',
    parameter: { name: 'ID', takes: 'any', about: 'IDs' },
    options: {
      limit: withDefault(wholeNumber('Limit', { short: 'l', min: 1 }), 10),
      queueName: repeatable(text('Queue', { short: 'q', aliases: ['queue'] })),
      since: moment('Since'),
      timeout: duration('Timeout'),
      context: json('Context'),
      yes: flag('Yes', { short: 'y' }),
    },
    examples: [],
    run: async () => {},
  }),
  command({
    name: 'fork',
    about: 'Fork',
    parameter: { name: 'ID', takes: 'one', about: 'ID' },
    options: { to: required(text('To')) },
    examples: [],
    run: async () => {},
  }),
];

function parse(...words: string[]): Parsed {
  return parseCommandLine(TABLE, words, NOW);
}

describe('a command line', () => {
  test('is read into values of the types that its options have', () => {
    const words = [
      '-l',
      '3',
      '--queue=a',
      '-qb',
      '--since',
      '2h',
      '--timeout',
      '1m30s',
      '--context',
      '{"a":1}',
      'x',
      '-',
    ];

    const parsed = parse('wf', 'list', ...words);

    expect(parsed).toMatchObject({
      kind: 'run',
      options: {
        limit: 3,
        queueName: ['a', 'b'],
        since: NOW - 7_200_000,
        timeout: 90_000,
        context: { a: 1 },
        yes: false,
      },
      args: ['x', '-'],
    });
  });

  test('leaves defaults in place of what is not written', () => {
    expect(parse('workflows', 'list')).toMatchObject({
      options: { limit: 10, queueName: undefined, since: undefined, yes: false },
      args: [],
    });
  });

  test('takes everything behind -- for arguments', () => {
    expect(parse('workflow', 'list', '-y', '--', '--limit', '-x')).toMatchObject({
      options: { yes: true, limit: 10 },
      args: ['--limit', '-x'],
    });
  });

  test.each([
    ['an unknown command', ['workfow', 'list'], /Unknown command "workfow"/],
    [
      'an unknown verb',
      ['workflow', 'lst'],
      /Unknown command "workflow lst"\. Did you mean "workflow list"\? .*everstep workflow --help/,
    ],
    ['options before the command', ['--limit', '3'], /Write the command before its options/],
    ['an unknown option', ['wf', 'list', '--limt', '3'], /Unknown option --limt\. Did you mean --limit\?/],
    ['an unknown letter', ['wf', 'list', '-x'], /Unknown option -x\./],
    ['a missing value', ['wf', 'list', '--limit'], /--limit needs a value: --limit N/],
    ['an option in place of a value', ['wf', 'list', '--limit', '--yes'], /--limit needs a value/],
    ['a value for a flag', ['wf', 'list', '--yes=no'], /--yes takes no value/],
    ['no number', ['wf', 'list', '-l', 'ten'], /--limit must be an integer of at least 1, but is "ten"/],
    ['a number that is too small', ['wf', 'list', '-l', '0'], /at least 1, but is 0/],
    ['no time', ['wf', 'list', '--since', 'yesterday'], /--since must be a time/],
    ['a month that does not exist', ['wf', 'list', '--since', '2026-13-01'], /--since must be a time/],
    ['no duration', ['wf', 'list', '--timeout', '5 minutes'], /--timeout must be a duration/],
    ['no JSON', ['wf', 'list', '--context', '{a:1}'], /--context must be JSON/],
    ['an option given twice', ['wf', 'list', '-l', '1', '-l', '2'], /Pass --limit only once/],
    ['an empty text', ['wf', 'list', '-q', ''], /--queue-name must not be empty/],
    ['an empty argument', ['wf', 'list', ' '], /ID must not be empty/],
    ['an option that is needed', ['fork', 'x'], /--to is required/],
    ['an argument that is needed', ['fork', '--to', 'y'], /ID is missing: everstep fork ID/],
    ['an argument too many', ['fork', 'x', 'z', '--to', 'y'], /Unexpected argument "z"/],
  ])('with %s is refused', (_, words, message) => {
    expect(() => parse(...words)).toThrow(message);
  });

  test.each([
    [[], ''],
    [['--help'], ''],
    [['help', 'wf', 'list'], 'workflow list'],
    [['wf'], 'workflow'],
    [['wf', '--help'], 'workflow'],
    [['wf', 'list', '-l', '3', '-h'], 'workflow list'],
  ])('of %j asks for help', (words, of) => {
    expect(parse(...words)).toEqual({ kind: 'help', of });
  });
});

describe('the table of commands', () => {
  test('has no name twice, and examples for each command', () => {
    const names = COMMANDS.map(({ name }) => name);

    expect(new Set(names).size).toBe(names.length);
    expect(COMMANDS.filter(({ examples }) => examples.length === 0)).toEqual([]);
  });

  test.each(COMMANDS.map((one) => [one.name, one] as const))('has no option of %s twice', (_, { options }) => {
    const letters = Object.values(options).flatMap(({ short }) => short ?? []);
    const names = Object.entries(options).flatMap(([key, { aliases }]) => [longName(key), ...aliases]);

    expect(new Set(letters).size).toBe(letters.length);
    expect(new Set(names).size).toBe(names.length);
  });

  test.each(COMMANDS.flatMap(({ name, examples }) => examples.map(([line]) => [line, name] as const)))(
    'has examples that can be read: %s',
    (line, name) => {
      const own = line.split(/ \| | && /).find((part) => part.startsWith(`everstep ${name}`)) ?? '';
      const words = [...own.matchAll(/'([^']*)'|(\S+)/g)].map((match) => match[1] ?? match[2] ?? '').slice(1);

      expect(parseCommandLine(COMMANDS, words, NOW)).toMatchObject({ kind: 'run', command: { name } });
    },
  );
});

describe('help', () => {
  test('of a command tells its usage, its options and examples', async () => {
    const { out, exitCode } = await call('workflow fork --help');

    expect(exitCode).toBe(0);
    expect(out).toContain('everstep workflow fork ID… [OPTIONS]');
    expect(out).toMatch(/-S, --step N +First step to run again/);
    expect(out).toContain('# retry with a fixed version');
  });

  test('fits into a narrow terminal', async () => {
    const { out } = await call('workflow list --help', { width: 80 });

    const [before = ''] = out.split('Examples');
    expect(before.split('\n').filter((line) => line.length > 80)).toEqual([]);
  });

  test('of something unknown is refused with exit code 2', async () => {
    const { err, exitCode } = await call('help nonsense');

    expect(exitCode).toBe(2);
    expect(err).toBe('Error: Unknown command "nonsense". See: everstep --help\n');
  });

  test('is what everstep says without arguments', async () => {
    const { out, exitCode } = await call([]);

    expect(exitCode).toBe(0);
    expect(out).toContain('list, queue list, get, steps');
  });
});
