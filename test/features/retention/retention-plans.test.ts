// How the databases find what is old, and all that belongs to it: by an index, whether or not the table was analysed.
import { describe, expect, test } from 'vitest';
import { sql, type Sql, table } from '../../../src/kernel/sql/sql.js';
import type { Database } from '../../../src/database/database.js';
import { deleteUnchanged, findDeletable } from '../../../src/features/retention/archive-index.sql.js';
import { deleteWorkflows } from '../../../src/features/lifecycle/deletion.sql.js';
import { insertForks } from '../../../src/features/lifecycle/forks.sql.js';
import { cancelWorkflows } from '../../../src/run/rows/lifecycle.js';
import {
  cancelIfActive,
  findNthNewest,
  listByAge,
  listPayloadsByAge,
} from '../../../src/features/retention/retention.sql.js';
import { readEnded } from '../../../src/features/transfer/transfer.sql.js';
import { insertWorkflows } from '../../../src/run/rows/workflows.js';
import { forEachDialect } from '../../rig/dialects.js';
import { explain } from '../../rig/plans.js';
import { newWorkflow } from '../../rig/records.js';

const IDS = ['a', 'b'];
const RANGE = { after: { at: 5, workflowID: 'a' }, before: 100, limit: 500 };

/** Runs nothing, but keeps the plan of each statement. */
function explaining(database: Database, plans: string[]): Database {
  const run = async (statement: Sql) => {
    plans.push(await explain(database, statement));
    return [];
  };
  const executor = { dialect: database.dialect, run };
  const fake: Pick<Database, 'dialect' | 'run' | 'read' | 'commit' | 'transaction'> = {
    ...executor,
    read: run,
    commit: (statements) => Promise.all(statements.map(run)),
    transaction: (body) => body(executor),
  };
  return fake as Database;
}

async function plansOf(database: Database): Promise<string[]> {
  const plans: string[] = [];
  const fake = explaining(database, plans);
  const settings = {
    queueName: 'q',
    partitionKey: null,
    applicationVersion: null,
    applicationName: null,
    timeoutMs: null,
    replacementChildren: new Map<string, string>(),
  };
  await listByAge(fake, RANGE, 'test');
  for (const name of ['workflow_input', 'operation_outputs'] as const) await listPayloadsByAge(fake, name, RANGE);
  await findNthNewest(fake, 1000, 'test');
  const seen = IDS.map((workflowID) => ({ workflowID, updatedAt: 5 }));
  await findDeletable(fake, seen);
  await deleteUnchanged(fake, seen, 'object');
  await readEnded(fake, IDS);
  await cancelIfActive(fake, IDS);
  await cancelWorkflows(fake, IDS, { children: true });
  await deleteWorkflows(fake, IDS, { children: true });
  // Its original is not found, but the statement that would find it was planned.
  const fork = { originalID: 'a', workflowID: 'f', startStep: 1, creator: 'c' };
  await insertForks(fake, [fork, { ...fork, workflowID: 'g' }], settings).catch(() => {});
  return plans;
}

describe('plans', () => {
  forEachDialect((dialect) => {
    test('what is old, and trees of workflows, are found by indexes', async () => {
      const database = await dialect.create();
      await database.run(insertWorkflows(Array.from({ length: 2000 }, () => newWorkflow({ status: 'SUCCESS' }))));

      const fresh = await plansOf(database);
      await database.run(sql`ANALYZE ${table('workflow_status')}`);
      const analysed = await plansOf(database);

      expect(fresh.length).toBeGreaterThan(12);
      for (const plan of [...fresh, ...analysed]) {
        // A recursive query reads its own last rows one after the other.
        expect(plan).not.toMatch(/Seq Scan on (?!tree)|SCAN (w|c|o|p|s|h|workflow_status)\b(?! USING)/);
      }
      expect(fresh[0]).toContain('workflow_status_created_at_index');
    });
  });
});
