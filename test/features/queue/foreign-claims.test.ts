// Claims from a queue with limits while another program, such as DBOS in another language, is amid one of its own, statement by
// statement. It is not known by its name.
import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type Limits, UNLIMITED } from '../../../src/features/queue/queue.js';
import { sql, table } from '../../../src/kernel/sql/sql.js';
import type { Database } from '../../../src/database/database.js';
import { registerVersion } from '../../../src/features/version/versions.sql.js';
import { type ClaimOptions, claimPartitions, claimWorkflows } from '../../../src/features/queue/claims.sql.js';
import { finishIfOwned, insertWorkflows } from '../../../src/run/rows/workflows.js';
import { onlyOn, type TestDialect } from '../../rig/dialects.js';
import { until } from '../../rig/manual-clock.js';
import { newWorkflow } from '../../rig/records.js';

/** The errors by which they try again. */
const REFUSED = expect.stringMatching(/40001|55P03/) as string;

const ONE = { ...UNLIMITED, concurrency: 1 };

const CLAIM: ClaimOptions = {
  queueName: 'q',
  limit: 10,
  limits: ONE,
  owner: 'me.1',
  executorID: 'vm-1',
  applicationVersion: 'v1',
  applicationName: 'test',
  functions: ['.workflow'],
};

/** Another program: it says at its launch which version it runs. */
async function connect(url: string, version = 'v2'): Promise<pg.Client> {
  const other = new pg.Client({ connectionString: url, application_name: 'some worker' });
  await other.connect();
  onTestFinished(() => other.end());
  await other.query(
    `INSERT INTO dbos.application_versions (version_id, version_name, application_name) VALUES ($1, $1, 'test')
     ON CONFLICT DO NOTHING`,
    [version],
  );
  return other;
}

/** Workflows on queue `q`, named a, b, c …, one for each version. */
async function setup(dialect: TestDialect, versions = ['v1', 'v2'], partitions: readonly string[] = []) {
  const url = await dialect.createURL();
  const database = await dialect.open(url);
  await registerVersion(database, 'v1', 'test');
  for (const [index, applicationVersion] of versions.entries()) {
    const workflowID = String.fromCharCode(97 + index);
    const queuePartitionKey = partitions[index] ?? null;
    const fields = { workflowID, status: 'ENQUEUED', queueName: 'q', owner: null, queuePartitionKey } as const;
    await database.run(insertWorkflows([newWorkflow({ ...fields, applicationVersion })]));
  }
  return { database, url, other: await connect(url) };
}

/** The statements of DBOS up to the count, after it, and the claim itself. */
const theirs = (other: pg.Client, version: string) => ({
  count: async () => {
    await other.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
    await other.query(`SELECT COUNT(*) FROM dbos.workflow_status WHERE queue_name = 'q' AND status = 'PENDING'`);
  },
  lock: () =>
    other.query(
      `SELECT workflow_uuid FROM dbos.workflow_status
       WHERE status = 'ENQUEUED' AND queue_name = 'q' AND application_version = $1
       ORDER BY priority ASC, created_at ASC LIMIT 1 FOR UPDATE NOWAIT`,
      [version],
    ),
  claim: () =>
    other.query(
      `UPDATE dbos.workflow_status
       SET status = 'PENDING', owner_xid = 'theirs', started_at_epoch_ms = (EXTRACT(epoch FROM now()) * 1000)::bigint
       WHERE workflow_uuid IN (
         SELECT w.workflow_uuid FROM dbos.workflow_status AS w
         WHERE w.status = 'ENQUEUED' AND w.queue_name = 'q' AND w.application_version = $1
         ORDER BY w.priority ASC, w.created_at ASC LIMIT 1)
       RETURNING workflow_uuid`,
      [version],
    ),
  commit: () => other.query('COMMIT'),
});

async function claim(database: Database, options: Partial<ClaimOptions> = {}): Promise<string[]> {
  const { claimed } = await claimWorkflows(database, { ...CLAIM, ...options });
  return claimed.map(({ workflow }) => workflow.workflowID);
}

/** Resolves when a session waits for an advisory lock. */
function untilBlocked(database: Database): Promise<void> {
  return until(async () => {
    const waiting = await database.read(sql`
      SELECT 1
      FROM pg_catalog.pg_locks AS l
      WHERE l.locktype = 'advisory' AND NOT l.granted
        AND l.database = (SELECT d.oid FROM pg_catalog.pg_database AS d WHERE d.datname = current_database())`);
    return waiting.length > 0;
  });
}

onlyOn('postgres', (dialect) => {
  describe('a limit', () => {
    test('holds if a claim comes while they take a workflow: it waits, and counts theirs', async () => {
      const { database, other } = await setup(dialect);
      const worker = theirs(other, 'v2');
      await worker.count();
      await worker.lock();
      await worker.claim();

      const claiming = claim(database);
      await untilBlocked(database);
      await worker.commit();

      expect(await claiming).toEqual([]);
    });

    test.each(['v1', 'v2'])(
      'holds if they take a workflow of %s for which they counted before a claim',
      async (version) => {
        const { database, other } = await setup(dialect, ['v1', 'v1', 'v2']);
        const worker = theirs(other, version);
        await worker.count();

        expect(await claim(database)).toEqual(['a']);

        // At the latest when they claim.
        const attempt = worker.lock().then(() => worker.claim());
        await expect(attempt).rejects.toMatchObject({ code: REFUSED });
      },
    );

    test('holds if they had counted before the first claim of all from this queue', async () => {
      const { database, other, url } = await setup(dialect);
      const worker = theirs(other, 'v2');
      await worker.count();
      expect(await database.read(sql`SELECT q.name FROM ${table('shared_queues')} AS q`)).toEqual([]);

      expect(await claim(database)).toEqual(['a']);
      await expect(worker.claim()).rejects.toMatchObject({ code: REFUSED });

      // The other way round.
      const { url: again, database: second } = await setup(dialect);
      const first = theirs(await connect(again), 'v2');
      await first.count();
      await first.claim();
      await first.commit();
      expect(await claim(second)).toEqual([]);
      expect(again).not.toBe(url);
    });

    test('of a partition holds if they take its next workflow without a snapshot', async () => {
      const { database, other } = await setup(dialect, ['v1', 'v2', 'v2'], ['p', 'p', 'other']);
      await database.run(sql`
        INSERT INTO ${table('queues')} (name, partition_concurrency, partition_queue) VALUES ('q', 1, TRUE)`);
      await other.query('BEGIN');
      const found = await other.query(`
        SELECT workflow_uuid FROM dbos.workflow_status WHERE queue_name = 'q' AND status = 'PENDING'`);
      expect(found.rows).toEqual([]);

      const partitions = [{ key: 'p', limit: 5 }];
      const options = { ...CLAIM, limits: UNLIMITED, partitionLimits: ONE, partitions };
      const [taken] = await claimPartitions(database, options);

      expect(taken?.claimed).toHaveLength(1);
      const start = (id: string) =>
        other.query(`UPDATE dbos.workflow_status SET status = 'PENDING' WHERE workflow_uuid = $1`, [id]);
      await start('c');
      await expect(start('b')).rejects.toMatchObject({ code: REFUSED });
    });
  });

  test('a claim that takes nothing is not in their way', async () => {
    const { database, other } = await setup(dialect, ['v2', 'v2']);
    const worker = theirs(other, 'v2');
    await worker.count();

    expect(await claim(database)).toEqual([]);
    await worker.lock();

    expect((await worker.claim()).rows).toHaveLength(1);
  });

  test('a claim from a queue without limits is not in their way', async () => {
    const { database, other } = await setup(dialect);
    const worker = theirs(other, 'v2');
    await worker.count();

    expect(await claim(database, { limits: UNLIMITED })).toEqual(['a']);

    expect((await worker.claim()).rows).toEqual([{ workflow_uuid: 'b' }]);
  });

  test('a claim does not wait for long for a program that hangs', async () => {
    const { database, other } = await setup(dialect);
    const worker = theirs(other, 'v2');
    await worker.count();
    await worker.claim();

    const { claimed, remainder } = await claimWorkflows(database, CLAIM);

    expect(claimed).toEqual([]);
    expect(remainder).toMatchObject({ isWaiting: true, waitMs: expect.closeTo(10, -1) });
  });

  test('a claim leaves no mark where no other program has ever used the database', async () => {
    const { database } = await setup(dialect);
    await database.run(sql`DELETE FROM ${table('other_versions')}`);

    expect(await claim(database)).toEqual(['a']);
    expect(await database.read(sql`SELECT q.name FROM ${table('shared_queues')} AS q`)).toEqual([]);
  });

  describe('the versions of other programs', () => {
    const versionsIn = async (database: Database) => {
      const found = await database.read(sql`
        SELECT v.version_name, v.application_name FROM ${table('other_versions')} AS v`);
      return found.map((row) => `${String(row['application_name'])} ${String(row['version_name'])}`).toSorted();
    };

    test('are noted when they are launched, though the version be known', async () => {
      const { database, url } = await setup(dialect);

      await connect(url, 'v1');

      expect(await versionsIn(database)).toEqual(['test v1', 'test v2']);
    });
  });

  describe('other programs that wait', () => {
    const THREE: Limits = { ...UNLIMITED, concurrency: 3 };

    /** How many each side may start, and what a claim gets. */
    async function start(database: Database, options: Partial<ClaimOptions> = {}) {
      const { claimed, remainder } = await claimWorkflows(database, { ...CLAIM, ...options });
      return { taken: claimed.length, others: remainder.others };
    }

    const startTheirs = (other: pg.Client, id: string) =>
      other.query(
        `UPDATE dbos.workflow_status SET status = 'PENDING', owner_xid = 'theirs',
           started_at_epoch_ms = (EXTRACT(epoch FROM clock_timestamp()) * 1000)::bigint + 1
         WHERE workflow_uuid = $1`,
        [id],
      );

    test('get about as many starts as engines', async () => {
      const { database, other } = await setup(dialect, ['v1', 'v1', 'v1', 'v1', 'v2', 'v2', 'v2']);

      // Half of the slots, rounded up.
      expect(await start(database, { limits: THREE })).toEqual({ taken: 2, others: { spare: 2 } });
      expect(await start(database, { limits: THREE })).toEqual({ taken: 0, others: { spare: 0 } });
      await startTheirs(other, 'e');
      const ended = { owner: 'me.1', status: 'SUCCESS', output: '1', error: null } as const;
      await database.run(finishIfOwned([{ workflowID: 'a', ...ended }]));

      expect(await start(database, { limits: THREE, owner: 'me.2' })).toEqual({ taken: 1, others: { spare: 1 } });
    });

    test('lose their turn if a claim insists', async () => {
      const { database } = await setup(dialect, ['v1', 'v1', 'v1', 'v1', 'v2']);
      await start(database, { limits: THREE });

      expect((await start(database, { limits: THREE, owner: 'me.2', isInsisting: true })).taken).toBe(1);
    });

    test('are not waited for if there are slots for all that waits', async () => {
      const { database } = await setup(dialect, ['v1', 'v2']);

      expect(await start(database, { limits: THREE })).toEqual({ taken: 1, others: undefined });
      await database.run(
        insertWorkflows([
          newWorkflow({
            workflowID: 'late',
            status: 'ENQUEUED',
            queueName: 'q',
            owner: null,
            applicationVersion: 'v1',
          }),
        ]),
      );

      expect(await start(database, { limits: THREE })).toEqual({ taken: 1, others: undefined });
    });

    test('are not waited for if what waits is of a version that they have never run', async () => {
      const { database } = await setup(dialect, ['v1', 'v1', 'v1']);

      expect(await start(database)).toEqual({ taken: 1, others: undefined });
    });
  });
});
