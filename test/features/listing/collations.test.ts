// Databases whose texts are in the order of a language, as most servers make them.
import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { silentLogger } from '../../../src/kernel/base/log.js';
import { newID } from '../../../src/kernel/base/ids.js';
import { createOptionalIndex } from '../../../src/features/listing/indexes.js';
import { estimateWorkflows, iterateWorkflows, listWorkflows } from '../../../src/features/listing/listing.js';
import { toWorkflowQuery } from '../../../src/features/listing/workflow-query.js';
import { sql } from '../../../src/kernel/sql/sql.js';
import type { Database } from '../../../src/database/database.js';
import { listStatement } from '../../../src/features/listing/listing.sql.js';
import { migrate } from '../../../src/database/migrations/migrate.js';
import { onlyOn, type TestDialect } from '../../rig/dialects.js';
import { operatorOn } from '../../rig/operators.js';
import { explain } from '../../rig/plans.js';
import { postgresURL, postgresVersion } from '../../rig/postgres-url.js';
import { dropPostgresDatabase } from '../../rig/templates.js';
import { insert, workflow } from './rows.js';

/** `locale` is the clause of CREATE DATABASE. Rejects if the server does not have it. */
async function createIn(dialect: TestDialect, locale: string): Promise<Database> {
  const serverURL = await postgresURL();
  const name = `test_${newID().replaceAll('-', '')}`;
  const client = new pg.Client(serverURL);
  await client.connect();
  await client.query(`CREATE DATABASE ${name} TEMPLATE template0 ${locale}`).finally(() => client.end());
  const url = new URL(serverURL);
  url.pathname = `/${name}`;
  onTestFinished(() => dropPostgresDatabase(serverURL, url.toString()));
  const database = await dialect.open(url.toString());
  await migrate(database, { logger: silentLogger });
  return database;
}

describe('in the order of a language', () => {
  onlyOn('postgres', (dialect) => {
    test('pages hold each workflow once, and prefixes are those of the text', async ({ skip }) => {
      skip((await postgresVersion()) < 15, 'Databases with an ICU locale need Postgres 15.');
      const database = await createIn(dialect, `LOCALE_PROVIDER icu ICU_LOCALE 'en-US'`);
      const ids = ['a', 'A', 'b', 'B-1', 'b-1', 'b_1', 'b1', 'ä', 'a-2', '-b', '_b', 'B1'];
      const many = Array.from({ length: 1200 }, (_, n) => `${n % 2 ? 'x' : 'X'}-${n}`);
      await insert(
        database,
        [...ids, ...many].map((id) => workflow(id)),
      );
      const operator = operatorOn(database);

      const passed: string[] = [];
      for await (const { workflowID } of iterateWorkflows(operator, { loadInput: false })) passed.push(workflowID);
      const found = async (prefix: string) =>
        (await listWorkflows(operator, { workflow_id_prefix: prefix })).map(({ workflowID }) => workflowID).sort();
      const before = [await found('b'), await found('b_'), await found('a')];
      await createOptionalIndex(operator, 'workflow_id_prefix');
      const after = [await found('b'), await found('b_'), await found('a')];

      expect(passed.toSorted()).toEqual([...ids, ...many].sort());
      expect(before).toEqual([['b', 'b-1', 'b1', 'b_1'], ['b_1'], ['a', 'a-2']]);
      expect(after).toEqual(before);
      const query = toWorkflowQuery({ workflow_id_prefix: 'x-1', limit: 10 }, null);
      // A statement of its own shape, so that the pattern is known to the planner.
      const plan = await explainWithValues(database, query);
      expect(plan).toMatch(/idx_workflow_status_listing_workflow_uuid/);
    });
  });
});

describe('in the order of bytes', () => {
  onlyOn('postgres', (dialect) => {
    test.for(['C', 'C.UTF-8'])('prefixes are found by the primary key: %s', async (locale, { skip }) => {
      const database = await createIn(dialect, `LOCALE '${locale}' ENCODING 'UTF8'`).catch(() => undefined);
      if (!database) return skip('The system does not have the locale.');
      const ids = ['a', 'a-1', 'a_1', 'a%1', 'aä', 'a\u{10ffff}', 'b', '\u{10ffff}', '\u{10ffff}x', '_'];
      const many = Array.from({ length: 3000 }, (_, n) => `x-${n}`);
      await insert(
        database,
        [...ids, ...many].map((id) => workflow(id)),
      );
      await database.run(sql`ANALYZE`);
      const operator = operatorOn(database);
      const found = async (prefix: string) =>
        (await listWorkflows(operator, { workflow_id_prefix: prefix, limit: 100 })).map((one) => one.workflowID).sort();

      const plan = await explainWithValues(database, toWorkflowQuery({ workflow_id_prefix: 'a', limit: 10 }, null));

      expect(plan).toMatch(/workflow_status_pkey[^]*Index Cond:/);
      expect(await found('a')).toEqual(ids.filter((id) => id.startsWith('a')).sort());
      expect(await found('a_')).toEqual(['a_1']);
      expect(await found('a%')).toEqual(['a%1']);
      expect(await found('\u{10ffff}')).toEqual(['\u{10ffff}', '\u{10ffff}x']);
      expect((await estimateWorkflows(operator, { workflow_id_prefix: 'a' }, 10)).count).toBe(6);
    });
  });
});

async function explainWithValues(database: Database, query: ReturnType<typeof toWorkflowQuery>): Promise<string> {
  const statement = await listStatement(database, query);
  return explain(Object.create(database, { run: { value: observing(database) } }) as Database, statement);
}

function observing(database: Database) {
  return (statement: Parameters<Database['run']>[0]) => database.observe(statement, { timeoutMs: 0, scans: 'index' });
}
