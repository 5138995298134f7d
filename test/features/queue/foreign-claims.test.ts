// Claims from a queue with limits while a worker of DBOS is amid one of its own, statement by statement.
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { UNLIMITED } from '../../../src/features/queue/queue.js';
import type { Database } from '../../../src/database/database.js';
import { type ClaimOptions, claimPartitions, claimWorkflows } from '../../../src/features/queue/claims.sql.js';
import { insertWorkflows } from '../../../src/run/rows/workflows.js';
import { onlyOn, type TestDialect } from '../../rig/dialects.js';
import { newWorkflow } from '../../rig/records.js';

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

/** A queue with two workflows, of which the second has another version, and the session of another program. */
async function setup(dialect: TestDialect, { applicationName = 'dbos_transact_one_v2', partitions = ['', ''] } = {}) {
  const url = await dialect.createURL();
  const database = await dialect.open(url);
  for (const [index, workflowID] of ['a', 'b'].entries()) {
    const queuePartitionKey = partitions[index] || null;
    const fields = { workflowID, status: 'ENQUEUED', queueName: 'q', owner: null, queuePartitionKey } as const;
    await database.run(insertWorkflows([newWorkflow({ ...fields, applicationVersion: `v${index + 1}` })]));
  }
  const other = new pg.Client({ connectionString: url, application_name: applicationName });
  await other.connect();
  onTestFinished(() => other.end());
  return { database, other };
}

/** The statements of DBOS 5.3 up to the count, after the count, and from there to the commit. */
const theirs = (other: pg.Client, version: string) => ({
  async count(): Promise<void> {
    await other.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
    await other.query(`SELECT COUNT(*) FROM dbos.workflow_status WHERE queue_name = 'q' AND status = 'PENDING'`);
  },
  async lock(): Promise<void> {
    await other.query(
      `SELECT workflow_uuid FROM dbos.workflow_status
       WHERE status = 'ENQUEUED' AND queue_name = 'q' AND application_version = $1
       ORDER BY priority ASC, created_at ASC LIMIT 1 FOR UPDATE NOWAIT`,
      [version],
    );
  },
  async claim(): Promise<void> {
    await other.query(
      `UPDATE dbos.workflow_status SET status = 'PENDING', owner_xid = 'theirs'
       WHERE queue_name = 'q' AND application_version = $1`,
      [version],
    );
    await other.query('COMMIT');
  },
});

async function claim(database: Database) {
  const { claimed, remainder, hasRivals } = await claimWorkflows(database, CLAIM);
  return { ids: claimed.map(({ workflow }) => workflow.workflowID), waitMs: remainder.waitMs, hasRivals };
}

onlyOn('postgres', (dialect) => {
  test('a claim does not take a workflow while they take one, and counts it afterwards', async () => {
    const { database, other } = await setup(dialect);
    const worker = theirs(other, 'v2');
    await worker.count();
    await worker.lock();

    const during = await claim(database);
    await worker.claim();
    const after = await claim(database);

    expect(during).toEqual({ ids: [], waitMs: expect.closeTo(10, -1) });
    expect(after).toEqual({ ids: [], waitMs: null, hasRivals: true });
  });

  test.each(['v1', 'v2'])(
    'they do not take a workflow of %s that they counted for before our claim',
    async (version) => {
      const { database, other } = await setup(dialect);
      const worker = theirs(other, version);
      await worker.count();

      const { ids } = await claim(database);

      expect(ids).toEqual(['a']);
      await expect(worker.lock()).rejects.toMatchObject({ code: '40001' });
    },
  );

  test('a claim that takes nothing is not in their way', async () => {
    const { database, other } = await setup(dialect);
    await other.query(`UPDATE dbos.workflow_status SET application_version = 'v2'`);
    const worker = theirs(other, 'v2');
    await worker.count();

    const { ids } = await claim(database);

    expect(ids).toEqual([]);
    await worker.lock();
  });

  test('a claim from one partition respects their claim from another', async () => {
    const { database, other } = await setup(dialect, { partitions: ['one', 'two'] });
    const worker = theirs(other, 'v2');
    await worker.count();
    await worker.lock();

    const claims = await claimPartitions(database, {
      ...CLAIM,
      partitionLimits: UNLIMITED,
      partitions: [{ key: 'one', limit: 5 }],
    });

    expect(claims.map(({ claimed, remainder }) => [claimed, remainder.isWaiting, remainder.hasRoom])).toEqual([
      [[], true, false],
    ]);
  });

  test('without workers of DBOS, locked rows are skipped', async () => {
    const { database, other } = await setup(dialect, { applicationName: 'psql' });
    const worker = theirs(other, 'v2');
    await worker.count();
    await worker.lock();

    const { ids, hasRivals } = await claim(database);

    expect({ ids, hasRivals }).toEqual({ ids: ['a'], hasRivals: false });
  });
});
