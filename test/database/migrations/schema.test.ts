// What a migrated database looks like, and that every earlier version arrives there.
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { type Clock, systemClock } from '../../../src/kernel/base/clock.js';
import { silentLogger } from '../../../src/kernel/base/log.js';
import { sql, table } from '../../../src/kernel/sql/sql.js';
import type { Database } from '../../../src/database/database.js';
import { migrate } from '../../../src/database/migrations/migrate.js';
import { forEachDialect, onlyOn, type TestDialect } from '../../rig/dialects.js';
import { readCatalog, readVersionRows } from './catalog.js';
import {
  buildAt,
  EVERSTEP_LATEST,
  execute,
  expectedSchema,
  interruptedVersions,
  LATEST,
  ownMigrations,
  query,
} from './setup.js';

const logger = silentLogger;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

async function setup(dialect: TestDialect): Promise<Database> {
  return dialect.open(await dialect.createURL({ isMigrated: false }));
}

const schemaPrefix = (database: Database): string => (database.dialect.name === 'postgres' ? 'dbos.' : '');

/** Twenty times as fast: migrations of shared tables wait until no other library migrates them. */
const fastClock: Clock = {
  now: () => systemClock.now() * 20,
  monotonic: () => systemClock.monotonic() * 20,
  after: (delayMs, run) => systemClock.after(delayMs / 20, run),
};

function inParts(all: readonly number[], size: number): { readonly versions: readonly number[] }[] {
  const count = Math.ceil(all.length / size);
  return Array.from({ length: count }, (_, index) => ({ versions: all.slice(index * size, (index + 1) * size) }));
}

forEachDialect((dialect) => {
  it('an empty database gets exactly the expected tables, keys and indexes', async () => {
    const database = await setup(dialect);

    const result = await migrate(database, { logger });

    expect(result).toEqual({ from: 0, to: LATEST });
    expect(await readVersionRows(database)).toEqual([[LATEST], [EVERSTEP_LATEST]]);
    expect(await readCatalog(database)).toEqual(expectedSchema(database));
  });

  it('a second run changes nothing', async () => {
    const database = await setup(dialect);
    await migrate(database, { logger });

    const result = await migrate(database, { logger });

    expect(result).toEqual({ from: LATEST, to: LATEST });
    expect(await readVersionRows(database)).toEqual([[LATEST], [EVERSTEP_LATEST]]);
  });

  it('a database that was made before the first release is refused', async () => {
    const database = await dialect.create();
    await database.run(sql`UPDATE ${table('everstep_migrations')} SET version = 47`);

    await expect(migrate(database, { logger })).rejects.toMatchObject({
      code: 'MIGRATION_FAILED',
      message: expect.stringMatching(/made before the first release of Everstep .*version 47/),
    });
  });

  const earlier = inParts(interruptedVersions(dialect.name), 4);
  it.each(earlier)(
    'a database at an earlier version reaches the latest and keeps its rows: $versions',
    async ({ versions }) => {
      const url = dialect.name === 'postgres' ? await dialect.createURL({ isMigrated: false }) : 'sqlite:///:memory:';

      for (const version of versions) {
        const schema = dialect.name === 'postgres' ? `from_${version}` : 'dbos';
        const database = await dialect.open(url, { schema, poolSize: 1 });
        const prefix = dialect.name === 'postgres' ? `${schema}.` : '';
        await buildAt(database, version, schema);
        await execute(
          database,
          `INSERT INTO ${prefix}workflow_status (workflow_uuid, status, name, queue_name, deduplication_id)
           VALUES ('w', 'ENQUEUED', 'hello', 'q', 'd');
         INSERT INTO ${prefix}operation_outputs (workflow_uuid, function_id, function_name, output)
           VALUES ('w', 0, 'step', '1');
         INSERT INTO ${prefix}notifications (destination_uuid, topic, message) VALUES ('w', 't', 'm')`,
        );

        const first = await migrate(database, { schema, logger, clock: fastClock });
        const second = await migrate(database, { schema, logger });

        expect(first).toEqual({ from: version, to: LATEST });
        expect(second).toEqual({ from: LATEST, to: LATEST });
        expect(await readVersionRows(database, schema)).toEqual([[LATEST], [EVERSTEP_LATEST]]);
        expect(await readCatalog(database, schema), `from ${version}`).toEqual(expectedSchema(database));
        const [row] = await query(
          database,
          `SELECT s.output, s.retention_timestamp, n.message, n.message_uuid
         FROM ${prefix}workflow_status w
         JOIN ${prefix}operation_outputs s ON s.workflow_uuid = w.workflow_uuid
         JOIN ${prefix}notifications n ON n.destination_uuid = w.workflow_uuid
         WHERE w.name = 'hello'`,
        );
        expect(row).toMatchObject({ output: '1', message: 'm', message_uuid: expect.stringMatching(UUID) });
        expect(Number(row?.['retention_timestamp'])).toBeGreaterThan(1_700_000_000_000);
        await database.close();
      }
    },
  );

  it.each([24, 47, 70, 98])('a database that another library has left at %i gets the shared base', async (version) => {
    const database = await setup(dialect);
    await buildAt(database, 99);
    const table = `${schemaPrefix(database)}dbos_migrations`;
    await execute(
      database,
      `DROP INDEX ${schemaPrefix(database)}idx_workflow_status_failed; UPDATE ${table} SET version = ${version}`,
    );

    const result = await migrate(database, { logger });

    expect(result).toEqual({ from: version, to: LATEST });
    expect(await readCatalog(database)).toEqual(expectedSchema(database));
  });

  it('a database ahead of this build is accepted unchanged', async () => {
    const database = await dialect.create();
    await execute(database, `UPDATE ${schemaPrefix(database)}dbos_migrations SET version = 999`);

    const result = await migrate(database, { logger });

    expect(result).toEqual({ from: 999, to: 999 });
    expect(await readVersionRows(database)).toEqual([[999], [EVERSTEP_LATEST]]);
  });

  it('a database of another library gets the tables that only Everstep has', async () => {
    const database = await setup(dialect);
    await buildAt(database, LATEST);
    await execute(database, `DROP TABLE ${schemaPrefix(database)}event_dispatch_kv`);
    if (dialect.name === 'postgres') {
      // On Postgres every library creates it.
      await execute(database, 'CREATE TABLE dbos.event_dispatch_kv (key TEXT)');
    }

    const result = await migrate(database, { logger });

    expect(result).toEqual({ from: LATEST, to: LATEST });
    expect(await readVersionRows(database)).toEqual([[LATEST], [EVERSTEP_LATEST]]);
    const columns = (await readCatalog(database)).columns.join('\n');
    expect(columns).toContain('executors.incarnation_id');
    expect(columns).toContain('event_dispatch_kv.key');
  });

  it('checkpoints, messages, events and stream values are deleted with their workflow', async () => {
    const database = await dialect.create();
    const prefix = schemaPrefix(database);
    await execute(
      database,
      `INSERT INTO ${prefix}workflow_status (workflow_uuid) VALUES ('w');
       INSERT INTO ${prefix}operation_outputs (workflow_uuid, function_id) VALUES ('w', 0);
       INSERT INTO ${prefix}notifications (destination_uuid, message) VALUES ('w', 'm');
       INSERT INTO ${prefix}workflow_events (workflow_uuid, key, value) VALUES ('w', 'k', 'v');
       INSERT INTO ${prefix}workflow_events_history (workflow_uuid, function_id, key, value) VALUES ('w', 0, 'k', 'v');
       INSERT INTO ${prefix}streams (workflow_uuid, key, value, "offset") VALUES ('w', 'k', 'v', 0)`,
    );

    await execute(database, `DELETE FROM ${prefix}workflow_status`);

    for (const table of [
      'operation_outputs',
      'notifications',
      'workflow_events',
      'workflow_events_history',
      'streams',
    ]) {
      expect(await query(database, `SELECT 1 AS one FROM ${prefix}${table}`)).toEqual([]);
    }
  });
});

onlyOn('postgres', (dialect) => {
  it('tables whose rows are updated have room for it in their pages', async () => {
    const database = await setup(dialect);
    await migrate(database, { logger });

    const options = await query(
      database,
      `SELECT relname, array_to_string(reloptions, ', ') AS options
       FROM pg_class
       WHERE relnamespace = 'dbos'::regnamespace AND relkind = 'r' AND reloptions IS NOT NULL
       ORDER BY relname`,
    );

    expect(options).toEqual([
      { relname: 'executors', options: 'fillfactor=50' },
      { relname: 'workflow_status', options: 'fillfactor=50, autovacuum_vacuum_scale_factor=0.05' },
    ]);
  });
});

onlyOn('postgres', (dialect) => {
  it('only triggers that wake parked workflows are left where NOTIFY is not wanted', async () => {
    const database = await setup(dialect);

    await migrate(database, { logger, useListenNotify: false });

    const expected = expectedSchema(database);
    expect(await readCatalog(database)).toEqual({
      ...expected,
      triggers: expected.triggers.filter((line) =>
        /journal|everstep_wake_|everstep_end_waits|everstep_step_checked|everstep_claim_checked|everstep_other_/.test(
          line,
        ),
      ),
      functions: expected.functions.filter((line) => !/^(notifications_function|everstep_notify_of_)/.test(line)),
    });
  });

  it('a database first migrated without NOTIFY gets the triggers once they are wanted', async () => {
    const database = await setup(dialect);
    await migrate(database, { logger, useListenNotify: false });

    await Promise.all([1, 2, 3].map(() => migrate(database, { logger })));

    expect(await readCatalog(database)).toEqual(expectedSchema(database));
  });

  it('a run that wants NOTIFY goes on where one that did not was interrupted', async () => {
    const database = await setup(dialect);
    await buildAt(database, 19);
    await execute(
      database,
      `DROP FUNCTION dbos.notifications_function() CASCADE; DROP FUNCTION dbos.workflow_events_function() CASCADE`,
    );

    await migrate(database, { logger });

    const expected = expectedSchema(database);
    expect(await readCatalog(database)).toEqual(expected);
  });

  it('notifications that have a primary key already do not get another one', async () => {
    const database = await setup(dialect);
    await buildAt(database, 9);
    await execute(database, 'ALTER TABLE dbos.notifications ADD PRIMARY KEY (message_uuid)');

    await migrate(database, { logger });

    expect(await readCatalog(database)).toEqual(expectedSchema(database));
  });

  it('the foreign key of checkpoints is dropped under the name that DBOS gave it, and what it did not keep out is deleted', async () => {
    const database = await setup(dialect);
    await buildAt(database, LATEST);
    await execute(
      database,
      `ALTER TABLE dbos.operation_outputs DROP CONSTRAINT operation_outputs_workflow_uuid_fkey;
       INSERT INTO dbos.workflow_status (workflow_uuid) VALUES ('kept');
       INSERT INTO dbos.operation_outputs (workflow_uuid, function_id) VALUES ('kept', 0), ('gone', 0), ('gone', 1);
       ALTER TABLE dbos.operation_outputs ADD CONSTRAINT operation_outputs_workflow_uuid_foreign
       FOREIGN KEY (workflow_uuid) REFERENCES dbos.workflow_status (workflow_uuid) NOT VALID`,
    );

    await migrate(database, { logger });

    expect(await readCatalog(database)).toEqual(expectedSchema(database));
    expect(await query(database, 'SELECT workflow_uuid AS id FROM dbos.operation_outputs')).toEqual([{ id: 'kept' }]);
  });

  it('a migration that locks the tables of workflows does not make all programs wait behind it', () => {
    const waiting = ownMigrations('postgres').filter(({ number, name }) => {
      const text = readFileSync(`migrations/postgres/everstep/${String(number).padStart(4, '0')}_${name}.sql`, 'utf8');
      const isLocking = /^(AFTER|BEFORE) .* ON \{schema\}\.(workflow_status|operation_outputs)\b|DROP CONSTRAINT/m.test(
        text,
      );
      return isLocking && !text.includes("SET LOCAL lock_timeout = '3s'");
    });

    expect(waiting).toEqual([]);
  });

  it('a message whose topic is too long for NOTIFY is stored all the same', async () => {
    const database = await dialect.create();

    await execute(
      database,
      `INSERT INTO dbos.workflow_status (workflow_uuid) VALUES ('w');
       INSERT INTO dbos.notifications (destination_uuid, topic, message) VALUES ('w', repeat('x', 9000), 'm')`,
    );

    expect(await query(database, 'SELECT message FROM dbos.notifications')).toEqual([{ message: 'm' }]);
  });

  it('a database that another library left without its tables is refused', async () => {
    const database = await setup(dialect);
    await execute(
      database,
      `CREATE SCHEMA dbos; CREATE TABLE dbos.dbos_migrations (version BIGINT PRIMARY KEY);
       INSERT INTO dbos.dbos_migrations VALUES (2)`,
    );

    const migration = migrate(database, { logger });

    await expect(migration).rejects.toMatchObject({
      code: 'MIGRATION_FAILED',
      message: expect.stringMatching(/version 2/),
    });
  });

  it.each(['we"ird Näme', 'x; DROP SCHEMA public', '$body$', "it's", 'a.b', '$&', 'ä'.repeat(31)])(
    'schema %j works in tables and functions',
    async (schema) => {
      const url = await dialect.createURL({ isMigrated: false });
      const database = await dialect.open(url, { schema });
      const quoted = `"${schema.replaceAll('"', '""')}"`;

      await migrate(database, { schema, logger });

      expect(await readVersionRows(database, schema)).toEqual([[LATEST], [EVERSTEP_LATEST]]);
      const { columns, triggers } = await readCatalog(database, schema);
      expect(columns).toEqual(expectedSchema(database).columns);
      expect(triggers).toHaveLength(22);
      await execute(
        database,
        `SELECT ${quoted}.enqueue_workflow('hello', 'q', workflow_id => 'w');
         SELECT ${quoted}.send_message('w', '"hi"')`,
      );
      expect(await query(database, `SELECT message FROM ${quoted}.notifications`)).toEqual([{ message: '"hi"' }]);
      expect(await query(database, `SELECT 1 AS one FROM pg_namespace WHERE nspname = 'public'`)).toHaveLength(1);
    },
  );

  it.each(['', 'a\0b', 'ä'.repeat(32)])('schema name %j is refused before anything is done', async (schema) => {
    const database = await dialect.create();

    const migration = migrate(database, { schema, logger });

    await expect(migration).rejects.toMatchObject({ code: 'INVALID_SCHEMA_NAME' });
  });
});
