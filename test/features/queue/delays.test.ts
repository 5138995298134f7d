import { describe, expect, test } from 'vitest';
import type { DBOSInstance, SetWorkflowDelayOptions } from '../../../src/index.js';
import { forEachDialect, hasPush } from '../../rig/dialects.js';
import { createEngine } from '../../rig/engines.js';
import { ManualClock, until } from '../../rig/manual-clock.js';
import { createGenerations, failureOf, newHalt } from '../../run/succession.js';

forEachDialect((dialect) => {
  /** A launched engine whose time stands still, with a workflow and a queue `q` that is paused. */
  async function setup() {
    const clock = new ManualClock();
    const { DBOS } = await createEngine(dialect, {}, clock.settings);
    const order: string[] = [];
    const workflow = DBOS.registerWorkflow(async (id: string) => void order.push(id), { name: 'workflow' });
    await DBOS.launch();
    await DBOS.registerQueue('q', { globalConcurrency: 1 });
    await DBOS.pauseQueue('q');
    const enqueue = (workflowID: string, delaySeconds?: number) =>
      DBOS.startWorkflow(workflow, { workflowID, queueName: 'q', enqueueOptions: { delaySeconds } })(workflowID);
    const statusOf = async (workflowID: string) => (await DBOS.getWorkflowStatus(workflowID))?.status;
    /** Time goes on meanwhile, as the engine may be woken while the test moves the clock. */
    const enqueued = (workflowID: string) =>
      until(async () => {
        clock.advance(5);
        return (await statusOf(workflowID)) === 'ENQUEUED';
      });
    return { DBOS, clock, workflow, order, enqueue, statusOf, enqueued };
  }

  describe('a delayed workflow', () => {
    test('is enqueued exactly when its time has come, and then runs', async () => {
      const { DBOS, clock, enqueue, statusOf, enqueued, order } = await setup();
      const handle = await enqueue('w', 10);
      await clock.untilArmed(10_000);

      clock.advance(9_999);
      expect(await statusOf('w')).toBe('DELAYED');
      clock.advance(1);
      const dueAt = clock.now();
      await enqueued('w');

      await DBOS.resumeQueue('q');
      await handle.getResult();
      const { status, dequeuedAt } = (await handle.getStatus()) ?? {};
      expect([status, order]).toEqual(['SUCCESS', ['w']]);
      // A claim that was sent while the queue was paused carries the time of then.
      expect(dequeuedAt).toBeGreaterThanOrEqual(dueAt);
      expect(dequeuedAt).toBeLessThanOrEqual(clock.now());
    });

    test('does not wait for others that are delayed longer', async () => {
      const { clock, enqueue, statusOf, enqueued } = await setup();
      await enqueue('late', 20);
      await enqueue('early', 5);
      await clock.untilArmed(5_000);

      clock.advance(5_000);
      await enqueued('early');

      expect(await statusOf('late')).toBe('DELAYED');
      clock.advance(15_000);
      await enqueued('late');
    });

    test('is one of thousands that are due together', async () => {
      const { DBOS, clock, workflow } = await setup();
      const starts = Array.from({ length: 2500 }, (_, n) => ({ args: [`w${n}`] as [string] }));
      await DBOS.startWorkflows(workflow, starts, { queueName: 'q', enqueueOptions: { delaySeconds: 1 } });
      await clock.untilArmed(1000);

      clock.advance(1000);

      await until(async () => {
        // Between two batches the engine sleeps for no time at all.
        clock.advance(0);
        const [stats] = await DBOS.getQueueStats();
        return stats?.enqueued === 2500 && stats.delayed === 0;
      });
    });

    test('is enqueued by another process when its own is gone', async () => {
      const clock = new ManualClock();
      const { first, second } = await createGenerations(dialect, {}, clock.settings);
      const workflows = [first, second].map((DBOS) =>
        DBOS.registerWorkflow(async () => DBOS === second, { name: 'workflow' }),
      );
      await first.launch();
      await first.registerQueue('q');
      const start = first.startWorkflow(workflows[0] as () => Promise<boolean>, {
        queueName: 'q',
        workflowID: 'w',
        enqueueOptions: { delaySeconds: 60 },
      });
      await start();
      await first.shutdown();
      clock.advance(60_000);

      await second.launch();

      expect(await second.retrieveWorkflow('w').getResult()).toBe(true);
    });

    test('of another application is left to that one', async () => {
      const { DBOS, clock, workflow, enqueue, statusOf, enqueued } = await setup();
      const enqueueOptions = { delaySeconds: 5, applicationName: 'other' };
      await DBOS.startWorkflow(workflow, { queueName: 'q', workflowID: 'theirs', enqueueOptions })('theirs');
      await enqueue('ours', 5);
      await clock.untilArmed(5_000);

      clock.advance(5_000);
      await enqueued('ours');

      expect(await statusOf('theirs')).toBe('DELAYED');
    });

    test('can be cancelled, and then never runs', async () => {
      const { DBOS, clock, enqueue, statusOf, order } = await setup();
      const handle = await enqueue('w', 5);

      await DBOS.cancelWorkflow('w');
      clock.advance(60_000);

      expect(await statusOf('w')).toBe('CANCELLED');
      expect((await failureOf(handle.getResult())).name).toBe('DBOSAwaitedWorkflowCancelledError');
      expect(order).toEqual([]);
    });

    test.each(['cancelled', 'delayed'])('that is %s is enqueued at once when it is resumed', async (state) => {
      const { DBOS, enqueue, order } = await setup();
      const handle = await enqueue('w', 3600);
      if (state === 'cancelled') await DBOS.cancelWorkflow('w');

      await DBOS.resumeWorkflow('w');
      await handle.getResult();

      expect(order).toEqual(['w']);
      expect((await handle.getStatus())?.delayUntilEpochMS).toBeUndefined();
    });

    test('is waited for like any that has not ended', async () => {
      const { DBOS, clock, enqueue } = await setup();
      const handles = [await enqueue('late', 3600), await enqueue('early', 5)];
      await DBOS.resumeQueue('q');
      await clock.untilArmed(5_000);
      const first = DBOS.waitFirst(handles);

      clock.advance(5_000);

      expect((await first).workflowID).toBe('early');
    });
  });

  describe('setWorkflowDelay', () => {
    test.skipIf(!hasPush).each<[string, number | ((now: number) => SetWorkflowDelayOptions)]>([
      ['seconds', 25],
      ['delaySeconds', () => ({ delaySeconds: 25 })],
      ['delayUntilEpochMS', (now) => ({ delayUntilEpochMS: now + 25_000 })],
    ])('in %s moves a workflow to a later time', async (_, options) => {
      const { DBOS, clock, enqueue, statusOf, enqueued } = await setup();
      await enqueue('w', 5);

      await DBOS.setWorkflowDelay('w', typeof options === 'number' ? options : options(clock.now()));

      expect((await DBOS.getWorkflowStatus('w'))?.delayUntilEpochMS).toBe(clock.now() + 25_000);
      await clock.untilArmed(25_000);
      clock.advance(24_999);
      expect(await statusOf('w')).toBe('DELAYED');
      clock.advance(1);
      await enqueued('w');
    });

    test('moves a workflow to an earlier time', async () => {
      const { DBOS, clock, enqueue, enqueued } = await setup();
      await enqueue('w', 600);

      await DBOS.setWorkflowDelay('w', 0.25);
      await clock.untilArmed(250);
      clock.advance(250);

      await enqueued('w');
    });

    test('to a time that is over enqueues at once', async () => {
      const { DBOS, clock, enqueue, enqueued } = await setup();
      await enqueue('w', 600);

      await DBOS.setWorkflowDelay('w', { delayUntilEpochMS: clock.now() - 1 });

      await enqueued('w');
    });

    test('takes a workflow out of its queue again', async () => {
      const { DBOS, clock, enqueue, statusOf, order } = await setup();
      const delayed = await enqueue('w');
      const other = await enqueue('other');

      await DBOS.setWorkflowDelay('w', 10);
      await DBOS.resumeQueue('q');
      await other.getResult();

      expect(await statusOf('w')).toBe('DELAYED');
      await clock.untilArmed(10_000);
      clock.advance(10_000);
      await delayed.getResult();
      expect(order).toEqual(['other', 'w']);
    });

    test.skipIf(!hasPush)('is heard by the process that serves the queue', async () => {
      const clock = new ManualClock();
      const { first, second } = await createGenerations(dialect, {}, clock.settings);
      const halt = newHalt();
      for (const DBOS of [first, second]) DBOS.registerWorkflow(async () => halt.here(), { name: 'workflow' });
      await first.launch();
      await first.registerQueue('q');
      await second.launch();
      const options = { queueName: 'q', workflowName: 'workflow', workflowID: 'w', delaySeconds: 20 };
      await first.enqueueWorkflowWithOptions(options);

      await second.setWorkflowDelay('w', 1.234);
      await clock.untilArmed(1234);
      clock.advance(1234);

      let isReached = false;
      void halt.reached.then(() => (isReached = true));
      await until(() => {
        clock.advance(1);
        return isReached;
      });
      halt.release();
      expect((await first.getWorkflowStatus('w'))?.delayUntilEpochMS).toBeLessThanOrEqual(clock.now());
    });

    test.each<[unknown, string]>([
      [{}, 'setWorkflowDelay needs exactly one of delaySeconds and delayUntilEpochMS.'],
      [{ delaySeconds: 1, delayUntilEpochMS: 1 }, 'setWorkflowDelay needs exactly one of'],
      [0, 'delaySeconds must be a positive finite number, but is 0.'],
      [-1, 'delaySeconds must be a positive finite number, but is -1.'],
      [NaN, 'delaySeconds must be a positive finite number, but is NaN.'],
      [{ delaySeconds: 0 }, 'delaySeconds must be'],
      [{ delaySeconds: Infinity }, 'delaySeconds must be'],
      [{ delayUntilEpochMS: 0 }, 'delayUntilEpochMS must be a positive finite number, but is 0.'],
      [{ delayUntilEpochMS: -5 }, 'delayUntilEpochMS must be'],
    ])('refuses %j', async (options, message) => {
      const { DBOS, clock, enqueue } = await setup();
      await enqueue('w', 5);

      const error = await failureOf(DBOS.setWorkflowDelay('w', options as number));

      expect(error).toMatchObject({ name: 'DBOSInvalidArgumentError', dbosErrorCode: 1 });
      expect(error.message).toContain(message);
      expect((await DBOS.getWorkflowStatus('w'))?.delayUntilEpochMS).toBe(clock.now() + 5000);
    });

    test('leaves workflows alone that run, have ended, or are not there', async () => {
      const { DBOS } = await createEngine(dialect);
      const halt = newHalt();
      const workflow = DBOS.registerWorkflow(async () => halt.here(), { name: 'workflow' });
      await DBOS.launch();
      const handle = await DBOS.startWorkflow(workflow)();
      await halt.reached;

      await DBOS.setWorkflowDelay(handle.workflowID, 60);
      expect((await handle.getStatus())?.status).toBe('PENDING');
      halt.release();
      await handle.getResult();
      await DBOS.setWorkflowDelay(handle.workflowID, 60);
      await DBOS.setWorkflowDelay('missing', 60);

      expect(await handle.getStatus()).toMatchObject({ status: 'SUCCESS', delayUntilEpochMS: undefined });
      expect(await DBOS.getWorkflowStatus('missing')).toBeNull();
    });
  });

  describe('setWorkflowPriority', () => {
    test('changes the order of those who wait, also of delayed ones', async () => {
      const { DBOS, clock, enqueue, enqueued, order } = await setup();
      const handles = [await enqueue('a'), await enqueue('b'), await enqueue('c'), await enqueue('d', 5)];

      await DBOS.setWorkflowPriority('a', 10);
      await DBOS.setWorkflowPriority('b', 5);
      await DBOS.setWorkflowPriority('d', 2_147_483_647);
      await clock.untilArmed(5_000);
      clock.advance(5_000);
      await enqueued('d');
      await DBOS.resumeQueue('q');
      await DBOS.waitAll(handles);

      expect(order).toEqual(['c', 'b', 'a', 'd']);
    });

    test.each([-1, 1.5, NaN, 2_147_483_648])('refuses %s', async (priority) => {
      const { DBOS, enqueue } = await setup();
      await enqueue('w');

      const error = await failureOf(DBOS.setWorkflowPriority('w', priority));

      expect(error.name).toBe('DBOSInvalidQueuePriorityError');
      expect((await DBOS.getWorkflowStatus('w'))?.priority).toBe(0);
    });

    test('leaves workflows alone that have ended or are not there', async () => {
      const { DBOS, enqueue } = await setup();
      const handle = await enqueue('w');
      await DBOS.resumeQueue('q');
      await handle.getResult();

      await DBOS.setWorkflowPriority('w', 3);
      await DBOS.setWorkflowPriority('missing', 3);

      expect((await handle.getStatus())?.priority).toBe(0);
    });
  });

  test('both are recorded in a workflow, with their refusals, and not done again after a recovery', async () => {
    const clock = new ManualClock();
    const { first, second } = await createGenerations(dialect, {}, clock.settings);
    const halt = newHalt();
    const refusals: string[] = [];
    const register = (DBOS: DBOSInstance) =>
      DBOS.registerWorkflow(
        async () => {
          await DBOS.setWorkflowDelay('w', 100);
          await DBOS.setWorkflowPriority('w', 5);
          refusals.push((await failureOf(DBOS.setWorkflowPriority('w', -1))).message);
          if (DBOS === first) await halt.here();
        },
        { name: 'parent' },
      );
    const parent = register(first);
    register(second);
    await first.launch();
    await first.registerQueue('q');
    await first.enqueueWorkflowWithOptions({
      queueName: 'q',
      workflowName: 'other',
      workflowID: 'w',
      delaySeconds: 1000,
    });
    await first.startWorkflow(parent, { workflowID: 'parent' })();
    await halt.reached;
    await first.setWorkflowDelay('w', 50);
    await first.setWorkflowPriority('w', 1);
    await first.shutdown();

    await second.launch();
    await second.retrieveWorkflow('parent').getResult();

    expect(await second.getWorkflowStatus('w')).toMatchObject({ priority: 1, delayUntilEpochMS: clock.now() + 50_000 });
    expect(refusals[1]).toBe(refusals[0]);
    const steps = (await second.listWorkflowSteps('parent'))!;
    expect(steps.map(({ name, error }) => [name, error?.name])).toEqual([
      ['DBOS.setWorkflowDelay', undefined],
      ['DBOS.setWorkflowPriority', undefined],
      ['DBOS.setWorkflowPriority', 'DBOSInvalidQueuePriorityError'],
    ]);
  });
});
