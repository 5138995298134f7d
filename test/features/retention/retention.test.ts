import { describe, expect, test } from 'vitest';
import type { Operator } from '../../../src/operator/operator.js';
import { garbageCollect, type GarbageCollected, globalTimeout } from '../../../src/features/retention/retention.js';
import { sql, table } from '../../../src/kernel/sql/sql.js';
import type { Database } from '../../../src/database/database.js';
import { insertWorkflows, type NewWorkflow } from '../../../src/run/rows/workflows.js';
import { forEachDialect, onlyOn, type TestDialect } from '../../rig/dialects.js';
import { operatorOn, published } from '../../rig/operators.js';
import { topics } from '../../../src/database/notify/topics.js';
import { newWorkflow } from '../../rig/records.js';
import { addWithHistory, countRows } from '../lifecycle/histories.js';

/** Time passes at once, and how much is known. */
function impatientClock() {
  const rests: number[] = [];
  const after = (delayMs: number, run: () => void) => {
    rests.push(delayMs);
    setImmediate(run);
    return { cancel: () => {} };
  };
  return { rests, clock: { now: () => Date.now(), monotonic: () => performance.now(), after } };
}

async function setup(dialect: TestDialect, fields: Partial<Operator> = {}) {
  const database = await dialect.create();
  const { clock, rests } = impatientClock();
  const operator = operatorOn(database, { clock, ...fields });
  /** Workflows by the time of their creation. */
  const add = async (workflows: readonly NewWorkflow[], createdAt: (index: number) => number) => {
    await database.run(insertWorkflows(workflows));
    await database.commit(
      workflows.map(
        ({ workflowID }, index) =>
          sql`UPDATE ${table('workflow_status')} SET created_at = ${createdAt(index)} WHERE workflow_uuid = ${workflowID}`,
      ),
    );
  };
  return { database, operator, rests, add };
}

const ended = (count: number, fields: Partial<NewWorkflow> = {}) =>
  Array.from({ length: count }, () => newWorkflow({ status: 'SUCCESS', owner: null, ...fields }));

async function timesIn(database: Database): Promise<unknown[]> {
  const rows = await database.read(sql`
    SELECT w.created_at FROM ${table('workflow_status')} AS w ORDER BY w.created_at`);
  return rows.map((row) => row['created_at']);
}

describe('garbage collection', () => {
  forEachDialect((dialect) => {
    test('by age takes what was created before the time, with all that belongs to it', async () => {
      const { database, operator, add } = await setup(dialect);
      await add(ended(10), (index) => index);
      const workflowID = await addWithHistory(database);
      await database.run(
        sql`UPDATE ${table('workflow_status')} SET created_at = 3 WHERE workflow_uuid = ${workflowID}`,
      );

      const collected = await garbageCollect(operator, { cutoffEpochTimestampMs: 4.5 });

      expect(collected).toEqual({ workflows: 6, orphans: 0 });
      expect(await timesIn(database)).toEqual([5, 6, 7, 8, 9]);
      expect(await countRows(database, workflowID)).toEqual({});
    });

    test('by number keeps the newest, and more where several have one time', async () => {
      const { database, operator, add } = await setup(dialect);
      await add(ended(10), (index) => Math.floor(index / 3));

      await garbageCollect(operator, { rowsThreshold: 11 });
      expect(await timesIn(database)).toHaveLength(10);
      await garbageCollect(operator, { rowsThreshold: 5 });
      expect(await timesIn(database)).toEqual([1, 1, 1, 2, 2, 2, 3]);
      await garbageCollect(operator, { rowsThreshold: 5, cutoffEpochTimestampMs: 3 });
      expect(await timesIn(database)).toEqual([3]);
    });

    test('works in bounded commits with rests, and tells how far it is', async () => {
      const { database, operator, add, rests } = await setup(dialect);
      // In the way of every part: workflows that must stay, all created in one millisecond.
      const active = Array.from({ length: 12 }, (_, index) => newWorkflow({ workflowID: `active ${index}` }));
      await add([...active, ...ended(20)], (index) => (index < 16 ? 1 : index));
      const progress: GarbageCollected[] = [];
      const onProgress = (done: GarbageCollected) => progress.push(done);

      const collected = await garbageCollect(operator, { cutoffEpochTimestampMs: 1000, batchSize: 5, onProgress });

      expect(collected).toEqual({ workflows: 20, orphans: 0 });
      expect(progress.at(-1)).toEqual(collected);
      expect(await timesIn(database)).toEqual(Array.from({ length: 12 }, () => 1));
      const parts = progress.map(({ workflows }, index) => workflows - (progress[index - 1]?.workflows ?? 0));
      expect(Math.max(...parts)).toBeLessThanOrEqual(5);
      expect(rests.length).toBeGreaterThanOrEqual(6);
    });

    test('keeps an ended child for as long as its parent is active', async () => {
      const { database, operator, add } = await setup(dialect);
      const parent = newWorkflow();
      const grandparent = newWorkflow({ status: 'SUCCESS', owner: null });
      const childOf = ({ workflowID }: NewWorkflow) => ended(1, { parentWorkflowID: workflowID });
      await add([parent, grandparent, ...childOf(parent), ...childOf(grandparent)], (index) => index);

      const collected = await garbageCollect(operator, { cutoffEpochTimestampMs: 10 });

      expect(collected).toEqual({ workflows: 2, orphans: 0 });
      expect(await timesIn(database)).toEqual([0, 2]);
      await database.run(sql`UPDATE ${table('workflow_status')} SET status = 'SUCCESS', owner_xid = NULL`);
      await garbageCollect(operator, { cutoffEpochTimestampMs: 10 });
      expect(await timesIn(database)).toEqual([]);
    });

    test('leaves other applications alone', async () => {
      const { database, operator, add } = await setup(dialect);
      const owners = ['test', 'other', null].flatMap((applicationName) => ended(2, { applicationName }));
      await add(owners, (index) => index);

      await garbageCollect(operator, { rowsThreshold: 2 });
      expect(await timesIn(database)).toEqual([2, 3, 4, 5]);
      await garbageCollect(operator, { cutoffEpochTimestampMs: 10 });
      expect(await timesIn(database)).toEqual([2, 3]);
      await garbageCollect(operatorOn(database, { applicationName: null }), { cutoffEpochTimestampMs: 10 });
      expect(await timesIn(database)).toEqual([]);
    });

    test('takes inputs and outputs whose workflow is gone', async () => {
      const { database, operator } = await setup(dialect);
      const workflowID = await addWithHistory(database, { status: 'PENDING' });
      for (const name of ['workflow_input', 'workflow_output']) {
        await database.run(sql`
          INSERT INTO ${table(name)} (workflow_uuid, retention_timestamp) VALUES ('a', 1), ('b', 1), ('c', 1), ('new', 50)`);
        await database.run(sql`UPDATE ${table(name)} SET retention_timestamp = 1 WHERE workflow_uuid = ${workflowID}`);
      }

      const collected = await garbageCollect(operator, { cutoffEpochTimestampMs: 50, batchSize: 2 });

      expect(collected).toEqual({ workflows: 0, orphans: 3 });
      expect(await countRows(database, 'new')).toEqual({ workflow_input: 1, workflow_output: 1 });
      expect(await countRows(database, workflowID)).toMatchObject({ workflow_input: 1, workflow_output: 1 });
    });

    test('by two at once takes each workflow once', async () => {
      const { database, operator, add } = await setup(dialect);
      await add(ended(200), (index) => index);
      const options = { cutoffEpochTimestampMs: 150, batchSize: 7 };

      const both = await Promise.all([garbageCollect(operator, options), garbageCollect(operator, options)]);

      expect(both.reduce((sum, { workflows }) => sum + workflows, 0)).toBe(150);
      expect(await timesIn(database)).toHaveLength(50);
    });

    test('does not take a workflow that is let go on at the same time', async () => {
      const { database, add } = await setup(dialect);
      const workflows = ended(20, { status: 'CANCELLED' });
      await add(workflows, (index) => index);
      // Between the look at the workflows and the commit.
      const resuming: Pick<Database, 'dialect' | 'read' | 'transaction'> = {
        dialect: database.dialect,
        read: (statement) => database.read(statement),
        transaction: async (body) => {
          await database.run(sql`UPDATE ${table('workflow_status')} SET status = 'ENQUEUED' WHERE created_at < 10`);
          return database.transaction(body);
        },
      };

      const collected = await garbageCollect(operatorOn(resuming as Database), { cutoffEpochTimestampMs: 100 });

      expect(collected.workflows).toBe(10);
      expect(await timesIn(database)).toEqual(Array.from({ length: 10 }, (_, index) => index));
    });

    test('a global timeout cancels what is active and was created by then', async () => {
      const { database, operator, add } = await setup(dialect);
      const changed = published(operator.bus, topics.changes);
      const active = Array.from({ length: 1200 }, (_, index) =>
        newWorkflow({ workflowID: `w${index}`, applicationName: index < 1000 ? 'test' : 'other' }),
      );
      await add(active, () => 7);
      await add([...ended(3), newWorkflow({ workflowID: 'later' })], (index) => 5 + index);

      const count = await globalTimeout(operator, 7.9);

      expect(count).toBe(1000);
      expect(changed).toHaveLength(1000);
      const rows = await database.read(sql`
        SELECT w.status, COUNT(*) AS n FROM ${table('workflow_status')} AS w GROUP BY w.status`);
      expect(Object.fromEntries(rows.map((row) => [row['status'], row['n']]))).toEqual({
        CANCELLED: 1000,
        PENDING: 201,
        SUCCESS: 3,
      });
    });
  });

  onlyOn('postgres', (dialect) => {
    test('takes checkpoints whose workflow is gone where the server stores no triggers', async () => {
      const { database, operator } = await setup(dialect);
      const workflowID = await addWithHistory(database, { status: 'PENDING' });
      await database.exclusive((connection) =>
        connection.script(`
          DROP TRIGGER everstep_step_checked ON dbos.operation_outputs;
          UPDATE dbos.operation_outputs SET retention_timestamp = 1;
          INSERT INTO dbos.operation_outputs (workflow_uuid, function_id, retention_timestamp)
            SELECT 'gone', n, 1 FROM generate_series(1, 5) AS n`),
      );

      const collected = await garbageCollect(operator, { cutoffEpochTimestampMs: 50, batchSize: 3 });

      expect(collected.orphans).toBe(1);
      expect(await countRows(database, 'gone')).toEqual({});
      expect(await countRows(database, workflowID)).toMatchObject({ operation_outputs: 5 });
    });
  });

  test.each([
    [{}, 'needs cutoffEpochTimestampMs'],
    [{ cutoffEpochTimestampMs: Number.NaN }, 'cutoffEpochTimestampMs'],
    [{ rowsThreshold: 0 }, 'rowsThreshold'],
    [{ rowsThreshold: 1.5 }, 'rowsThreshold'],
    [{ cutoffEpochTimestampMs: 1, batchSize: -1 }, 'batchSize'],
    [{ cutoffEpochTimestampMs: 1, restFactor: -1 }, 'restFactor'],
  ])('with %j is refused', async (options, message) => {
    await expect(garbageCollect(operatorOn(undefined as never), options)).rejects.toThrow(message);
  });

  test('a global timeout without a time is refused', async () => {
    await expect(globalTimeout(operatorOn(undefined as never), Number.NaN)).rejects.toThrow('cutoffEpochTimestampMs');
  });
});
