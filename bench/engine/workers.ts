// The parent's side of the worker processes: one for each command, since a library keeps state in its modules.
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { type Command, readAnswer } from './commands.js';
import type { MessagingCommand } from '../messages/commands.js';
import { type Bench, peerPath, workerPath } from './preparations.js';

export type Engine = 'everstep' | 'dbos-5' | 'dbos-4';

/** A process with a compiled script, and what it says. */
export class ScriptProcess {
  readonly #process: ChildProcess;
  readonly #answers: AsyncGenerator<unknown, void>;
  /** Resolves when the process has ended, whether or not its answers were read. */
  readonly gone: Promise<void>;

  constructor(script: string, args: readonly string[]) {
    const all = ['--expose-gc', '--no-warnings', script, ...args];
    this.#process = spawn(process.execPath, all, { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#answers = answersOf(this.#process);
    this.gone = new Promise((resolve) => this.#process.once('exit', () => resolve()));
  }

  /** The next answer. */
  async next<Answer>(): Promise<Answer> {
    const answer = await this.#answers.next();
    if (answer.done) throw new Error('a worker has ended without an answer');
    return answer.value as Answer;
  }

  /** Ends the process as a crash would. Returns the moment in epoch milliseconds. */
  kill(): number {
    const at = Date.now();
    this.#process.kill('SIGKILL');
    return at;
  }

  async ended(): Promise<void> {
    while (!(await this.#answers.next()).done);
  }
}

/** A worker process with a library. */
export class WorkerProcess extends ScriptProcess {
  constructor(engine: Engine, command: Command | MessagingCommand, bench: Bench = 'engine') {
    const [script, library] =
      engine === 'everstep' ? [workerPath(bench, 'everstep')] : [workerPath(bench, 'dbos'), peerPath(engine)];
    super(script, [JSON.stringify(command), ...(library ? [library] : [])]);
  }
}

async function* answersOf(child: ChildProcess): AsyncGenerator<unknown, void> {
  if (!child.stdout) return;
  for await (const line of createInterface({ input: child.stdout })) {
    const value = readAnswer(line);
    if (value !== undefined) yield value;
  }
}

/** Has a worker carry out a command and waits until it is gone. */
export async function ask<Answer>(
  engine: Engine,
  command: Command | MessagingCommand,
  bench: Bench = 'engine',
): Promise<Answer> {
  const worker = new WorkerProcess(engine, command, bench);
  try {
    const value = await worker.next<Answer>();
    await worker.ended();
    return value;
  } finally {
    worker.kill();
  }
}
