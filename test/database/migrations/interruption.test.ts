// Runs that end in the middle, and the next run that goes on.
import { expect, it, vi } from 'vitest';
import { silentLogger } from '../../../src/kernel/base/log.js';
import { migrate } from '../../../src/database/migrations/migrate.js';
import { forEachDialect, onlyOn } from '../../rig/dialects.js';
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
  until,
  waiting,
} from './setup.js';

const logger = silentLogger;

forEachDialect((dialect) => {
  it('a failing migration is undone as a whole, is named, and runs when the obstacle is gone', async () => {
    const database = await dialect.open(await dialect.createURL({ isMigrated: false }));
    const prefix = dialect.name === 'postgres' ? 'dbos.' : '';
    await buildAt(database, 108);
    await execute(database, `CREATE VIEW ${prefix}workflow_output AS SELECT 1 AS in_the_way`);

    const migration = migrate(database, { logger, lockPollMs: 1 });

    await expect(migration).rejects.toMatchObject({
      code: 'MIGRATION_FAILED',
      message: expect.stringMatching(
        /^Migration 109 \(workflow_input_and_output\) failed: .*workflow_output.*run the migrations again/s,
      ),
      cause: expect.any(Error),
    });
    expect(
      (await query(database, `SELECT version FROM ${prefix}dbos_migrations`)).map((row) => Number(row['version'])),
    ).toEqual([108]);
    expect((await readCatalog(database)).columns.filter((line) => line.startsWith('workflow_input.'))).toEqual([]);

    await execute(database, `DROP VIEW ${prefix}workflow_output`);
    expect(await migrate(database, { logger })).toEqual({ from: 108, to: LATEST });
    expect(await readCatalog(database)).toEqual(expectedSchema(database));
  });
});

onlyOn('postgres', (dialect) => {
  it('a connection that is killed in the middle of a migration leaves the version where it was', async () => {
    const url = await dialect.createURL({ isMigrated: false });
    const database = await dialect.open(url);
    const observer = await connect(url);
    const blocker = await connect(url);
    await buildAt(database, 17);
    await blocker.query('BEGIN; LOCK TABLE dbos.workflow_status');

    const migration = migrate(database, { logger });
    const refusal = expect(migration).rejects.toMatchObject({
      code: 'MIGRATION_FAILED',
      message: expect.stringMatching(/^Migration 18 \(was_forked_from\) failed: .*run the migrations again/s),
    });
    const { pid } = await until(observer, waiting('was_forked_from'));
    await observer.query(`SELECT pg_terminate_backend(${Number(pid)})`);
    await refusal;
    await blocker.query('ROLLBACK');

    expect((await observer.query('SELECT version FROM dbos.dbos_migrations')).rows).toEqual([{ version: '17' }]);
    expect(await migrate(database, { logger })).toEqual({ from: 17, to: LATEST });
    expect(await readCatalog(database)).toEqual(expectedSchema(database));
  });

  it('an index that a killed run has left INVALID is built anew', async () => {
    const url = await dialect.createURL({ isMigrated: false });
    const database = await dialect.open(url);
    const observer = await connect(url);
    const blocker = await connect(url);
    await buildAt(database, 114);
    await blocker.query(`BEGIN; INSERT INTO dbos.workflow_status (workflow_uuid) VALUES ('w')`);

    const migration = migrate(database, { logger });
    const refusal = expect(migration).rejects.toMatchObject({
      code: 'MIGRATION_FAILED',
      message: expect.stringMatching(/^Migration 115 \(in_flight_index_v2\) failed: .*run the migrations again/s),
    });
    const { pid } = await until(observer, waiting('CREATE INDEX CONCURRENTLY'));
    await observer.query(`SELECT pg_terminate_backend(${Number(pid)})`);
    await refusal;
    await blocker.query('COMMIT');

    expect((await readCatalog(database)).indexes.filter((line) => line.startsWith('INVALID'))).toHaveLength(1);
    expect(await migrate(database, { logger })).toEqual({ from: 114, to: LATEST });
    expect(await readCatalog(database)).toEqual(expectedSchema(database));
  });

  it('an index that another session is building is waited for, not dropped', async () => {
    const url = await dialect.createURL({ isMigrated: false });
    const database = await dialect.open(url);
    const observer = await connect(url);
    const blocker = await connect(url);
    const builder = await connect(url);
    await buildAt(database, 114);
    await blocker.query(`BEGIN; INSERT INTO dbos.workflow_status (workflow_uuid) VALUES ('w')`);
    const building = builder.query(
      `CREATE INDEX CONCURRENTLY idx_workflow_status_in_flight_v2
         ON dbos.workflow_status (queue_name, status, priority, created_at) INCLUDE (application_name)
         WHERE status IN ('ENQUEUED', 'PENDING')`,
    );
    await until(observer, waiting('CREATE INDEX CONCURRENTLY'));
    const [{ oid } = { oid: 0 }] = (
      await observer.query<{ oid: number }>(`SELECT 'dbos.idx_workflow_status_in_flight_v2'::regclass::oid AS oid`)
    ).rows;

    const migration = migrate(database, { logger, lockPollMs: 5 });
    await until(
      observer,
      `SELECT 1 FROM pg_stat_activity WHERE query LIKE '%is_being_built%' AND pid <> pg_backend_pid()`,
    );
    await blocker.query('COMMIT');
    await building;

    expect(await migration).toEqual({ from: 114, to: LATEST });
    expect(await readCatalog(database)).toEqual(expectedSchema(database));
    expect(
      (await observer.query(`SELECT 'dbos.idx_workflow_status_in_flight_v2'::regclass::oid AS oid`)).rows,
      'the index is the one that the other session has built',
    ).toEqual([{ oid }]);
  });

  it('a migration that another session gets in the way of is tried again', async () => {
    const url = await dialect.createURL({ isMigrated: false });
    const database = await dialect.open(`${url}?options=-c%20lock_timeout%3D200ms`);
    const blocker = await connect(url);
    const log = keepingLogger();
    await buildAt(database, 17);
    await blocker.query('BEGIN; LOCK TABLE dbos.workflow_status');

    const migration = migrate(database, { logger: log, lockPollMs: 1 });
    await vi.waitUntil(() => log.warnings.length > 0, { timeout: 100_000 });
    await blocker.query('COMMIT');

    expect(await migration).toEqual({ from: 17, to: LATEST });
    expect(await readVersionRows(database)).toEqual([[LATEST], [EVERSTEP_LATEST]]);
    expect(log.warnings[0]).toMatch(/Retrying migration 18: .*lock timeout/);
  });

  it('a migration that is always in the way of somebody fails in the end', async () => {
    const url = await dialect.createURL({ isMigrated: false });
    const database = await dialect.open(`${url}?options=-c%20lock_timeout%3D5ms`);
    const blocker = await connect(url);
    await buildAt(database, 17);
    await blocker.query('BEGIN; LOCK TABLE dbos.workflow_status');

    const migration = migrate(database, { logger, lockPollMs: 1 });

    await expect(migration).rejects.toThrow(/^Migration 18 \(was_forked_from\) failed: .*lock timeout/);
  });
});
