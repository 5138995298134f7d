import { describe, expect, test } from 'vitest';
import { type Sql, sql, table } from '../../../src/kernel/sql/sql.js';
import { aggregateWorkflows } from '../../../src/features/listing/aggregates.sql.js';
import { findChangedWorkflows } from '../../../src/features/listing/changes.sql.js';
import { countOpenWork } from '../../../src/features/listing/open-work.sql.js';
import type { Database } from '../../../src/database/database.js';
import { findParked } from '../../../src/features/parking/waits.sql.js';
import { countClaimed } from '../../../src/features/queue/claim-rate.sql.js';
import { countQueues, countUnqueued } from '../../../src/features/queue/queue-stats.sql.js';
import { INTERNAL_QUEUE } from '../../../src/features/queue/queue.js';
import { forEachDialect, type TestDialect } from '../../rig/dialects.js';
import { explain } from '../../rig/plans.js';

const TOTAL = 5000;

/** Workflows that were created, started and ended one a millisecond. */
async function setup(dialect: TestDialect): Promise<Database> {
  const database = await dialect.create();
  const numbers =
    dialect.name === 'postgres'
      ? sql`generate_series(1, CAST(${TOTAL} AS INTEGER)) AS g(n)`
      : sql`(WITH RECURSIVE g(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM g WHERE n < ${TOTAL}) SELECT n FROM g) AS g`;
  await database.run(sql`
    INSERT INTO ${table('workflow_status')}
      (workflow_uuid, status, name, created_at, updated_at, started_at_epoch_ms, completed_at)
    SELECT 'w' || g.n, 'SUCCESS', 'x', g.n, g.n + 2, g.n + 1, g.n + 2
    FROM ${numbers}`);
  return database;
}

/** The plan of the one query that the reading makes. */
async function planOf(database: Database, read: (database: Database) => Promise<unknown>): Promise<string> {
  let plan = '';
  const keep = async (statement: Sql) => {
    plan = await explain(database, statement);
    return [];
  };
  await read(Object.create(database, { read: { value: keep }, observe: { value: keep } }) as Database);
  return plan;
}

describe('changed workflows', () => {
  forEachDialect((dialect) => {
    test('are those that were created, started or ended later, and those that are named', async () => {
      const database = await setup(dialect);

      const query = { since: TOTAL, workflowIDs: ['w7', 'nobody'], max: 10 };
      const { workflows } = await findChangedWorkflows(database, query);

      expect(workflows.map(({ workflowID }) => workflowID)).toEqual(['w7', `w${TOTAL - 1}`, `w${TOTAL}`]);
    });

    test('are no more than asked for and one of each kind', async () => {
      const database = await setup(dialect);

      const { workflows } = await findChangedWorkflows(database, { since: 0, workflowIDs: [], max: 10 });

      expect(workflows).toHaveLength(11);
    });

    test('come with the time of the database, even if there are none', async () => {
      const database = await setup(dialect);

      const { now, workflows } = await findChangedWorkflows(database, { since: 2 * TOTAL, workflowIDs: [], max: 10 });

      expect(workflows).toEqual([]);
      expect(now).toBeGreaterThan(2 * TOTAL);
    });

    test('are found without a look at the whole table', async () => {
      const database = await setup(dialect);
      await database.run(sql`ANALYZE`);

      const plan = await planOf(database, (explaining) =>
        findChangedWorkflows(explaining, { since: TOTAL - 5, workflowIDs: ['w7'], max: 10 }),
      );

      expect(plan).toMatch(/workflow_status_created_at_index/);
      expect(plan).toMatch(/idx_workflow_status_started_at/);
      expect(plan).toMatch(/idx_workflow_status_completed_at/);
      expect(plan).not.toMatch(/Seq Scan|SCAN (n|w|k)$/m);
    });
  });
});

describe('workflows that run and came from no queue', () => {
  forEachDialect((dialect) => {
    test('are counted by the index of active ones', async () => {
      const database = await setup(dialect);
      await database.run(sql`
        UPDATE ${table('workflow_status')} SET status = 'PENDING' WHERE workflow_uuid IN ('w1', 'w2')`);
      await database.run(sql`
        UPDATE ${table('workflow_status')} SET status = 'DELAYED', owner_xid = 'engine.1', queue_name = ${INTERNAL_QUEUE}
        WHERE workflow_uuid = 'w3'`);
      await database.run(sql`ANALYZE`);

      const plan = await planOf(database, (explaining) => countUnqueued(explaining, 'test'));

      expect(await countUnqueued(database, 'test')).toEqual({ running: 2, parked: 1 });
      expect(plan).toMatch(/idx_workflow_status_(in_flight_v2|pending)/);
      expect(plan).toMatch(/idx_workflow_status_delayed/);
    });

    test('are not in the statistics of queues when they are parked, and those of queues are', async () => {
      const database = await setup(dialect);
      await database.run(sql`
        UPDATE ${table('workflow_status')} SET status = 'DELAYED', owner_xid = 'engine.1', queue_name = ${INTERNAL_QUEUE}
        WHERE workflow_uuid = 'w1'`);
      await database.run(sql`
        UPDATE ${table('workflow_status')} SET status = 'DELAYED', owner_xid = 'engine.1', queue_name = 'q'
        WHERE workflow_uuid = 'w2'`);

      const stats = await countQueues(database, { isByPartition: false, applicationName: null });

      expect(stats).toEqual([{ queueName: 'q', enqueued: 0, delayed: 0, running: 0, parked: 1, oldestWaitMs: null }]);
    });
  });
});

describe('what a page of parked workflows waits for', () => {
  forEachDialect((dialect) => {
    test('is found by indexes', async () => {
      const database = await setup(dialect);
      await database.run(sql`UPDATE ${table('workflow_status')} SET status = 'DELAYED', owner_xid = 'engine.1'`);
      await database.run(sql`
        INSERT INTO ${table('parked_waits')} (wait_key, workflow_uuid, kind, awaited_uuid, awaited_name)
        SELECT 'message:' || w.workflow_uuid || '::t', w.workflow_uuid, 'message', w.workflow_uuid, 't'
        FROM ${table('workflow_status')} AS w`);
      await database.run(sql`ANALYZE`);
      const page = ['w7', 'w8', 'w9'];

      const plan = await planOf(database, (explaining) => findParked(explaining, page, 20));

      expect((await findParked(database, page, 20)).get('w8')?.awaited).toEqual([
        { kind: 'message', workflowID: 'w8', topic: 't' },
      ]);
      expect(plan).toMatch(/idx_parked_waits_workflow/);
      expect(plan).not.toMatch(/Seq Scan|SCAN (w|p|a)$/m);
    });
  });
});

describe('open workflows by version', () => {
  forEachDialect((dialect) => {
    test('are running if they are parked, and delayed if they have not started', async () => {
      const database = await setup(dialect);
      await database.run(sql`
        UPDATE ${table('workflow_status')} SET status = 'DELAYED', owner_xid = 'engine.1', application_version = 'v1'
        WHERE workflow_uuid IN ('w1', 'w2')`);
      await database.run(sql`
        UPDATE ${table('workflow_status')} SET status = 'DELAYED', application_version = 'v1'
        WHERE workflow_uuid = 'w3'`);

      expect(await countOpenWork(database, null)).toMatchObject([
        { applicationVersion: 'v1', enqueued: 0, delayed: 1, running: 2 },
      ]);
    });

    test('are counted by the indexes of their states', async () => {
      const database = await setup(dialect);
      await database.run(sql`
        UPDATE ${table('workflow_status')} SET status = 'PENDING', application_version = 'v1'
        WHERE workflow_uuid IN ('w1', 'w2')`);
      await database.run(sql`
        UPDATE ${table('workflow_status')} SET status = 'ENQUEUED', application_version = 'v2'
        WHERE workflow_uuid IN ('w3')`);
      await database.run(sql`ANALYZE`);
      const count = (one: Database) => {
        const states = ['PENDING', 'PARKED', 'ENQUEUED', 'DELAYED'] as const;
        const times = { createdAt: {}, completedAt: {}, startedAt: {} };
        const scope = { filter: { states, values: {}, times, presence: {} }, timeoutMs: 0 };
        return aggregateWorkflows(one, { groups: ['application_version'], figures: ['count'] }, scope);
      };

      const plan = await planOf(database, count);

      expect(
        (await count(database)).map(({ group, figures }) => [group['application_version'], figures.count]),
      ).toEqual([
        ['v1', 2],
        ['v2', 1],
      ]);
      // Enqueued, delayed, running and parked ones.
      expect(plan.match(/idx_workflow_status_/g)).toHaveLength(4);
    });
  });
});

describe('workflows claimed lately', () => {
  forEachDialect((dialect) => {
    test('are searched for by the time of their claim', async () => {
      const database = await setup(dialect);
      await database.run(sql`ANALYZE`);

      const plan = await planOf(database, (explaining) => countClaimed(explaining, 'q', 60_000));

      expect(plan).toMatch(
        dialect.name === 'postgres' ? /Index Cond: .*started_at_epoch_ms > / : /\(started_at_epoch_ms>\?\)/,
      );
    });
  });
});
