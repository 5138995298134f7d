import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));

test('the demo finishes its orders after a SIGKILL and runs no durable step again', async () => {
  const demo = spawn(process.execPath, ['--import', 'tsx', 'examples/demo/main.ts'], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const exit = once(demo, 'exit');

  const [output, errors, [code]] = await Promise.all([text(demo.stdout), text(demo.stderr), exit]);

  expect(errors).toBe('');
  expect(output).toContain('SIGKILL. Process 1 is gone');
  expect(output).toMatch(/orders done +6 of 6/);
  expect(output).toMatch(/durable at the kill +[1-9]\d*, run again: 0/);
  expect(output).toContain('OK: no step ran again once its checkpoint was durable.');
  expect(output).not.toContain('\u001b');
  expect(code).toBe(0);
});
