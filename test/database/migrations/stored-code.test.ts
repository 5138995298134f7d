// Servers and roles that store no triggers or functions: the tables are created without, and engines do without.
import { expect, onTestFinished, test } from 'vitest';
import { rewindWorkflow } from '../../../src/features/lifecycle/rewind.js';
import { deleteWorkflows } from '../../../src/features/lifecycle/deletion.sql.js';
import { migrate, verify } from '../../../src/database/migrations/migrate.js';
import { findCode, missingCode } from '../../../src/database/migrations/stored-code.js';
import { Store } from '../../../src/run/writer/store.js';
import { addWithHistory } from '../../features/lifecycle/histories.js';
import { createScene, isRunningIn, statusOf, untilParked } from '../../features/parking/parking-scene.js';
import { onlyOn, type TestDialect } from '../../rig/dialects.js';
import { operatorOn } from '../../rig/operators.js';
import { startRefusingProxy } from '../../rig/refusing-proxy.js';
import { readCatalog } from './catalog.js';
import { connect, createRole, expectedSchema, keepingLogger, query } from './setup.js';

const TRIGGERS = /CREATE (OR REPLACE )?TRIGGER/i;
const FUNCTIONS = /CREATE (OR REPLACE )?FUNCTION/i;

/** An empty database, and its URL through a proxy that refuses the pattern. */
async function refusing(dialect: TestDialect, pattern: RegExp): Promise<{ url: string; refusedURL: string }> {
  const url = await dialect.createURL({ isMigrated: false });
  return { url, refusedURL: (await startRefusingProxy(url, pattern)).url };
}

async function openStore(url: string) {
  const logger = keepingLogger();
  const store = await Store.open({ url, logger });
  onTestFinished(() => store.close());
  return { store, database: store.database, logger };
}

onlyOn('postgres', (dialect) => {
  test.each([
    ['triggers', TRIGGERS, ['triggers']],
    ['functions', FUNCTIONS, ['triggers', 'functions']],
  ])('what a server without %s lacks is added when it can be', async (_, pattern, missing) => {
    const { url, refusedURL } = await refusing(dialect, pattern);
    const { database, logger } = await openStore(refusedURL);
    expect([...missingCode(await findCode(database, 'dbos'), true)]).toEqual(missing);
    expect([...(database.dialect.refused ?? [])]).toEqual(missing);
    expect(logger.warnings).toHaveLength(missing.length);

    const { database: complete, logger: quiet } = await openStore(url);

    expect(await readCatalog(complete)).toEqual(expectedSchema(complete));
    expect(complete.dialect.refused?.size).toBe(0);
    expect(quiet.warnings).toEqual([]);
    expect(await query(complete, `SELECT COUNT(*) AS n FROM dbos_history.workflow_events`)).toEqual([{ n: 0 }]);
  });

  test('a role that may not write functions gets the tables', async () => {
    const url = await dialect.createURL({ isMigrated: false });
    const { role, roleURL } = await createRole(url);
    const admin = await connect(url);
    await admin.query('REVOKE USAGE ON LANGUAGE plpgsql FROM PUBLIC');
    await admin.query(`CREATE SCHEMA dbos AUTHORIZATION ${admin.escapeIdentifier(role)}`);
    const database = await dialect.open(roleURL);
    const logger = keepingLogger();

    await migrate(database, { logger });

    expect(logger.warnings).toContainEqual(expect.stringContaining('permission denied for language plpgsql'));
    expect([...(database.dialect.refused ?? [])]).toEqual(['triggers', 'functions']);
    const checked = await dialect.open(roleURL);
    await verify(checked);
    expect([...(checked.dialect.refused ?? [])]).toEqual(['triggers', 'functions']);
  });

  test('a role that may create nothing is refused, and not taken for one that may not write functions', async () => {
    const url = await dialect.createURL({ isMigrated: false });
    const { roleURL } = await createRole(url);

    await expect(migrate(await dialect.open(roleURL), { logger: keepingLogger() })).rejects.toThrow(
      'with a role that may create schema',
    );
  });

  test('a deleted workflow leaves nothing in the journal without triggers', async () => {
    const { refusedURL } = await refusing(dialect, TRIGGERS);
    const { database } = await openStore(refusedURL);
    const workflowID = await addWithHistory(database);
    await rewindWorkflow(operatorOn(database), workflowID, { startStep: 3 });
    const count = () => query(database, 'SELECT COUNT(*) > 0 AS has_rows FROM dbos.journal');
    expect(await count()).toEqual([{ has_rows: true }]);

    await deleteWorkflows(database, [workflowID]);

    expect(await count()).toEqual([{ has_rows: false }]);
  });

  test('a rewind keeps values as text without functions', async () => {
    const { refusedURL } = await refusing(dialect, FUNCTIONS);
    const { database } = await openStore(refusedURL);
    const workflowID = await addWithHistory(database);

    await rewindWorkflow(operatorOn(database), workflowID, { startStep: 3 });

    const kept = await query(
      database,
      `SELECT details ->> 'result' AS result FROM dbos.journal WHERE details ? 'result'`,
    );
    expect(kept).not.toEqual([]);
  });

  test('a workflow that waits for a message stays in memory without triggers', async () => {
    const { refusedURL } = await refusing(dialect, TRIGGERS);
    const scene = await createScene(dialect, { systemDatabaseUrl: refusedURL });
    const { DBOS } = scene;
    const receive = DBOS.registerWorkflow(() => DBOS.recv('topic', 3600), { name: 'receive' });
    const sleep = DBOS.registerWorkflow(() => DBOS.sleep(3_600_000), { name: 'sleep' });
    await DBOS.launch();
    const handle = await DBOS.startWorkflow(receive, { workflowID: 'receiving' })();
    await DBOS.startWorkflow(sleep, { workflowID: 'sleeping' })();

    await untilParked(scene, 'sleeping', 10_000);

    expect(await statusOf(DBOS, 'receiving')).toBe('PENDING');
    expect(isRunningIn(DBOS, 'receiving')).toBe(true);
    await DBOS.send('receiving', 'hello', 'topic');
    expect(await handle.getResult()).toBe('hello');
  });
});
