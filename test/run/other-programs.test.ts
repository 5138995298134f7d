// Programs that write to the system database without our notifications, here plain SQL: triggers notify for them. The clock
// stands still, so nothing is found by polling.
import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { DBOSConfig, DBOSInstance } from '../../src/index.js';
import { sql } from '../../src/kernel/sql/sql.js';
import { onlyOn, type TestDialect } from '../rig/dialects.js';
import { grantAccess } from '../../src/database/migrations/migrate.js';
import { createRole } from '../database/migrations/setup.js';
import { createEngine, engineOf } from '../rig/engines.js';
import { ManualClock, until } from '../rig/manual-clock.js';

const MINUTE = 60_000;
const config = { applicationVersion: 'v1', executorID: 'one' };

interface Scene {
  readonly DBOS: DBOSInstance;
  readonly clock: ManualClock;
  /** The session of another program. */
  readonly other: pg.Client;
  readonly started: string[];
  readonly sleeping: ReadonlySet<string>;
  readonly sleeper: () => Promise<unknown>;
}

async function connectTo(url: string): Promise<pg.Client> {
  const client = new pg.Client(url);
  await client.connect();
  onTestFinished(() => client.end());
  return client;
}

/** An engine with a queue and workflows: one that notes that it was started, one that sleeps. */
async function setup(dialect: TestDialect, given: Partial<DBOSConfig> = {}): Promise<Scene> {
  const clock = new ManualClock();
  const { DBOS, url } = await createEngine(dialect, { ...config, ...given }, clock.settings);
  const started: string[] = [];
  const sleeping = new Set<string>();
  DBOS.registerWorkflow(async () => Promise.resolve(void started.push(DBOS.workflowID ?? '')), { name: 'note' });
  const sleeper = DBOS.registerWorkflow(
    async (): Promise<unknown> => {
      started.push(DBOS.workflowID ?? '');
      sleeping.add(DBOS.workflowID ?? '');
      try {
        return await DBOS.sleep(MINUTE);
      } finally {
        sleeping.delete(DBOS.workflowID ?? '');
      }
    },
    { name: 'sleeper' },
  );
  await DBOS.launch();
  await DBOS.registerQueue('q');
  return { DBOS, clock, other: await connectTo(url), started, sleeping, sleeper };
}

/** Inserts a workflow as another program would. */
async function insert({ other }: Scene, workflowID: string, fields: Record<string, unknown>): Promise<void> {
  const row = { workflow_uuid: workflowID, name: 'note', queue_name: 'q', inputs: '[]', ...fields };
  const columns = Object.keys(row);
  await other.query(
    `INSERT INTO dbos.workflow_status (${columns.join(', ')}) VALUES (${columns.map((_, i) => `$${i + 1}`).join(', ')})`,
    Object.values(row),
  );
}

/** Starts a workflow that sleeps, and resolves when it does. */
async function startSleeper({ DBOS, sleeping, sleeper }: Scene, workflowID: string) {
  const handle = await DBOS.startWorkflow(sleeper, { workflowID, queueName: 'q' })();
  await until(async () => sleeping.has(workflowID) && (await DBOS.listWorkflowSteps(workflowID))?.length === 1);
  return handle;
}

onlyOn('postgres', (dialect) => {
  describe('what another program changes is noticed by a push', () => {
    test('a workflow that it enqueues starts', async () => {
      const scene = await setup(dialect);

      await insert(scene, 'w', { status: 'ENQUEUED' });

      await until(() => scene.started.includes('w'));
    });

    test('a workflow that it delays starts when it is due', async () => {
      const scene = await setup(dialect);

      await insert(scene, 'w', { status: 'DELAYED', delay_until_epoch_ms: scene.clock.now() });

      await until(() => scene.started.includes('w'));
    });

    test('a workflow whose delay it shortens starts', async () => {
      const scene = await setup(dialect);
      await insert(scene, 'w', { status: 'DELAYED', delay_until_epoch_ms: scene.clock.now() + 60 * MINUTE });

      await scene.other.query(`UPDATE dbos.workflow_status SET delay_until_epoch_ms = 0`);

      await until(() => scene.started.includes('w'));
    });

    test('a workflow that it cancels is stopped', async () => {
      const scene = await setup(dialect);
      const handle = await startSleeper(scene, 'w');

      await scene.other.query(`UPDATE dbos.workflow_status SET status = 'CANCELLED'`);

      await expect(handle.getResult()).rejects.toThrow(/cancelled/i);
      await until(() => scene.sleeping.size === 0);
    });

    test('a workflow that it resumes starts again', async () => {
      const scene = await setup(dialect);
      await startSleeper(scene, 'w');
      await scene.DBOS.cancelWorkflow('w');

      await scene.other.query(`UPDATE dbos.workflow_status SET status = 'ENQUEUED', queue_name = 'q'`);

      await until(() => scene.started.length === 2);
    });

    test('a workflow that it takes over is stopped, and its outcome is the new one', async () => {
      const scene = await setup(dialect);
      const handle = await startSleeper(scene, 'w');

      await scene.other.query(`UPDATE dbos.workflow_status SET owner_xid = 'mine'`);

      await until(() => engineOf(scene.DBOS).runs.all.length === 0);
      await scene.other.query(`UPDATE dbos.workflow_status SET status = 'SUCCESS', output = '7'`);
      expect(await handle.getResult()).toBe(7);
    });

    test('a workflow that it deletes is stopped', async () => {
      const scene = await setup(dialect);
      await startSleeper(scene, 'w');

      await scene.other.query(`DELETE FROM dbos.workflow_status`);

      await until(() => engineOf(scene.DBOS).runs.all.length === 0);
    });

    test('a result that it records is returned', async () => {
      const scene = await setup(dialect);
      await insert(scene, 'w', { status: 'PENDING', owner_xid: 'mine', queue_name: null });
      const result = scene.DBOS.retrieveWorkflow('w').getResult();

      await scene.other.query(`UPDATE dbos.workflow_status SET status = 'SUCCESS', output = '7'`);

      expect(await result).toBe(7);
    });

    test('the schedules that it creates, changes and deletes are known', async () => {
      const scene = await setup(dialect);
      const { scheduler } = engineOf(scene.DBOS);
      const reload = scheduler.reload.bind(scheduler);
      const known: string[] = [];
      Object.assign(scheduler, { reload: (names: string[]) => reload(names).then(() => known.push(...names)) });
      // Reads are throttled.
      const pass = (): void => scene.clock.advance(100);

      await scene.other.query(
        `INSERT INTO dbos.workflow_schedules (schedule_id, schedule_name, workflow_name, schedule, status, context)
         VALUES ('s', 'every second', 'note', '* * * * * *', 'ACTIVE', 'null')`,
      );

      await until(() => known.length === 1);
      scene.clock.advance(1000);
      await until(() => scene.started.length === 1);
      await scene.other.query(`UPDATE dbos.workflow_schedules SET status = 'PAUSED'`);
      await until(() => known.length === 2);
      pass();
      await scene.other.query(`DELETE FROM dbos.workflow_schedules`);
      await until(() => known.length === 3);
      expect(known).toEqual(['every second', 'every second', 'every second']);
    });

    test('the queues that it creates, changes and deletes are known', async () => {
      const scene = await setup(dialect);
      const running = (): number => scene.sleeping.size;
      for (const id of ['a', 'b', 'c'])
        await insert(scene, id, { status: 'ENQUEUED', name: 'sleeper', queue_name: 'r' });

      await scene.other.query(`INSERT INTO dbos.queues (name, concurrency) VALUES ('r', 1)`);

      await until(() => running() === 1);
      await scene.other.query(`UPDATE dbos.queues SET concurrency = 2 WHERE name = 'r'`);
      await until(() => running() === 2);
      await scene.other.query(`DELETE FROM dbos.queues WHERE name = 'r'`);
      await until(async () => (await scene.DBOS.listQueues()).length === 1);
    });
  });

  test('without triggers, what another program changes is found within a second while it is connected', async () => {
    const url = await dialect.createURL();
    const other = await connectTo(url);
    await other.query(`DROP FUNCTION dbos.everstep_notify_of_workflow() CASCADE`);
    await other.query(`DROP FUNCTION dbos.everstep_notify_of_schedule() CASCADE`);
    await other.query(`DROP FUNCTION dbos.everstep_notify_of_queues() CASCADE`);
    const scene = await setup(dialect, { systemDatabaseUrl: url, runMigrations: false });
    const { clock, sleeping, started } = scene;
    await startSleeper(scene, 'w');
    await other.query(`UPDATE dbos.workflow_status SET status = 'CANCELLED'`);
    await insert(scene, 'v', { status: 'ENQUEUED', queue_name: 'r' });
    await other.query(`INSERT INTO dbos.queues (name) VALUES ('r')`);

    await clock.untilArmed(1000);
    clock.advance(1000);

    await until(() => sleeping.size === 0 && started.includes('v'));
  });

  describe('the triggers', () => {
    /** The payloads on a channel, and what resolves when everything sent so far has arrived. */
    async function listen(url: string, channel: string) {
      const client = await connectTo(url);
      const payloads: string[] = [];
      client.on('notification', ({ payload = '' }) => payloads.push(payload));
      await client.query(`LISTEN ${channel}`);
      return { payloads, settle: () => client.query('SELECT 1') };
    }

    test('skip the sessions of engines', async () => {
      const url = await dialect.createURL();
      const session = await connectTo(url);
      const { payloads, settle } = await listen(url, 'everstep_queues');
      const insertInto = (queue: string) =>
        session.query(
          `INSERT INTO dbos.workflow_status (workflow_uuid, status, queue_name) VALUES ($1, 'ENQUEUED', $1)`,
          [queue],
        );

      await session.query(`SET everstep.quiet = 'on'`);
      await insertInto('ours');
      await session.query(`RESET everstep.quiet`);
      await insertInto('theirs');

      await settle();
      expect(payloads).toEqual(['["theirs"]']);
    });

    test('send a bounded number of notifications in a transaction', async () => {
      const url = await dialect.createURL();
      const session = await connectTo(url);
      const { payloads, settle } = await listen(url, 'everstep_changes');
      await session.query(
        `INSERT INTO dbos.workflow_status (workflow_uuid, status, owner_xid)
         SELECT 'w' || i, 'PENDING', 'a.' || i FROM generate_series(1, 3000) AS i`,
      );

      await session.query(`UPDATE dbos.workflow_status SET status = 'CANCELLED'`);

      await settle();
      expect(payloads).toHaveLength(1001);
      expect(payloads.at(-1)).toBe('');
    });

    test('do not fail the statement whose row does not fit into a notification', async () => {
      const url = await dialect.createURL();
      const session = await connectTo(url);
      const { payloads, settle } = await listen(url, 'everstep_outcomes');

      await session.query(
        `INSERT INTO dbos.workflow_status (workflow_uuid, status, queue_name, queue_partition_key)
         VALUES (repeat('w', 8000), 'ENQUEUED', 'q', 'k')`,
      );
      await session.query(`SET everstep.notified = 'no number'`);
      await session.query(`UPDATE dbos.workflow_status SET queue_partition_key = 'l'`);
      await session.query(`RESET everstep.notified`);
      await session.query(`UPDATE dbos.workflow_status SET status = 'CANCELLED'`);

      await settle();
      expect(payloads).toEqual(['']);
    });

    test('work for a role that may only write the tables', async () => {
      const url = await dialect.createURL();
      const { role, roleURL } = await createRole(url);
      await grantAccess(await dialect.open(url), { role });
      const { payloads, settle } = await listen(url, 'everstep_schedules');

      const session = await connectTo(roleURL);
      await session.query(
        `INSERT INTO dbos.workflow_schedules (schedule_id, schedule_name, workflow_name, schedule, status, context)
         VALUES ('s', 'nightly', 'note', '0 0 * * *', 'ACTIVE', 'null')`,
      );
      await session.query(`UPDATE dbos.workflow_schedules SET last_fired_at = 'now'`);

      await settle();
      expect(payloads).toEqual(['nightly']);
    });
  });

  test('the token of a former owner does not stay in a row that another program enqueues', async () => {
    const scene = await setup(dialect);
    await startSleeper(scene, 'w');
    await scene.DBOS.cancelWorkflow('w');

    // Like DBOS before version 5, which resumes and claims without touching the token.
    await scene.other.query('BEGIN');
    await scene.other.query(`UPDATE dbos.workflow_status SET status = 'ENQUEUED', queue_name = 'theirs'`);
    await scene.other.query(`UPDATE dbos.workflow_status SET status = 'PENDING', executor_id = 'theirs'`);
    await scene.other.query('COMMIT');

    const { rows } = await scene.other.query(`SELECT status, owner_xid FROM dbos.workflow_status`);
    expect(rows).toEqual([{ status: 'PENDING', owner_xid: null }]);
  });
});

onlyOn('sqlite', (dialect) => {
  test('what another program writes to the file is noticed', async () => {
    const clock = new ManualClock();
    const { DBOS, url } = await createEngine(dialect, config, clock.settings);
    const started: string[] = [];
    DBOS.registerWorkflow(async () => Promise.resolve(void started.push(DBOS.workflowID ?? '')), { name: 'note' });
    await DBOS.launch();
    const other = await dialect.open(url);

    await other.run(sql`INSERT INTO queues (queue_id, name) VALUES ('q', 'q')`);
    await other.run(sql`
      INSERT INTO workflow_status (workflow_uuid, name, status, queue_name, inputs)
      VALUES ('w', 'note', 'ENQUEUED', 'q', '[]')`);
    await other.run(sql`
      INSERT INTO workflow_schedules (schedule_id, schedule_name, workflow_name, schedule, status, context)
      VALUES ('s', 'every second', 'note', '* * * * * *', 'ACTIVE', 'null')`);

    // The file is looked at every 20 ms. Without a look, schedules would be reread after minutes.
    const advance = (): void => clock.advance(20);
    await until(() => (advance(), started.includes('w') && started.some((id) => id.startsWith('sched'))));
    expect(clock.now()).toBeLessThan(new ManualClock().now() + 10_000);
  });
});
