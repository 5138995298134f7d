// Two copies of SQLite in one process do not see each other's locks. Whoever shares the system database's file with Everstep
// in this process must use its copy.
import BetterSqlite3 from 'better-sqlite3';
import { expect, onTestFinished, test } from 'vitest';
import { BetterSqlite3DataSource } from '../../../src/plugins/transaction/adapters/better-sqlite3.js';
import { betterSqlite, findSqliteLibrary, nodeSqlite } from '../../../src/database/sqlite/sqlite-handle.js';
import { connect } from '../../faces/client/scene.js';
import { onlyOn } from '../../rig/dialects.js';
import { createEngine } from '../../rig/engines.js';

/** A handle that says of itself that it is of another build. */
function ofAnotherCopy(url: string): BetterSqlite3.Database {
  const handle = new BetterSqlite3(url.replace('sqlite:///', ''));
  handle.function('sqlite_source_id', { deterministic: true }, () => 'another build');
  onTestFinished(() => void handle.close());
  return handle;
}

onlyOn('sqlite', (dialect) => {
  test('Everstep uses the library of the data sources where that is installed', async () => {
    const installed = await betterSqlite().catch(() => undefined);

    const found = await findSqliteLibrary();

    expect(found.name).toBe(installed?.name ?? nodeSqlite()?.name);
    expect(found.version).toMatch(/^3\.\d+\.\d+$/);
  });

  test('a data source of another copy cannot write to the system database', async () => {
    const { DBOS, url } = await createEngine(dialect);
    const source = new BetterSqlite3DataSource('app', ofAnotherCopy(url), { owner: DBOS });
    const write = DBOS.registerWorkflow(() => source.runTransaction(async () => 1, { name: 'write' }), { name: 'w' });
    await DBOS.launch();

    await expect(write()).rejects.toMatchObject({ code: 'SQLITE_COPIES' });
  });

  test('a data source of another copy may use a file of its own', async () => {
    const { DBOS } = await createEngine(dialect);
    const own = ofAnotherCopy(await dialect.createURL({ isMigrated: false }));
    const source = new BetterSqlite3DataSource('app', own, { owner: DBOS });
    const write = DBOS.registerWorkflow(() => source.runTransaction(async () => 1, { name: 'write' }), { name: 'w' });
    await BetterSqlite3DataSource.initializeDBOSSchema(own);
    await DBOS.launch();

    expect(await write()).toBe(1);
  });

  test('a client refuses a transaction of another copy', async () => {
    const url = await dialect.createURL();
    const client = await connect(url);
    const options = { queueName: 'q', workflowName: 'w' } as const;

    const refused = client.enqueueInTransaction(ofAnotherCopy(url), options);

    await expect(refused).rejects.toMatchObject({ code: 'SQLITE_COPIES' });
  });
});
