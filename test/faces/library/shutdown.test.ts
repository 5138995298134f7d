// A shutdown ends in time whatever does not stop, and hands back workflows before it waits for that.
import { expect, test } from 'vitest';
import { deferred } from '../../../src/kernel/base/deferred.js';
import { internals } from '../../../src/kernel/base/internals.js';
import type { DLogger } from '../../../src/kernel/base/log.js';
import { registerDataSource } from '../../../src/plugins/transaction/datasource.js';
import type { DBOSConfig } from '../../../src/run/config/config.js';
import type { DBOSInstance } from '../../../src/faces/library/dbos.js';
import { findWorkflows } from '../../../src/run/rows/workflows.js';
import { forEachDialect, onlyOn, type TestDialect } from '../../rig/dialects.js';
import { createEngine, engineOf } from '../../rig/engines.js';
import { ManualClock, until } from '../../rig/manual-clock.js';
import { startProxy } from '../../rig/proxy.js';

/** What a plugin may take of the 25 seconds. */
const INTAKE_MS = 15_000;
/** What a data source may take. */
const CLOSE_MS = 22_500;

const never = (): Promise<never> => new Promise(() => {});

async function setup(dialect: TestDialect, config: Partial<DBOSConfig> = {}) {
  const clock = new ManualClock();
  const warnings: string[] = [];
  const ignore = (): void => {};
  const logger: DLogger = {
    debug: ignore,
    info: ignore,
    error: ignore,
    warn: (line) => void warnings.push(String(line)),
  };
  const { DBOS, url } = await createEngine(dialect, { logger, ...config }, clock.settings);
  const began = deferred<void>();
  const workflow = DBOS.registerWorkflow(
    () => {
      began.resolve();
      return DBOS.runStep(never, { name: 'held' });
    },
    { name: 'workflow' },
  );
  const database = await dialect.open(url);
  return {
    DBOS,
    clock,
    warnings,
    launch: async () => {
      await DBOS.launch();
      await DBOS.startWorkflow(workflow, { workflowID: 'w' })();
      await began.promise;
    },
    status: async () => (await findWorkflows(database, ['w']))[0]?.status,
  };
}

/** Begins a shutdown and says whether it is over. */
function shutDown(DBOS: DBOSInstance, options = {}) {
  const ending = { isOver: false };
  const ended = DBOS.shutdown(options).then(() => (ending.isOver = true));
  return Object.assign(ending, { ended });
}

function dataSource(destroy: () => Promise<void>) {
  return {
    name: 'app',
    dsType: 'test',
    initialize: async () => {},
    destroy,
    invokeTransactionFunction: never,
    createTxContext: never,
  };
}

forEachDialect((dialect) => {
  test('a plugin that does not stop is left behind, and workflows are handed back', async () => {
    const { DBOS, clock, launch, status, warnings } = await setup(dialect);
    const deadlines: number[] = [];
    DBOS.registerLifecycleCallback({
      destroy: ({ leftMs }) => {
        deadlines.push(leftMs);
        return never();
      },
    });
    const others: string[] = [];
    DBOS.registerLifecycleCallback({ destroy: async () => void others.push('stopped') });
    await launch();

    const ending = shutDown(DBOS);
    await clock.untilArmed(INTAKE_MS);

    expect({ deadlines, others }).toEqual({ deadlines: [INTAKE_MS], others: ['stopped'] });
    clock.advance(INTAKE_MS);
    await ending.ended;
    expect(await status()).toBe('ENQUEUED');
    expect(warnings.join()).toContain('did not stop in time');
  });

  test('a data source that does not close is left behind, after workflows were handed back', async () => {
    const { DBOS, clock, launch, status, warnings } = await setup(dialect);
    registerDataSource(dataSource(never), DBOS);
    await launch();

    const ending = shutDown(DBOS);
    await clock.untilArmed(CLOSE_MS);

    expect(await status()).toBe('ENQUEUED');
    clock.advance(CLOSE_MS);
    await ending.ended;
    expect(warnings.join()).toContain('Data source "app" could not be closed in time.');
  });

  test('the time for workflows comes on top if it is longer, unless the whole is configured', async () => {
    const given: number[] = [];
    for (const config of [{}, { shutdownTimeoutMs: '5s' }] as const) {
      const { DBOS, clock, launch } = await setup(dialect, config);
      DBOS.registerLifecycleCallback({ destroy: async ({ leftMs }) => void given.push(leftMs) });
      await launch();

      const { ended } = shutDown(DBOS, { workflowCompletionTimeoutMS: '10 minutes' });
      await until(() => clock.isArmed(600_000) || clock.isArmed(3_000));
      clock.advance(600_000);
      await ended;
    }

    expect(given).toEqual([600_000, 3_000]);
  });

  test('a launch that outlasts the shutdown is undone when it ends', async () => {
    const { DBOS, clock } = await setup(dialect);
    const gate = deferred<void>();
    const stopped = deferred<void>();
    DBOS.registerLifecycleCallback({ initialize: () => gate.promise, destroy: async () => stopped.resolve() });
    const launched = DBOS.launch();

    const ending = shutDown(DBOS);
    await clock.untilArmed(25_000);
    clock.advance(25_000);
    await ending.ended;
    gate.resolve();

    await launched;
    await stopped.promise;
    await DBOS.shutdown();
    expect(DBOS[internals].lifecycle.engine).toBeUndefined();
  });

  test('calls during a shutdown are told so', async () => {
    const { DBOS, clock, launch } = await setup(dialect);
    const refused = DBOS.registerWorkflow(async () => {}, { name: 'refused' });
    await launch();
    const messageOf = async (call: () => Promise<unknown>): Promise<unknown> =>
      call().then(
        () => 'accepted',
        (error: Error & { code: string }) => `${error.code}: ${error.message}`,
      );
    const calls = [
      () => DBOS.startWorkflow(refused)(),
      () => refused(),
      () => DBOS.getEvent('w', 'key', 0),
      () => DBOS.listWorkflows({}),
    ];

    const { ended } = shutDown(DBOS, { workflowCompletionTimeoutMS: 1_000 });
    await clock.untilArmed(1_000);
    const during = await Promise.all(calls.map(messageOf));
    clock.advance(1_000);
    await ended;
    const after = await Promise.all(calls.map(messageOf));

    for (const message of during) expect(message).toMatch(/^EXECUTOR_NOT_INITIALIZED: DBOS is shutting down: /);
    for (const message of after) expect(message).toMatch(/^EXECUTOR_NOT_INITIALIZED: `DBOS.launch\(\)` must be called/);
  });
});

onlyOn('postgres', (dialect) => {
  test('a system database that does not answer delays the shutdown no longer than its limit', async () => {
    const proxy = await startProxy(await dialect.createURL());
    const { DBOS, clock, launch } = await setup(dialect, { systemDatabaseUrl: proxy.url });
    await launch();
    const startedAt = clock.now();
    proxy.swallow();
    void engineOf(DBOS).queues.refresh();

    const ending = shutDown(DBOS);
    while (!ending.isOver) {
      clock.advance(100);
      await new Promise((resolve) => setImmediate(resolve));
    }

    expect(clock.now() - startedAt).toBeLessThanOrEqual(25_500);
  });
});
