// Runs the shell commands listed in dbos-config.yaml.
import { spawn } from 'node:child_process';
import { readConfigDocument } from '../../database/config/config-document.js';
import { parseYaml } from '../../database/config/yaml.js';
import type { CommandContext } from './command.js';
import { CommandFailure, type Interruption } from './failure.js';

/** The commands under a key of dbos-config.yaml; empty without a file. */
export function configuredCommands({ folder, environment }: CommandContext, key: string): readonly string[] {
  const value = readConfigDocument(folder, environment, parseYaml)?.find(key) ?? [];
  const list: unknown[] = Array.isArray(value) ? value : [value];
  if (list.every((line): line is string => typeof line === 'string')) return list;
  throw new CommandFailure(`dbos-config.yaml: ${key} must be an array of shell commands.`);
}

/** Runs the line and returns its exit code. Forwards a signal that the child did not get itself. */
export function runInShell({ folder, environment, signal, terminal }: CommandContext, line: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn(line, { shell: true, cwd: folder, env: environment, stdio: 'inherit' });
    const onAbort = (): void => {
      const { signal: name = 'SIGTERM' } = signal.reason as Partial<Interruption>;
      // On Ctrl-C the terminal signals the whole process group already.
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
