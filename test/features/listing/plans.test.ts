// How the databases read lists of a long history: in the order of an index, and not much more than the page.
import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import {
  adviseIndexes,
  createOptionalIndex,
  dropOptionalIndex,
  listOptionalIndexes,
} from '../../../src/features/listing/indexes.js';
import { listWorkflows } from '../../../src/features/listing/listing.js';
import { diagnose } from '../../../src/features/diagnosis/diagnosis.js';
import { type GetWorkflowsInput, toWorkflowQuery } from '../../../src/features/listing/workflow-query.js';
import { sql, table } from '../../../src/kernel/sql/sql.js';
import type { Database } from '../../../src/database/database.js';
import { listStatement, scansFor } from '../../../src/features/listing/listing.sql.js';
import { addHistory, HISTORY_BEGINS_AT, SECOND } from '../../../bench/management/history.js';
import { forEachDialect, onlyOn } from '../../rig/dialects.js';
import { until } from '../../rig/manual-clock.js';
import { operatorOn } from '../../rig/operators.js';
import { postgresVersion } from '../../rig/postgres-url.js';
import { startRefusingProxy } from '../../rig/refusing-proxy.js';

const COUNT = 60_000;
const at = (n: number): string => new Date(HISTORY_BEGINS_AT + n * SECOND).toISOString();

/** Filters, and the index that leads to their workflows. */
const LOOKS: [GetWorkflowsInput, RegExp][] = [
  [{}, /workflow_status_created_at_index/],
  [{ status: 'SUCCESS' }, /workflow_status_created_at_index/],
  [{ status: 'ERROR' }, /idx_workflow_status_failed/],
  [{ status: 'ENQUEUED' }, /idx_workflow_status_(listing_state|in_flight_v2)/],
  [{ status: ['ENQUEUED', 'DELAYED', 'CANCELLED'] }, /listing_state[^]*idx_workflow_status_failed/],
  [{ status: 'PENDING' }, /idx_workflow_status_(running|in_flight_v2)|workflow_status_created_at_index/],
  [{ queuesOnly: true }, /idx_workflow_status_/],
  [{ queueName: 'mail' }, /workflow_status_created_at_index/],
  [{ queueName: ['mail', 'no such queue'] }, /^(?![^]*(?:COMPOUND|Append))[^]*workflow_status_created_at_index/],
  [{ startTime: at(100), endTime: at(300) }, /workflow_status_created_at_index/],
  [{ completedAfter: at(100), completedBefore: at(300) }, /idx_workflow_status_completed_at/],
  [{ workflowName: 'checkout' }, /workflow_status_created_at_index/],
  [{ workflow_id_prefix: 'order-17-' }, /workflow_status_pkey|sqlite_autoindex_workflow_status_1/],
  [{ workflow_id_prefix: 'order-' }, /workflow_status_created_at_index/],
  [{ parentWorkflowID: 'x' }, /idx_workflow_status_parent_workflow_id/],
  [{ scheduleName: 'x' }, /idx_workflow_status_schedule_name/],
];

/** How many rows of the table a list reads, and how: on SQLite only how. */
async function planOf(database: Database, input: GetWorkflowsInput): Promise<string> {
  const query = toWorkflowQuery({ sortDesc: true, limit: 100, ...input }, 'bench');
  const statement = await listStatement(database, query);
  const isPostgres = database.dialect.name === 'postgres';
  const lines = await database.observe(
    isPostgres ? sql`EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) ${statement}` : sql`EXPLAIN QUERY PLAN ${statement}`,
    { timeoutMs: 0, scans: scansFor(query) },
  );
  return lines.map((line) => String(line['QUERY PLAN'] ?? line['detail'])).join('\n');
}

/** Rows that were read and found not to match, all in all. */
function passedOver(plan: string): number {
  return [...plan.matchAll(/Rows Removed by (?:Filter|Index Recheck): (\d+)/g)].reduce(
    (sum, [, n]) => sum + Number(n),
    0,
  );
}

describe('an optional index', () => {
  onlyOn('postgres', (dialect) => {
    test('is built on a server that does not tell of builds', async () => {
      const proxy = await startRefusingProxy(await dialect.createURL(), /pg_stat_progress_create_index/);
      const operator = operatorOn(await dialect.open(proxy.url), { applicationName: 'bench' });

      await createOptionalIndex(operator, 'queueName');

      expect(proxy.takeRefused()).toHaveLength(1);
      expect(await listOptionalIndexes(operator)).toContainEqual({ index: 'queueName', isThere: true });
    });

    test('is built once by sessions that build it at the same time', async () => {
      const url = await dialect.createURL();
      const database = await dialect.open(url);
      const operator = operatorOn(database, { applicationName: 'bench' });
      // A build waits for statements that began before it.
      const other = new pg.Client(url);
      await other.connect();
      onTestFinished(() => other.end());
      await other.query('BEGIN');
      await other.query(`DELETE FROM dbos.workflow_status`);

      const first = createOptionalIndex(operator, 'queueName');
      const isBuilding = sql`SELECT 1 AS n FROM pg_stat_progress_create_index WHERE datname = current_database()`;
      await until(async () => (await database.read(isBuilding)).length > 0);
      const second = createOptionalIndex(operator, 'queueName');
      const third = createOptionalIndex(operator, 'queueName');
      await Promise.race([second, third, new Promise((resolve) => setTimeout(resolve, 100))]);
      await other.query('COMMIT');
      await Promise.all([first, second, third]);

      expect(await listOptionalIndexes(operator)).toContainEqual({ index: 'queueName', isThere: true });
    });
  });
});

describe('lists of a long history', () => {
  forEachDialect((dialect) => {
    test('are advised an index where values are rare, unless the history is short or the index there', async () => {
      const database = await dialect.create();
      const operator = operatorOn(database, { applicationName: 'bench' });
      await addHistory(database, 99_999);
      const rare = sql`UPDATE ${table('workflow_status')} SET executor_id = 'vm-2' WHERE workflow_uuid = 'order-999-99999'`;
      await database.run(rare);
      expect(await adviseIndexes(operator)).toEqual([]);

      await database.run(sql`
        INSERT INTO ${table('workflow_status')} (workflow_uuid, status, name, queue_name, created_at, updated_at)
        VALUES ('last', 'SUCCESS', 'checkout', 'rare', ${HISTORY_BEGINS_AT + 100_000 * SECOND}, 0)`);
      expect(await adviseIndexes(operator)).toEqual(['queueName', 'executorId']);
      const { findings } = await diagnose(operator);
      expect(findings.filter(({ subject }) => subject === 'indexes')).toEqual([
        {
          kind: 'notice',
          subject: 'indexes',
          message:
            'Lists with the filter queueName or executorId may read much of the history, because some values are rare. ' +
            'If you often use one, build its index, such as: everstep index create queueName',
        },
      ]);

      await createOptionalIndex(operator, 'queueName');
      expect(await adviseIndexes(operator)).toEqual(['executorId']);
    });

    test('are read by an index, analysed or not, and an optional one serves a rare name', async () => {
      const database = await dialect.create();
      await addHistory(database, COUNT);
      const strays: unknown[] = [];
      const check = async (looks: typeof LOOKS): Promise<void> => {
        for (const [input, expected] of looks) {
          const plan = await planOf(database, input);
          const isWhole = /Seq Scan on workflow_status/.test(plan);
          if (isWhole || !expected.test(plan) || passedOver(plan) > 20_000) strays.push([input, plan]);
        }
      };

      // Without statistics, planners before Postgres 16 sort all workflows of a name or of a queue.
      const needsStatistics = dialect.name === 'postgres' && (await postgresVersion()) < 16;
      const looksByName = ({ workflowName, queueName }: (typeof LOOKS)[number][0]): boolean =>
        workflowName !== undefined || queueName !== undefined;
      await check(needsStatistics ? LOOKS.filter(([input]) => !looksByName(input)) : LOOKS);
      await database.run(sql`ANALYZE ${table('workflow_status')}`);
      await check(LOOKS);

      const operator = operatorOn(database, { applicationName: 'bench' });
      await createOptionalIndex(operator, 'workflowName');
      await createOptionalIndex(operator, 'workflowName');
      await createOptionalIndex(operator, 'workflow_id_prefix');
      await createOptionalIndex(operator, 'queueName');
      const there = (await listOptionalIndexes(operator)).filter(({ isThere }) => isThere);
      await check([
        [{ workflowName: 'archive' }, /idx_workflow_status_listing_name/],
        [{ queueName: 'old' }, /idx_workflow_status_listing_queue_name|in_flight_v2/],
        [{ queueName: ['old', 'mail'] }, /idx_workflow_status_listing_queue_name/],
      ]);
      const archived = await listWorkflows(operator, { workflowName: 'archive', sortDesc: true, limit: 3 });
      await dropOptionalIndex(operator, 'workflowName');
      const still = await listWorkflows(operator, { workflowName: 'archive', limit: 100 });

      expect(strays).toEqual([]);
      expect(there.map(({ index }) => index)).toEqual(['queueName', 'workflowName', 'workflow_id_prefix']);
      expect(archived.map(({ workflowID }) => workflowID)).toEqual(['order-10-10', 'order-9-9', 'order-8-8']);
      expect(still).toHaveLength(10);
      await expect(createOptionalIndex(operator, 'x; DROP TABLE y' as 'workflowName')).rejects.toMatchObject({
        code: 'INVALID_ARGUMENT',
      });
    });
  });
});
