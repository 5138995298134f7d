// Databases whose texts are in the order of a language, as most servers make them.
import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { silentLogger } from '../../../src/base/log.js';
import { newID } from '../../../src/base/ids.js';
import { createOptionalIndex } from '../../../src/control/listing/indexes.js';
import { iterateWorkflows, listWorkflows } from '../../../src/control/listing/listing.js';
import { toWorkflowQuery } from '../../../src/model/workflow-query.js';
import type { Database } from '../../../src/store/database.js';
import { listStatement } from '../../../src/store/listing/listing.js';
import { migrate } from '../../../src/store/migrations/migrate.js';
import { onlyOn, type TestDialect } from '../../rig/dialects.js';
import { operatorOn } from '../../rig/operators.js';
import { explain } from '../../rig/plans.js';
import { postgresURL, postgresVersion } from '../../rig/postgres-url.js';
import { dropPostgresDatabase } from '../../rig/templates.js';
import { insert, workflow } from './rows.js';

async function createIn(dialect: TestDialect, locale: string): Promise<Database> {
  const serverURL = await postgresURL();
  const name = `test_${newID().replaceAll('-', '')}`;
  const client = new pg.Client(serverURL);
  await client.connect();
  await client.query(`CREATE DATABASE ${name} TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE '${locale}'`);
  await client.end();
  const url = new URL(serverURL);
  url.pathname = `/${name}`;
  onTestFinished(() => dropPostgresDatabase(serverURL, url.toString()));
  const database = await dialect.open(url.toString());
  await migrate(database, { logger: silentLogger });
  return database;
}

describe('in the order of a language', () => {
  onlyOn('postgres', (dialect) => {
    test(
      'pages hold each workflow once, and prefixes are those of the text',
      { timeout: 240_000 },
      async ({ skip }) => {
        skip((await postgresVersion()) < 15, 'Databases with an ICU locale need Postgres 15.');
        const database = await createIn(dialect, 'en-US');
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
      },
    );
  });
});

async function explainWithValues(database: Database, query: ReturnType<typeof toWorkflowQuery>): Promise<string> {
  const statement = await listStatement(database, query);
  return explain(Object.create(database, { run: { value: observing(database) } }) as Database, statement);
}

function observing(database: Database) {
  return (statement: Parameters<Database['run']>[0]) => database.observe(statement, { timeoutMs: 0, scans: 'index' });
}
