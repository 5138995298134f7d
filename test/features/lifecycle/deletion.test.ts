import { describe, expect, test, vi } from 'vitest';
import { silentLogger } from '../../../src/kernel/base/log.js';
import { cancelWorkflows, deleteWorkflows, resumeWorkflows } from '../../../src/features/lifecycle/lifecycle.js';
import { getHistory, tailHistory } from '../../../src/features/history/history.js';
import { registerQueue } from '../../../src/features/queue/queues.js';
import { sql, table } from '../../../src/kernel/sql/sql.js';
import type { Database } from '../../../src/database/database.js';
import { findWorkflows, insertWorkflows, type NewWorkflow } from '../../../src/run/rows/workflows.js';
import { forEachDialect, onlyOn } from '../../rig/dialects.js';
import { operatorOn, published } from '../../rig/operators.js';
import { topics } from '../../../src/database/notify/topics.js';
import { newWorkflow } from '../../rig/records.js';
import { addWithHistory, countRows } from './histories.js';

const MANY = 10_000;

async function idsIn(database: Database): Promise<unknown[]> {
  const rows = await database.read(sql`SELECT w.workflow_uuid FROM ${table('workflow_status')} AS w`);
  return rows.map((row) => row['workflow_uuid']).sort();
}

/** Ten thousand workflows in a tree: each has ten children. */
function newTree(): NewWorkflow[] {
  return Array.from({ length: MANY }, (_, index) => {
    const parentWorkflowID = index === 0 ? null : `w${Math.floor((index - 1) / 10)}`;
    return newWorkflow({ workflowID: `w${index}`, parentWorkflowID, status: 'ENQUEUED', owner: null, queueName: 'q' });
  });
}

describe('deleteWorkflows', () => {
  forEachDialect((dialect) => {
    test('leaves nothing of a workflow in any table, and all of others', async () => {
      const database = await dialect.create();
      const [gone, running, kept] = [
        await addWithHistory(database),
        await addWithHistory(database, { status: 'PENDING', queueName: 'q', queuePartitionKey: 'k' }),
        await addWithHistory(database),
      ];
      const before = await countRows(database, kept);
      const operator = operatorOn(database);
      const changed = published(operator.bus, topics.changes);
      const queued = published(operator.bus, topics.work);

      await deleteWorkflows(operator, [gone, running, 'nobody']);

      expect(await countRows(database, gone)).toEqual({});
      expect(await countRows(database, running)).toEqual({});
      expect(await countRows(database, kept)).toEqual(before);
      expect(changed.sort()).toEqual([gone, running].sort());
      expect(queued).toMatchObject([{ queueName: 'q', partitionKey: 'k' }]);
    });

    test('the log says who deleted workflows, and why', async () => {
      const database = await dialect.create();
      await database.run(insertWorkflows([newWorkflow({ workflowID: 'w' })]));
      const info = vi.fn();
      const operator = operatorOn(database, { logger: { ...silentLogger, info } });

      await deleteWorkflows(operator, ['w'], { reason: 'data protection', actor: 'ops@example.com' });
      await deleteWorkflows(operator, ['w'], { reason: 'again' });

      expect(info.mock.calls).toEqual([['Deleted "w" by "ops@example.com": "data protection".']]);
    });

    test('the history of a deleted workflow says who deleted it, and why', async () => {
      const database = await dialect.create();
      const operator = operatorOn(database);
      const eventsOf = async (workflowID: string) => {
        const events = [];
        for await (const { type, actor, details } of getHistory(operator, workflowID)) {
          events.push({ type, actor, details });
        }
        return events;
      };
      const parent = newWorkflow({ workflowID: 'w', name: 'order' });
      await database.run(insertWorkflows([parent, newWorkflow({ workflowID: 'quiet' })]));
      await database.run(insertWorkflows([newWorkflow({ workflowID: 'child', parentWorkflowID: 'w' })]));

      await deleteWorkflows(operator, ['w', 'gone'], { deleteChildren: true, reason: 'test data', actor: 'ops' });
      await deleteWorkflows(operator, ['quiet']);

      expect(await eventsOf('w')).toEqual([
        { type: 'WorkflowDeleted', actor: 'ops', details: { workflow_name: 'order', reason: 'test data' } },
      ]);
      expect(await eventsOf('child')).toMatchObject([{ type: 'WorkflowDeleted', actor: 'ops' }]);
      expect(await eventsOf('quiet')).toEqual([]);
      expect(await eventsOf('gone')).toEqual([]);
    });

    test('readers of the journal see deletions, and they outlast a workflow with the same ID', async () => {
      const database = await dialect.create();
      const operator = operatorOn(database);
      const typesOf = async (): Promise<string[]> => {
        const types = [];
        for await (const { type } of getHistory(operator, 'w')) types.push(type);
        return types;
      };
      const created = sql`UPDATE ${table('workflow_status')} SET created_at = created_at + 1000`;
      for (const reason of ['first', 'second']) {
        await database.run(insertWorkflows([newWorkflow({ workflowID: 'w', owner: null, status: 'ENQUEUED' })]));
        await database.run(created);
        await deleteWorkflows(operator, ['w'], { reason });
      }
      await database.run(insertWorkflows([newWorkflow({ workflowID: 'w', owner: null, status: 'ENQUEUED' })]));
      await database.run(created);

      expect(await typesOf()).toEqual(['WorkflowDeleted', 'WorkflowDeleted', 'WorkflowStarted']);
      const followed = [];
      // On Postgres, events appear when no older transaction of the server is open.
      for await (const { type, workflowID, details } of tailHistory(operator, { since: 0 })) {
        followed.push({ type, workflowID, details });
        if (followed.length === 2) break;
      }
      expect(followed).toMatchObject([
        { type: 'WorkflowDeleted', workflowID: 'w', details: { reason: 'first' } },
        { type: 'WorkflowDeleted', workflowID: 'w', details: { reason: 'second' } },
      ]);

      // As if it had been restored from a copy.
      await database.run(sql`UPDATE ${table('workflow_status')} SET created_at = 1`);
      expect(await typesOf()).toEqual(['WorkflowStarted', 'WorkflowDeleted', 'WorkflowDeleted']);
    });

    test('takes descendants along if it is told to', async () => {
      const database = await dialect.create();
      const child = (workflowID: string, parentWorkflowID: string) => newWorkflow({ workflowID, parentWorkflowID });
      const [root, other] = [newWorkflow({ workflowID: 'root' }), newWorkflow({ workflowID: 'other' })];
      await database.run(insertWorkflows([root, other]));
      await database.run(
        insertWorkflows([child('a', 'root'), child('b', 'other'), child('c', 'a'), child('d', 'gone')]),
      );

      await deleteWorkflows(operatorOn(database), ['other']);
      await deleteWorkflows(operatorOn(database), ['root', 'nobody'], { deleteChildren: true });

      expect(await idsIn(database)).toEqual(['b', 'd']);
    });

    test('takes ten thousand IDs, and so do cancelling and resuming', async () => {
      const database = await dialect.create();
      const operator = operatorOn(database);
      const tree = newTree();
      const workflowIDs = tree.map(({ workflowID }) => workflowID);
      await database.run(insertWorkflows(tree));
      const statuses = async () => {
        const rows = await database.read(sql`
          SELECT w.status, COUNT(*) AS n FROM ${table('workflow_status')} AS w GROUP BY w.status`);
        return Object.fromEntries(rows.map((row) => [row['status'], row['n']])) as Record<string, number>;
      };

      await cancelWorkflows(operator, ['w0'], { cancelChildren: true });
      expect(await statuses()).toEqual({ CANCELLED: MANY });
      await resumeWorkflows(operator, workflowIDs);
      expect(await statuses()).toEqual({ ENQUEUED: MANY });
      await cancelWorkflows(operator, workflowIDs.slice(0, MANY / 2));
      expect(await statuses()).toEqual({ CANCELLED: MANY / 2, ENQUEUED: MANY / 2 });
      await deleteWorkflows(operator, workflowIDs.slice(0, MANY / 2));
      expect(await statuses()).toEqual({ ENQUEUED: MANY / 2 });
    });

    test('resuming into a partitioned queue needs a key', async () => {
      const database = await dialect.create();
      const operator = operatorOn(database);
      const names = { onConflict: 'always_update', applicationName: null, applicationVersion: null } as const;
      await registerQueue(operator, { name: 'tenants', parameters: { partitionQueue: true }, ...names });
      const [keyed, keyless, done] = [
        newWorkflow({ status: 'CANCELLED', queuePartitionKey: 'a' }),
        newWorkflow({ status: 'CANCELLED' }),
        newWorkflow({ status: 'SUCCESS' }),
      ];
      await database.run(insertWorkflows([keyed, keyless, done]));
      const workflowIDs = [keyed, keyless, done].map(({ workflowID }) => workflowID);
      const find = async ({ workflowID }: NewWorkflow) => (await findWorkflows(database, [workflowID]))[0];

      const refused = resumeWorkflows(operator, workflowIDs, { queueName: 'tenants' });
      await expect(refused).rejects.toMatchObject({ code: 'INVALID_QUEUE' });
      expect(await find(keyed)).toMatchObject({ status: 'CANCELLED' });

      await resumeWorkflows(operator, [keyed.workflowID, done.workflowID], { queueName: 'tenants' });
      expect(await find(keyed)).toMatchObject({ queueName: 'tenants', queuePartitionKey: 'a' });
      await resumeWorkflows(operator, workflowIDs, { queueName: 'tenants', queuePartitionKey: 'b' });
      expect(await find(keyless)).toMatchObject({ status: 'ENQUEUED', queuePartitionKey: 'b' });
      expect(await find(done)).toMatchObject({ status: 'SUCCESS', queueName: null });
    });
  });

  onlyOn('postgres', (dialect) => {
    test('leaves no checkpoints where no trigger deletes them', async () => {
      const database = await dialect.create();
      const workflowID = await addWithHistory(database);
      await database.exclusive((connection) =>
        connection.script('ALTER TABLE dbos.workflow_status DISABLE TRIGGER everstep_journal_deleted'),
      );

      await deleteWorkflows(operatorOn(database), [workflowID]);

      expect(await countRows(database, workflowID)).toEqual({});
    });

    test('finds children that a parent starts between the look and its own end', async () => {
      const database = await dialect.create();
      const [parent, doomed] = [newWorkflow({ owner: 'o.1' }), newWorkflow({ owner: 'o.2' })];
      await database.run(insertWorkflows([parent, doomed]));
      const childOf = ({ workflowID, owner }: NewWorkflow) =>
        newWorkflow({ parentWorkflowID: workflowID, parentOwner: owner });
      const children = [childOf(parent), childOf(doomed)];
      let changed: Promise<unknown> = Promise.resolve();

      await database.transaction(async (tx) => {
        await tx.run(insertWorkflows(children));
        const operator = operatorOn(database);
        changed = Promise.all([
          cancelWorkflows(operator, [parent.workflowID], { cancelChildren: true }),
          deleteWorkflows(operator, [doomed.workflowID], { deleteChildren: true }),
        ]);
        await expect
          .poll(async () => {
            const [row] = await database.read(
              sql`SELECT COUNT(*) AS n FROM pg_locks AS l WHERE NOT l.granted AND l.locktype = 'transactionid'`,
            );
            return row?.['n'];
          })
          .toBe(2);
      });
      await changed;

      const left = await findWorkflows(database, [doomed.workflowID, ...children.map(({ workflowID }) => workflowID)]);
      expect(left).toMatchObject([{ workflowID: children[0]?.workflowID, status: 'CANCELLED' }]);
    });
  });
});
