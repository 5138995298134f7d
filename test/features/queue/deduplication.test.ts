import { describe, expect, test } from 'vitest';
import type { DBOSInstance, StartWorkflowParams } from '../../../src/index.js';
import { forEachDialect } from '../../rig/dialects.js';
import { createEngine } from '../../rig/engines.js';
import { ManualClock, until } from '../../rig/manual-clock.js';
import { replayParent, setupEnqueueing } from './enqueueing.js';
import { failureOf, newHalt } from '../../run/succession.js';

forEachDialect((dialect) => {
  const setup = () => setupEnqueueing(dialect);
  const replay = <R>(body: (DBOS: DBOSInstance) => Promise<R>) => replayParent(dialect, body);

  /** What a workflow does in both generations of `replay`. */
  const enqueueEcho = (DBOS: DBOSInstance, deduplicationID: string, params: StartWorkflowParams = {}) =>
    DBOS.enqueueWorkflowWithOptions(
      { queueName: 'q', workflowName: 'echo', deduplicationID, duplicationPolicy: params.duplicationPolicy },
      1,
    );

  describe('a deduplication ID', () => {
    test('that is held is refused', async () => {
      const { enqueue } = await setup();
      await enqueue({ deduplicationID: 'd' }, { workflowID: 'first' });

      const error = await failureOf(enqueue({ deduplicationID: 'd' }, { workflowID: 'second' }));

      expect(error).toMatchObject({
        name: 'DBOSQueueDuplicatedError',
        dbosErrorCode: 28,
        workflowID: 'second',
        queue: 'q',
        deduplicationID: 'd',
      });
    });

    test('is held by a delayed workflow, by one that waits, and by one that runs', async () => {
      const clock = new ManualClock();
      const { DBOS } = await createEngine(dialect, {}, clock.settings);
      const halt = newHalt();
      const workflow = DBOS.registerWorkflow(async () => halt.here(), { name: 'workflow' });
      await DBOS.launch();
      await DBOS.registerQueue('q');
      await DBOS.pauseQueue('q');
      const enqueue = (delaySeconds?: number) =>
        DBOS.startWorkflow(workflow, { queueName: 'q', enqueueOptions: { deduplicationID: 'd', delaySeconds } })();
      const handle = await enqueue(10);
      const refusals = [await failureOf(enqueue())];

      clock.advance(10_000);
      await until(async () => (await handle.getStatus())?.status === 'ENQUEUED');
      refusals.push(await failureOf(enqueue()));
      await DBOS.resumeQueue('q');
      await halt.reached;
      refusals.push(await failureOf(enqueue()));

      expect(refusals.map((error) => error.name)).toEqual(refusals.map(() => 'DBOSQueueDuplicatedError'));
      halt.release();
      await handle.getResult();
    });

    test('belongs to its queue alone, and spans its partitions', async () => {
      const { DBOS, enqueue } = await setup();
      await DBOS.registerQueue('other');
      await DBOS.pauseQueue('other');
      await enqueue({ deduplicationID: 'd', queuePartitionKey: 'a' });

      const elsewhere = await enqueue({ deduplicationID: 'd' }, { queueName: 'other' });
      const error = await failureOf(enqueue({ deduplicationID: 'd', queuePartitionKey: 'b' }));

      expect((await elsewhere.getStatus())?.status).toBe('ENQUEUED');
      expect(error.name).toBe('DBOSQueueDuplicatedError');
    });

    test('is free again when its holder has ended or was cancelled', async () => {
      const { DBOS, enqueue } = await setup();
      const cancelled = await enqueue({ deduplicationID: 'd' });
      await DBOS.cancelWorkflow(cancelled.workflowID);
      const ended = await enqueue({ deduplicationID: 'd' });
      await DBOS.resumeQueue('q');
      await ended.getResult();
      await DBOS.pauseQueue('q');

      const handle = await enqueue({ deduplicationID: 'd' });

      expect(await handle.getStatus()).toMatchObject({ status: 'ENQUEUED', deduplicationID: 'd' });
      expect((await ended.getStatus())?.deduplicationID).toBeUndefined();
    });

    test("with 'return-existing' gives the holder", async () => {
      const { DBOS, enqueue } = await setup();
      const params = { duplicationPolicy: 'return-existing' } as const;
      const first = await enqueue({ deduplicationID: 'd' }, { ...params, workflowID: 'first' });

      const second = await enqueue({ deduplicationID: 'd' }, { ...params, workflowID: 'second' });

      expect(first.workflowID).toBe('first');
      expect(second.workflowID).toBe('first');
      expect(await DBOS.getWorkflowStatus('second')).toBeNull();
      await DBOS.resumeQueue('q');
      expect(await second.getResult()).toEqual(['x']);
    });

    test("is needed for 'return-existing', and so is a queue", async () => {
      const { DBOS, echo, enqueue } = await setup();
      const duplicationPolicy = 'return-existing' as const;

      const errors = [
        await failureOf(enqueue({}, { duplicationPolicy })),
        await failureOf(DBOS.startWorkflow(echo, { duplicationPolicy })()),
      ];

      for (const error of errors) expect(error.name).toBe('DBOSInvalidWorkflowTransitionError');
    });

    test('that is held is the recorded outcome of the call in a workflow', async () => {
      const { results, steps } = await replay(async (DBOS) => {
        await enqueueEcho(DBOS, 'd');
        return (await failureOf(enqueueEcho(DBOS, 'd'))).name;
      });

      expect(results).toEqual(['DBOSQueueDuplicatedError', 'DBOSQueueDuplicatedError']);
      expect(steps.map(({ name, childWorkflowID }) => [name, childWorkflowID])).toEqual([
        ['echo', 'parent-0'],
        ['echo', null],
      ]);
      expect(steps[1]?.error?.name).toBe('DBOSQueueDuplicatedError');
    });

    test("with 'return-existing' in a workflow gives the same holder after a recovery", async () => {
      const { results, steps, DBOS } = await replay(async (own) => {
        const handle = await enqueueEcho(own, 'd');
        const again = await enqueueEcho(own, 'd', { duplicationPolicy: 'return-existing' });
        // Then the recovered workflow finds the key free.
        await own.cancelWorkflow(handle.workflowID);
        return again.workflowID;
      });

      expect(results).toEqual(['parent-0', 'parent-0']);
      expect(steps.map(({ functionID, name, childWorkflowID }) => [functionID, name, childWorkflowID])).toEqual([
        [0, 'echo', 'parent-0'],
        [1, 'echo', 'parent-0'],
        [2, 'DBOS.cancelWorkflow', null],
      ]);
      expect(await DBOS.getWorkflowStatus('parent-1')).toBeNull();
    });
  });

  describe('a workflow ID that is in use', () => {
    test('gives the workflow that has it', async () => {
      const { DBOS, echo, enqueue } = await setup();
      await enqueue({ priority: 1 }, { workflowID: 'w' });

      const handle = await DBOS.startWorkflow(echo, { queueName: 'q', workflowID: 'w' })('other');

      expect(await handle.getStatus()).toMatchObject({ workflowID: 'w', priority: 1, input: ['x'] });
    });

    test("is refused with the policy 'reject'", async () => {
      const { enqueue } = await setup();
      const params = { workflowID: 'w', workflowIDReusePolicy: 'reject' } as const;
      await enqueue({}, params);

      const error = await failureOf(enqueue({}, params));

      expect(error).toMatchObject({ name: 'DBOSWorkflowIDInUseError', dbosErrorCode: 36, workflowID: 'w' });
    });

    test("is refused with the policy 'reject' in a workflow in the same way after a recovery", async () => {
      const { results, steps } = await replay(async (DBOS) => {
        const options = {
          queueName: 'q',
          workflowName: 'echo',
          workflowID: 'w',
          workflowIDReusePolicy: 'reject',
        } as const;
        await DBOS.enqueueWorkflowWithOptions(options);
        return (await failureOf(DBOS.enqueueWorkflowWithOptions(options))).name;
      });

      expect(results).toEqual(['DBOSWorkflowIDInUseError', 'DBOSWorkflowIDInUseError']);
      expect(steps.map(({ error }) => error?.name)).toEqual([undefined, 'DBOSWorkflowIDInUseError']);
    });

    test('by another function is a conflict', async () => {
      const { DBOS, enqueue } = await setup();
      await enqueue({}, { workflowID: 'w' });

      const error = await failureOf(
        DBOS.enqueueWorkflowWithOptions({ queueName: 'q', workflowName: 'another', workflowID: 'w' }),
      );

      expect(error).toMatchObject({ name: 'DBOSConflictingWorkflowError', dbosErrorCode: 22 });
    });
  });
});
