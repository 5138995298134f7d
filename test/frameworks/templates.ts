// Projects as `everstep init` writes them: built, tested and run with the scripts of their package.json. Each dialect is a file of
// its own, so that they run side by side.
import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { Project } from '../compat/project.js';
import type { TestDialect } from '../rig/dialects.js';
import { hasNext } from './next-app.js';

const SERVERS = ['express', 'hono', 'fastify', 'nest'];
const MODULES = ['express', 'hono', '@hono/node-server', 'fastify', '@nestjs/common', '@nestjs/core'];
const MORE_MODULES = ['@nestjs/platform-express', 'reflect-metadata', 'rxjs', '@types/express', '@types/node'];

/** Defines the tests of the templates on a dialect. */
export function templateTests(dialect: TestDialect): void {
  let project: Project;

  beforeAll(async () => {
    project = await Project.create('everstep');
    project.addModules(...MODULES, ...MORE_MODULES, 'tsx', 'typescript');
    project.addCommands({ tsc: 'typescript/bin/tsc', tsx: 'tsx/dist/cli.mjs' });
  }, 300_000);

  afterAll(() => project.remove());

  /** Writes the project. Returns its folder. */
  async function init(template: string, database: string): Promise<string> {
    const folder = `${template}-${database}`;
    const command = 'node_modules/everstep/dist/faces/cli/main.js';
    await project.run('node', [command, 'init', folder, '--template', template, '--database', database]);
    return folder;
  }

  async function runTests(folder: string, url: string): Promise<void> {
    const printed = await project.run('npm', ['test'], folder, { TEST_DATABASE_URL: url });
    expect(printed).toMatch(/pass [1-9]\d*\n[\s\S]*fail 0\n/);
  }

  /** Writes the project, builds it and runs its tests. Returns its folder. */
  async function create(template: string, database: string, url: string): Promise<string> {
    const folder = await init(template, database);
    await project.run('npm', ['run', 'build'], folder);
    await runTests(folder, url);
    return folder;
  }

  /** Starts a server that is built. Resolves to its URL, which it prints. */
  async function serve(folder: string, url: string): Promise<{ child: ChildProcess; url: string }> {
    const child = spawn(process.execPath, ['dist/main.js'], {
      cwd: join(project.folder, folder),
      env: { ...process.env, PORT: '0', DBOS_SYSTEM_DATABASE_URL: url },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    for await (const line of createInterface(child.stdout)) {
      const port = /^https?:.*:(\d+)$/.exec(line)?.[1];
      if (port) return { child, url: `http://localhost:${port}` };
    }
    throw new Error('The server ended.');
  }

  test('the template script builds, passes its tests and runs', async () => {
    const url = await dialect.createURL({ isMigrated: false });
    const folder = await create('script', dialect.name, url);

    const printed = await project.run('npm', ['start'], folder, { DBOS_SYSTEM_DATABASE_URL: url });

    expect(printed).toContain('shipped the reservation of a lamp');
  });

  test.skipIf(!hasNext)('the template next passes its tests', async () => {
    const url = await dialect.createURL({ isMigrated: false });
    const folder = await init('next', dialect.name);

    await runTests(folder, url);
  });

  test.each(SERVERS)('the template %s builds, passes its tests and serves', async (template) => {
    const url = await dialect.createURL({ isMigrated: false });
    const server = await serve(await create(template, dialect.name, url), url);
    const ended = new Promise((resolve) => server.child.once('exit', (code, signal) => resolve(code ?? signal)));

    const response = await fetch(`${server.url}/orders/1`, { method: 'POST' });
    const posted: unknown = await response.json();
    server.child.kill('SIGTERM');

    expect(posted).toEqual({ workflowID: 'order-1' });
    expect(['SIGTERM', 0]).toContain(await ended);
  });
}
