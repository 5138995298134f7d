// The script for administrators: run by hand, it leaves the same database as the runner.
import { expect, it } from 'vitest';
import { silentLogger } from '../../../src/kernel/base/log.js';
import type { Database } from '../../../src/database/database.js';
import { migrate } from '../../../src/database/migrations/migrate.js';
import { splitStatements } from '../../../src/database/migrations/plan.js';
import { printMigrations } from '../../../src/database/migrations/print.js';
import { forEachDialect, onlyOn } from '../../rig/dialects.js';
import { readCatalog, readVersionRows } from './catalog.js';
import { buildAt, connect, EVERSTEP_LATEST, execute, expectedSchema, LATEST, ownMigrations } from './setup.js';

/** Runs a script as psql does: each statement on its own. */
async function pipe(database: Database, script: string): Promise<void> {
  await database.exclusive(async (connection) => {
    for (const statement of splitStatements(script)) await connection.script(statement);
  });
}

forEachDialect((dialect) => {
  it('the whole script makes an empty database a current one', async () => {
    const database = await dialect.open(await dialect.createURL({ isMigrated: false }));

    await pipe(database, printMigrations({ dialect: dialect.name }));

    expect(await readVersionRows(database)).toEqual([[LATEST], [EVERSTEP_LATEST]]);
    expect(await readCatalog(database)).toEqual(expectedSchema(database));
  });

  it('the whole script can be sent as one text', async () => {
    const database = await dialect.open(await dialect.createURL({ isMigrated: false }));

    await execute(database, printMigrations({ dialect: dialect.name }));

    expect(await readCatalog(database)).toEqual(expectedSchema(database));
  });

  it.each([2, 15, 24, 100, 110, 123])(
    'the script from %i on completes a database that ends before it',
    async (from) => {
      const database = await dialect.open(await dialect.createURL({ isMigrated: false }));
      await buildAt(database, from === 100 ? 99 : from - 1);

      await pipe(database, printMigrations({ dialect: dialect.name, from }));

      expect(await readVersionRows(database)).toEqual([[LATEST], [EVERSTEP_LATEST]]);
      expect(await readCatalog(database)).toEqual(expectedSchema(database));
    },
  );

  it('the script does no harm to a current database', async () => {
    const database = await dialect.create();

    await pipe(database, printMigrations({ dialect: dialect.name, from: LATEST + 1 }));

    expect(await readVersionRows(database)).toEqual([[LATEST], [EVERSTEP_LATEST]]);
    expect(await readCatalog(database)).toEqual(expectedSchema(database));
  });

  it('the script announces each migration and moves the version after it', () => {
    const script = printMigrations({ dialect: dialect.name, from: 121 });
    const everstep = ownMigrations(dialect.name);

    expect(script).toMatch(/^-- Everstep system database/);
    expect(script.match(/^-- Migration \d+: \w+$/gm)).toEqual([
      '-- Migration 121: consumed_by_function_id',
      '-- Migration 122: deadline_index',
      '-- Migration 123: creator_xid',
      ...everstep.map(({ number, name }) => `-- Migration ${number}: ${name}`),
    ]);
    expect(script.match(/SET version = \d+/g)).toEqual(
      [121, 122, 123, ...everstep.map(({ number }) => number)].map((version) => `SET version = ${version}`),
    );
  });
});

onlyOn('sqlite', (dialect) => {
  it('a column of ours that the script cannot look for is left to the launch', async () => {
    const database = await dialect.create();
    await execute(
      database,
      'ALTER TABLE operation_outputs DROP COLUMN arguments_hash; UPDATE everstep_migrations SET version = 101',
    );

    await pipe(database, printMigrations({ dialect: 'sqlite', from: LATEST + 1 }));

    expect(await readVersionRows(database)).toEqual([[LATEST], [101]]);
    await migrate(database, { logger: silentLogger });
    expect(await readCatalog(database)).toEqual(expectedSchema(database));
  });
});

onlyOn('postgres', (dialect) => {
  it('a schema and triggers of choice are printed', async () => {
    const database = await dialect.open(await dialect.createURL({ isMigrated: false }), { schema: 'My Schema' });

    await pipe(database, printMigrations({ dialect: 'postgres', schema: 'My Schema', useListenNotify: false }));

    const catalog = await readCatalog(database, 'My Schema');
    expect(catalog.columns).toEqual(expectedSchema(database).columns);
    expect(
      catalog.triggers.filter(
        (line) =>
          !/journal|everstep_wake_|everstep_end_waits|everstep_step_checked|everstep_claim_checked|everstep_other_/.test(
            line,
          ),
      ),
    ).toEqual([]);
  });

  it('the rights of the application are printed when its role is named', async () => {
    const url = await dialect.createURL({ isMigrated: false });
    const database = await dialect.open(url);
    const admin = await connect(url);
    const role = `printed_${Date.now()}`;
    await admin.query(`CREATE ROLE ${role}`);

    await pipe(database, printMigrations({ dialect: 'postgres', role }));

    const { rows } = await admin.query(`
      SELECT has_table_privilege('${role}', 'dbos.workflow_status', 'INSERT') AS tables,
             has_schema_privilege('${role}', 'dbos', 'CREATE') AS creation`);
    await admin.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
    expect(rows).toEqual([{ tables: true, creation: false }]);
  });
});

it.each(['a"b', "a'b", 'a\\b', ''])('schema %j is not printed', (schema) => {
  expect(() => printMigrations({ dialect: 'postgres', schema })).toThrow(/schema name/);
});

it.each(['a"b', "a'b", ''])('role %j is not printed', (role) => {
  expect(() => printMigrations({ dialect: 'postgres', role })).toThrow(/role name/);
});

it.each([0, -1, 1.5, Number.NaN])('migrations are not printed from %d', (from) => {
  expect(() => printMigrations({ dialect: 'postgres', from })).toThrow(/Cannot print migrations from/);
});

it('a script for SQLite is refused where only the runner can know what is missing', () => {
  expect(() => printMigrations({ dialect: 'sqlite', from: 50 })).toThrow(/npx everstep migrate/);
});

it('a script for SQLite has no roles', () => {
  expect(() => printMigrations({ dialect: 'sqlite', role: 'app' })).toThrow(/no roles/);
});
