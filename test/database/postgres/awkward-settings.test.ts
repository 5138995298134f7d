// Roles, databases and pools with settings under which our statements would do something else.
import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { internals } from '../../../src/kernel/base/internals.js';
import { createDBOS } from '../../../src/faces/library/dbos.js';
import { NodePostgresDataSource } from '../../../src/plugins/transaction/adapters/node-postgres.js';
import { DatabaseAccessError } from '../../../src/kernel/errors/database-errors.js';
import { OutboxDatabase } from '../../../src/plugins/outbox/database.js';
import { sql } from '../../../src/kernel/sql/sql.js';
import type { Database } from '../../../src/database/database.js';
import { PostgresDatabase } from '../../../src/database/postgres/postgres-database.js';
import { until } from '../../crash/processes.js';
import { playScenario } from '../../plans/scenario.js';
import { onlyOn, postgres } from '../../rig/dialects.js';
import { createEngine } from '../../rig/engines.js';
import { raw } from '../migrations/catalog.js';

const AWKWARD = {
  default_transaction_isolation: 'repeatable read',
  statement_timeout: '2s',
  lock_timeout: '20ms',
  synchronous_commit: 'off',
  standard_conforming_strings: 'off',
  search_path: '',
  DateStyle: 'German, DMY',
  TimeZone: 'Asia/Kathmandu',
  IntervalStyle: 'sql_standard',
  bytea_output: 'escape',
  extra_float_digits: '-15',
  array_nulls: 'off',
  quote_all_identifiers: 'on',
} as const;

/** The URL of a database whose sessions have these settings from the beginning. */
async function createAwkward(settings: Readonly<Record<string, string>>): Promise<string> {
  const url = await postgres.createURL();
  const client = new pg.Client(url);
  await client.connect();
  const name = new URL(url).pathname.slice(1);
  for (const [setting, value] of Object.entries(settings)) {
    await client.query(`ALTER DATABASE "${name}" SET ${setting} = '${value}'`);
  }
  await client.end();
  return url;
}

function poolOf(url: string): pg.Pool {
  const pool = new pg.Pool({ connectionString: url });
  onTestFinished(() => pool.end());
  return pool;
}

/** The ways in which we get at sessions. */
const WAYS: Record<string, (url: string) => Promise<Database>> = {
  'our pool': (url) => postgres.open(url),
  'a connection per operation': (url) => postgres.open(url, { pool: 'none' }),
  'a pool of the caller': (url) => postgres.open(url, { pool: poolOf(url) }),
  'a pooler in transaction mode': (url) => postgres.open(url, { isTransactionPooler: true }),
};

onlyOn('postgres', (dialect) => {
  describe.each(Object.keys(WAYS))('with %s', (way) => {
    const open = async (settings: Readonly<Record<string, string>>): Promise<{ url: string; database: Database }> => {
      const url = await createAwkward(settings);
      return { url, database: (await WAYS[way]?.(url)) as Database };
    };

    test.each(['repeatable read', 'serializable'])(
      'a statement sees what was committed while it waited for a lock, though the default is %s',
      async (level) => {
        const { url, database } = await open({ default_transaction_isolation: level });
        const holder = new pg.Client(url);
        await holder.connect();
        onTestFinished(() => holder.end());
        const lock = sql`SELECT pg_advisory_xact_lock(1234)`;
        const count = sql`SELECT count(*) AS number FROM dbos.queues`;
        const waits = [
          () => database.commit([lock, count]).then((results) => results[1]),
          () =>
            database.transaction(async (tx) => {
              await tx.run(lock);
              return tx.run(count);
            }),
        ];
        for (const [before, wait] of waits.entries()) {
          await holder.query('BEGIN; SELECT pg_advisory_xact_lock(1234)');

          const waited = wait();
          await until('it waits', async () => {
            const look = `SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = 1234 AND NOT granted
              AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;
            return (await holder.query(look)).rows.length > 0;
          });
          await holder.query(`INSERT INTO dbos.queues (name) VALUES ('q${before}')`);
          await holder.query('COMMIT');

          expect(await waited).toEqual([{ number: before + 1 }]);
        }
      },
    );

    test('a snapshot is one all the same, and other limits and settings do not apply', async () => {
      const { database } = await open({ ...AWKWARD, statement_timeout: '200ms' });
      const settings = sql`
        SELECT current_setting('lock_timeout') AS lock_timeout, current_setting('synchronous_commit') AS flush,
          current_setting('standard_conforming_strings') AS strings, current_setting('transaction_isolation') AS level
        FROM pg_sleep(0.4)`;
      const ours = { lock_timeout: '0', flush: 'on', strings: 'on' };

      expect(await database.run(settings)).toEqual([{ ...ours, level: 'read committed' }]);
      expect(await database.read(settings)).toEqual([{ ...ours, level: 'read committed' }]);
      expect(await database.transaction((tx) => tx.run(settings))).toEqual([{ ...ours, level: 'read committed' }]);
      expect(await database.transaction((tx) => tx.run(settings), { isSnapshot: true })).toEqual([
        { ...ours, level: 'repeatable read' },
      ]);
      const relaxed = await database.commit([settings], { relaxed: true });
      expect(relaxed[0]?.[0]).toMatchObject({ flush: 'off' });
    });
  });

  test('a setting in the URL wins', async () => {
    const url = new URL(await dialect.createURL());
    url.searchParams.set('options', '-c synchronous_commit=off');

    const database = await dialect.open(url.href);

    expect(await database.read(sql`SELECT current_setting('synchronous_commit') AS flush`)).toEqual([{ flush: 'off' }]);
  });

  test.each(['our pool', 'a connection per operation', 'a pool of the caller'])(
    'sessions that call no triggers are refused: %s',
    async (way) => {
      const database = await WAYS[way]?.(await createAwkward({ session_replication_role: 'replica' }));

      await expect(database?.read(sql`SELECT 1`)).rejects.toThrow(DatabaseAccessError);
      await expect(database?.read(sql`SELECT 1`)).rejects.toThrow('session_replication_role = replica');
    },
  );

  test('a connection that listens stays, however short the limit for idle ones is', async () => {
    const url = await createAwkward({ idle_session_timeout: '500ms' });
    const { DBOS } = await createEngine(dialect, { systemDatabaseUrl: url });
    await DBOS.launch();
    const watcher = await dialect.open(await dialect.createURL());
    const sessions = (condition: string): Promise<unknown[]> =>
      watcher.read(
        raw(`SELECT pid FROM pg_stat_activity WHERE datname = '${new URL(url).pathname.slice(1)}' ${condition}`),
      );
    const before = await sessions('');

    await until('one has been idle for longer', async () => {
      const left = await sessions('');
      expect(left).toEqual(expect.arrayContaining(before));
      return (await sessions(`AND state_change < clock_timestamp() - INTERVAL '1 second'`)).length > 0;
    });
  });

  test('transactions of an outbox are read committed', async () => {
    const url = await createAwkward(AWKWARD);
    const source = new NodePostgresDataSource('app', { connectionString: url }, { owner: createDBOS() });
    const { driver } = source[internals];
    await driver.open();
    onTestFinished(() => driver.close());

    const level = await new OutboxDatabase(source).transact((tx) => tx.query('SHOW transaction_isolation', []));

    expect(level).toEqual([{ transaction_isolation: 'read committed' }]);
  });

  test('everything works under all of them', { timeout: 120_000 }, async () => {
    const url = await createAwkward(AWKWARD);

    await playScenario(url, 'fresh');

    const database = new PostgresDatabase({ url });
    onTestFinished(() => database.close());
    const failed = await database.read(raw(`SELECT name FROM dbos.workflow_status WHERE status = 'ERROR'`));
    expect(new Set(failed.map(({ name }) => name))).toEqual(new Set(['failing']));
  });
});
