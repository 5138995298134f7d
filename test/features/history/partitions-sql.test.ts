// The journal with partitions: the conversion, what an interrupted one leaves, and partitions in advance.
import { expect, test } from 'vitest';
import { PartitioningError } from '../../../src/kernel/errors/errors.js';
import type { Database, Row } from '../../../src/database/database.js';
import { tailJournal } from '../../../src/features/history/history.sql.js';
import { insertEntries } from '../../../src/features/history/journal.sql.js';
import {
  findPartitionFaults,
  keepPartitions,
  partitionTable,
} from '../../../src/features/retention/partitioned-tables.sql.js';
import { cancelWorkflows, resumeWorkflows } from '../../../src/run/rows/lifecycle.js';
import { insertWorkflows } from '../../../src/run/rows/workflows.js';
import { until } from '../../crash/processes.js';
import { onlyOn, partitioned, postgres } from '../../rig/dialects.js';
import { newWorkflow } from '../../rig/records.js';
import { raw } from '../../database/migrations/catalog.js';

const OPTIONS = { every: 'day', ahead: 2, patiently: <T>(body: () => Promise<T>) => body() } as const;
const DAY = 86_400_000;

const query = (database: Database, text: string): Promise<Row[]> => database.run(raw(text));

/** A database with some rows in its journal. */
async function setup(database: Promise<Database>): Promise<Database> {
  const opened = await database;
  const ids = ['a', 'b', 'c'];
  await opened.run(
    insertWorkflows(ids.map((workflowID) => newWorkflow({ workflowID, owner: `engine.${workflowID}` }))),
  );
  await cancelWorkflows(opened, ids);
  await resumeWorkflows(opened, ids);
  return opened;
}

const rowsOf = (database: Database): Promise<Row[]> =>
  query(
    database,
    'SELECT workflow_id, seq::text, xid::text, at::text, event_type FROM dbos.journal AS j ORDER BY j.seq',
  );

async function partitionsOf(database: Database): Promise<string[]> {
  const rows = await query(
    database,
    `SELECT c.relname::text AS name FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
      WHERE i.inhparent = 'dbos.journal'::regclass ORDER BY 1`,
  );
  return rows.map(({ name }) => String(name));
}

const addRow = (database: Database, at: number, key: string | null = null): Promise<Row[]> =>
  query(
    database,
    `INSERT INTO dbos.journal (workflow_id, at, event_type, key)
      VALUES ('a', ${at}, 'DelayChanged', ${key === null ? 'NULL' : `'${key}'`}) RETURNING seq`,
  );

onlyOn('postgres', () => {
  test('a conversion keeps rows, numbers, views, guards and rights', async () => {
    const database = await setup(postgres.create());
    await query(database, `DO $$ BEGIN CREATE ROLE journal_reader; EXCEPTION WHEN duplicate_object THEN NULL; END $$`);
    await query(database, 'GRANT SELECT, INSERT ON dbos.journal TO journal_reader');
    await query(database, 'CREATE VIEW public.own AS SELECT COUNT(*) AS count FROM dbos.journal');
    const before = await rowsOf(database);
    const history = await query(database, 'SELECT * FROM dbos_history.workflow_events ORDER BY workflow_id, idx');

    expect(await partitionTable(database, 'journal', OPTIONS)).toBe(true);
    expect(await partitionTable(database, 'journal', OPTIONS)).toBe(false);

    expect(await rowsOf(database)).toEqual(before);
    expect(await query(database, 'SELECT * FROM dbos_history.workflow_events ORDER BY workflow_id, idx')).toEqual(
      history,
    );
    expect(await partitionsOf(database)).toHaveLength(5);
    const [added] = await addRow(database, Date.now() + 3 * DAY);
    expect(Number(added?.['seq'])).toBeGreaterThan(Number(before.at(-1)?.['seq']));
    expect(await query(database, 'SELECT count::int FROM public.own')).toEqual([{ count: before.length + 1 }]);
    expect(
      await query(database, `SELECT has_table_privilege('journal_reader', 'dbos.journal', 'INSERT') AS may`),
    ).toEqual([{ may: true }]);
    for (const name of ['journal', ...(await partitionsOf(database))]) {
      await expect(query(database, `TRUNCATE dbos.${name}`), name).rejects.toThrow('append-only');
    }
    await expect(query(database, 'DELETE FROM dbos.journal')).rejects.toThrow('append-only');
    await expect(query(database, `UPDATE dbos.journal SET event_type = 'x'`)).rejects.toThrow('append-only');
    expect(await findPartitionFaults(database)).toEqual([]);
  });

  test('the index of archived workflows keeps its rows', async () => {
    const database = await postgres.create();
    const rows = (name: string) => query(database, `SELECT workflow_uuid, object_name FROM dbos.${name} ORDER BY 1`);
    await query(database, `INSERT INTO dbos.archived_workflows VALUES ('a', 'one', 5), ('b', 'one', 6)`);
    const before = await rows('archived_workflows');

    expect(await partitionTable(database, 'archived_workflows', OPTIONS)).toBe(true);

    expect(await rows('archived_workflows')).toEqual(before);
    expect(await rows('archived_workflows_first')).toEqual(before);
    expect(await findPartitionFaults(database)).toEqual([]);
  });

  test('an event that is written again is found in another partition', async () => {
    const database = await setup(partitioned.create());
    await query(
      database,
      `UPDATE dbos.workflow_status SET status = 'PENDING', owner_xid = 'engine.a' WHERE workflow_uuid = 'a'`,
    );
    await addRow(database, Date.now() + 400 * DAY, 'attempt:1');
    const entry = {
      workflowID: 'a',
      owner: 'engine.a',
      eventType: 'ActivityAttemptFailed',
      step: 0,
      attempt: 1,
      executor: null,
      details: null,
      completedAt: null,
    };

    await database.run(insertEntries([{ ...entry, key: 'attempt:1' }]));
    await database.run(insertEntries([{ ...entry, key: 'attempt:2' }]));
    await database.run(insertEntries([{ ...entry, key: 'attempt:2' }]));

    const keys = await query(database, `SELECT key FROM dbos.journal WHERE key IS NOT NULL ORDER BY key`);
    expect(keys).toEqual([{ key: 'attempt:1' }, { key: 'attempt:2' }]);
  });

  test('a conversion that fails leaves the table as it was, and can be repeated', async () => {
    const database = await setup(postgres.create());
    const before = await rowsOf(database);
    await query(database, 'CREATE MATERIALIZED VIEW public.own AS SELECT COUNT(*) FROM dbos.journal');

    await expect(partitionTable(database, 'journal', OPTIONS)).rejects.toThrow(PartitioningError);

    expect(await findPartitionFaults(database)).toEqual([]);
    expect(await rowsOf(database)).toEqual(before);
    await query(database, 'DROP MATERIALIZED VIEW public.own');
    expect(await partitionTable(database, 'journal', OPTIONS)).toBe(true);
    expect(await rowsOf(database)).toEqual(before);
  });

  test('what a killed conversion leaves is reported, and dropped before it refuses rows', async () => {
    const database = await setup(postgres.create());
    const leave = (untilMs: number) =>
      query(
        database,
        `ALTER TABLE dbos.journal DROP CONSTRAINT IF EXISTS everstep_until,
          ADD CONSTRAINT everstep_until CHECK (at < ${untilMs}) NOT VALID`,
      );
    await query(database, 'CREATE UNIQUE INDEX journal_everstep_until ON dbos.journal (xid, seq, at)');
    await query(
      database,
      `UPDATE pg_index SET indisvalid = FALSE WHERE indexrelid = 'dbos.journal_everstep_until'::regclass`,
    );

    await leave(Date.now() + DAY);
    await keepPartitions(database);
    expect(await findPartitionFaults(database)).toEqual([expect.stringContaining('was interrupted')]);
    await leave(Date.now() + 60_000);
    await keepPartitions(database);
    expect(await findPartitionFaults(database)).toEqual([]);
    await leave(Date.now() + DAY);

    expect(await partitionTable(database, 'journal', OPTIONS)).toBe(true);
    expect(await findPartitionFaults(database)).toEqual([]);
    expect(await addRow(database, Date.now() + 500 * DAY)).toHaveLength(1);
  });

  test('partitions are created in advance, and get the rows that the default partition has caught', async () => {
    const database = await setup(partitioned.create());
    for (const name of await partitionsOf(database)) {
      if (/journal_\d/.test(name)) await query(database, `DROP TABLE dbos.${name}`);
    }
    const [first] = await query(
      database,
      `SELECT substring(pg_get_expr(relpartbound, oid) FROM 'TO \\(''([0-9]+)''')::text AS bound
        FROM pg_class WHERE oid = 'dbos.journal_first'::regclass`,
    );
    const bound = Number(first?.['bound']);
    await addRow(database, bound + 5, 'caught');
    const before = await rowsOf(database);
    expect(await findPartitionFaults(database)).toEqual([expect.stringContaining('lacks a partition')]);

    const created = await keepPartitions(database);
    const again = await keepPartitions(database);

    expect(created.length).toBeGreaterThan(0);
    // None, or one if midnight has passed.
    expect(again.length).toBeLessThan(2);
    expect(await rowsOf(database)).toEqual(before);
    expect(await query(database, 'SELECT COUNT(*)::int AS count FROM dbos.journal_default')).toEqual([{ count: 0 }]);
    expect(await findPartitionFaults(database)).toEqual([]);
    await expect(addRow(database, bound + 6, 'caught')).rejects.toThrow('duplicate key');
  });

  test('a reader that follows the journal gets the rows of all partitions in the order of their transactions', async () => {
    const database = await setup(partitioned.create());
    for (const days of [0, 40, 1, 2, 0, 30, 1]) await addRow(database, Date.now() + days * DAY);
    const expected = (await rowsOf(database)).map(({ seq }) => Number(seq));

    // Rows are read when no older transaction is open, in any database of the server.
    const seen = new Set<number>();
    let after = { epoch: 0, xid: '0', seq: 0, part: 0 };
    await until('all rows are read', async () => {
      for (const { cursor } of await tailJournal(database, { after, limit: 2 })) {
        after = cursor;
        seen.add(cursor.seq);
      }
      return seen.size >= expected.length;
    });

    expect([...seen]).toEqual(expected);
    const recent = await tailJournal(database, { after: { since: Date.now() + 20 * DAY }, limit: 100 });
    expect(recent).toHaveLength(2);
  });

  test('a conversion that does not get its lock tries again', async () => {
    const url = await postgres.createURL();
    const database = await setup(postgres.open(url));
    const writer = await postgres.open(url);
    const refusals: unknown[] = [];
    // A writer is in the way of the first attempt of each phase.
    const patiently = async <T>(body: () => Promise<T>): Promise<T> => {
      await writer.transaction(async (tx) => {
        await tx.run(raw(`INSERT INTO dbos.journal (workflow_id, event_type) VALUES ('a', 'DelayChanged')`));
        await body().catch((error: unknown) => refusals.push(error));
      });
      return body();
    };

    expect(await partitionTable(database, 'journal', { ...OPTIONS, patiently })).toBe(true);

    expect(refusals.map(String)).toEqual([
      expect.stringContaining('lock timeout'),
      expect.stringContaining('lock timeout'),
    ]);
    expect((await rowsOf(database)).filter(({ event_type: type }) => type === 'DelayChanged')).toHaveLength(2);
  });
});

onlyOn('sqlite', (dialect) => {
  test('SQLite has no partitions', async () => {
    const database = await dialect.create();

    await expect(partitionTable(database, 'journal', OPTIONS)).rejects.toThrow(PartitioningError);
    expect(await keepPartitions(database)).toEqual([]);
    expect(await findPartitionFaults(database)).toEqual([]);
  });
});
