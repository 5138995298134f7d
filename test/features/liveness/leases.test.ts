// Leases of engines that are alive and could not renew them: the database was away, its clock was set, or the machine slept.
import { expect, test } from 'vitest';
import { deferred } from '../../../src/kernel/base/deferred.js';
import { sql, table } from '../../../src/kernel/sql/sql.js';
import { insertIncarnation, listPeers } from '../../../src/features/liveness/executors.sql.js';
import { insertWorkflows } from '../../../src/run/rows/workflows.js';
import { forEachDialect, onlyOn, type TestDialect } from '../../rig/dialects.js';
import { createEngine, engineOf } from '../../rig/engines.js';
import { ManualClock } from '../../rig/manual-clock.js';
import { startProxy } from '../../rig/proxy.js';
import { newWorkflow } from '../../rig/records.js';

const LEASE_MS = 30_000;
const HOUR_MS = 3_600_000;
const STEP_MS = 500;

/** Engines with clocks of their own, and the clock of the database. */
async function setup(dialect: TestDialect) {
  const url = await dialect.createURL();
  const server = { aheadMs: 0, time: new ManualClock(Date.now()) };
  const now = (): number => server.time.now() + server.aheadMs;
  const database = await dialect.open(url, { now });
  let begun = 0;
  const launch = async (executorID: string, through = url) => {
    const clock = new ManualClock(server.time.now());
    const config = { executorID, systemDatabaseUrl: through, applicationVersion: 'v1', leaseSeconds: LEASE_MS / 1000 };
    const { DBOS } = await createEngine(dialect, config, { clock, databaseNow: now });
    const began = deferred<void>();
    const held = async (): Promise<never> => {
      begun += 1;
      began.resolve();
      return new Promise(() => {});
    };
    const workflow = DBOS.registerWorkflow(() => DBOS.runStep(held, { name: 'held' }), { name: 'workflow' });
    DBOS.registerWorkflow(async () => executorID, { name: 'quick' });
    await DBOS.launch();
    const { incarnationID } = engineOf(DBOS).runtime;
    const hold = async (): Promise<void> => {
      await DBOS.startWorkflow(workflow)();
      await began.promise;
    };
    return { DBOS, clock, incarnationID, hold };
  };
  /** Lets the time of the database and of these engines pass, those that are left out are blocked. */
  const pass = async (
    ms: number,
    engines: readonly { readonly clock: ManualClock }[],
    stepMs = STEP_MS,
  ): Promise<void> => {
    for (let passedMs = 0; passedMs < ms; passedMs += stepMs) {
      server.time.advance(stepMs);
      for (const { clock } of engines) clock.advance(stepMs);
      for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setTimeout(resolve, 1));
    }
  };
  const registered = async (): Promise<string[]> =>
    (await listPeers(database)).map(({ incarnationID }) => incarnationID).sort();
  return { url, database, server, launch, pass, registered, count: () => begun };
}

const idsOf = (engines: readonly { readonly incarnationID: string }[]): string[] =>
  engines.map(({ incarnationID }) => incarnationID).sort();

forEachDialect((dialect) => {
  test.each([
    ['forward', HOUR_MS],
    ['back', -HOUR_MS],
  ])('a database clock that is set %s declares no engine dead that is alive', async (_, leapMs) => {
    const { server, launch, pass, registered, count } = await setup(dialect);
    const engines = [await launch('a'), await launch('b'), await launch('c')];
    for (const { hold } of engines) await hold();
    await pass(12_000, engines);

    server.aheadMs += leapMs;
    await pass(2 * LEASE_MS, engines);

    expect(await registered()).toEqual(idsOf(engines));
    expect(count()).toBe(3);
  });

  test('a database clock that is set back does not hide that an engine has died', async () => {
    const { server, database, launch, pass } = await setup(dialect);
    const engine = await launch('a');
    const fields = { executorID: 'ghost', applicationName: 'test', applicationVersion: 'v1', metadata: null };
    // Nothing but its lease can tell.
    const unreachable = { incarnationID: 'ghost', host: 'elsewhere', pid: 1, ...fields };
    await insertIncarnation(database, unreachable, { leaseMs: LEASE_MS });
    await database.run(
      insertWorkflows([newWorkflow({ workflowID: 'w', name: 'quick', owner: 'ghost.1', applicationName: 'test' })]),
    );

    server.aheadMs -= HOUR_MS;
    await pass(3 * LEASE_MS, [engine]);

    expect(await engine.DBOS.retrieveWorkflow('w').getResult()).toBe('a');
  });

  test('engines that were stopped with their machine do not take each other for dead when it goes on', async () => {
    const { launch, pass, registered, count } = await setup(dialect);
    const engines = [await launch('a'), await launch('b'), await launch('c')] as const;
    for (const { hold } of engines) await hold();

    // The first is back before the others.
    await pass(2 * LEASE_MS, [engines[0]], 2 * LEASE_MS);
    await pass(LEASE_MS / 2, [engines[0]]);
    await pass(LEASE_MS, engines);

    expect(await registered()).toEqual(idsOf(engines));
    expect(count()).toBe(3);
  });

  test('an engine that does not renew its lease after all were stopped is declared dead', async () => {
    const { launch, pass, registered } = await setup(dialect);
    const engines = [await launch('a'), await launch('b')] as const;

    await pass(2 * LEASE_MS, [engines[0]], 2 * LEASE_MS);
    await pass(2 * LEASE_MS, [engines[0]]);

    expect(await registered()).toEqual(idsOf([engines[0]]));
  });

  test('an engine that is launched after an outage leaves the others time to renew their leases', async () => {
    const { server, launch, pass, registered, count } = await setup(dialect);
    const living = await launch('a');
    await living.hold();
    server.time.advance(2 * LEASE_MS);

    const launched = await launch('b');
    await pass(LEASE_MS / 2, [launched]);
    await pass(LEASE_MS, [living, launched]);

    expect(await registered()).toEqual(idsOf([living, launched]));
    expect(count()).toBe(1);
  });
});

onlyOn('postgres', (dialect) => {
  test('after an outage the engine that is back first leaves the others time to renew their leases', async () => {
    const { url, database, launch, pass, registered, count } = await setup(dialect);
    const proxy = await startProxy(url);
    const early = await launch('a', proxy.url);
    await early.hold();
    // The leases end at different times.
    await pass(6_000, [early]);
    const late = await launch('b', proxy.url);
    await late.hold();
    await pass(6_000, [early, late]);

    proxy.cut();
    await pass(19_000, [early, late]);
    proxy.restore();
    // The other is blocked, and its lease ends first.
    await pass(12_000, [late]);
    await database.run(sql`SELECT pg_notify('everstep_executors', 'somebody')`);
    await pass(12_000, [late]);
    await pass(LEASE_MS, [early, late]);

    const leases = await database.read(sql`SELECT e.incarnation_id FROM ${table('executors')} AS e`);
    expect(leases).toHaveLength(2);
    expect(await registered()).toEqual(idsOf([early, late]));
    expect(count()).toBe(2);
  });
});
