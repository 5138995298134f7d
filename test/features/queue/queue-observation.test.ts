import { describe, expect, test } from 'vitest';
import { WorkflowQueue } from '../../../src/index.js';
import { forEachDialect } from '../../rig/dialects.js';
import { createEngine } from '../../rig/engines.js';
import { ManualClock, until } from '../../rig/manual-clock.js';
import { newHalt } from '../../run/succession.js';

forEachDialect((dialect) => {
  /** A launched engine whose time stands still, with a workflow that waits to be let go. */
  async function setup() {
    const clock = new ManualClock();
    const { DBOS, url } = await createEngine(dialect, { applicationVersion: 'v1' }, clock.settings);
    const halt = newHalt();
    const workflow = DBOS.registerWorkflow(async () => halt.here(), { name: 'workflow' });
    await DBOS.launch();
    return { DBOS, url, clock, halt, workflow };
  }

  describe('getQueueStats', () => {
    test('counts what waits, is delayed and runs, and how long the first has been waiting', async () => {
      const { DBOS, clock, halt, workflow } = await setup();
      await DBOS.registerQueue('busy', { globalConcurrency: 1 });
      await DBOS.registerQueue('still');
      await DBOS.pauseQueue('still');
      await DBOS.startWorkflow(workflow, { queueName: 'busy' })();
      await halt.reached;
      clock.advance(100);
      await DBOS.startWorkflow(workflow, { queueName: 'busy' })();
      clock.advance(200);
      await DBOS.startWorkflow(workflow, { queueName: 'busy' })();
      await DBOS.startWorkflow(workflow, { queueName: 'still', enqueueOptions: { delaySeconds: 60 } })();
      clock.advance(1000);

      const stats = await DBOS.getQueueStats();

      expect(stats).toEqual([
        { queueName: 'busy', enqueued: 2, delayed: 0, running: 1, parked: 0, oldestWaitMs: 1200 },
        { queueName: 'still', enqueued: 0, delayed: 1, running: 0, parked: 0, oldestWaitMs: null },
      ]);
      expect(await DBOS.getQueueStats({ queueName: 'still' })).toEqual(stats.slice(1));
      expect(await DBOS.getQueueStats({ queueName: ['busy', 'missing'] })).toEqual(stats.slice(0, 1));
      expect(await DBOS.getQueueStats({ queueName: [] })).toEqual([]);
      halt.release();
    });

    test('counts each partition by itself', async () => {
      const { DBOS, clock, halt, workflow } = await setup();
      await DBOS.registerQueue('q', { partitionConcurrency: 1 });
      const start = (queuePartitionKey: string, delaySeconds?: number) =>
        DBOS.startWorkflow(workflow, { queueName: 'q', enqueueOptions: { queuePartitionKey, delaySeconds } })();
      await start('a');
      await halt.reached;
      await start('a');
      await start('b', 10);
      clock.advance(500);

      expect(await DBOS.getQueueStats({ queueName: 'q', byPartition: true })).toEqual([
        { queueName: 'q', partitionKey: 'a', enqueued: 1, delayed: 0, running: 1, parked: 0, oldestWaitMs: 500 },
        { queueName: 'q', partitionKey: 'b', enqueued: 0, delayed: 1, running: 0, parked: 0, oldestWaitMs: null },
      ]);
      expect(await DBOS.getQueueStats({ queueName: 'q' })).toEqual([
        { queueName: 'q', enqueued: 1, delayed: 1, running: 1, parked: 0, oldestWaitMs: 500 },
      ]);
      halt.release();
    });

    test('does not count the delay as waiting', async () => {
      const { DBOS, clock, workflow } = await setup();
      await DBOS.registerQueue('q');
      await DBOS.pauseQueue('q');
      await DBOS.startWorkflow(workflow, { queueName: 'q', enqueueOptions: { delaySeconds: 10 } })();
      await clock.untilArmed(10_000);
      clock.advance(10_000);
      await until(async () => (await DBOS.getQueueStats())[0]?.enqueued === 1);

      clock.advance(300);

      expect((await DBOS.getQueueStats())[0]?.oldestWaitMs).toBe(300);
    });

    test('counts neither what has ended nor what runs without a queue, nor other applications', async () => {
      const { DBOS, halt, workflow } = await setup();
      await DBOS.registerQueue('q');
      const ended = await DBOS.startWorkflow(workflow, { queueName: 'q' })();
      halt.release();
      await ended.getResult();
      await DBOS.startWorkflow(workflow)();
      const theirs = { queueName: 'theirs', workflowName: 'workflow', applicationName: 'other' };
      await DBOS.enqueueWorkflowWithOptions(theirs);

      expect(await DBOS.getQueueStats()).toEqual([]);
    });
  });

  describe('explainWorkflow', () => {
    test('follows a workflow from its delay to its end', async () => {
      const { DBOS, clock, halt, workflow } = await setup();
      await DBOS.registerQueue('q');
      await DBOS.pauseQueue('q');
      const enqueueOptions = { delaySeconds: 10 };
      const handle = await DBOS.startWorkflow(workflow, { workflowID: 'w', queueName: 'q', enqueueOptions })();
      const reasonOf = async () => (await DBOS.explainWorkflow('w')).reason;
      const reasons = [await reasonOf()];

      await clock.untilArmed(10_000);
      clock.advance(10_000);
      await until(async () => (await handle.getStatus())?.status === 'ENQUEUED');
      reasons.push(await reasonOf());
      await DBOS.resumeQueue('q');
      await halt.reached;
      reasons.push(await reasonOf());
      halt.release();
      await handle.getResult();
      reasons.push(await reasonOf());

      expect(reasons).toEqual(['delayed', 'paused', 'running', 'succeeded']);
    });

    test('knows the limits of a queue that is defined in memory', async () => {
      const { DBOS } = await createEngine(dialect);
      const queue = new WorkflowQueue('memory', { globalConcurrency: 1 }, DBOS);
      const halt = newHalt();
      const workflow = DBOS.registerWorkflow(async () => halt.here(), { name: 'workflow' });
      await DBOS.launch();
      await DBOS.startWorkflow(workflow, { queueName: queue.name })();
      await halt.reached;
      const waiting = await DBOS.startWorkflow(workflow, { queueName: queue.name })();

      expect(await DBOS.explainWorkflow(waiting.workflowID)).toMatchObject({ reason: 'concurrency' });
      halt.release();
      await waiting.getResult();
    });

    test('knows that the internal queue is always served', async () => {
      const { DBOS } = await createEngine(dialect, { listenQueues: [] });
      await DBOS.launch();
      await DBOS.registerQueue('q');
      const options = { queueName: 'q', workflowName: 'elsewhere', appVersion: DBOS.applicationVersion };
      const handle = await DBOS.enqueueWorkflowWithOptions(options);
      expect(await DBOS.explainWorkflow(handle.workflowID)).toMatchObject({ reason: 'queue-not-served' });

      await DBOS.resumeWorkflow(handle.workflowID);

      expect(await DBOS.explainWorkflow(handle.workflowID)).toMatchObject({ reason: 'function-not-registered' });
    });

    test('in a workflow is not recorded', async () => {
      const { DBOS } = await createEngine(dialect);
      const workflow = DBOS.registerWorkflow(
        async () => [(await DBOS.explainWorkflow('missing')).reason, await DBOS.getQueueStats()],
        { name: 'workflow' },
      );
      await DBOS.launch();

      const handle = await DBOS.startWorkflow(workflow)();

      expect(await handle.getResult()).toEqual(['not-found', []]);
      expect(await DBOS.listWorkflowSteps(handle.workflowID)).toEqual([]);
    });
  });
});
