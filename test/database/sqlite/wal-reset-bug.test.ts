// Versions of SQLite that can corrupt a file which several processes or threads use.
import { Worker } from 'node:worker_threads';
import { once } from 'node:events';
import { join } from 'node:path';
import { createRequire } from 'node:module';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { newID } from '../../../src/kernel/base/ids.js';
import { silentLogger } from '../../../src/kernel/base/log.js';
import { diagnose } from '../../../src/features/diagnosis/diagnosis.js';
import { sql } from '../../../src/kernel/sql/sql.js';
import { migrate } from '../../../src/database/migrations/migrate.js';
import { insertIncarnation } from '../../../src/features/liveness/executors.sql.js';
import { SqliteDatabase } from '../../../src/database/sqlite/sqlite-database.js';
import { findSqliteLibrary, type SqliteLibrary } from '../../../src/database/sqlite/sqlite-handle.js';
import { hasWalResetBug, isAffectedAllowed } from '../../../src/database/sqlite/wal-reset-bug.js';
import { onlyOn } from '../../rig/dialects.js';
import { operatorOn } from '../../rig/operators.js';

test.each([
  ['3.6.23', false],
  ['3.7.0', true],
  ['3.7.17', true],
  ['3.44.5', true],
  ['3.44.6', false],
  ['3.44.10', false],
  ['3.45.0', true],
  ['3.49.1', true],
  ['3.50.4', true],
  ['3.50.6', true],
  ['3.50.7', false],
  ['3.51.0', true],
  ['3.51.2', true],
  ['3.51.3', false],
  ['3.52.0', false],
  ['3.53.2', false],
  ['4.0.0', false],
])('SQLite %s has the bug: %s', (version, isAffected) => {
  expect(hasWalResetBug(version)).toBe(isAffected);
});

test('the environment can allow such a version', () => {
  const allowed = (value?: string): boolean => isAffectedAllowed({ EVERSTEP_ALLOW_AFFECTED_SQLITE: value });

  expect([allowed('true'), allowed(' 1 '), allowed('TRUE')]).toEqual([true, true, true]);
  expect([allowed(), allowed(''), allowed('false'), allowed('0')]).toEqual([false, false, false, false]);
});

/** The library of this runtime, as if it were of that version. */
async function libraryOf(version: string): Promise<SqliteLibrary> {
  return { ...(await findSqliteLibrary()), version };
}

async function setup(version = '3.51.2') {
  const path = join(inject('folder'), `${newID()}.sqlite`);
  const library = await libraryOf(version);
  const warnings: string[] = [];
  const open = async ({ readsBesideOthers = false } = {}): Promise<SqliteDatabase> => {
    const warn = (warning: string): void => void warnings.push(warning);
    const database = await SqliteDatabase.open({ path, library, ifAffected: { readsBesideOthers, warn } });
    onTestFinished(() => database.close());
    return database;
  };
  return { path, open, warnings };
}

/** Another thread that has the file open with an affected version, like a process. */
async function openElsewhere(path: string): Promise<() => Promise<void>> {
  const code = `
    const { parentPort, workerData } = require('node:worker_threads');
    const open = (path) => {
      try { return new (require(workerData.library))(path); }
      catch { return new (require('node:sqlite').DatabaseSync)(path); }
    };
    const lock = open(workerData.path);
    lock.exec('BEGIN EXCLUSIVE');
    parentPort.once('message', () => { lock.close(); });
    parentPort.postMessage('open');`;
  const library = createRequire(import.meta.url).resolve('better-sqlite3');
  const worker = new Worker(code, { eval: true, workerData: { library, path: `${path}-everstep` } });
  await once(worker, 'message');
  const close = async (): Promise<void> => {
    const ended = once(worker, 'exit');
    worker.postMessage('close');
    await ended;
  };
  return close;
}

onlyOn('sqlite', () => {
  describe('a file with an affected version', () => {
    test('is for one thread, which is warned once', async () => {
      const { open, warnings } = await setup();

      const first = await open();
      const second = await open();
      await first.run(sql`CREATE TABLE t (a INTEGER)`);
      await second.run(sql`INSERT INTO t VALUES (1)`);

      expect(await first.read(sql`SELECT a FROM t`)).toEqual([{ a: 1 }]);
      expect(warnings).toHaveLength(1);
      expect(warnings[0]).toMatch(/SQLite 3\.51\.2 .* can corrupt .*npm install better-sqlite3/);
    });

    test('is refused while another process or thread has it open', async () => {
      const { path, open, warnings } = await setup();
      const close = await openElsewhere(path);

      const refused = open();

      await expect(refused).rejects.toMatchObject({ code: 'AFFECTED_SQLITE' });
      await expect(refused).rejects.toThrow(
        /another one has .* open.*update.*npm install better-sqlite3.*allowAffectedSqlite/s,
      );
      expect(warnings).toEqual([]);
      await close();
      await open();
    });

    test('is read by a client beside another process, whose writes are refused', async () => {
      const { path, open } = await setup();
      const other = await SqliteDatabase.open({ path });
      onTestFinished(() => other.close());
      await migrate(other, { logger: silentLogger });
      await other.run(sql`CREATE TABLE t (a INTEGER)`);
      const close = await openElsewhere(path);

      const client = await open({ readsBesideOthers: true });
      await other.run(sql`INSERT INTO t VALUES (1)`);

      expect(await client.read(sql`SELECT a FROM t`)).toEqual([{ a: 1 }]);
      expect((await diagnose(operatorOn(client))).findings).toMatchObject([{ kind: 'notice', subject: 'server' }]);
      for (const write of [
        () => client.run(sql`INSERT INTO t VALUES (2)`),
        () => client.commit([sql`DELETE FROM t`], { relaxed: true }),
        () => client.transaction((tx) => tx.run(sql`DELETE FROM t`)),
      ]) {
        await expect(write()).rejects.toMatchObject({ code: 'AFFECTED_SQLITE' });
      }
      expect(await other.read(sql`SELECT a FROM t`)).toEqual([{ a: 1 }]);
      await close();
    });

    test('is free again when all in this thread have closed it', async () => {
      const { path, open } = await setup();
      const [first, second] = [await open(), await open()];
      const isFree = (): Promise<boolean> =>
        findSqliteLibrary().then((library) => {
          const other = library.open(`${path}-everstep`);
          try {
            other.exec('PRAGMA busy_timeout = 0');
            other.exec('BEGIN EXCLUSIVE');
            return true;
          } catch {
            return false;
          } finally {
            other.close();
          }
        });

      await first.close();
      const isFreeThen = await isFree();
      await second.close();

      expect([isFreeThen, await isFree()]).toEqual([false, true]);
    });

    test('is claimed by none that cannot open it', async () => {
      const { path } = await setup();
      const library = await libraryOf('3.51.2');
      const broken = { ...library, open: (opened: string) => library.open(opened === path ? '/nowhere/x' : opened) };

      const ifAffected = { readsBesideOthers: false };
      const failed = SqliteDatabase.open({ path, library: broken, ifAffected });

      await expect(failed).rejects.toThrow();
      await (await SqliteDatabase.open({ path, library, ifAffected })).close();
    });
  });

  test('with a fixed version a file is claimed by nobody', async () => {
    const { path, open, warnings } = await setup('3.51.3');
    const close = await openElsewhere(path);

    await open();

    expect(warnings).toEqual([]);
    await close();
  });

  test.each([
    ['a notice while one process uses the file', ['a'], 'notice'],
    ['a problem when several do', ['a', 'b'], 'problem'],
  ] as const)('in a diagnosis an affected version is %s', async (_, names, kind) => {
    const path = join(inject('folder'), `${newID()}.sqlite`);
    const database = await SqliteDatabase.open({ path, library: await libraryOf('3.50.4') });
    onTestFinished(() => database.close());
    await migrate(database, { logger: silentLogger });
    for (const [index, name] of names.entries()) {
      const fields = { applicationName: 'test', applicationVersion: '1', host: 'web-1', metadata: null };
      const incarnation = { incarnationID: name, executorID: name, pid: index, ...fields };
      await insertIncarnation(database, incarnation, { leaseMs: 60_000 });
    }

    const { findings } = await diagnose(operatorOn(database));

    expect(findings).toMatchObject([{ kind, subject: 'server' }]);
    expect(findings[0]?.message).toMatch(/SQLite 3\.50\.4/);
  });
});
