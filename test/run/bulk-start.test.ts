import { describe, expect, test } from 'vitest';
import type { DBOSInstance, StartWorkflowParams } from '../../src/index.js';
import { forEachDialect } from '../rig/dialects.js';
import { createEngine } from '../rig/engines.js';
import { setupEnqueueing } from '../features/queue/enqueueing.js';
import { createGenerations, failureOf, newHalt } from './succession.js';

forEachDialect((dialect) => {
  const setup = () => setupEnqueueing(dialect);

  describe('startWorkflows', () => {
    const numbers = (count: number) => Array.from({ length: count }, (_, n) => ({ args: [n] as [number] }));

    /** How many workflows are in the queues. */
    async function countAll(DBOS: DBOSInstance): Promise<number> {
      const stats = await DBOS.getQueueStats();
      return stats.reduce((sum, { enqueued, delayed, running }) => sum + enqueued + delayed + running, 0);
    }

    test('enqueues thousands, and they run in order', async () => {
      const { DBOS } = await createEngine(dialect);
      const order: number[] = [];
      const workflow = DBOS.registerWorkflow(async (n: number) => void order.push(n), { name: 'workflow' });
      await DBOS.launch();
      await DBOS.registerQueue('q', { globalConcurrency: 200 });

      const handles = await DBOS.startWorkflows(workflow, numbers(3000), { queueName: 'q' });
      await DBOS.waitAll(handles);

      expect(handles).toHaveLength(3000);
      expect(order).toEqual(Array.from({ length: 3000 }, (_, n) => n));
    });

    test('gives handles in the order of the starts, with what each says of itself', async () => {
      const { DBOS, echo } = await setup();

      const handles = await DBOS.startWorkflows(
        echo,
        [
          { args: ['a'], workflowID: 'one', enqueueOptions: { priority: 1 } },
          { args: ['b'], queueName: 'other', timeoutMS: 5 },
          { args: ['c'], enqueueOptions: { delaySeconds: 1 } },
        ],
        { queueName: 'q', enqueueOptions: { priority: 9, queuePartitionKey: 'k' }, authenticatedUser: 'ann' },
      );

      const statuses = await Promise.all(handles.map((handle) => handle.getStatus()));
      expect(statuses).toMatchObject([
        { workflowID: 'one', queueName: 'q', priority: 1, queuePartitionKey: 'k', authenticatedUser: 'ann' },
        { queueName: 'other', priority: 9, timeoutMS: 5, input: ['b'] },
        { queueName: 'q', status: 'DELAYED', priority: 9, input: ['c'] },
      ]);
    });

    test('takes the queue that is set around it', async () => {
      const { DBOS, echo } = await setup();

      const [handle] = await DBOS.withWorkflowQueue('q', () => DBOS.startWorkflows(echo, [{ args: [] }]));

      expect((await handle?.getStatus())?.queueName).toBe('q');
    });

    test('of nothing gives nothing', async () => {
      const { DBOS, echo } = await setup();

      expect(await DBOS.startWorkflows(echo, [], { queueName: 'q' })).toEqual([]);
    });

    test('leaves workflows alone that are there already', async () => {
      const { DBOS, echo, enqueue } = await setup();
      await enqueue({ priority: 3 }, { workflowID: 'b' });

      const starts = ['a', 'b', 'c'].map((workflowID) => ({ args: [workflowID], workflowID }));
      const handles = await DBOS.startWorkflows(echo, starts, { queueName: 'q' });

      expect(handles.map((handle) => handle.workflowID)).toEqual(['a', 'b', 'c']);
      expect(await handles[1]?.getStatus()).toMatchObject({ priority: 3, input: ['x'] });
      expect(await countAll(DBOS)).toBe(3);
    });

    test("gives the holder of a deduplication ID with 'return-existing'", async () => {
      const { DBOS, echo, enqueue } = await setup();
      await enqueue({ deduplicationID: 'd' }, { workflowID: 'holder' });

      const handles = await DBOS.startWorkflows(
        echo,
        [
          { args: [], workflowID: 'fresh' },
          { args: [], enqueueOptions: { deduplicationID: 'd' }, duplicationPolicy: 'return-existing' },
        ],
        { queueName: 'q' },
      );

      expect(handles.map((handle) => handle.workflowID)).toEqual(['fresh', 'holder']);
    });

    test('works with a single connection, also where workflows are there already', async () => {
      const { DBOS } = await createEngine(dialect, { systemDatabasePoolSize: 1 });
      const workflow = DBOS.registerWorkflow(async () => {}, { name: 'workflow' });
      await DBOS.launch();
      await DBOS.registerQueue('q');
      const starts = ['a', 'b'].map((workflowID) => ({ args: [] as [], workflowID }));
      await DBOS.startWorkflows(workflow, starts, { queueName: 'q' });

      const handles = await DBOS.startWorkflows(workflow, starts, { queueName: 'q' });

      expect(handles.map((handle) => handle.workflowID)).toEqual(['a', 'b']);
    });

    type Start = StartWorkflowParams & { args: unknown[] };
    test.each<[string, Start, string]>([
      ['a held deduplication ID', { args: [], enqueueOptions: { deduplicationID: 'held' } }, 'QUEUE_DUPLICATED'],
      [
        'an ID in use that is to be rejected',
        { args: [], workflowID: 'w', workflowIDReusePolicy: 'reject' },
        'WORKFLOW_ID_IN_USE',
      ],
      ['an ID of another function', { args: [], workflowID: 'another' }, 'CONFLICTING_WORKFLOW'],
      ['an ID that is given twice', { args: [], workflowID: 'good' }, 'INVALID_ARGUMENT'],
      [
        'a deduplication ID that is given twice',
        { args: [], enqueueOptions: { deduplicationID: 'good' } },
        'QUEUE_DUPLICATED',
      ],
      ['a bad priority', { args: [], enqueueOptions: { priority: -1 } }, 'INVALID_QUEUE_PRIORITY'],
      ['a bad delay', { args: [], enqueueOptions: { delaySeconds: -1 } }, 'INVALID_ARGUMENT'],
      ['a bad timeout', { args: [], timeoutMS: NaN }, 'INVALID_ARGUMENT'],
      ['bad attributes', { args: [], workflowAttributes: [] as never }, 'INVALID_ARGUMENT'],
      ['a partitioned queue without a key', { args: [], queueName: 'parts' }, 'INVALID_QUEUE'],
    ])('with %s enqueues nothing', async (_, bad, code) => {
      const { DBOS, echo, enqueue } = await setup();
      await DBOS.registerQueue('parts', { partitionConcurrency: 1 });
      await enqueue({ deduplicationID: 'held' }, { workflowID: 'w' });
      await DBOS.enqueueWorkflowWithOptions({ queueName: 'q', workflowName: 'other', workflowID: 'another' });
      const good = { args: [], workflowID: 'good', enqueueOptions: { deduplicationID: 'good' } };

      const error = await failureOf(DBOS.startWorkflows(echo, [good, bad], { queueName: 'q' }));

      expect(error['code']).toBe(code);
      expect(await DBOS.getWorkflowStatus('good')).toBeNull();
      expect(await countAll(DBOS)).toBe(2);
    });

    test('without a queue, or with nonsense, is refused', async () => {
      const { DBOS, echo } = await setup();
      const refusalOf = (code: () => unknown) => failureOf(Promise.resolve().then(code));

      const noQueue = await refusalOf(() => DBOS.startWorkflows(echo, [{ args: [] }]));
      const noFunction = await refusalOf(() => DBOS.startWorkflows(async () => {}, [{ args: [] }], { queueName: 'q' }));
      const noList = await refusalOf(() => DBOS.startWorkflows(echo, 'two' as never, { queueName: 'q' }));
      const noArguments = await refusalOf(() => DBOS.startWorkflows(echo, [{} as never], { queueName: 'q' }));
      const noStart = await refusalOf(() => DBOS.startWorkflows(echo, [null as never], { queueName: 'q' }));

      expect(noQueue.message).toBe('startWorkflows enqueues workflows, so it needs a queueName.');
      expect(noFunction.name).toBe('DBOSNotRegisteredError');
      for (const error of [noList, noArguments, noStart]) expect(error).toBeInstanceOf(Error);
      expect(await countAll(DBOS)).toBe(0);
    });

    test('in a workflow is one record, and gives the same workflows after a recovery', async () => {
      const { first, second } = await createGenerations(dialect);
      const halt = newHalt();
      const seen: string[][] = [];
      for (const DBOS of [first, second]) {
        const echo = DBOS.registerWorkflow(async (n: number) => n, { name: 'echo' });
        DBOS.registerWorkflow(
          async () => {
            const handles = await DBOS.startWorkflows(echo, numbers(3), { queueName: 'q' });
            seen.push(handles.map((handle) => handle.workflowID));
            if (DBOS === first) await halt.here();
            return Promise.all(handles.map((handle) => handle.getResult()));
          },
          { name: 'parent' },
        );
      }
      await first.launch();
      await first.registerQueue('q');
      await first.enqueueWorkflowWithOptions({ queueName: 'q', workflowName: 'parent', workflowID: 'parent' });
      await halt.reached;
      await first.shutdown();
      await second.launch();

      expect(await second.retrieveWorkflow('parent').getResult()).toEqual([0, 1, 2]);
      expect(seen).toEqual([
        ['parent-0-0', 'parent-0-1', 'parent-0-2'],
        ['parent-0-0', 'parent-0-1', 'parent-0-2'],
      ]);
      expect(await second.getWorkflowStatus('parent-0-1')).toMatchObject({ parentWorkflowID: 'parent' });
      const steps = (await second.listWorkflowSteps('parent'))!;
      expect(steps.map(({ name }) => name)).toEqual([
        'DBOS.startWorkflows',
        'DBOS.getResult',
        'DBOS.getResult',
        'DBOS.getResult',
      ]);
    });

    test('in a workflow has a refusal recorded, and is not for steps', async () => {
      const { DBOS, echo, enqueue, inWorkflow } = await setup();
      await enqueue({ deduplicationID: 'd' });
      const starts = [{ args: [], enqueueOptions: { deduplicationID: 'd' } }];

      const errors = await inWorkflow(async () => [
        (await failureOf(DBOS.startWorkflows(echo, starts, { queueName: 'q' }))).name,
        (
          await failureOf(
            DBOS.runStep(async () => void (await DBOS.startWorkflows(echo, starts, { queueName: 'q' })), {
              name: 'step',
            }),
          )
        ).name,
      ]);

      expect(errors).toEqual(['DBOSQueueDuplicatedError', 'DBOSInvalidWorkflowTransitionError']);
      const steps = (await DBOS.listWorkflowSteps('parent'))!;
      expect(steps.map(({ name, error }) => [name, error?.name])).toEqual([
        ['DBOS.startWorkflows', 'DBOSQueueDuplicatedError'],
        ['step', 'DBOSInvalidWorkflowTransitionError'],
      ]);
    });
  });
});
