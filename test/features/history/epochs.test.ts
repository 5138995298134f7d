// Followers of the journal after its tables were moved to another cluster, where transactions have lower numbers.
import { describe, expect, test } from 'vitest';
import type { Database, Row } from '../../../src/database/database.js';
import { noteCluster } from '../../../src/features/history/epochs.sql.js';
import { tailJournal, type TailCursor, type TailQuery } from '../../../src/features/history/history.sql.js';
import { FIRST_ROW, listRows } from '../../../src/features/history/pruning.sql.js';
import { until } from '../../crash/processes.js';
import { partitioned, postgres, wantsDialect } from '../../rig/dialects.js';
import { AHEAD, pretendMove } from '../../rig/moved-cluster.js';
import { raw } from '../../database/migrations/catalog.js';

const START: TailCursor = { epoch: 0, xid: '0', seq: 0, part: 0 };

const query = (database: Database, text: string): Promise<Row[]> => database.run(raw(text));

async function add(database: Database, ...keys: string[]): Promise<void> {
  for (const key of keys) {
    await query(database, `INSERT INTO dbos.journal (workflow_id, event_type, key) VALUES ('${key}', 'x', '${key}')`);
  }
}

/** The workflows of the next rows, once `count` of them are there: no older transaction is open on the server. */
async function follow(database: Database, start: TailQuery['after'], count: number) {
  const names: string[] = [];
  let after = start;
  await until('all rows are read', async () => {
    for (const { workflowID, cursor } of await tailJournal(database, { after, limit: 2 })) {
      names.push(workflowID);
      after = cursor;
    }
    return names.length >= count;
  });
  expect(await tailJournal(database, { after, limit: 2 })).toEqual([]);
  return { names, last: after as TailCursor };
}

/** What another cluster has told a follower. */
const moved = (cursor: TailCursor): TailCursor => ({ ...cursor, xid: String(Number(cursor.xid) + AHEAD) });

const epochsOf = (database: Database): Promise<Row[]> =>
  query(
    database,
    'SELECT e.epoch, e.cluster = s.system_identifier::text AS is_here FROM dbos.journal_epochs AS e, pg_control_system() AS s ORDER BY 1',
  );

for (const [name, dialect] of [
  ['postgres', postgres],
  ['postgres with partitions', partitioned],
] as const) {
  describe.skipIf(!wantsDialect('postgres'))(name, () => {
    test('they get each row once, in order, wherever they had come to', async () => {
      const database = await dialect.create();
      await noteCluster(database);
      await add(database, 'a1', 'a2');
      const { last } = await follow(database, START, 2);
      await add(database, 'a3');
      await pretendMove(database);
      // Other programs may be faster than the first engine.
      await add(database, 'b1');

      await noteCluster(database);
      await add(database, 'b2');

      expect((await follow(database, moved(last), 3)).names).toEqual(['a3', 'b1', 'b2']);
      expect((await follow(database, START, 5)).names).toEqual(['a1', 'a2', 'a3', 'b1', 'b2']);
      expect((await follow(database, { since: 0 }, 5)).names).toEqual(['a1', 'a2', 'a3', 'b1', 'b2']);

      await pretendMove(database);
      await noteCluster(database);
      await add(database, 'c1');

      expect((await follow(database, moved(moved(last)), 4)).names).toEqual(['a3', 'b1', 'b2', 'c1']);
      expect(await epochsOf(database)).toEqual([
        { epoch: 0, is_here: false },
        { epoch: 1, is_here: false },
        { epoch: 2, is_here: true },
      ]);
      const all = await listRows(database, FIRST_ROW, { before: 0, applicationName: null, limit: 100 });
      expect(all.map(({ workflowID }) => workflowID)).toEqual(['a1', 'a2', 'a3', 'b1', 'b2', 'c1']);
      const rest = await listRows(database, all[2] ?? FIRST_ROW, { before: 0, applicationName: null, limit: 2 });
      expect(rest.map(({ workflowID }) => workflowID)).toEqual(['b1', 'b2']);
    });
  });
}

describe.skipIf(!wantsDialect('postgres'))('postgres', () => {
  test('an epoch begins only if numbers are ahead, and once', async () => {
    const database = await postgres.create();
    await Promise.all([noteCluster(database), noteCluster(database)]);
    await add(database, 'a1');
    await query(database, `UPDATE dbos.journal_epochs SET cluster = 'before the upgrade'`);

    await noteCluster(database);

    expect(await epochsOf(database)).toEqual([{ epoch: 0, is_here: true }]);
    await pretendMove(database);
    await Promise.all([noteCluster(database), noteCluster(database)]);
    expect(await epochsOf(database)).toEqual([
      { epoch: 0, is_here: false },
      { epoch: 1, is_here: true },
    ]);
  });

  test('numbers of rows go on where a replica without the state of sequences begins anew', async () => {
    const database = await postgres.create();
    await noteCluster(database);
    await add(database, 'a1', 'a2');
    await pretendMove(database);
    await query(database, 'ALTER TABLE dbos.journal ALTER COLUMN seq RESTART');

    await noteCluster(database);
    await add(database, 'b1');

    expect((await follow(database, START, 3)).names).toEqual(['a1', 'a2', 'b1']);
  });
});
