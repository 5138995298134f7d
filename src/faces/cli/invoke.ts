// Runs a table of commands as this process: its arguments, its terminal, its signals.
import { systemClock } from '../../kernel/base/clock.js';
import type { Command } from './command.js';
import { EXIT, Interruption } from './failure.js';
import { run } from './run.js';
import { terminalOf } from './terminal.js';

export async function invoke(commands: readonly Command[]): Promise<void> {
  const interruption = new AbortController();
  const interrupt = (signal: NodeJS.Signals): void => {
    // The second signal exits without cleaning up.
    if (interruption.signal.aborted) process.exit(EXIT.interrupted);
    interruption.abort(new Interruption(signal));
  };
  process.on('SIGINT', interrupt);
  process.on('SIGTERM', interrupt);
  // The failed write rejects by itself; the event must not crash the process before it has cleaned up.
  process.stdout.on('error', () => {});
  process.exitCode = await run(commands, process.argv.slice(2), {
    terminal: terminalOf(process),
    environment: process.env,
    folder: process.cwd(),
    clock: systemClock,
    signal: interruption.signal,
  });
}
