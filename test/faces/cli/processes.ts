// The command line as a process of its own.
import { spawn } from 'node:child_process';
import { tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';

export interface Ended {
  readonly exitCode: number | null;
  readonly out: string;
  readonly err: string;
}

export interface ProcessOptions {
  readonly environment?: NodeJS.ProcessEnv;
  readonly folder?: string;
  readonly input?: string;
  /** Sent when this text has been written to standard error. */
  readonly interruptAt?: string;
}

const MAIN = fileURLToPath(new URL('../../../src/faces/cli/main.ts', import.meta.url));
const TSX = import.meta.resolve('tsx');

export function everstep(words: readonly string[], options: ProcessOptions = {}): Promise<Ended> {
  const { environment = {}, folder = tmpdir(), input = '', interruptAt } = options;
  return new Promise((resolve, reject) => {
    const { PATH } = process.env;
    const child = spawn(process.execPath, ['--import', TSX, MAIN, ...words], {
      cwd: folder,
      env: { PATH, ...environment },
    });
    let out = '';
    let err = '';
    let isInterrupted = false;
    child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      err += text;
      if (isInterrupted || interruptAt === undefined || !err.includes(interruptAt)) return;
      // Once: a second signal could end the process before it has set its exit code.
      isInterrupted = true;
      child.kill('SIGINT');
    });
    child.once('error', reject);
    child.once('close', (exitCode) => resolve({ exitCode, out, err }));
    if (interruptAt === undefined) child.stdin.end(input);
  });
}
