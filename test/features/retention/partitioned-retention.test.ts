// Retention of stored events where the journal has partitions: old ones are replaced by what has to stay.
import { expect, test } from 'vitest';
import { applyRetention } from '../../../src/features/retention/retention-policy.js';
import { sql, table } from '../../../src/kernel/sql/sql.js';
import type { Database, Row } from '../../../src/database/database.js';
import { noteCluster } from '../../../src/features/history/epochs.sql.js';
import { prunePartitions } from '../../../src/features/history/partition-pruning.sql.js';
import { insertWorkflows, type NewWorkflow } from '../../../src/run/rows/workflows.js';
import { until } from '../../crash/processes.js';
import { onlyOn, partitioned } from '../../rig/dialects.js';
import { pretendMove } from '../../rig/moved-cluster.js';
import { operatorOn } from '../../rig/operators.js';
import { newWorkflow } from '../../rig/records.js';
import { raw } from '../../database/migrations/catalog.js';

const DAY_MS = 86_400_000;
const POLICY = { history: '7 days' } as const;
const FAST = { restFactor: 0 };

const query = (database: Database, text: string): Promise<Row[]> => database.run(raw(text));

/** A journal whose partition `journal_first` ends ten days ago. */
async function setup() {
  const url = await partitioned.createURL();
  const database = await partitioned.open(url);
  const [first] = await query(
    database,
    `SELECT substring(pg_get_expr(relpartbound, oid) FROM 'TO \\(''([0-9]+)''')::text AS bound
      FROM pg_class WHERE oid = 'dbos.journal_first'::regclass`,
  );
  const splitAt = Date.now() - 10 * DAY_MS;
  await query(database, 'ALTER TABLE dbos.journal DETACH PARTITION dbos.journal_first');
  await query(
    database,
    `ALTER TABLE dbos.journal ATTACH PARTITION dbos.journal_first FOR VALUES FROM (MINVALUE) TO (${splitAt})`,
  );
  await query(
    database,
    `CREATE TABLE dbos.journal_now PARTITION OF dbos.journal FOR VALUES FROM (${splitAt}) TO (${String(first?.['bound'])})`,
  );
  /** A workflow that ended, or was last changed, 20 days ago, with events of that time. */
  const add = async (workflowID: string, events: readonly string[], given: Partial<NewWorkflow> = {}) => {
    await database.run(insertWorkflows([newWorkflow({ workflowID, status: 'SUCCESS', owner: null, ...given })]));
    const at = Date.now() - 20 * DAY_MS;
    await database.run(sql`
      UPDATE ${table('workflow_status')} SET created_at = ${at}, updated_at = ${at}, completed_at = ${at}
      WHERE workflow_uuid = ${workflowID}`);
    for (const [index, type] of events.entries()) {
      await database.run(sql`
        INSERT INTO ${table('journal')} (workflow_id, at, event_type, key)
        VALUES (${workflowID}, ${at + index}, ${type}, ${`key:${index}`})`);
    }
    // A copy takes rows for new while a transaction is open that began before them, in any database of the server.
    await until('older transactions have ended', async () => {
      const [row] = await query(
        database,
        'SELECT bool_and(xid < pg_snapshot_xmin(pg_current_snapshot())) AS is_old FROM dbos.journal',
      );
      return row?.['is_old'] !== false;
    });
  };
  return { url, database, operator: operatorOn(database), add };
}

const LOST = Array.from({ length: 6 }, () => 'AttemptLost');
const ACTIVE = { status: 'ENQUEUED', queueName: 'q' } as const;

const rowsOf = (database: Database, workflowID: string): Promise<Row[]> =>
  query(
    database,
    `SELECT j.seq::text, j.xid::text, j.at::text, j.event_type, j.key FROM dbos.journal AS j
      WHERE workflow_id = '${workflowID}' ORDER BY j.seq`,
  );

const oidOf = async (database: Database, name: string): Promise<unknown> =>
  (await query(database, `SELECT to_regclass('dbos.${name}')::oid::int AS oid`))[0]?.['oid'];

onlyOn('postgres', () => {
  test('an old partition is replaced by the events of active workflows and of cancellations', async () => {
    const { database, operator, add } = await setup();
    await add('old', [...LOST, ...LOST]);
    await add('active', ['AttemptLost', 'DelayChanged'], ACTIVE);
    await add('cancelled', ['AttemptLost', 'WorkflowCancelRequested'], { status: 'CANCELLED' });
    const [active, cancelled] = [await rowsOf(database, 'active'), await rowsOf(database, 'cancelled')];
    const before = await oidOf(database, 'journal_first');

    const applied = await applyRetention(operator, POLICY, FAST);
    const again = await applyRetention(operator, POLICY, FAST);

    expect(applied).toEqual({ workflows: 0, archived: 0, events: 13 });
    expect(again).toMatchObject({ events: 0 });
    expect(await rowsOf(database, 'old')).toEqual([]);
    expect(await rowsOf(database, 'active')).toEqual(active);
    expect(await rowsOf(database, 'cancelled')).toEqual(cancelled.slice(1));
    expect(await oidOf(database, 'journal_first')).not.toBe(before);
    // The new partition is as well guarded as the old one.
    await expect(query(database, 'DELETE FROM dbos.journal_first')).rejects.toThrow('append-only');
    await expect(query(database, 'TRUNCATE dbos.journal_first')).rejects.toThrow('append-only');
    await expect(
      query(
        database,
        `INSERT INTO dbos.journal (workflow_id, at, event_type, key)
          SELECT workflow_id, at, event_type, key FROM dbos.journal WHERE workflow_id = 'active' LIMIT 1`,
      ),
    ).rejects.toThrow('duplicate key');
  });

  test('an old partition of which nothing has to stay is dropped', async () => {
    const { database, operator, add } = await setup();
    await add('old', LOST);

    const applied = await applyRetention(operator, POLICY, FAST);

    expect(applied).toMatchObject({ events: 6 });
    expect(await oidOf(database, 'journal_first')).toBeNull();
    // A row of that time goes to the default partition, and is pruned from there.
    await add('late', ['AttemptLost']);
    expect(await applyRetention(operator, POLICY, FAST)).toMatchObject({ events: 1 });
  });

  test('an old partition is replaced after a move to a cluster whose transactions have lower numbers', async () => {
    const { database, add } = await setup();
    await noteCluster(database);
    await add('old', LOST);
    await add('active', ['AttemptLost'], ACTIVE);
    await pretendMove(database);
    await noteCluster(database);

    const pruned = await prunePartitions(database, { before: Date.now() - 7 * DAY_MS, applicationName: null });

    expect(pruned).toBe(6);
    expect(await rowsOf(database, 'active')).toHaveLength(1);
  });

  test('a partition of which most has to stay is pruned row by row', async () => {
    const { database, operator, add } = await setup();
    await add('old', ['AttemptLost']);
    await add('active', LOST, ACTIVE);
    const before = [await oidOf(database, 'journal_first'), await rowsOf(database, 'active')];

    const applied = await applyRetention(operator, POLICY, FAST);

    expect(applied).toMatchObject({ events: 1 });
    expect([await oidOf(database, 'journal_first'), await rowsOf(database, 'active')]).toEqual(before);
  });

  test('a partition that is in use stays, and is pruned row by row', async () => {
    const { url, database, operator, add } = await setup();
    await add('old', LOST);
    await add('active', ['AttemptLost'], ACTIVE);
    const writer = await partitioned.open(url);
    const before = await oidOf(database, 'journal_first');

    const applied = await writer.transaction(async (tx) => {
      await tx.run(raw(`INSERT INTO dbos.journal (workflow_id, event_type) VALUES ('active', 'DelayChanged')`));
      return applyRetention(operator, POLICY, FAST);
    });

    expect(applied).toMatchObject({ events: 6 });
    expect(await oidOf(database, 'journal_first')).toBe(before);
    expect(await rowsOf(database, 'active')).toHaveLength(2);
  });

  test('what happens while a partition is copied is carried over', async () => {
    const { url, database, operator, add } = await setup();
    for (const id of ['old', 'resumed']) await add(id, LOST);
    for (const id of ['renamed', 'deleted', 'written']) await add(id, ['AttemptLost', 'DelayChanged'], ACTIVE);
    const writer = await partitioned.open(url);
    const at = Date.now() - 20 * DAY_MS;
    const before = await oidOf(database, 'journal_first');
    let retention: Promise<unknown> | undefined;

    await writer.transaction(async (tx) => {
      await tx.run(
        raw(`INSERT INTO dbos.journal (workflow_id, at, event_type) VALUES ('written', ${at}, 'DelayChanged')`),
      );
      await tx.run(raw(`UPDATE dbos.workflow_status SET workflow_uuid = 'other' WHERE workflow_uuid = 'renamed'`));
      await tx.run(raw(`DELETE FROM dbos.workflow_status WHERE workflow_uuid = 'deleted'`));
      await tx.run(
        raw(`UPDATE dbos.workflow_status SET status = 'ENQUEUED', queue_name = 'q' WHERE workflow_uuid = 'resumed'`),
      );
      retention = applyRetention(operator, POLICY, FAST);
      // It has copied what it sees, and waits for the lock; or it has given up already, and prunes row by row.
      let isDone = false;
      void retention.finally(() => (isDone = true));
      await until('the retention waits', async () => {
        const waiting = await database.read(
          raw(`SELECT 1 AS one FROM pg_locks WHERE relation = 'dbos.journal'::regclass AND NOT granted`),
        );
        return isDone || waiting.length > 0;
      });
    });
    await retention;

    expect(await rowsOf(database, 'old')).toEqual([]);
    expect(await rowsOf(database, 'written')).toHaveLength(3);
    expect(await rowsOf(database, 'other')).toHaveLength(2);
    expect([await rowsOf(database, 'renamed'), await rowsOf(database, 'deleted')]).toEqual([[], []]);
    // Pruned row by row, after 2 seconds without the lock, a workflow that is about to be resumed may lose its events.
    const isReplaced = (await oidOf(database, 'journal_first')) !== before;
    expect(isReplaced ? [7] : [1, 7]).toContain((await rowsOf(database, 'resumed')).length);
  });

  test('a retention that is killed leaves the partition as it was', async () => {
    const { url, database, operator, add } = await setup();
    await add('old', LOST);
    await add('active', ['AttemptLost'], ACTIVE);
    const before = [await rowsOf(database, 'old'), await rowsOf(database, 'active')];
    const writer = await partitioned.open(url);

    const outcome = await writer.transaction(async (tx) => {
      await tx.run(raw(`LOCK TABLE ONLY dbos.journal IN ROW EXCLUSIVE MODE`));
      let outcome: string | undefined;
      const pruning = prunePartitions(await partitioned.open(url), {
        before: Date.now() - 7 * DAY_MS,
        applicationName: null,
      }).then(
        () => (outcome = 'done'),
        () => (outcome = 'failed'),
      );
      // It is killed while it waits for its lock, unless it has given up.
      await until('it is killed', async () => {
        const killed = await tx.run(
          raw(`SELECT pg_terminate_backend(pid) AS killed FROM pg_locks
            WHERE relation = 'dbos.journal'::regclass AND NOT granted`),
        );
        return outcome !== undefined || killed.length > 0;
      });
      return pruning;
    });

    expect(outcome).toBe('failed');
    expect([await rowsOf(database, 'old'), await rowsOf(database, 'active')]).toEqual(before);
    expect(await applyRetention(operator, POLICY, FAST)).toMatchObject({ events: 6 });
    expect(await rowsOf(database, 'active')).toEqual(before[1]);
  });
});
