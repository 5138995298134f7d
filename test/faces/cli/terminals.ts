// Calls of the command line inside the test process, with a terminal that keeps what is written.
import { systemClock } from '../../../src/kernel/base/clock.js';
import { COMMANDS } from '../../../src/faces/cli/commands.js';
import type { Command, CommandContext } from '../../../src/faces/cli/command.js';
import { run } from '../../../src/faces/cli/run.js';
import type { Terminal } from '../../../src/faces/cli/terminal.js';

export interface Called {
  readonly exitCode: number;
  readonly out: string;
  readonly err: string;
  /** Standard output as JSON. */
  readonly json: <T = never>() => T;
}

export interface CallOptions extends Partial<Omit<CommandContext, 'terminal'>> {
  readonly width?: number;
  readonly hasColours?: boolean;
  readonly isInteractive?: boolean;
  /** Standard error is a terminal. */
  readonly isOverwritable?: boolean;
  /** Standard input, in lines. */
  readonly input?: readonly string[];
  /** Default: those of `everstep`. */
  readonly commands?: readonly Command[];
}

/** Runs a command. Words are separated by spaces, unless they are given one by one. */
export async function call(line: string | readonly string[], options: CallOptions = {}): Promise<Called> {
  const {
    width = Infinity,
    hasColours = false,
    isInteractive = false,
    input = [],
    isOverwritable = false,
    ...others
  } = options;
  const { commands = COMMANDS, ...context } = others;
  const left = [...input];
  let out = '';
  let err = '';
  const terminal: Terminal = {
    width,
    hasColours,
    isOverwritable,
    isInteractive,
    print: async (text) => void (out += text),
    printStderr: (text) => void (err += text),
    ask: async (question) => {
      err += question;
      return left.shift() ?? '';
    },
    async *lines() {
      yield* left.splice(0);
    },
  };
  const exitCode = await run(commands, typeof line === 'string' ? line.split(' ') : line, {
    environment: {},
    folder: '/nonexistent',
    clock: systemClock,
    signal: new AbortController().signal,
    ...context,
    terminal,
  });
  return { exitCode, out, err, json: <T>() => JSON.parse(out) as T };
}
