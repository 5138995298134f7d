// A Next.js application as a user writes it, built and run: standalone, and in development with an edit.
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { createNextFolder, frameworks, hasNext, next } from './next-app.js';
import { freePort } from '../rig/free-port.mjs';

/** A first compilation takes a while on a busy machine. */
const ANSWER_MAX_MS = 150_000;

const WORKFLOWS = `
import { DBOS, WorkflowQueue } from 'everstep';

export const queue = new WorkflowQueue('orders', { concurrency: 2 });

const charge = DBOS.registerStep(async (order: string) => \`charged \${order}\`, { name: 'charge' });

export const fulfil = DBOS.registerWorkflow(
  async (order: string) => \`\${await charge(order)}, shipped\`,
  { name: 'fulfil' },
);
`;

const FILES = {
  'package.json': '{ "name": "shop", "private": true }',
  'next.config.mjs': `
    import { withEverstep } from 'everstep/next';
    const root = ${JSON.stringify(frameworks)};
    export default withEverstep({
      output: 'standalone', outputFileTracingRoot: root, turbopack: { root }, typescript: { ignoreBuildErrors: true },
    });`,
  'instrumentation.ts': `
    export async function register() {
      if (process.env.NEXT_RUNTIME === 'nodejs') {
        const { launchInNext } = await import('everstep/next');
        await launchInNext({
          config: { name: 'shop', systemDatabaseUrl: process.env.SYSTEM_DATABASE },
          workflows: () => import('./workflows'),
        });
      }
    }`,
  'workflows.ts': WORKFLOWS,
  'app/layout.jsx': 'export default ({ children }) => <html><body>{children}</body></html>;',
  'app/page.jsx': 'export default () => <p>Orders</p>;',
  'app/orders/route.ts': `
    import { DBOS } from 'everstep';
    import { fulfil, queue } from '../../workflows';

    export const dynamic = 'force-dynamic';

    export async function GET() {
      const direct = await fulfil('1');
      const handle = await DBOS.startWorkflow(fulfil, { queueName: queue.name })('2');
      return Response.json([direct, await handle.getResult()]);
    }`,
};

describe.skipIf(!hasNext)('an application of Next.js', () => {
  let app: string;
  const running: ChildProcess[] = [];

  beforeAll(async () => {
    app = await createNextFolder();
    for (const [name, text] of Object.entries(FILES)) {
      mkdirSync(dirname(join(app, name)), { recursive: true });
      writeFileSync(join(app, name), text);
    }
  }, 300_000);

  afterEach(async () => {
    await Promise.all(running.splice(0).map(end));
  });

  afterAll(() => {
    if (hasNext) rmSync(app, { recursive: true, force: true });
  });

  const environment = { ...process.env, NEXT_TELEMETRY_DISABLED: '1', HOSTNAME: '127.0.0.1' };

  function serve(args: readonly string[], settings: { mode: string; port: number; database: string }): () => string {
    const child = spawn(process.execPath, args, {
      cwd: app,
      detached: true,
      env: {
        ...environment,
        NODE_ENV: settings.mode,
        PORT: String(settings.port),
        SYSTEM_DATABASE: `sqlite:${join(app, settings.database)}`,
      },
    });
    running.push(child);
    let printed = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (printed += String(data)));
    return () => printed;
  }

  /** What the route answers, or what went wrong. */
  async function ask(port: number): Promise<unknown> {
    try {
      const response = await fetch(`http://127.0.0.1:${port}/orders`);
      return response.ok ? await response.json() : await response.text();
    } catch (error) {
      return String(error);
    }
  }

  /** The last answer, if none is as expected within the limit. */
  async function askUntil(port: number, isExpected: (answer: unknown) => boolean): Promise<unknown> {
    for (const startedAt = Date.now(); ;) {
      const answer = await ask(port);
      if (isExpected(answer) || Date.now() > startedAt + ANSWER_MAX_MS) return answer;
      await sleep(200);
    }
  }

  test('that is built as a standalone server runs workflows in its routes', { timeout: 300_000 }, async () => {
    await promisify(execFile)(process.execPath, [next, 'build'], {
      cwd: app,
      env: { ...environment, NODE_ENV: 'production' },
    });
    const server = join(app, '.next/standalone', app.slice(frameworks.length + 1), 'server.js');
    const port = await freePort();
    const printed = serve([server], { mode: 'production', port, database: 'standalone.sqlite' });

    const answer = await askUntil(port, Array.isArray);

    expect(answer, printed()).toEqual(['charged 1, shipped', 'charged 2, shipped']);
  });

  test('in development takes an edited workflow without a restart', { timeout: 300_000 }, async () => {
    const port = await freePort();
    const args = [next, 'dev', '-p', String(port), '-H', '127.0.0.1'];
    const printed = serve(args, { mode: 'development', port, database: 'development.sqlite' });
    expect(await askUntil(port, Array.isArray), printed()).toEqual(['charged 1, shipped', 'charged 2, shipped']);

    writeFileSync(join(app, 'workflows.ts'), WORKFLOWS.replace('shipped', 'sent'));

    // A request that is answered during the reload may run one workflow before it and one after.
    const isNew = (found: unknown): boolean => Array.isArray(found) && !String(found).includes('shipped');
    const answer = await askUntil(port, isNew);
    expect(answer, printed()).toEqual(['charged 1, sent', 'charged 2, sent']);
  });
});

/** With the processes that it has started. */
async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  const ended = new Promise((resolve) => child.once('close', resolve));
  process.kill(-child.pid, 'SIGKILL');
  await ended;
}
