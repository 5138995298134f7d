// Roles that may not do everything, and `runMigrations: false`.
import { expect, it } from 'vitest';
import { silentLogger } from '../../../src/kernel/base/log.js';
import type { Database } from '../../../src/database/database.js';
import { grantStatements } from '../../../src/database/migrations/grants.js';
import { grantAccess, migrate, verify } from '../../../src/database/migrations/migrate.js';
import { forEachDialect, onlyOn, type TestDialect } from '../../rig/dialects.js';
import { readVersionRows } from './catalog.js';
import { buildAt, connect, createRole, EVERSTEP_LATEST, execute, LATEST, query } from './setup.js';

const logger = silentLogger;

/** An owner's database, and the same database seen by a role that has been granted access. */
async function setup(dialect: TestDialect): Promise<{ owner: Database; application: Database; role: string }> {
  const url = await dialect.createURL();
  const owner = await dialect.open(url);
  const { role, roleURL } = await createRole(url);
  await grantAccess(owner, { role });
  return { owner, application: await dialect.open(roleURL), role };
}

forEachDialect((dialect) => {
  it('a database that is behind fails the check, with the command that helps', async () => {
    const database = await dialect.open(await dialect.createURL({ isMigrated: false }));
    await buildAt(database, 99);

    const check = verify(database);

    await expect(check).rejects.toMatchObject({
      code: 'INITIALIZATION_FAILED',
      dbosErrorCode: 3,
      message: expect.stringMatching(/at version 99 .* needs 123 .*npx everstep migrate/s),
    });
  });

  it('an empty database fails the check and stays empty', async () => {
    const database = await dialect.open(await dialect.createURL({ isMigrated: false }));

    await expect(verify(database)).rejects.toMatchObject({ code: 'INITIALIZATION_FAILED' });

    await expect(readVersionRows(database)).rejects.toThrow();
  });

  it('a database without the tables that only Everstep has fails the check', async () => {
    const database = await dialect.open(await dialect.createURL({ isMigrated: false }));
    await buildAt(database, LATEST);

    await expect(verify(database)).rejects.toMatchObject({ code: 'INITIALIZATION_FAILED' });
  });

  it('a current database and one that is ahead pass the check', async () => {
    const database = await dialect.create();

    await verify(database);
    await execute(database, `UPDATE ${dialect.name === 'postgres' ? 'dbos.' : ''}dbos_migrations SET version = 999`);
    await verify(database);
  });
});

onlyOn('postgres', (dialect) => {
  it('a granted role can check and "migrate" a current database', async () => {
    const { application } = await setup(dialect);

    await verify(application);

    expect(await migrate(application, { logger })).toEqual({ from: LATEST, to: LATEST });
  });

  it('a granted role can read and write every table of workflows and call both functions', async () => {
    const { application } = await setup(dialect);
    const tables = await query(
      application,
      `SELECT tablename FROM pg_tables WHERE schemaname = 'dbos' AND tablename NOT LIKE '%\\_migrations'`,
    );

    await execute(
      application,
      `SELECT dbos.enqueue_workflow('hello', 'q', workflow_id => 'w');
       SELECT dbos.send_message('w', '1');
       UPDATE dbos.workflow_status SET status = 'SUCCESS';
       INSERT INTO dbos.operation_outputs (workflow_uuid, function_id) VALUES ('w', 0);
       DELETE FROM dbos.workflow_status`,
    );

    expect(tables.length).toBeGreaterThan(10);
    for (const { tablename } of tables) {
      const [row] = await query(
        application,
        `SELECT has_table_privilege('dbos.${String(tablename)}', 'SELECT') AND has_table_privilege('dbos.${String(tablename)}', 'INSERT')
            AND has_table_privilege('dbos.${String(tablename)}', 'UPDATE') AND has_table_privilege('dbos.${String(tablename)}', 'DELETE') AS needed,
           (has_table_privilege('dbos.${String(tablename)}', 'TRUNCATE') AND '${String(tablename)}' <> 'journal') OR has_table_privilege('dbos.${String(tablename)}', 'TRIGGER')
            OR has_table_privilege('dbos.${String(tablename)}', 'REFERENCES') AS more`,
      );
      expect(row, String(tablename)).toEqual({ needed: true, more: false });
    }
  });

  it.each([
    'CREATE TABLE dbos.mine (a INT)',
    'DROP TABLE dbos.streams',
    'ALTER TABLE dbos.queues ADD COLUMN a INT',
    'UPDATE dbos.dbos_migrations SET version = 1',
    'DELETE FROM dbos.dbos_migrations',
    'UPDATE dbos.everstep_migrations SET version = 1',
    'INSERT INTO dbos.everstep_migrations VALUES (999)',
  ])('a granted role cannot %s', async (statement) => {
    const { application } = await setup(dialect);

    await expect(execute(application, statement)).rejects.toMatchObject({ code: 'DATABASE_ACCESS' });
  });

  it('a granted role may use what the owner creates later', async () => {
    const { owner, application } = await setup(dialect);
    await execute(
      owner,
      `CREATE TABLE dbos.later (a INT); CREATE FUNCTION dbos.later() RETURNS INT LANGUAGE sql AS 'SELECT 1';
       REVOKE EXECUTE ON FUNCTION dbos.later() FROM PUBLIC`,
    );

    await execute(application, 'INSERT INTO dbos.later VALUES (dbos.later())');

    expect(await query(application, 'SELECT a FROM dbos.later')).toEqual([{ a: 1 }]);
  });

  it('names in the grants are quoted', () => {
    expect(grantStatements('a"b', 'c"d')[0]).toBe('GRANT USAGE ON SCHEMA "a""b" TO "c""d"');
  });

  it('a role without the right to create the schema learns what to do', async () => {
    const url = await dialect.createURL({ isMigrated: false });
    const { roleURL } = await createRole(url);
    const database = await dialect.open(roleURL);

    const migration = migrate(database, { logger });

    await expect(migration).rejects.toMatchObject({
      code: 'MIGRATION_FAILED',
      message: expect.stringMatching(/permission denied.*npx everstep migrate.*schema "dbos"/s),
    });
  });

  it('a granted role cannot bring a database up to date and learns what to do', async () => {
    const { owner, application } = await setup(dialect);
    await execute(
      owner,
      'UPDATE dbos.dbos_migrations SET version = 122; ALTER TABLE dbos.workflow_status DROP COLUMN creator_xid CASCADE',
    );

    const migration = migrate(application, { logger });

    await expect(migration).rejects.toMatchObject({
      code: 'MIGRATION_FAILED',
      message: expect.stringMatching(
        /^Migration 123 \(creator_xid\) failed: .*(must be owner|permission denied).*npx everstep migrate/s,
      ),
    });
    expect(await readVersionRows(owner)).toEqual([[122], [EVERSTEP_LATEST]]);
  });

  it('a role that owns the schema needs no right on the database', async () => {
    const url = await dialect.createURL({ isMigrated: false });
    const { role, roleURL } = await createRole(url);
    const admin = await connect(url);
    await admin.query(`CREATE SCHEMA dbos AUTHORIZATION "${role.replaceAll('"', '""')}"`);
    const database = await dialect.open(roleURL);

    expect(await migrate(database, { logger })).toEqual({ from: 0, to: LATEST });
  });
});
