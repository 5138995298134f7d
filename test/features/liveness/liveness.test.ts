// How engines notice that a peer is dead, and what is left to do afterwards.
import { hostname } from 'node:os';
import { describe, expect, test } from 'vitest';
import { type Sql, sql, table } from '../../../src/kernel/sql/sql.js';
import type { Database } from '../../../src/database/database.js';
import { insertIncarnation, listPeers } from '../../../src/features/liveness/executors.sql.js';
import { describePresence } from '../../../src/features/liveness/presence.sql.js';
import { topics } from '../../../src/database/notify/topics.js';
import { insertWorkflows } from '../../../src/run/rows/workflows.js';
import { forEachDialect, hasPush, onlyOn, type TestDialect } from '../../rig/dialects.js';
import { createEngine, engineOf } from '../../rig/engines.js';
import { ManualClock, until } from '../../rig/manual-clock.js';
import { startProxy } from '../../rig/proxy.js';
import { newWorkflow } from '../../rig/records.js';

/** Too long to play a part. */
const LEASE_SECONDS = 3600;
const NO_PROCESS = 999_999;

interface Ghost {
  readonly incarnationID?: string;
  readonly host?: string;
  readonly pid?: number;
  readonly hasLock?: boolean;
}

/** Registers an engine that does not exist. */
async function addGhost(database: Database, ghost: Ghost = {}): Promise<void> {
  const { incarnationID = 'ghost', host = hostname(), pid = NO_PROCESS, hasLock = false } = ghost;
  const metadata = describePresence(hasLock);
  const fields = { executorID: 'ghost', applicationName: 'test', applicationVersion: 'v1' };
  await insertIncarnation(
    database,
    { incarnationID, host, pid, metadata, ...fields },
    { leaseMs: LEASE_SECONDS * 1000 },
  );
}

/** A running workflow with this owner token. */
async function addOwned(database: Database, workflowID: string, owner: string): Promise<void> {
  const fields = { workflowID, owner, name: 'workflow', applicationName: 'test', applicationVersion: 'v1' };
  await database.run(insertWorkflows([newWorkflow(fields)]));
}

async function setup(dialect: TestDialect, leaseSeconds = LEASE_SECONDS) {
  const clock = new ManualClock(Date.now());
  const { DBOS, url } = await createEngine(dialect, { applicationVersion: 'v1', leaseSeconds }, clock.settings);
  DBOS.registerWorkflow(async () => DBOS.workflowID, { name: 'workflow' });
  const database = await dialect.open(url, { now: () => clock.now() });
  return { clock, DBOS, url, database };
}

/** Lets time pass in small steps until the promise has settled. */
async function whileTimePasses<T>(clock: ManualClock, promise: Promise<T>, { stepMs, maxMs }: Steps): Promise<T> {
  let isSettled = false;
  const settled = promise.finally(() => (isSettled = true));
  settled.catch(() => {
    // The caller sees it.
  });
  for (let passedMs = 0; passedMs < maxMs && !isSettled; passedMs += stepMs) {
    clock.advance(stepMs);
    for (let turn = 0; turn < 20 && !isSettled; turn += 1) await new Promise((resolve) => setTimeout(resolve, 1));
  }
  return settled;
}

interface Steps {
  readonly stepMs: number;
  readonly maxMs: number;
}

forEachDialect((dialect) => {
  test('a workflow that a dead engine claimed too late is not idle for the length of a lease', async () => {
    const { clock, DBOS, database } = await setup(dialect);
    await addGhost(database);
    await addOwned(database, 'in time', 'ghost.1');
    await DBOS.launch();
    expect(await DBOS.retrieveWorkflow('in time').getResult()).toBe('in time');
    expect((await listPeers(database)).map(({ incarnationID }) => incarnationID)).not.toContain('ghost');

    // The server gets to the claim after the engine was found dead and its workflows were recovered.
    await addOwned(database, 'late', 'ghost.2');

    const result = DBOS.retrieveWorkflow('late').getResult();
    expect(await whileTimePasses(clock, result, { stepMs: 100, maxMs: 3000 })).toBe('late');
  });

  test('an engine whose lease has expired is noticed at its end, not a lease later, and so is what it claimed too late', async () => {
    const { clock, DBOS, database } = await setup(dialect, 30);
    await DBOS.launch();
    const fields = { executorID: 'ghost', applicationName: 'test', applicationVersion: 'v1', metadata: null };
    const unreachable = { incarnationID: 'ghost', host: 'elsewhere', pid: 1, ...fields };
    await insertIncarnation(database, unreachable, { leaseMs: 30_000 });
    await addOwned(database, 'w', 'ghost.1');
    await engineOf(DBOS).runtime.database.run(notifyOfLaunch(dialect));

    const result = DBOS.retrieveWorkflow('w').getResult();
    expect(await whileTimePasses(clock, result, { stepMs: 250, maxMs: 33_000 })).toBe('w');

    // What it claimed too late is looked for soon after, although no other look would be due.
    await addOwned(database, 'late', 'ghost.2');
    const late = DBOS.retrieveWorkflow('late').getResult();
    expect(await whileTimePasses(clock, late, { stepMs: 100, maxMs: 5000 })).toBe('late');
  });
});

/** What an engine tells its peers when it is launched. On SQLite they notice the commit. */
function notifyOfLaunch(dialect: TestDialect): Sql {
  return dialect.name === 'postgres' ? sql`SELECT pg_notify('everstep_executors', 'ghost')` : sql`SELECT 1`;
}

onlyOn('postgres', (dialect) => {
  // Behind a pooler in transaction mode there are neither locks nor notifications.
  test.skipIf(!hasPush)(
    'a launch waits for all dead peers of other machines together, not a second for each',
    async () => {
      const { clock, DBOS, database } = await setup(dialect);
      const names = Array.from({ length: 30 }, (_, index) => `ghost${index}`);
      for (const incarnationID of names) {
        await addGhost(database, { incarnationID, host: 'elsewhere', hasLock: true });
        await addOwned(database, incarnationID, `${incarnationID}.1`);
      }

      const launched = DBOS.launch();
      await clock.untilArmed(700);
      clock.advance(700);
      await launched;

      for (const name of names) expect(await DBOS.retrieveWorkflow(name).getResult()).toBe(name);
    },
  );

  test.skipIf(!hasPush).each([
    ['a renewal of the lease that looks at its lock', 30],
    ['its lock, if the lease is renewed rarely', LEASE_SECONDS],
  ])('an engine that is dead inside a living process is noticed by %s', async (_, leaseSeconds) => {
    const { clock, DBOS, database } = await setup(dialect, leaseSeconds);
    await DBOS.launch();
    await addGhost(database, { pid: process.pid, hasLock: true });
    await addOwned(database, 'w', 'ghost.1');
    await database.run(notifyOfLaunch(dialect));

    const result = DBOS.retrieveWorkflow('w').getResult();
    const maxMs = (LEASE_SECONDS * 1000) / 2;
    expect(await whileTimePasses(clock, result, { stepMs: 250, maxMs })).toBe('w');
  });

  test('an engine keeps renewing its lease while it recovers the workflows of others', async () => {
    const { clock, DBOS, database } = await setup(dialect, 30);
    await DBOS.launch();
    const heartbeat = async (): Promise<unknown> =>
      (await database.read(sql`SELECT e.heartbeat_at FROM ${table('executors')} AS e`))[0]?.['heartbeat_at'];
    await addOwned(database, 'w', 'ghost.1');

    await database.transaction(async (tx) => {
      await tx.run(sql`SELECT 1 FROM ${table('workflow_status')} AS w WHERE w.workflow_uuid = 'w' FOR UPDATE`);
      await until(async () => {
        clock.advance(1000);
        return isAnythingBlocked(database);
      });
      for (let beats = 0; beats < 3; beats += 1) {
        const before = await heartbeat();
        clock.advance(12_000);
        await until(async () => (await heartbeat()) !== before);
      }
    });

    expect(await DBOS.retrieveWorkflow('w').getResult()).toBe('w');
  });

  test.skipIf(!hasPush)('peers hear of an engine that registers again', async () => {
    const { clock, DBOS: one, url, database } = await setup(dialect, 30);
    const still = new ManualClock(clock.now());
    const { DBOS: other } = await createEngine(
      dialect,
      { systemDatabaseUrl: url, applicationVersion: 'v1', leaseSeconds: LEASE_SECONDS },
      { clock: still, databaseNow: () => clock.now() },
    );
    await one.launch();
    await other.launch();
    const { incarnationID } = engineOf(one).runtime;
    const countPeers = (): number => engineOf(other).liveness.peersServing('q').length;
    // It was declared dead, and the other engine has heard of that.
    await database.run(sql`DELETE FROM ${table('executors')} WHERE incarnation_id = ${incarnationID}`);
    await database.run(notifyOfLaunch(dialect));
    await until(() => countPeers() === 0);

    clock.advance(12_000);

    await until(() => countPeers() === 1);
  });

  test('an engine whose writer hangs on a silent connection gives up its lease', async () => {
    const clock = new ManualClock(Date.now());
    const directURL = await dialect.createURL();
    const proxy = await startProxy(directURL);
    const launch = async (executorID: string, systemDatabaseUrl: string) => {
      // Too long for the silence itself to be noticed.
      const timeouts = { leaseSeconds: 30, systemDatabaseSilenceTimeoutMs: 3_600_000 };
      const config = { applicationVersion: 'v1', executorID, systemDatabaseUrl, ...timeouts };
      const { DBOS } = await createEngine(dialect, config, clock.settings);
      const step = async (): Promise<string | undefined> => DBOS.executorID;
      const workflow = DBOS.registerWorkflow(async () => DBOS.runStep(step, { name: 'step' }), { name: 'workflow' });
      await DBOS.launch();
      return { DBOS, workflow };
    };
    const { DBOS, workflow } = await launch('stuck', proxy.url);
    const { DBOS: peer } = await launch('peer', directURL);
    proxy.swallowNextRequest(/INSERT INTO "dbos"\."operation_outputs"/);
    const handle = await DBOS.startWorkflow(workflow, { workflowID: 'w' })();
    await until(() => proxy.hasStruck);

    // The heartbeats have a connection of their own.
    const result = peer.retrieveWorkflow('w').getResult();
    expect(await whileTimePasses(clock, result, { stepMs: 1000, maxMs: 120_000 })).toBe('peer');

    proxy.cut();
    proxy.restore();
    expect(await whileTimePasses(clock, handle.getResult(), { stepMs: 1000, maxMs: 60_000 })).toBe('peer');
    // Its waits go by the test's clock as well.
    await whileTimePasses(clock, DBOS.shutdown(), { stepMs: 1000, maxMs: 60_000 });
  });

  test.skipIf(!hasPush)('an engine that launches while the list of peers is being read is not overlooked', async () => {
    const clock = new ManualClock(Date.now());
    const url = await dialect.createURL();
    const launch = async (executorID: string) => {
      const config = { applicationVersion: 'v1', executorID, systemDatabaseUrl: url };
      const { DBOS } = await createEngine(dialect, config, clock.settings);
      DBOS.registerWorkflow(async () => 1, { name: 'workflow' });
      await DBOS.launch();
      return engineOf(DBOS);
    };
    const { liveness, runtime } = await launch('first');
    const read = runtime.database.read.bind(runtime.database);
    let reads = 0;
    let release = (): void => {};
    const released = new Promise<void>((resolve) => (release = resolve));
    runtime.database.read = async (statement) => {
      const rows = await read(statement);
      if (JSON.stringify(statement).includes('e.incarnation_id <> ') && ++reads === 1) await released;
      return rows;
    };
    await runtime.database.run(sql`SELECT pg_notify(${topics.executors.channel}, 'another')`);
    await until(() => reads === 1);

    await launch('second');
    release();

    // No time passes, so it does not look by itself.
    await until(() => liveness.peersServing('q').length === 1);
  });

  describe('a claim', () => {
    test('that reaches the server late leaves no workflow idle', async () => {
      const clock = new ManualClock(Date.now());
      const proxy = await startProxy(await dialect.createURL());
      const { DBOS } = await createEngine(dialect, { systemDatabaseUrl: proxy.url }, clock.settings);
      const workflow = DBOS.registerWorkflow(async () => 'done', { name: 'workflow' });
      await DBOS.launch();
      await DBOS.registerQueue('q');
      proxy.holdNextRequest(/SET status = 'PENDING'/);

      const handle = await DBOS.startWorkflow(workflow, { queueName: 'q', workflowID: 'w' })();
      await until(() => proxy.hasStruck);
      // The engine has seen the failure, has found nothing that the claim took, and waits before it claims again.
      await clock.untilArmed(500);
      await proxy.deliver();

      expect(await whileTimePasses(clock, handle.getResult(), { stepMs: 500, maxMs: 5000 })).toBe('done');
    });
  });
});

async function isAnythingBlocked(database: Database): Promise<boolean> {
  const blocked = await database.read(sql`
    SELECT 1 FROM pg_stat_activity AS a
    WHERE a.datname = current_database() AND a.wait_event_type = 'Lock'`);
  return blocked.length > 0;
}
