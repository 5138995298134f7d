// Starts the processes that hold database servers, and ends them with the test.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { onTestFinished } from 'vitest';
import { bundled } from '../rig/bundle.js';

export interface HeldServer<Command extends string> {
  readonly url: string;
  perform(command: Command): Promise<void>;
}

export async function holdServer<Command extends string>(source: URL): Promise<HeldServer<Command>> {
  // Detached: Ctrl-C reaches only the test run, which then closes the input.
  const child = spawn(process.execPath, await bundled(source), {
    stdio: ['pipe', 'pipe', 'inherit'],
    detached: true,
  });
  const exited = once(child, 'exit');
  onTestFinished(async () => {
    child.stdin.end();
    await exited;
  });
  const lines = createInterface({ input: child.stdout });
  const [url] = (await once(lines, 'line')) as [string];
  return {
    url,
    async perform(command) {
      child.stdin.write(`${command}\n`);
      await once(lines, 'line');
    },
  };
}
