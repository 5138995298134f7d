// How the databases carry out claims, whatever the table holds: by an index that leads to the rows of the queue.
import { describe, expect, test } from 'vitest';
import { type Limits, UNLIMITED } from '../../../src/features/queue/queue.js';
import { type Sql, sql, table } from '../../../src/kernel/sql/sql.js';
import { type ClaimOptions, claimPartitions, claimWorkflows } from '../../../src/features/queue/claims.sql.js';
import type { Database } from '../../../src/database/database.js';
import { lookAtQueues } from '../../../src/features/queue/queue-look.sql.js';
import { refillStatement } from '../../../src/features/queue/refills.sql.js';
import { findWaitingPartitions } from '../../../src/features/queue/waiting-work.sql.js';
import { forEachDialect } from '../../rig/dialects.js';

const CLAIM: ClaimOptions = {
  queueName: 'q',
  limit: 10,
  owner: 'me.1',
  executorID: 'vm-1',
  applicationVersion: 'v1',
  applicationName: 'test',
  functions: ['.workflow'],
};
const LIMITS: Limits = { concurrency: 20, workerConcurrency: null, rate: { max: 100, periodMs: 60_000 } };
const COMPLETED = 20_000;
const WAITING = 100_000;

/** Keeps the plan of each statement. Runs none of them, unless Postgres is to count what they read. */
function explain(database: Database, plans: string[], isCounting = false): Database {
  const isPostgres = database.dialect.name === 'postgres';
  const explaining = isCounting ? sql`EXPLAIN (ANALYZE, TIMING OFF)` : sql`EXPLAIN`;
  const run = async (statement: Sql) => {
    const lines = await database.run(
      isPostgres ? sql`${explaining} ${statement}` : sql`EXPLAIN QUERY PLAN ${statement}`,
    );
    plans.push(lines.map((line) => String(line[isPostgres ? 'QUERY PLAN' : 'detail'])).join('\n'));
    return [];
  };
  return Object.create(database, {
    run: { value: run },
    read: { value: run },
    commit: { value: (statements: readonly Sql[]) => Promise.all(statements.map(run)) },
  }) as Database;
}

async function plansOf(database: Database): Promise<string[]> {
  const plans: string[] = [];
  const explaining = explain(database, plans);
  await claimWorkflows(explaining, CLAIM);
  await claimWorkflows(explaining, { ...CLAIM, limits: LIMITS, share: { engines: 3, running: 1 } });
  const partitions = [{ key: 'p1', limit: 2 }];
  await claimPartitions(explaining, { ...CLAIM, limits: LIMITS, partitionLimits: LIMITS, partitions });
  const ended = [{ workflowID: 'w1', owner: 'me.1' }];
  await explaining.run(
    refillStatement({ ...CLAIM, limits: { ...LIMITS, rate: null } }, ended, database.dialect.name === 'postgres'),
  );
  await findWaitingPartitions(explaining, { queueName: 'q', after: '', limit: 10 });
  await lookAtQueues(explaining, { applicationName: 'test', names: ['q', 'other'] });
  return plans;
}

/** Many workflows that have ended, many that wait, and some that run in other queues. */
async function fill(database: Database): Promise<void> {
  const isPostgres = database.dialect.name === 'postgres';
  const total = COMPLETED + WAITING;
  const numbers = isPostgres
    ? sql`generate_series(1, CAST(${total} AS INTEGER)) AS g(n)`
    : sql`(WITH RECURSIVE g(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM g WHERE n < ${total}) SELECT n FROM g) AS g`;
  await database.run(sql`
    INSERT INTO ${table('workflow_status')}
      (workflow_uuid, status, name, queue_name, queue_partition_key, application_version, application_name, priority,
       created_at, updated_at)
    SELECT 'w' || g.n,
      CASE WHEN g.n <= ${COMPLETED} THEN 'SUCCESS' WHEN g.n % 100 = 0 THEN 'PENDING' ELSE 'ENQUEUED' END,
      'workflow', CASE WHEN g.n % 100 = 0 THEN 'other' ELSE 'q' END, 'p' || (g.n % 1000), 'v1', 'test', 0, g.n, g.n
    FROM ${numbers}`);
}

/** The lines of a plan that read workflows otherwise than by an index for queues or timers, or by their key. */
function strays(plan: string): string[] {
  const allowed =
    /idx_workflow_status_(claims|partition_claims|in_flight_v2|partition_dequeue_v3|rate_limited|running|started_at|delayed|deadline)|workflow_status_pkey|sqlite_autoindex_workflow_status/;
  return plan
    .split('\n')
    .filter((line) => / on workflow_status|(SCAN|SEARCH) (w|p|e|workflow_status)\b/.test(line) && !allowed.test(line))
    .filter((line) => !/^\s*(->)?\s*Update on workflow_status/.test(line));
}

describe('plans of claims', () => {
  forEachDialect((dialect) => {
    test('lead by an index to the rows of the queue, on an empty and on a large table, analysed or not', async () => {
      const database = await dialect.create();
      const plans = await plansOf(database);
      await fill(database);
      plans.push(...(await plansOf(database)));
      await database.run(sql`ANALYZE ${table('workflow_status')}`);
      plans.push(...(await plansOf(database)));

      // On Postgres, claims with limits leave a mark for other programs, and those from partitions note the headroom.
      expect(plans.length).toBe(3 * (dialect.name === 'postgres' ? 13 : 10));
      expect(plans.flatMap(strays)).toEqual([]);
    });

    test('a claim reads no more than it takes from a backlog of one millisecond, behind one of another version', async () => {
      const database = await dialect.create();
      await fill(database);
      const plans: string[] = [];
      const explaining = explain(database, plans, true);
      const change = table('workflow_status');
      await database.run(
        sql`UPDATE ${change} SET application_version = 'old', created_at = 1 WHERE created_at % 2 = 0`,
      );
      await database.run(sql`UPDATE ${change} SET created_at = 2, queue_partition_key = 'p1' WHERE created_at > 1`);

      await claimWorkflows(explaining, CLAIM);
      await claimPartitions(explaining, {
        ...CLAIM,
        partitionLimits: UNLIMITED,
        partitions: [{ key: 'p1', limit: 10 }],
      });

      const reads = plans.flatMap((plan) => plan.split('\n')).filter((line) => /idx_\w*claims/.test(line));
      expect(reads.length).toBe(4);
      if (dialect.name === 'postgres') {
        const counts = plans.flatMap((plan) => [...plan.matchAll(/actual rows=(\d+)|Removed by Filter: (\d+)/g)]);
        expect(Math.max(...counts.map(([, read, removed]) => Number(read ?? removed)))).toBeLessThanOrEqual(10);
      } else {
        const equal = /\(queue_name=\? AND (queue_partition_key=\? AND )?<expr>=\?\)$/;
        expect(reads.filter((line) => !equal.test(line))).toEqual([]);
      }
    });

    test('a claim from a large backlog takes the first in line', async () => {
      const database = await dialect.create();
      await fill(database);

      const { claimed } = await claimWorkflows(database, { ...CLAIM, limit: 3, limits: LIMITS });

      const ids = claimed.map(({ workflow }) => workflow.workflowID);
      expect(ids.sort()).toEqual([1, 2, 3].map((n) => `w${COMPLETED + n}`));
    });
  });
});
