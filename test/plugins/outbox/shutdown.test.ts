// A shutdown while the application's database does not answer. It ends in time, and the workflows, which are in another
// database, are handed back.
import BetterSqlite3 from 'better-sqlite3';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { deferred } from '../../../src/kernel/base/deferred.js';
import { OutboxBroker } from '../../../src/plugins/outbox/outbox-broker.js';
import { findWorkflows } from '../../../src/run/rows/workflows.js';
import type { AdapterName } from '../transaction/adapters.js';
import { dropDatabase, type Scene, setScene } from '../transaction/scene.js';
import { onlyOn, sqlite } from '../../rig/dialects.js';
import { until } from '../../rig/manual-clock.js';
import { startProxy } from '../../rig/proxy.js';
import { sourceOf } from './scene.js';
import { ALL_TABLES } from './tables.js';

const LIMIT_MS = 2_000;
/** A consumer used to wait for longer than this, if not for ever. */
const SOON_MS = 8_000;

afterAll(dropDatabase);

async function setup(name: AdapterName, throughOf: (scene: Scene) => Promise<string>) {
  const scene = await setScene(name);
  const engine = await scene.engine({ shutdownTimeoutMs: LIMIT_MS }, await throughOf(scene));
  const { DBOS } = engine;
  const source = sourceOf(engine);
  const outbox = new OutboxBroker(source, ALL_TABLES);
  const began = deferred<void>();
  const held = deferred<void>();
  const workflow = DBOS.registerWorkflow(
    () => {
      began.resolve();
      return DBOS.runStep(() => new Promise(() => {}), { name: 'held' });
    },
    { name: 'workflow' },
  );
  await outbox.install();
  for (const topic of ['a', 'b', 'c']) {
    outbox.on(
      topic,
      async (_, { signal }) => {
        held.resolve();
        await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
      },
      { pollInterval: '50ms', lease: '150ms' },
    );
  }
  await DBOS.launch();
  await DBOS.startWorkflow(workflow, { workflowID: 'w' })();
  await began.promise;
  for (const topic of ['a', 'b', 'c']) {
    await source.runTransaction(async () => void (await outbox.publish(topic, {})), { name: 'publish' });
  }
  await held.promise;
  const shutDown = async () => {
    const startedAt = performance.now();
    await DBOS.shutdown();
    const [found] = await findWorkflows(await sqlite.open(scene.systemURL), ['w']);
    return { status: found?.status, tookMs: performance.now() - startedAt };
  };
  return { scene, shutDown };
}

function isLockedBy(other: BetterSqlite3.Database): boolean {
  try {
    other.exec('BEGIN IMMEDIATE');
    return true;
  } catch {
    return false;
  }
}

onlyOn('postgres', () => {
  test('a database that does not answer does not keep a shutdown from ending', async () => {
    let proxy: Awaited<ReturnType<typeof startProxy>> | undefined;
    const { shutDown } = await setup('node-postgres', async ({ url }) => {
      proxy = await startProxy(url);
      return proxy.url;
    });
    proxy?.swallowNextRequest(/outbox/);
    await until(() => proxy?.hasStruck === true);
    proxy?.swallow();

    const { status, tookMs } = await shutDown();

    expect(status).toBe('ENQUEUED');
    expect(tookMs).toBeLessThan(SOON_MS);
  });
});

onlyOn('sqlite', () => {
  test('a file that another program has locked does not keep a shutdown from ending', async () => {
    const { scene, shutDown } = await setup('better-sqlite3', async ({ url }) => url);
    // Never blocks: the lock may belong to a transaction of this very thread.
    const other = new BetterSqlite3(scene.url.replace('sqlite:///', ''), { timeout: 0 });
    onTestFinished(() => void other.close());
    await until(() => isLockedBy(other));

    const { status, tookMs } = await shutDown();

    expect(status).toBe('ENQUEUED');
    expect(tookMs).toBeLessThan(SOON_MS);
  });
});
