import { expect, test } from 'vitest';
import type { Database } from '../../../src/database/database.js';
import { insertIncarnation } from '../../../src/features/liveness/executors.sql.js';
import { findOwnedBy, recoverIncarnation } from '../../../src/run/rows/lifecycle.js';
import { findUnlisted } from '../../../src/run/rows/owner-tokens.js';
import { insertWorkflows } from '../../../src/run/rows/workflows.js';
import { forEachDialect, onlyOn } from '../../rig/dialects.js';
import { newWorkflow } from '../../rig/records.js';

async function register(database: Database, incarnationID: string): Promise<void> {
  const fields = {
    executorID: 'e',
    applicationName: 'test',
    applicationVersion: '1',
    host: 'h',
    pid: 1,
    metadata: null,
  };
  await insertIncarnation(database, { incarnationID, ...fields }, { leaseMs: 60_000 });
}

forEachDialect((dialect) => {
  test('engines that own workflows without a lease are found one by one, whatever other tokens there are', async () => {
    const database = await dialect.create();
    await register(database, 'b');
    const owners = ['a.1', 'a.2z', 'a.10', 'b.1', 'c-1.7', 'foreign', 'odd.b-12', 'odd.b-13', 'odd.X', 'odd..', 'z.1'];
    await database.run(insertWorkflows(owners.map((owner) => newWorkflow({ owner }))));

    expect(await findUnlisted(database)).toEqual(['a', 'c-1', 'odd', 'z']);
  });
});

onlyOn('postgres', (dialect) => {
  test('the workflows of an engine are found under a collation that ignores punctuation', async () => {
    const database = await dialect.create();
    await database.exclusive((connection) =>
      connection.script(`
        CREATE COLLATION dbos.shifted (provider = icu, locale = 'en-u-ka-shifted');
        -- They depend on the column.
        DROP TRIGGER everstep_workflow_updated ON dbos.workflow_status;
        DROP TRIGGER IF EXISTS everstep_workflow_journaled ON dbos.workflow_status;
        DROP TRIGGER everstep_end_waits ON dbos.workflow_status;
        DROP VIEW dbos.history CASCADE;
        DROP SCHEMA dbos_history CASCADE;
        ALTER TABLE dbos.workflow_status ALTER COLUMN owner_xid TYPE TEXT COLLATE dbos.shifted;`),
    );
    await database.run(insertWorkflows(['a.zz', 'a.1', 'ab.1'].map((owner) => newWorkflow({ owner }))));

    expect(await findUnlisted(database)).toEqual(['a', 'ab']);
    expect((await findOwnedBy(database, 'a', 0)).map(({ owner }) => owner).sort()).toEqual(['a.1', 'a.zz']);
    expect(await recoverIncarnation(database, 'a')).toHaveLength(2);
  });
});
