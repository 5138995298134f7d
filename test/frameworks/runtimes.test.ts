// A workflow under Bun and Deno: a process dies after its first step, and the next one finishes the workflow.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Project } from '../compat/project.js';
import { root } from '../rig/built-package.js';
import { forEachDialect } from '../rig/dialects.js';

const installed = join(root, 'test/frameworks/node_modules');

/** Run from the packages of this platform: the packages `bun` and `deno` link to them in install scripts. */
const RUNTIMES: readonly (readonly [name: string, command: string, args: readonly string[]])[] = [
  ['Bun', join(installed, '@oven/bun-linux-x64/bin/bun'), ['run']],
  ['Deno', join(installed, '@deno/linux-x64-glibc/deno'), ['run', '--allow-all', '--node-modules-dir=manual']],
];

const PROGRAM = `
import { DBOS, WorkflowQueue } from 'everstep';

const [, , url, part]: string[] = process.argv;
const queue = new WorkflowQueue('orders', { concurrency: 1 });
const order = DBOS.registerWorkflow(
  async (item: string): Promise<string> => {
    const reservation = await DBOS.runStep(async () => \`\${item}, reserved in the \${part} process\`, { name: 'reserve' });
    const isPaid = await DBOS.recv<boolean>('paid', '1 hour');
    return DBOS.runStep(async () => \`\${reservation}, shipped in the \${part}: \${isPaid}\`, { name: 'ship' });
  },
  { name: 'order' },
);

DBOS.setConfig({ name: 'shop', systemDatabaseUrl: url, logLevel: 'warn' });
await DBOS.launch();
const handle = await DBOS.startWorkflow(order, { workflowID: 'order-1', queueName: queue.name })('a lamp');
if (part === 'first') {
  while (((await DBOS.listWorkflowSteps('order-1')) ?? []).length === 0) await DBOS.sleep(10);
  console.log('recorded');
  process.kill(process.pid, 'SIGKILL');
}
await DBOS.send('order-1', true, 'paid');
console.log(await handle.getResult());
await DBOS.shutdown();
`;

describe.each(RUNTIMES)('%s', (name, command, args) => {
  const isInstalled = existsSync(command);
  if (!isInstalled) console.log(`Skipped: ${name} is not installed. Run: node scripts/install-frameworks.mjs`);
  let project: Project;

  beforeAll(async () => {
    if (!isInstalled) return;
    project = await Project.create('everstep');
    project.write({ 'package.json': { type: 'module', private: true }, 'app.ts': PROGRAM });
  }, 300_000);

  afterAll(() => project?.remove());

  forEachDialect((dialect) => {
    test.skipIf(!isInstalled)('finishes a workflow that another process began', async () => {
      const url = await dialect.createURL();
      const run = (part: string): Promise<string> => project.run(command, [...args, 'app.ts', url, part]);

      const first = await run('first').catch((error: Error) => error.message);
      const second = await run('second');

      expect(first).toContain('recorded');
      expect(second).toBe('a lamp, reserved in the first process, shipped in the second: true\n');
    });
  });
});
