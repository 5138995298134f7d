import { closeSync, existsSync, openSync, renameSync, rmSync, statSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { newID } from '../../../src/kernel/base/ids.js';
import { silentLogger } from '../../../src/kernel/base/log.js';
import {
  DatabaseBusyError,
  DatabaseCorruptError,
  DatabaseFullError,
  DatabaseUnavailableError,
} from '../../../src/kernel/errors/database-errors.js';
import { sql } from '../../../src/kernel/sql/sql.js';
import { migrate } from '../../../src/database/migrations/migrate.js';
import { SqliteDatabase } from '../../../src/database/sqlite/sqlite-database.js';
import { findWorkflows, insertWorkflows } from '../../../src/run/rows/workflows.js';
import { onlyOn } from '../../rig/dialects.js';
import { until } from '../../rig/manual-clock.js';
import { newWorkflow } from '../../rig/records.js';

describe('SqliteDatabase', () => {
  onlyOn('sqlite', (dialect) => {
    test('the settings are those of the guarantee: WAL, FULL, foreign keys', async () => {
      const database = await dialect.create();

      const [settings] = await database.run(sql`
        SELECT journal_mode, synchronous, foreign_keys
        FROM pragma_journal_mode, pragma_synchronous, pragma_foreign_keys`);

      expect(settings).toEqual({ journal_mode: 'wal', synchronous: 2, foreign_keys: 1 });
    });

    test('what only reads cannot write, so that it never checkpoints', async () => {
      const database = await dialect.create();

      await expect(database.read(sql`DELETE FROM workflow_status`)).rejects.toThrow(/readonly/);
    });

    test.each(['deleted', 'replaced'])('a file that was %s is not read or written any more', async (kind) => {
      const path = join(inject('folder'), `${newID()}.sqlite`);
      const database = await SqliteDatabase.open({ path });
      onTestFinished(() => database.close());
      await database.run(sql`CREATE TABLE t (a INTEGER)`);

      const open = database.transaction(async (tx) => {
        await tx.run(sql`INSERT INTO t VALUES (1)`);
        if (kind === 'deleted') for (const suffix of ['', '-wal', '-shm']) rmSync(path + suffix, { force: true });
        else {
          writeFileSync(`${path}.new`, '');
          renameSync(`${path}.new`, path);
        }
      });

      await expect(open).rejects.toThrow(`"${path}" was deleted or replaced while`);
      await expect(database.run(sql`INSERT INTO t VALUES (2)`)).rejects.toThrow(DatabaseUnavailableError);
      await expect(database.read(sql`SELECT a FROM t`)).rejects.toThrow(DatabaseUnavailableError);
      expect(database.lost.aborted).toBe(true);
      expect(existsSync(path)).toBe(kind === 'replaced');
    });

    test('a new file, and those beside it, are for its owner only', async () => {
      const path = join(inject('folder'), `${newID()}.sqlite`);
      const database = await SqliteDatabase.open({ path });
      await database.run(sql`CREATE TABLE t (a INTEGER)`);

      const modes = ['', '-wal', '-shm'].map((suffix) => statSync(`${path}${suffix}`).mode & 0o777);
      await database.close();

      expect(modes).toEqual([0o600, 0o600, 0o600]);
    });

    test('a database in memory works like a file', async () => {
      const database = await SqliteDatabase.open({ path: ':memory:' });
      const workflow = newWorkflow();
      await migrate(database, { logger: silentLogger });

      await database.commit([insertWorkflows([workflow])]);

      expect(await findWorkflows(database, [workflow.workflowID])).toHaveLength(1);
      await database.close();
    });

    test('reads go on while a transaction is open', async () => {
      const database = await dialect.create();
      const workflow = newWorkflow();

      await database.transaction(async (tx) => {
        await tx.run(insertWorkflows([workflow]));
        expect(await findWorkflows(database, [workflow.workflowID])).toEqual([]);
      });

      expect(await findWorkflows(database, [workflow.workflowID])).toHaveLength(1);
    });

    test('a lock of another process is waited for without blocking the event loop', async () => {
      const url = await dialect.createURL();
      const database = await dialect.open(url);
      const other = await dialect.open(url);
      const workflow = newWorkflow();
      let turns = 0;
      const turning = setInterval(() => (turns += 1), 5);

      let written: Promise<unknown> = Promise.resolve();
      await other.transaction(async () => {
        written = database.run(insertWorkflows([workflow]));
        await until(() => turns > 3);
      });
      await written;
      clearInterval(turning);

      expect(await findWorkflows(database, [workflow.workflowID])).toHaveLength(1);
    });

    test('a lock of a transaction in this thread is tried for without blocking the thread, which could not end it', async () => {
      const url = await dialect.createURL();
      const database = await dialect.open(url);
      const other = await dialect.open(url);

      // A call that blocks takes 20 ms each time, however fast the machine is.
      let blockedMs = Infinity;
      for (let round = 0; round < 100 && blockedMs >= 15; round += 1) {
        let written: Promise<unknown> = Promise.resolve();
        await other.transaction(async () => {
          const startedAt = performance.now();
          written = database.run(insertWorkflows([newWorkflow()]));
          await new Promise((resolve) => setImmediate(resolve));
          blockedMs = Math.min(blockedMs, performance.now() - startedAt);
        });
        await written;
      }

      expect(blockedMs).toBeLessThan(15);
    });

    test('a lock that is not released is reported in the end', async () => {
      const url = await dialect.createURL();
      const database = await dialect.open(url, { busyTimeoutMs: 50 });
      const other = await dialect.open(url);

      await other.transaction(async () => {
        await expect(database.run(insertWorkflows([newWorkflow()]))).rejects.toThrow(DatabaseBusyError);
        await expect(database.transaction(async () => {})).rejects.toThrow(/locked by another process/);
      });

      await database.run(insertWorkflows([newWorkflow()]));
    });

    test('a file that is no database is reported with its path', async () => {
      const path = join(inject('folder'), `${newID()}.sqlite`);
      writeFileSync(path, 'this is certainly not a database, however long it is'.repeat(100));

      const opening = SqliteDatabase.open({ path });

      await expect(opening).rejects.toThrow(DatabaseCorruptError);
      await expect(opening).rejects.toThrow(path);
    });

    test('a damaged page is reported as damage', async () => {
      const url = await dialect.createURL();
      const path = url.replace('sqlite:///', '');
      const file = openSync(path, 'r+');
      for (let offset = 4096; offset < statSync(path).size; offset += 4096)
        writeSync(file, Buffer.alloc(4096, 0xaa), 0, 4096, offset);
      closeSync(file);

      const reading = dialect.open(url).then((database) => database.read(sql`SELECT name FROM workflow_status`));

      await expect(reading).rejects.toThrow(DatabaseCorruptError);
    });

    test('a folder that is not there is reported', async () => {
      const folder = join(inject('folder'), 'missing');
      const opening = SqliteDatabase.open({ path: join(folder, 'app.sqlite') });

      await expect(opening).rejects.toThrow(DatabaseUnavailableError);
      await expect(opening).rejects.toThrow(`folder "${folder}" does not exist. Create it, or check the URL`);
    });

    test('a folder in place of the file is reported', async () => {
      await expect(SqliteDatabase.open({ path: inject('folder') })).rejects.toThrow(DatabaseUnavailableError);
    });

    test('a full disk fails the write, leaves nothing half-done, and writing goes on when there is room', async () => {
      const database = await dialect.create();
      const big = newWorkflow({ inputs: 'x'.repeat(1_000_000) });
      const [pages] = await database.run(sql`SELECT page_count FROM pragma_page_count`);
      await limitPages(database, Number(pages?.['page_count']) + 10);

      const writing = database.commit([insertWorkflows([newWorkflow()]), insertWorkflows([big])]);

      await expect(writing).rejects.toThrow(DatabaseFullError);
      expect(await database.read(sql`SELECT count(*) AS count FROM workflow_status`)).toEqual([{ count: 0 }]);
      await limitPages(database, 1_000_000);
      await database.run(insertWorkflows([big]));
      expect(await findWorkflows(database, [big.workflowID])).toHaveLength(1);
    });

    test('integers beyond 32 bits stay integers', async () => {
      const database = await dialect.create();

      const [row] = await database.run(
        sql`SELECT ${1_700_000_000_123} AS n, typeof(${1_700_000_000_123}) AS type, ${true} AS flag`,
      );

      expect(row).toEqual({ n: 1_700_000_000_123, type: 'integer', flag: 1 });
    });

    test('many that open one new file at once all get it', async () => {
      const path = join(inject('folder'), `${newID()}.sqlite`);

      const databases = await Promise.all(Array.from({ length: 8 }, () => SqliteDatabase.open({ path })));

      await Promise.all(databases.map((database) => database.run(sql`CREATE TABLE IF NOT EXISTS t (x)`)));
      await Promise.all(databases.map((database) => database.close()));
    });
  });
});

/** Makes the file refuse to grow beyond so many pages, as a full disk does. */
async function limitPages(database: { exclusive: SqliteDatabase['exclusive'] }, pages: number): Promise<void> {
  await database.exclusive((connection) => connection.script(`PRAGMA max_page_count = ${pages}`));
}
