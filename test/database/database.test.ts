import { describe, expect, test } from 'vitest';
import { newID } from '../../src/kernel/base/ids.js';
import { DatabaseClosedError, DatabaseStatementError } from '../../src/kernel/errors/database-errors.js';
import { nowMs, oneOf, rows, sql, table } from '../../src/kernel/sql/sql.js';
import { stepColumns, workflowColumns } from '../../src/database/columns.js';
import type { Database } from '../../src/database/database.js';
import { insertCheckpoints } from '../../src/run/rows/steps.js';
import { findWorkflows, finishIfOwned, insertWorkflows } from '../../src/run/rows/workflows.js';
import { forEachDialect } from '../rig/dialects.js';
import { explain } from '../rig/plans.js';
import { newWorkflow, step } from '../rig/records.js';

const COLUMNS = [
  { name: 't', type: 'text' },
  { name: 'i', type: 'int' },
  { name: 'b', type: 'bigint' },
  { name: 'f', type: 'float' },
  { name: 'flag', type: 'bool' },
] as const;

function add(database: Database, workflowID: string) {
  return database.run(insertWorkflows([newWorkflow({ workflowID })]));
}

async function exists(database: Database, workflowID: string): Promise<boolean> {
  return (await findWorkflows(database, [workflowID])).length > 0;
}

describe('Database', () => {
  forEachDialect((dialect) => {
    test.each([1, 2, 3])('%i literal rows come back with their types', async (count) => {
      const database = await dialect.create();
      const row = ['té"x\'t', -5, 1_700_000_000_123, 1.5, true];
      const nulls = [null, null, null, null, null];
      const data = [row, nulls, row].slice(0, count);

      const found = await database.read(sql`SELECT r.t, r.i, r.b, r.f, r.flag FROM ${rows('r', COLUMNS, data)}`);

      const truth = dialect.name === 'postgres' ? true : 1;
      const expected = [
        { t: row[0], i: -5, b: 1_700_000_000_123, f: 1.5, flag: truth },
        { t: null, i: null, b: null, f: null, flag: null },
      ];
      expect(found).toEqual([expected[0], expected[1], expected[0]].slice(0, count));
    });

    test('columns without a value are NULL in each of many rows, and so may be all', async () => {
      const database = await dialect.create();
      const read = (data: (string | number | null)[][]) =>
        database.read(sql`SELECT r.t, r.i, r.b, r.f, r.flag FROM ${rows('r', COLUMNS, data)}`);
      const row = (t: string | null, i: number | null) => ({ t, i, b: null, f: null, flag: null });

      expect(await read([1, 2].map((n) => ['x', n, null, null, null]))).toEqual([row('x', 1), row('x', 2)]);
      expect(await read([1, 2].map((n) => [null, n, null, null, null]))).toEqual([row(null, 1), row(null, 2)]);
      expect(await read([1, 2].map(() => [null, null, null, null, null]))).toEqual([row(null, null), row(null, null)]);
    });

    test('no literal rows and no values give nothing', async () => {
      const database = await dialect.create();

      expect(await database.read(sql`SELECT r.t FROM ${rows('r', COLUMNS, [])}`)).toEqual([]);
      expect(await database.read(sql`SELECT 1 AS one WHERE 'a' ${oneOf([])}`)).toEqual([]);
      expect(await database.read(sql`SELECT 1 AS one WHERE 'a' ${oneOf(['b', 'a'])}`)).toEqual([{ one: 1 }]);
    });

    test('the clock of the database is close to ours and counts milliseconds', async () => {
      const database = await dialect.create();

      const [row] = await database.read(sql`SELECT ${nowMs} AS now`);

      expect(Math.abs((row?.['now'] as number) - Date.now())).toBeLessThan(60_000);
    });

    test('a commit is all or nothing', async () => {
      const database = await dialect.create();
      const [first, second] = [newID(), newID()];

      await expect(
        database.commit([
          insertWorkflows([newWorkflow({ workflowID: first })]),
          sql`INSERT INTO ${table('notifications')} (destination_uuid, message) VALUES (${'nobody'}, ${'x'})`,
          insertWorkflows([newWorkflow({ workflowID: second })]),
        ]),
      ).rejects.toThrow(DatabaseStatementError);

      expect(await exists(database, first)).toBe(false);
      expect(await exists(database, second)).toBe(false);
    });

    test('a later statement of a commit sees what the earlier ones did, and each gives its rows', async () => {
      const database = await dialect.create();
      const workflow = newWorkflow();

      const results = await database.commit([
        insertWorkflows([workflow]),
        insertCheckpoints([{ owner: workflow.creator, step: step(workflow.workflowID, 0) }]),
        sql`UPDATE ${table('workflow_status')} SET priority = 9 WHERE workflow_uuid = ${'nobody'}`,
        finishIfOwned([
          { workflowID: workflow.workflowID, owner: workflow.creator, status: 'SUCCESS', output: null, error: null },
        ]),
      ]);

      expect(results.map((result) => result.length)).toEqual([1, 1, 0, 1]);
    });

    test('a failed statement leaves the connection usable', async () => {
      const database = await dialect.create();
      const broken = sql`SELECT nonsense FROM nowhere`;

      for (let attempt = 0; attempt < 3; attempt += 1) {
        await expect(database.run(broken)).rejects.toThrow(/nowhere|nonsense/);
        await expect(database.commit([sql`SELECT 1 AS one`, broken])).rejects.toThrow(DatabaseStatementError);
      }

      expect(await database.run(sql`SELECT 1 AS one`)).toEqual([{ one: 1 }]);
    });

    test('a transaction commits what its body did, and undoes it when the body throws', async () => {
      const database = await dialect.create();
      const [kept, undone] = [newID(), newID()];

      await database.transaction((tx) => tx.run(insertWorkflows([newWorkflow({ workflowID: kept })])));
      const failing = database.transaction(async (tx) => {
        await tx.run(insertWorkflows([newWorkflow({ workflowID: undone })]));
        throw new Error('changed my mind');
      });

      await expect(failing).rejects.toThrow('changed my mind');
      expect(await exists(database, kept)).toBe(true);
      expect(await exists(database, undone)).toBe(false);
    });

    test('other tasks do not get into an open transaction', async () => {
      const database = await dialect.create();
      const [inside, outside] = [newID(), newID()];
      let unrelated: Promise<unknown> = Promise.resolve();

      const failing = database.transaction(async (tx) => {
        await tx.run(insertWorkflows([newWorkflow({ workflowID: inside })]));
        unrelated = add(database, outside);
        expect(await exists(database, inside)).toBe(false);
        await new Promise((resolve) => setImmediate(resolve));
        throw new Error('undo');
      });

      await expect(failing).rejects.toThrow('undo');
      await unrelated;
      expect(await exists(database, inside)).toBe(false);
      expect(await exists(database, outside)).toBe(true);
    });

    test('a caught failure inside a transaction does not end in a silent success on Postgres', async () => {
      const database = await dialect.create();
      const workflowID = newID();

      const result = database.transaction(async (tx) => {
        await tx.run(insertWorkflows([newWorkflow({ workflowID })]));
        await tx.run(sql`SELECT nonsense FROM nowhere`).catch(() => {});
      });

      // SQLite undoes only the failed statement; Postgres the whole transaction, and it has to say so.
      if (dialect.name === 'postgres') await expect(result).rejects.toThrow(/rolled back/);
      else await result;
      expect(await exists(database, workflowID)).toBe(dialect.name === 'sqlite');
    });

    test('close waits for what is under way, and later calls fail clearly', async () => {
      const database = await dialect.create();
      const workflowID = newID();
      const url = add(database, workflowID);

      await database.close();
      await database.close();

      await expect(url).resolves.toHaveLength(1);
      await expect(database.run(sql`SELECT 1`)).rejects.toThrow(DatabaseClosedError);
      await expect(database.read(sql`SELECT 1`)).rejects.toThrow(DatabaseClosedError);
      await expect(database.transaction(async () => {})).rejects.toThrow(DatabaseClosedError);
    });

    test('a hundred tasks at once get their own answers', async () => {
      const database = await dialect.create();

      const found = await Promise.all(
        Array.from({ length: 100 }, (_, n) => database.read(sql`SELECT CAST(${n} AS INTEGER) AS n`)),
      );

      expect(found.map(([row]) => row?.['n'])).toEqual(Array.from({ length: 100 }, (_, n) => n));
    });

    test.each([
      ['workflow_status', workflowColumns],
      ['operation_outputs', stepColumns],
    ] as const)('the column list of %s names columns that exist, each once', async (name, list) => {
      const database = await dialect.create();

      await database.read(sql`SELECT ${list.select('x')} FROM ${table(name)} AS x`);

      expect(new Set(list.columns.map((column) => column.name)).size).toBe(list.columns.length);
      expect(new Set(list.columns.map((column) => column.field)).size).toBe(list.columns.length);
    });

    test('the hot statements look workflows up by their key, on a table never analysed', async () => {
      const database = await dialect.create();
      const workflows = Array.from({ length: 1000 }, () => newWorkflow());
      await database.run(insertWorkflows(workflows));
      const some = workflows.slice(0, 300);
      const checkpoints = some.map((workflow) => ({ owner: workflow.creator, step: step(workflow.workflowID, 0) }));
      const outcomes = some.map(
        ({ workflowID, creator }) =>
          ({ workflowID, owner: creator, status: 'SUCCESS', output: null, error: null }) as const,
      );

      for (const count of [1, 50, 300]) {
        for (const statement of [
          insertCheckpoints(checkpoints.slice(0, count)),
          finishIfOwned(outcomes.slice(0, count)),
        ]) {
          const plan = await explain(database, statement);
          expect(plan).toMatch(
            dialect.name === 'postgres'
              ? /Index (Only )?Scan using workflow_status_pkey/
              : /SEARCH w (EXISTS )?USING INDEX sqlite_autoindex_workflow_status_1/,
          );
          expect(plan).not.toMatch(/Seq Scan|SCAN w\b|idx_workflow_status|Bitmap/);
        }
      }
    });
  });
});
