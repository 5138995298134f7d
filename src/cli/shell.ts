// Runs commands of dbos-config.yaml in a shell.
import { spawn } from 'node:child_process';
import { readConfigDocument } from '../store/config/config-document.js';
import type { Scene } from './command.js';
import { CommandFailure, type Interruption } from './failure.js';

/** The commands under a key of dbos-config.yaml; none if there is no file. */
export function configuredCommands({ folder, environment }: Scene, key: string): readonly string[] {
  const value = readConfigDocument(folder, environment)?.find(key) ?? [];
  const list: unknown[] = Array.isArray(value) ? value : [value];
  if (list.every((line): line is string => typeof line === 'string')) return list;
  throw new CommandFailure(`dbos-config.yaml: ${key} must be an array of shell commands.`);
}

/** Runs the line and gives its exit code. A signal that only we have got is passed on. */
export function runInShell({ folder, environment, signal, terminal }: Scene, line: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn(line, { shell: true, cwd: folder, env: environment, stdio: 'inherit' });
    const onAbort = (): void => {
      const { signal: name = 'SIGTERM' } = signal.reason as Partial<Interruption>;
      // A terminal sends Ctrl-C to all of its processes by itself.
      if (name !== 'SIGINT' || !terminal.isOverwritable) child.kill(name);
    };
    signal.addEventListener('abort', onAbort, { once: true });
    const finish = (): void => signal.removeEventListener('abort', onAbort);
    child.once('error', (error) => {
      finish();
      reject(new CommandFailure(`Cannot run "${line}": ${error.message}`));
    });
    child.once('exit', (code, exitSignal) => {
      finish();
      resolve(code ?? (exitSignal === null ? 1 : 128));
    });
  });
}
