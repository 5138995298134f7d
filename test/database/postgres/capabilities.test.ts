import { expect, onTestFinished, test } from 'vitest';
import { silentLogger } from '../../../src/kernel/base/log.js';
import { sql } from '../../../src/kernel/sql/sql.js';
import { probeCapabilities } from '../../../src/database/postgres/capabilities.js';
import { Store } from '../../../src/run/writer/store.js';
import { removeAdvisoryLocks } from '../../rig/advisory-locks.js';
import { onlyOn } from '../../rig/dialects.js';

onlyOn('postgres', (dialect) => {
  async function setup(options = {}) {
    const url = await dialect.createURL();
    const database = await dialect.open(url, options);
    const lacking = async (): Promise<string[]> =>
      (await probeCapabilities(database, 'dbos')).filter(({ isAvailable }) => !isAvailable).map(({ name }) => name);
    return { database, lacking };
  }

  test('Postgres has all that we use', async () => {
    const { database, lacking } = await setup({ isTransactionPooler: false });

    expect(await lacking()).toEqual([]);
    expect((await probeCapabilities(database, 'dbos')).map(({ name }) => name)).toContain('SKIP LOCKED');
  });

  test('behind a pooler in transaction mode there are no sessions', async () => {
    const { lacking } = await setup({ isTransactionPooler: true });

    expect(await lacking()).toEqual(['sessions']);
  });

  test('a server may have no advisory locks', async () => {
    const url = await dialect.createURL();
    await removeAdvisoryLocks(url);
    const store = await Store.open({ url, logger: silentLogger });
    onTestFinished(() => store.close());

    const lacking = (await probeCapabilities(store.database, 'dbos')).filter(({ isAvailable }) => !isAvailable);

    expect(lacking.map(({ name }) => name)).toEqual(['advisory locks']);
  });

  test('triggers and functions may be missing', async () => {
    const { database, lacking } = await setup();
    await database.run(sql`DROP TRIGGER everstep_workflow_updated ON dbos.workflow_status`);
    await database.run(sql`DROP FUNCTION dbos.send_message`);

    expect(await lacking()).toEqual(expect.arrayContaining(['triggers', 'functions']));
  });
});
