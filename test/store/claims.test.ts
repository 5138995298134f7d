import { describe, expect, test } from 'vitest';
import { sql, table } from '../../src/sql/sql.js';
import { type ClaimOptions, claimWorkflows, findSeparateInputs } from '../../src/store/claims.js';
import type { Database } from '../../src/store/database.js';
import { listVersions, registerVersion } from '../../src/store/versions.js';
import { insertWorkflows, type NewWorkflow } from '../../src/store/workflows.js';
import { forEachDialect, onlyOn } from '../rig/dialects.js';
import { newWorkflow } from '../rig/records.js';

const CLAIM: ClaimOptions = {
  queueName: 'q',
  limit: 10,
  owner: 'me.1',
  executorID: 'vm-1',
  applicationVersion: 'v1',
  applicationName: 'test',
  functions: ['.workflow', 'Class.method'],
};

function queued(fields: Partial<NewWorkflow> = {}): NewWorkflow {
  return newWorkflow({ status: 'ENQUEUED', queueName: 'q', owner: null, recoveryAttempts: 0, ...fields });
}

async function add(database: Database, ...workflows: NewWorkflow[]): Promise<void> {
  await database.run(insertWorkflows(workflows));
}

async function claimedIDs(database: Database, options: Partial<ClaimOptions> = {}): Promise<string[]> {
  const claimed = await claimWorkflows(database, { ...CLAIM, ...options });
  return claimed.map(({ workflow }) => workflow.workflowID);
}

describe('claims', () => {
  forEachDialect((dialect) => {
    test('a claim makes the workflow this engine’s and gives all that is needed to run it', async () => {
      const database = await dialect.create();
      const workflow = queued({ timeoutMs: 60_000, attributes: '{"a":1}' });
      await add(database, workflow);

      const [claimed] = await claimWorkflows(database, CLAIM);

      expect(claimed?.workflow).toMatchObject({
        workflowID: workflow.workflowID,
        status: 'PENDING',
        owner: 'me.1',
        executorID: 'vm-1',
        recoveryAttempts: 1,
        inputs: workflow.inputs,
        isDebounced: false,
      });
      expect(claimed?.remainingMs).toBeGreaterThan(59_000);
      expect(await claimedIDs(database)).toEqual([]);
    });

    test('it takes at most the limit, by priority and then in the order of creation, on a table never analysed', async () => {
      const database = await dialect.create();
      const low = Array.from({ length: 50 }, () => queued({ priority: 5 }));
      for (const workflow of low) await add(database, workflow);
      const urgent = queued({ priority: 1 });
      await add(database, urgent);

      const first = await claimedIDs(database, { limit: 3 });
      const second = await claimedIDs(database, { limit: 2, owner: 'me.2' });

      expect(first.sort()).toEqual([urgent, low[0], low[1]].map((workflow) => workflow?.workflowID).sort());
      expect(second.sort()).toEqual([low[2], low[3]].map((workflow) => workflow?.workflowID).sort());
    });

    test('it leaves other queues, versions, applications, functions and states alone', async () => {
      const database = await dialect.create();
      const mine = queued({ className: 'Class', name: 'method' });
      await add(
        database,
        mine,
        queued({ queueName: 'other' }),
        queued({ applicationVersion: 'v2' }),
        queued({ applicationName: 'other' }),
        queued({ name: 'unknown' }),
        queued({ className: 'Class' }),
        queued({ status: 'DELAYED', delayMs: 1000 }),
      );

      expect(await claimedIDs(database)).toEqual([mine.workflowID]);
    });

    test('a workflow without a version goes to the latest version only', async () => {
      const database = await dialect.create();
      const workflow = queued({ applicationVersion: null, applicationName: null });
      await add(database, workflow);
      await registerVersion(database, 'v1', 'test');
      await database.run(sql`SELECT 1`);
      await registerVersion(database, 'v2', 'test');
      const [latest] = await listVersions(database, 'test');

      const other = latest?.versionName === 'v2' ? 'v1' : 'v2';
      expect(await claimedIDs(database, { applicationVersion: other })).toEqual([]);
      expect(await claimedIDs(database, { applicationVersion: latest?.versionName })).toEqual([workflow.workflowID]);
    });

    test('several engines that claim at once never get the same workflow', async () => {
      const url = await dialect.createURL();
      const databases = await Promise.all(Array.from({ length: 4 }, () => dialect.open(url)));
      const [first] = databases;
      await add(first!, ...Array.from({ length: 100 }, () => queued()));

      const claims = await Promise.all(
        databases.flatMap((database, engine) =>
          Array.from({ length: 4 }, (_, round) => claimedIDs(database, { limit: 10, owner: `e${engine}.${round}` })),
        ),
      );

      const all = claims.flat();
      expect(new Set(all).size).toBe(all.length);
      const rest = await claimedIDs(first!, { limit: 200, owner: 'rest.1' });
      expect(all.length + rest.length).toBe(100);
    });

    test('inputs that another library stored apart are found', async () => {
      const database = await dialect.create();
      const workflow = queued({ inputs: null });
      await add(database, workflow);
      await database.run(
        sql`INSERT INTO ${table('workflow_input')} (workflow_uuid, inputs) VALUES (${workflow.workflowID}, ${'[1]'})`,
      );

      expect(await findSeparateInputs(database, [workflow.workflowID, 'x'])).toEqual(
        new Map([[workflow.workflowID, '[1]']]),
      );
    });

    test('registering a version twice keeps it as it was', async () => {
      const database = await dialect.create();

      await registerVersion(database, 'v1', 'test');
      const [before] = await listVersions(database, 'test');
      await registerVersion(database, 'v1', 'test');

      expect(await listVersions(database, 'test')).toEqual([before]);
    });
  });

  onlyOn('postgres', (dialect) => {
    test('a claim rides its index', async () => {
      const database = await dialect.create();
      await add(database, ...Array.from({ length: 200 }, () => queued()));
      const plans: string[] = [];
      const explaining: Database = Object.create(database, {
        run: {
          value: async (statement: ReturnType<typeof sql>) => {
            const lines = await database.run(sql`EXPLAIN ${statement}`);
            plans.push(lines.map((line) => String(line['QUERY PLAN'])).join('\n'));
            return [];
          },
        },
      }) as Database;

      await claimWorkflows(explaining, CLAIM);

      expect(plans[0]).toMatch(/Index Scan using idx_workflow_status_in_flight_v2/);
      expect(plans[0]).not.toMatch(/Seq Scan on workflow_status/);
    });
  });
});
