// What a client says when it is made: of its options, of the database, and of the way there.
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { silentLogger } from '../../../src/kernel/base/log.js';
import { newID } from '../../../src/kernel/base/ids.js';
import { DBOSClient, type DBOSClientConfig } from '../../../src/faces/client/client.js';
import { sql, table } from '../../../src/kernel/sql/sql.js';
import { forEachDialect, onlyOn } from '../../rig/dialects.js';
import { connect, failureOf, setup } from './scene.js';

const POSTGRES = 'postgresql://user:s3cret@127.0.0.1:1/db';

function creating(config: object): Promise<DBOSClient> {
  return DBOSClient.create({ logger: silentLogger, ...config } as DBOSClientConfig);
}

describe('the options of a client', () => {
  test.each([
    ['no URL', {}, /needs a systemDatabaseUrl/],
    ['an empty URL', { systemDatabaseUrl: ' ' }, /systemDatabaseUrl must not be empty/],
    [
      'a URL of another kind',
      { systemDatabaseUrl: 'mysql://user:s3cret@host/db' },
      /neither a Postgres nor a SQLite URL/,
    ],
    ['a URL without a colon', { systemDatabaseUrl: 'postgresql//user:s3cret@host/db' }, /neither a Postgres nor/],
    ['a password with a space', { systemDatabaseUrl: 'postgresql://user:my s3cret@host:x/db' }, /cannot be parsed/],
    [
      'no database',
      { systemDatabaseUrl: 'postgresql://user:s3cret@host' },
      /missing required field\(s\): database name/,
    ],
    [
      'an empty pool',
      { systemDatabaseUrl: POSTGRES, systemDatabasePoolSize: 0 },
      /systemDatabasePoolSize must be a pos/,
    ],
    ['a long schema', { systemDatabaseUrl: POSTGRES, systemDatabaseSchemaName: 'x'.repeat(64) }, /Invalid schema name/],
    [
      'half a pool',
      { systemDatabaseUrl: POSTGRES, systemDatabasePool: {} },
      /systemDatabasePool must be an object with/,
    ],
    [
      'a pool for a file',
      { systemDatabaseUrl: 'sqlite:///x', systemDatabasePool: new pg.Pool() },
      /Postgres URL of its/,
    ],
    ['half a serializer', { systemDatabaseUrl: POSTGRES, serializer: { name: () => 'x' } }, /serializer must be/],
    ['half a logger', { systemDatabaseUrl: POSTGRES, logger: { info() {} } }, /logger must be an object with/],
    [
      'an application without a name',
      { systemDatabaseUrl: POSTGRES, applicationName: '' },
      /applicationName must not be empty/,
    ],
    ['a flag that is none', { systemDatabaseUrl: POSTGRES, useListenNotify: 'no' }, /useListenNotify/],
  ])('%s: refused at once, without the password', async (_, config, message) => {
    const error = await failureOf(creating(config));

    expect(error.message).toMatch(message);
    expect(`${error.message} ${String(error.cause)}`).not.toContain('s3cret');
  });

  test('a server that is not there is reported by its place, without the password', async () => {
    const error = await failureOf(creating({ systemDatabaseUrl: POSTGRES }));

    expect(error).toMatchObject({ code: 'DATABASE_UNAVAILABLE' });
    expect(error.message).toContain('127.0.0.1:1/db');
    expect(`${error.message} ${String((error.cause as Error).stack)}`).not.toContain('s3cret');
  });

  test('a SQLite file that is not there is reported, and not created', async () => {
    const path = join(inject('folder'), `${newID()}.sqlite`);

    const error = await failureOf(creating({ systemDatabaseUrl: `sqlite:///${path}` }));

    expect(error.message).toContain(`SQLite file "${path}" does not exist`);
    expect(existsSync(path)).toBe(false);
  });

  test('a database in memory is nobody else’s, so a client of it is refused', async () => {
    await expect(creating({ systemDatabaseUrl: 'sqlite::memory:' })).rejects.toThrow(/is at version 0/);
  });
});

describe('the database of a client', () => {
  forEachDialect((dialect) => {
    test('an empty one is refused, and nothing is migrated', async () => {
      const url = await dialect.createURL({ isMigrated: false });
      if (dialect.name === 'sqlite') writeFileSync(url.replace('sqlite:///', ''), '');

      const error = await failureOf(creating({ systemDatabaseUrl: url }));

      expect(error.message).toMatch(/is at version 0 .* needs \d+ .*npx everstep migrate.*launch the application/);
      const database = await dialect.open(url);
      const tables =
        dialect.name === 'sqlite'
          ? sql`SELECT name FROM sqlite_master`
          : sql`SELECT tablename FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')`;
      expect(await database.read(tables)).toEqual([]);
    });

    test('one that is behind is refused, and one that is ahead is used as it is', async () => {
      const url = await dialect.createURL();
      const database = await dialect.open(url);
      const [row] = await database.read(sql`SELECT version FROM ${table('dbos_migrations')}`);
      const setVersion = (version: number) =>
        database.run(sql`UPDATE ${table('dbos_migrations')} SET version = ${version}`);

      await setVersion(Number(row?.['version']) - 1);
      await expect(creating({ systemDatabaseUrl: url })).rejects.toThrow(/is at version/);
      await setVersion(Number(row?.['version']) + 1);
      const client = await connect(url);

      const handle = await client.enqueue({ queueName: 'q', workflowName: 'w' });
      expect((await handle.getStatus())?.status).toBe('ENQUEUED');
    });

    test('a client can be destroyed twice, and says so when it is used afterwards', async () => {
      const { client } = await setup(dialect);
      const handle = client.retrieveWorkflow('w');

      await Promise.all([client.destroy(), client.destroy()]);
      await client.destroy();

      await expect(client.enqueue({ queueName: 'q', workflowName: 'add' }, 1, 2)).rejects.toThrow(
        /closed|shutting down/,
      );
      await expect(handle.getResult()).rejects.toThrow('The client was destroyed.');
      await expect(client.getEvent('w', 'e', 0)).rejects.toMatchObject({ code: 'DATABASE_CLOSED' });
    });
  });

  onlyOn('postgres', (dialect) => {
    test('a pool of the caller is used, and is open after the client was destroyed', async () => {
      const { url } = await setup(dialect);
      const pool = new pg.Pool({ connectionString: url, max: 1 });
      onTestFinished(() => pool.end());
      const client = await connect(url, { systemDatabasePool: pool });

      const handle = await client.enqueue({ queueName: 'q', workflowName: 'add' }, 1, 2);
      expect(await handle.getResult()).toBe(3);
      await client.destroy();

      expect((await pool.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }]);
      expect(pool.totalCount).toBe(1);
    });

    test('the system tables may be in another schema', async () => {
      const url = await dialect.createURL();
      const database = await dialect.open(url);
      await database.exclusive((connection) => connection.script('ALTER SCHEMA dbos RENAME TO elsewhere'));

      const client = await connect(url, { systemDatabaseSchemaName: 'elsewhere', transactionPooler: true });
      const handle = await client.enqueue({ queueName: 'q', workflowName: 'w' });

      expect((await handle.getStatus())?.status).toBe('ENQUEUED');
      await expect(creating({ systemDatabaseUrl: url })).rejects.toThrow(/is at version 0/);
    });
  });
});
