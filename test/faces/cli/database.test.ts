import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { sql } from '../../../src/kernel/sql/sql.js';
import { forEachDialect } from '../../rig/dialects.js';
import { createEngine } from '../../rig/engines.js';
import { call } from './terminals.js';

/** A folder with a dbos-config.yaml. */
function folderWith(config: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'everstep-cli-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, 'dbos-config.yaml'), config);
  return folder;
}

describe('the command line', () => {
  forEachDialect((dialect) => {
    test('migrates an empty database once', async () => {
      const url = await dialect.createURL({ isMigrated: false });

      const before = await call(['workflow', 'list', '-s', url]);
      const first = await call(['migrate', '-s', url, '--json']);
      const second = await call(['schema', url]);
      const after = await call(['workflow', 'list', '-s', url]);

      expect(before).toMatchObject({ exitCode: 1, out: '' });
      expect(before.err).toContain('everstep migrate');
      expect(first.json()).toMatchObject({ isMigrated: true, from: { shared: 0, everstep: 0 }, to: { shared: 123 } });
      expect(second.out).toContain('is at version 123; nothing to do.');
      expect(after).toMatchObject({ exitCode: 0, out: 'No workflows.\n', err: '' });
    });

    test('tells that a database has no tables', async () => {
      const url = await dialect.createURL();
      await call(['reset', '-s', url, '-y']);

      const { exitCode, json } = await call(['doctor', '-s', url, '--json']);

      expect(exitCode).toBe(1);
      expect(json()).toMatchObject({
        isReachable: true,
        versions: { shared: 0, everstep: 0 },
        findings: [{ subject: 'database', message: 'No system tables. Create them: everstep migrate' }],
      });
    });

    test('drops the system tables after a question, and leaves tables of the application', async () => {
      const url = await dialect.createURL();
      const database = await dialect.open(url);
      await database.run(sql`CREATE TABLE orders (id INTEGER)`);
      await database.run(sql`INSERT INTO orders (id) VALUES (1)`);

      const refused = await call(['reset', '-s', url], { input: ['no'] });
      const dropped = await call(['reset', '-s', url], { input: ['y'] });
      const again = await call(['reset', '-s', url]);
      const migrated = await call(['migrate', '-s', url]);

      expect(refused).toMatchObject({ exitCode: 1, out: '' });
      expect(dropped.exitCode).toBe(0);
      expect(again.out).toContain('nothing to do');
      expect(migrated.out).toContain('from version 0 to 123');
      expect(await database.read(sql`SELECT id FROM orders`)).toMatchObject([{ id: 1 }]);
    });

    test('does not drop tables that a process uses', async () => {
      const { DBOS, url } = await createEngine(dialect);
      await DBOS.launch();

      const { exitCode, err } = await call(['reset', '-s', url, '--yes']);

      expect(exitCode).toBe(1);
      expect(err).toMatch(/1 executor may still use the database: local \(process \d+ on .*--force/);
    });

    test('finds the database in dbos-config.yaml, after the environment and the option', async () => {
      const url = await dialect.createURL();
      const folder = folderWith('name: shop\nsystem_database_url: ${URL_OF_TEST}\n');

      const byFile = await call('workflow list', { folder, environment: { URL_OF_TEST: url } });
      const byVariable = await call('workflow list', { folder, environment: { DBOS_SYSTEM_DATABASE_URL: url } });
      const byOption = await call(['workflow', 'list', '-s', url], {
        folder,
        environment: { DBOS_SYSTEM_DATABASE_URL: 'sqlite:///not-this-one.sqlite' },
      });

      expect([byFile.exitCode, byVariable.exitCode, byOption.exitCode]).toEqual([0, 0, 0]);
    });
  });

  test('prints migrations and rights as SQL without a database', async () => {
    const all = await call('schema --print-migrations all --print-user-role -r shop -s flows');
    const some = await call('schema --print-migrations 120');
    const sqlite = await call('schema sqlite:///x.sqlite --print-migrations all');
    const rights = await call('schema --print-user-role --app-role shop');

    expect(all.out).toContain('CREATE SCHEMA IF NOT EXISTS "flows";');
    expect(all.out).toContain('GRANT USAGE ON SCHEMA "flows" TO "shop"');
    expect(some.out).toContain('-- Migration 120:');
    expect(some.out).not.toContain('-- Migration 119:');
    expect(sqlite.out).toContain('Everstep system database for sqlite');
    expect(rights.out).toMatch(/^GRANT USAGE ON SCHEMA "dbos" TO "shop";/);
  });

  test.each([
    [['schema', '--print-migrations', 'some'], 2, /must be "all" or the number/],
    [['schema', '--print-user-role'], 2, /needs --app-role/],
    [['schema', '--print-user-role', '-r', 'a"b'], 1, /contains a quote/],
    [['migrate', '-s', 'sqlite:///x.sqlite', '-r', 'shop'], 2, /SQLite has no roles/],
    [['workflow', 'list'], 2, /No system database\. Pass --sys-db-url/],
    [['workflow', 'list', '-s', 'sqlite:///no/such.sqlite'], 1, /Database file "no\/such\.sqlite"/],
    [['workflow', 'list', '-s', 'mysql://root:s3cret@host/db'], 1, /neither a Postgres nor a SQLite URL/],
    [['workflow', 'list', '-s', 'postgresql://me:s3cret@127.0.0.1:1/db'], 1, /Cannot reach Postgres/],
    [['migrate', '-s', 'postgresql://me:s3cret@127.0.0.1:1/db'], 1, /Cannot reach Postgres/],
    [['start'], 1, /nothing to start/],
  ])('%j ends with exit code %i', async (words, exitCode, message) => {
    const called = await call(words);

    expect(called.exitCode).toBe(exitCode);
    expect(called.err).toMatch(message);
    expect(called.out).toBe('');
    expect(called.err).not.toContain('s3cret');
  });

  test('examines a database that cannot be reached without its password', async () => {
    const { exitCode, out } = await call('doctor -s postgresql://me:s3cret@127.0.0.1:1/db');

    expect(exitCode).toBe(1);
    expect(out).toContain('127.0.0.1:1/db: not usable');
    expect(out).not.toContain('s3cret');
  });

  test('uses the file of the application where dbos-config.yaml has no URL', async () => {
    const { err } = await call('workflow list', { folder: folderWith('name: my/shop\n') });

    expect(err).toContain('Database file "my_shop.sqlite"');
  });
});
