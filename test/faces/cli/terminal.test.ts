import { PassThrough } from 'node:stream';
import { describe, expect, test } from 'vitest';
import type { CommandContext } from '../../../src/faces/cli/command.js';
import { readIDs } from '../../../src/features/listing/workflow-filters.cli.js';
import { terminalOf } from '../../../src/faces/cli/terminal.js';

/** A terminal on streams of the test's own. */
function setup(fields: { readonly isTTY?: boolean; readonly columns?: number; readonly env?: NodeJS.ProcessEnv } = {}) {
  const { env = {}, ...stream } = fields;
  const stdin = new PassThrough();
  const stdout = Object.assign(new PassThrough(), stream);
  const stderr = Object.assign(new PassThrough(), stream);
  const ending = new AbortController();
  const terminal = terminalOf({ stdin, stdout, stderr, env } as unknown as NodeJS.Process);
  return { stdin, stdout, ending, terminal };
}

describe('a terminal', () => {
  test('has a width and colours, unless it is none or they are not wanted', () => {
    expect(setup({ isTTY: true, columns: 100 }).terminal).toMatchObject({ width: 100, hasColours: true });
    expect(setup({ isTTY: true, columns: 100, env: { NO_COLOR: '1' } }).terminal.hasColours).toBe(false);
    expect(setup().terminal.width).toBe(Infinity);
    expect(setup().terminal.hasColours).toBeFalsy();
  });

  test('ends its input when the work is interrupted', async () => {
    const { stdin, ending, terminal } = setup();
    stdin.write('a\n');
    const read: string[] = [];

    for await (const line of terminal.lines(ending.signal)) {
      read.push(line);
      // No further line comes, and the input stays open.
      ending.abort();
    }

    expect(read).toEqual(['a']);
  });

  test('takes the end of the input for no answer', async () => {
    const { stdin, ending, terminal } = setup();
    stdin.end();

    expect(await terminal.ask('Sure? ', ending.signal)).toBe('');
  });
});

test('IDs that were read before an interruption are not acted on', async () => {
  const { stdin, ending, terminal } = setup();
  stdin.write('a\n');

  const reading = readIDs({ terminal, signal: ending.signal } as CommandContext, ['-']);
  ending.abort(new Error('Interrupted.'));

  await expect(reading).rejects.toThrow('Interrupted.');
});
