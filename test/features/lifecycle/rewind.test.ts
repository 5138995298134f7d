import { describe, expect, test } from 'vitest';
import { getAllEvents, getAllNotifications, getAllStreamEntries } from '../../../src/features/listing/inspection.js';
import { registerQueue } from '../../../src/features/queue/queues.js';
import { rewindWorkflow } from '../../../src/features/lifecycle/rewind.js';
import { sql, table } from '../../../src/kernel/sql/sql.js';
import { INTERNAL_QUEUE } from '../../../src/features/queue/queue.js';
import { loadSteps } from '../../../src/run/rows/steps.js';
import { findStreamEnds } from '../../../src/features/message/streams.sql.js';
import { findWorkflows } from '../../../src/run/rows/workflows.js';
import { forEachDialect, type TestDialect } from '../../rig/dialects.js';
import { operatorOn } from '../../rig/operators.js';
import { addWithHistory, countRows } from './histories.js';

async function setup(dialect: TestDialect) {
  const database = await dialect.create();
  const operator = operatorOn(database);
  const workflowID = await addWithHistory(database);
  const find = async () => (await findWorkflows(database, [workflowID]))[0];
  return { database, operator, workflowID, find };
}

describe('a rewind', () => {
  forEachDialect((dialect) => {
    test('takes the workflow back to where it was before the step', async () => {
      const { database, operator, workflowID, find } = await setup(dialect);
      const before = await find();
      const steps = await loadSteps(database, [workflowID]);

      await rewindWorkflow(operator, workflowID, { startStep: 3 });

      expect(await find()).toEqual({
        ...before,
        status: 'ENQUEUED',
        queueName: INTERNAL_QUEUE,
        recoveryAttempts: 0,
        output: null,
        error: null,
        startedAt: null,
        completedAt: null,
        creator: expect.any(String),
        updatedAt: expect.any(Number),
      });
      expect(await loadSteps(database, [workflowID])).toEqual(steps.slice(0, 3));
      expect(await getAllEvents(operator, workflowID)).toEqual({ state: 'after 1' });
      // Only its end is taken from a stream: values may have been read.
      expect(await getAllStreamEntries(operator, workflowID)).toEqual({ log: ['of 0', 'of 3', 'of 1'] });
      expect(await findStreamEnds(database, workflowID)).toEqual(new Map([['log', 3]]));
      const messages = await getAllNotifications(operator, workflowID);
      expect(messages).toMatchObject([{ topic: 'received early', consumed: true }]);
      expect(await countRows(database, workflowID)).toMatchObject({ workflow_events_history: 2, workflow_input: 1 });
      expect(await countRows(database, workflowID)).not.toHaveProperty('workflow_output');
    });

    test('to the beginning leaves nothing but the input and the streams', async () => {
      const { database, operator, workflowID } = await setup(dialect);

      await rewindWorkflow(operator, workflowID);

      expect(await countRows(database, workflowID)).toEqual({ workflow_status: 1, workflow_input: 1, streams: 3 });
    });

    test('opens a stream in which something was written behind its end', async () => {
      const { database, operator, workflowID } = await setup(dialect);
      await database.run(sql`
        INSERT INTO ${table('streams')} (workflow_uuid, key, "offset", value, function_id, serialization)
        VALUES (${workflowID}, 'log', 4, '"unread"', 5, 'portable_json')`);

      await rewindWorkflow(operator, workflowID, { startStep: 4 });

      expect(await findStreamEnds(database, workflowID)).toEqual(new Map([['log', 3]]));
    });

    test('may change version, queue and partition', async () => {
      const { operator, workflowID, find } = await setup(dialect);
      const registration = { onConflict: 'always_update', applicationName: null, applicationVersion: null } as const;
      await registerQueue(operator, { name: 'tenants', parameters: { partitionQueue: true }, ...registration });
      const place = { queueName: 'tenants', queuePartitionKey: 'a' };

      const keyless = rewindWorkflow(operator, workflowID, { queueName: 'tenants' });
      await expect(keyless).rejects.toMatchObject({ code: 'INVALID_QUEUE' });
      await rewindWorkflow(operator, workflowID, { ...place, applicationVersion: 'v2' });

      const expected = { queueName: 'tenants', queuePartitionKey: 'a', applicationVersion: 'v2', status: 'ENQUEUED' };
      expect(await find()).toMatchObject(expected);
    });

    test('of two at once is done by one, and the other says why not', async () => {
      const { operator, workflowID, find } = await setup(dialect);

      const ends = await Promise.allSettled([
        rewindWorkflow(operator, workflowID, { startStep: 1, applicationVersion: 'a' }),
        rewindWorkflow(operator, workflowID, { startStep: 4, applicationVersion: 'b' }),
      ]);

      const [refused, ...others] = ends.filter((end) => end.status === 'rejected');
      expect(others).toEqual([]);
      expect(String(refused?.reason)).toContain('is ENQUEUED, and only a workflow that has ended can be rewound');
      expect((await find())?.applicationVersion).toBe(ends[0].status === 'fulfilled' ? 'a' : 'b');
    });

    test('is done once by a call that is repeated, even if the workflow has ended again', async () => {
      const { database, operator, workflowID, find } = await setup(dialect);
      await rewindWorkflow(operator, workflowID, { token: 'call' });
      await database.run(sql`UPDATE ${table('workflow_status')} SET status = 'SUCCESS', output = '1'`);

      await rewindWorkflow(operator, workflowID, { token: 'call' });

      expect(await find()).toMatchObject({ status: 'SUCCESS', output: '1' });
    });

    test('lets data sources forget the steps first, unless it is refused', async () => {
      const { database, workflowID, find } = await setup(dialect);
      const told: unknown[] = [];
      const deleteFrom = async (id: string, startStep: number, assertEnded: () => Promise<void>) => {
        await assertEnded();
        told.push([id, startStep, (await find())?.status]);
      };
      const forgetDeleted = async (): Promise<void> => {};
      const telling = operatorOn(database, { dataSources: { deleteFrom, forgetDeleted } });

      await rewindWorkflow(telling, workflowID, { startStep: 2 });
      await expect(rewindWorkflow(telling, workflowID)).rejects.toThrow('is ENQUEUED');
      await expect(rewindWorkflow(telling, 'nobody')).rejects.toMatchObject({ code: 'NON_EXISTENT_WORKFLOW' });

      expect(told).toEqual([[workflowID, 2, 'ERROR']]);
      await database.run(sql`UPDATE ${table('workflow_status')} SET status = 'CANCELLED'`);
      const failing = { forgetDeleted, deleteFrom: () => Promise.reject(new Error('no')) };
      await expect(rewindWorkflow(operatorOn(database, { dataSources: failing }), workflowID)).rejects.toThrow('no');
      expect((await find())?.status).toBe('CANCELLED');
    });
  });

  test.each([-1, 1.5])('to step %s is refused', async (startStep) => {
    await expect(rewindWorkflow(operatorOn(undefined as never), 'w', { startStep })).rejects.toThrow('startStep');
  });
});
