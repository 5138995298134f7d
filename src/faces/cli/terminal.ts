// Standard input and output of a command. Results go to standard output; prompts, progress and errors go to standard
// error, so that results can be piped.
import { createInterface } from 'node:readline';

export interface Terminal {
  /** Columns of standard output; Infinity if it is not a terminal. */
  readonly width: number;
  readonly hasColours: boolean;
  /** Standard error is a terminal, where a line can be overwritten. */
  readonly isOverwritable: boolean;
  /** Standard input is a terminal, where a person can answer. */
  readonly isInteractive: boolean;
  /** Writes to standard output with backpressure. */
  print(text: string): Promise<void>;
  /** Writes to standard error. */
  printStderr(text: string): void;
  /** Asks on standard error. Returns an empty string if the input ends. */
  ask(question: string, signal: AbortSignal): Promise<string>;
  /** Standard input, line by line. Ends early when the signal aborts. */
  lines(signal: AbortSignal): AsyncIterable<string>;
}

type Streams = Pick<NodeJS.Process, 'stdin' | 'stdout' | 'stderr' | 'env'>;

const WIDTH = 80;

export function terminalOf({ stdin, stdout, stderr, env }: Streams): Terminal {
  async function* lines(signal: AbortSignal): AsyncGenerator<string, void, undefined> {
    const reader = createInterface({ input: stdin, crlfDelay: Infinity });
    const end = (): void => reader.close();
    signal.addEventListener('abort', end, { once: true });
    try {
      if (!signal.aborted) yield* reader;
    } finally {
      signal.removeEventListener('abort', end);
      reader.close();
    }
  }
  return {
    width: stdout.isTTY ? stdout.columns || WIDTH : Infinity,
    hasColours: stdout.isTTY && !env['NO_COLOR'] && env['TERM'] !== 'dumb',
    isOverwritable: stderr.isTTY && env['TERM'] !== 'dumb',
    isInteractive: stdin.isTTY,
    print: (text) =>
      new Promise((resolve, reject) => {
        stdout.write(text, (error) => (error ? reject(error) : resolve()));
      }),
    printStderr: (text) => void stderr.write(text),
    async ask(question, signal) {
      stderr.write(question);
      for await (const line of lines(signal)) return line.trim();
      return '';
    },
    lines,
  };
}
