// Who may migrate when several want to: the advisory lock, and what holds without it.
import { expect, it, vi } from 'vitest';
import { silentLogger } from '../../../src/kernel/base/log.js';
import { DatabaseStatementError } from '../../../src/kernel/errors/errors.js';
import { render, type Sql } from '../../../src/kernel/sql/sql.js';
import type { Connection, Database } from '../../../src/database/database.js';
import { migrate } from '../../../src/database/migrations/migrate.js';
import { forEachDialect, onlyOn, type TestDialect } from '../../rig/dialects.js';
import { readCatalog, readVersionRows } from './catalog.js';
import {
  buildAt,
  connect,
  EVERSTEP_LATEST,
  execute,
  expectedSchema,
  keepingLogger,
  LATEST,
  query,
  skippingClock,
  until,
  waiting,
} from './setup.js';

const logger = silentLogger;
const RUNNERS = 10;
const LOCK = 1234567890;

/** Ten databases, as ten processes would open them. */
async function openMany(dialect: TestDialect, url: string): Promise<Database[]> {
  return Promise.all(Array.from({ length: RUNNERS }, () => dialect.open(url, { poolSize: 2 })));
}

/** A server that knows no advisory locks. */
function refuseLocks(statement: string): void {
  // The body of a function is not looked at before it runs.
  if (statement.includes('advisory') && !statement.includes('CREATE OR REPLACE FUNCTION')) {
    throw new DatabaseStatementError('function does not exist', { sqlState: '42883' });
  }
}

type Before = (statement: string) => Promise<void> | void;

/** The database, with `before` called before each statement of a held connection; what it throws is the answer. */
function answering(database: Database, before: Before): Database {
  return {
    dialect: database.dialect,
    run: (statement) => database.run(statement),
    read: (statement) => database.read(statement),
    observe: (statement, options) => database.observe(statement, options),
    commit: (statements) => database.commit(statements),
    transaction: (body) => database.transaction(body),
    close: () => database.close(),
    exclusive: (body) => database.exclusive((connection) => body(answeringConnection(connection, before))),
  };
}

function answeringConnection(connection: Connection, before: Before): Connection {
  return {
    dialect: connection.dialect,
    script: async (text) => {
      await before(text);
      return connection.script(text);
    },
    transaction: async (body) => {
      await before('BEGIN');
      return connection.transaction((tx) => body(answeringConnection(tx, before)));
    },
    run: async (statement: Sql) => {
      await before(render(statement, connection.dialect).text);
      return connection.run(statement);
    },
  };
}

interface Overtaking {
  readonly when: 'before' | 'after';
  readonly statement: string;
}

/** A runner without locks that others overtake at a statement: right before it, or before whatever comes next. */
function overtaken(database: Database, at: Overtaking, overtake: () => Promise<unknown>): Database {
  let previous = '';
  let isOvertaken = false;
  return answering(database, async (statement) => {
    refuseLocks(statement);
    const isThere = (at.when === 'before' ? statement : previous).includes(at.statement);
    previous = statement;
    if (!isThere || isOvertaken) return;
    isOvertaken = true;
    await overtake();
  });
}

forEachDialect((dialect) => {
  it.each([0, 99])('ten runners at once on a database at %i give one result and no error', async (version) => {
    const url = await dialect.createURL({ isMigrated: false });
    const [database] = [await dialect.open(url)];
    if (version > 0) await buildAt(database, version);
    const runners = await openMany(dialect, url);

    const results = await Promise.all(runners.map((runner) => migrate(runner, { logger, lockPollMs: 20 })));

    expect(results.map((result) => result.to)).toEqual(Array.from({ length: RUNNERS }, () => LATEST));
    expect(await readVersionRows(database)).toEqual([[LATEST], [EVERSTEP_LATEST]]);
    expect(await readCatalog(database)).toEqual(expectedSchema(database));
  });
});

onlyOn('postgres', (dialect) => {
  it.each([0, 23])('ten runners that give up on the lock at %i give one result and no error', async (version) => {
    const url = await dialect.createURL({ isMigrated: false });
    const database = await dialect.open(url);
    const holder = await connect(url);
    await holder.query(`SELECT pg_advisory_lock(${LOCK})`);
    if (version > 0) await buildAt(database, version);
    const runners = await openMany(dialect, url);

    const results = await Promise.all(
      runners.map((runner) => migrate(runner, { logger, lockPollMs: 20, lockTimeoutMs: 500 })),
    );

    expect(results.map((result) => result.to)).toEqual(Array.from({ length: RUNNERS }, () => LATEST));
    expect(await readVersionRows(database)).toEqual([[LATEST], [EVERSTEP_LATEST]]);
    expect(await readCatalog(database)).toEqual(expectedSchema(database));
  });

  it('ten runners without any lock on an empty database give one result and no error', async () => {
    const url = await dialect.createURL({ isMigrated: false });
    const database = await dialect.open(url);
    const runners = (await openMany(dialect, url)).map((runner) => answering(runner, refuseLocks));

    const results = await Promise.all(runners.map((runner) => migrate(runner, { logger, lockPollMs: 20 })));

    expect(results.map((result) => result.to)).toEqual(Array.from({ length: RUNNERS }, () => LATEST));
    expect(await readVersionRows(database)).toEqual([[LATEST], [EVERSTEP_LATEST]]);
    expect(await readCatalog(database)).toEqual(expectedSchema(database));
  });

  it('two runners without any lock that build the same indexes both arrive', async () => {
    const url = await dialect.createURL({ isMigrated: false });
    const database = await dialect.open(url);
    await buildAt(database, 99);
    const fast = `${url}?options=-c%20deadlock_timeout%3D50ms`;
    const runners = await Promise.all([dialect.open(fast), dialect.open(fast)]);

    const results = await Promise.all(
      runners.map((runner) => migrate(answering(runner, refuseLocks), { logger, lockPollMs: 50 })),
    );

    expect(results.map((result) => result.to)).toEqual([LATEST, LATEST]);
    expect(await readVersionRows(database)).toEqual([[LATEST], [EVERSTEP_LATEST]]);
    expect(await readCatalog(database)).toEqual(expectedSchema(database));
  });

  it.each<Overtaking>([
    { when: 'before', statement: 'DROP INDEX CONCURRENTLY IF EXISTS "dbos".idx_workflow_status_forked_from' },
    { when: 'after', statement: 'DROP INDEX CONCURRENTLY IF EXISTS "dbos".idx_workflow_status_forked_from' },
    { when: 'before', statement: 'IF NOT EXISTS idx_workflow_status_in_flight\n' },
    { when: 'after', statement: 'CREATE TABLE IF NOT EXISTS "dbos".queues' },
    { when: 'after', statement: 'DROP INDEX CONCURRENTLY IF EXISTS "dbos".idx_workflow_status_partition_dequeue' },
    { when: 'after', statement: 'DROP FUNCTION IF EXISTS "dbos".enqueue_workflow' },
  ])('a runner that is overtaken in the shared base leaves the same schema (case %#)', async (at) => {
    const url = await dialect.createURL({ isMigrated: false });
    const database = await dialect.open(url);
    await buildAt(database, 23);
    const fast = answering(await dialect.open(url), refuseLocks);
    const overtake = vi.fn(() => migrate(fast, { logger, lockPollMs: 20 }));
    const slow = overtaken(await dialect.open(url), at, overtake);

    const result = await migrate(slow, { logger, lockPollMs: 20 });

    expect(overtake).toHaveBeenCalledOnce();
    expect(result.to).toBe(LATEST);
    expect(await readVersionRows(database)).toEqual([[LATEST], [EVERSTEP_LATEST]]);
    expect(await readCatalog(database)).toEqual(expectedSchema(database));
  });

  it('nobody moves the version while a runner replaces a function in an online migration', async () => {
    const url = await dialect.createURL({ isMigrated: false });
    const database = await dialect.open(url);
    const observer = await connect(url);
    await buildAt(database, 23);
    const fast = answering(await dialect.open(url), refuseLocks);
    let overtaking: Promise<unknown> | undefined;
    const slow = answering(await dialect.open(url), async (statement) => {
      refuseLocks(statement);
      // A later migration replaces the function once more.
      if (overtaking || !statement.includes('DROP FUNCTION IF EXISTS "dbos".enqueue_workflow')) return;
      overtaking = migrate(fast, { logger, lockPollMs: 20 });
      await until(observer, waiting('dbos_migrations'));
    });

    await migrate(slow, { logger, lockPollMs: 20 });
    expect(overtaking).toBeDefined();
    await overtaking;

    expect(await readVersionRows(database)).toEqual([[LATEST], [EVERSTEP_LATEST]]);
    expect(await readCatalog(database)).toEqual(expectedSchema(database));
  });

  it('a runner that fails to build an index and is overtaken meanwhile builds it in the end', async () => {
    const url = await dialect.createURL({ isMigrated: false });
    const database = await dialect.open(url);
    const blocker = await connect(url);
    await buildAt(database, 114);
    await blocker.query(`BEGIN; INSERT INTO dbos.workflow_status (workflow_uuid) VALUES ('w')`);
    const warnings = keepingLogger();
    const slow = overtaken(
      await dialect.open(`${url}?options=-c%20lock_timeout%3D100ms`),
      { when: 'after', statement: 'IF NOT EXISTS idx_workflow_status_in_flight_v2' },
      () => blocker.query('COMMIT; UPDATE dbos.dbos_migrations SET version = 115'),
    );

    const result = await migrate(slow, { logger: warnings, lockPollMs: 20 });

    expect(warnings.warnings).toContainEqual(expect.stringMatching(/Retrying migration 115: .*lock timeout/));
    expect(result.to).toBe(LATEST);
    expect(await readCatalog(database)).toEqual(expectedSchema(database));
  });

  it('a runner that cannot set an index right names it, with the statement to run', async () => {
    const url = await dialect.createURL({ isMigrated: false });
    const database = await dialect.open(url);
    await buildAt(database, 121);
    await execute(database, 'CREATE TABLE dbos.idx_workflow_status_deadline (in_the_way TEXT)');

    const migration = migrate(database, { logger, lockPollMs: 1 });

    await expect(migration).rejects.toMatchObject({
      code: 'MIGRATION_FAILED',
      message: expect.stringMatching(
        /^The migrations are done, but .*CREATE INDEX CONCURRENTLY IF NOT EXISTS idx_workflow_status_deadline/s,
      ),
    });
  });

  it('a runner waits on for a holder that gets on', async () => {
    const url = await dialect.createURL({ isMigrated: false });
    const database = await dialect.open(url);
    const holder = await connect(url);
    await buildAt(database, 122);
    await holder.query(`SELECT pg_advisory_lock(${LOCK}); UPDATE dbos.dbos_migrations SET version = 24`);
    const clock = skippingClock();
    const warnings = keepingLogger();
    const getOn = async (): Promise<void> => {
      // Each look finds a new version, forty times: more than the thirty seconds that a standstill is allowed.
      if (clock.waits.length < 40) await holder.query('UPDATE dbos.dbos_migrations SET version = version + 1');
      else await holder.query(`UPDATE dbos.dbos_migrations SET version = 122; SELECT pg_advisory_unlock(${LOCK})`);
    };

    const watched = answering(database, (statement) => (statement.includes('pg_try') ? getOn() : undefined));
    const result = await migrate(watched, { logger: warnings, clock });

    expect(result).toEqual({ from: 24, to: LATEST });
    expect(clock.waits).toHaveLength(40);
    expect(warnings.warnings).toEqual([]);
  });

  it('a runner asks for a taken lock once a second for thirty seconds, then warns and goes on', async () => {
    const url = await dialect.createURL({ isMigrated: false });
    const database = await dialect.open(url);
    const holder = await connect(url);
    await holder.query(`SELECT pg_advisory_lock(${LOCK})`);
    const clock = skippingClock();
    const warnings = keepingLogger();

    const result = await migrate(database, { logger: warnings, clock });

    expect(result).toEqual({ from: 0, to: LATEST });
    expect(clock.waits).toEqual(Array.from({ length: 30 }, () => 1000));
    expect(warnings.warnings).toEqual([
      expect.stringMatching(/lock 1234567890 and has made no progress for 30000 ms; migrating without/),
    ]);
  });

  it('a runner that waits for the lock leaves when another one has done the work', async () => {
    const url = await dialect.createURL({ isMigrated: false });
    const database = await dialect.open(url);
    const other = await dialect.open(url);
    const holder = await connect(url);
    await holder.query(`SELECT pg_advisory_lock(${LOCK})`);
    const warnings = keepingLogger();

    const waiting = migrate(database, { logger: warnings, lockPollMs: 5, lockTimeoutMs: 20_000 });
    await migrate(other, { logger, lockTimeoutMs: 0 });

    expect(await waiting).toEqual({ from: 0, to: LATEST });
    expect(warnings.warnings).toEqual([]);
  });

  it('the lock is free after a run and after a failed run', async () => {
    const url = await dialect.createURL({ isMigrated: false });
    const database = await dialect.open(url, { poolSize: 1 });
    const locks = (): Promise<unknown[]> =>
      query(
        database,
        `SELECT 1 AS one FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
      );
    await buildAt(database, 108);
    await database.exclusive((connection) => connection.script('CREATE TABLE dbos.workflow_input (x TEXT)'));

    await expect(migrate(database, { logger, lockPollMs: 1 })).rejects.toThrow(/Migration 109/);
    expect(await locks()).toEqual([]);

    await database.exclusive((connection) => connection.script('DROP TABLE dbos.workflow_input'));
    await migrate(database, { logger });
    expect(await locks()).toEqual([]);
  });

  it('a server without advisory locks is migrated without one', async () => {
    const database = await dialect.open(await dialect.createURL({ isMigrated: false }));
    const warnings = keepingLogger();

    const result = await migrate(answering(database, refuseLocks), { logger: warnings });

    expect(result).toEqual({ from: 0, to: LATEST });
    expect(warnings.warnings).toEqual([expect.stringMatching(/no migration lock.*function does not exist/)]);
  });

  it('a current database is neither locked nor held', async () => {
    const url = await dialect.createURL();
    const database = await dialect.open(url);
    const holder = await connect(url);
    await holder.query(`SELECT pg_advisory_lock(${LOCK})`);
    const untouched: Database = {
      ...answering(database, () => {}),
      exclusive: () => Promise.reject(new Error('nothing to do here')),
    };

    expect(await migrate(untouched, { logger })).toEqual({ from: LATEST, to: LATEST });
  });
});
