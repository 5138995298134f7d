// A workflow that another program cancels while its run waits, without any notification: the step after the wait does not run.
import { expect, test } from 'vitest';
import type { DBOSInstance } from '../../src/index.js';
import { sql, table } from '../../src/kernel/sql/sql.js';
import { forEachDialect, onlyOn } from '../rig/dialects.js';
import { createEngine, engineOf } from '../rig/engines.js';
import { ManualClock, until } from '../rig/manual-clock.js';

const config = { applicationVersion: 'v1', executorID: 'one' };
/** Shorter than a lease and than any poll that checks ownership. */
const WAIT_SECONDS = 3;

const waits: Record<string, (DBOS: DBOSInstance) => Promise<unknown>> = {
  sleep: (DBOS) => DBOS.sleep(WAIT_SECONDS * 1000),
  recv: (DBOS) => DBOS.recv('topic', WAIT_SECONDS),
  getEvent: (DBOS) => DBOS.getEvent('another', 'key', WAIT_SECONDS),
  'result of a child': async (DBOS) => (await DBOS.startWorkflow(childOf(DBOS), { workflowID: 'child' })()).getResult(),
  'direct call of a child': (DBOS) => childOf(DBOS)(),
};

const children = new WeakMap<DBOSInstance, () => Promise<void>>();
function childOf(DBOS: DBOSInstance): () => Promise<void> {
  return children.get(DBOS) as () => Promise<void>;
}

forEachDialect((dialect) => {
  test.each(Object.keys(waits))('the step after a %s does not run', async (kind) => {
    const clock = new ManualClock();
    const { DBOS } = await createEngine(dialect, config, clock.settings);
    let ran = 0;
    children.set(
      DBOS,
      DBOS.registerWorkflow(() => DBOS.sleep(WAIT_SECONDS * 1000), { name: 'child' }),
    );
    const waiter = DBOS.registerWorkflow(
      async () => {
        await waits[kind]?.(DBOS);
        await DBOS.runStep(async () => Promise.resolve((ran += 1)), { name: 'charge' });
      },
      { name: 'waiter' },
    );
    await DBOS.launch();
    const handle = await DBOS.startWorkflow(waiter, { workflowID: 'w' })();
    const failure = handle.getResult().catch((error: unknown) => error);
    await until(async () => ((await DBOS.listWorkflowSteps('w')) ?? []).length > 0);
    // On our own session, so that no trigger notifies, and SQLite sees no commit of another process.
    await engineOf(DBOS).runtime.database.run(
      sql`UPDATE ${table('workflow_status')} SET status = 'CANCELLED' WHERE workflow_uuid = 'w'`,
    );

    clock.advance(WAIT_SECONDS * 1000 + 10);

    expect(String(await failure)).toMatch(/cancelled/i);
    expect(ran).toBe(0);
  });

  test('a run that did not wait is not asked whether it owns its workflow', async () => {
    const { DBOS } = await createEngine(dialect, config);
    const worker = DBOS.registerWorkflow(
      async () => {
        for (let i = 0; i < 3; i += 1) await DBOS.runStep(() => Promise.resolve(i), { name: 'charge' });
      },
      { name: 'worker' },
    );
    await DBOS.launch();
    const { owners } = engineOf(DBOS).runtime;
    let lookups = 0;
    const owns = owners.owns.bind(owners);
    Object.assign(owners, { owns: (owned: Parameters<typeof owns>[0]) => ((lookups += 1), owns(owned)) });

    await (await DBOS.startWorkflow(worker)()).getResult();

    expect(lookups).toBe(0);
  });
});

onlyOn('postgres', (dialect) => {
  test('the step after a sleep does not run if the listening connection was lost meanwhile', async () => {
    const clock = new ManualClock();
    const { DBOS, url } = await createEngine(dialect, config, clock.settings);
    let ran = 0;
    const sleeper = DBOS.registerWorkflow(
      async () => {
        await DBOS.sleep(100);
        await DBOS.runStep(async () => Promise.resolve((ran += 1)), { name: 'charge' });
      },
      { name: 'sleeper' },
    );
    await DBOS.launch();
    const handle = await DBOS.startWorkflow(sleeper, { workflowID: 'w' })();
    const failure = handle.getResult().catch((error: unknown) => error);
    await until(async () => (await DBOS.listWorkflowSteps('w'))?.length === 1);
    const other = await dialect.open(url);
    await other.run(sql`
      SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'`);
    await until(() => engineOf(DBOS).runtime.store.listener.session === 0);
    await other.run(sql`UPDATE ${table('workflow_status')} SET status = 'CANCELLED'`);

    clock.advance(110);

    expect(String(await failure)).toMatch(/cancelled/i);
    expect(ran).toBe(0);
  });
});
