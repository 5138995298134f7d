import { describe, expect, test, vi } from 'vitest';
import type { DBOSInstance, StartWorkflowParams } from '../../src/index.js';
import { cancelWorkflows } from '../../src/run/rows/lifecycle.js';
import { forEachDialect, hasPush } from '../rig/dialects.js';
import { createEngine, engineOf } from '../rig/engines.js';
import { ManualClock, until } from '../rig/manual-clock.js';
import { createGenerations, createZombie, failureOf, newHalt } from './succession.js';

/** What the handle that started the workflow gives, and what all others do. */
const cancelled = { code: 'WORKFLOW_CANCELLED', dbosErrorCode: 24 };
const awaitedCancelled = { code: 'AWAITED_WORKFLOW_CANCELLED', dbosErrorCode: 27 };

forEachDialect((dialect) => {
  describe('a timeout', () => {
    /** An engine under a clock moved by hand, with a workflow that sleeps for a day and a parent that calls it. */
    async function setup() {
      const clock = new ManualClock();
      const { DBOS } = await createEngine(dialect, {}, clock.settings);
      const sleeper = DBOS.registerWorkflow(() => DBOS.sleepSeconds(86_400), { name: 'sleeper' });
      const startChild = DBOS.registerWorkflow(
        async (params: StartWorkflowParams) => (await DBOS.startWorkflow(sleeper, params)()).getResult(),
        { name: 'startChild' },
      );
      await DBOS.launch();
      const statusOf = async (workflowID: string) => (await DBOS.getWorkflowStatus(workflowID))?.status;
      const deadlineOf = async (workflowID: string) => (await DBOS.getWorkflowStatus(workflowID))?.deadlineEpochMS;
      return { DBOS, clock, sleeper, startChild, statusOf, deadlineOf, begun: clock.now() };
    }

    test('cancels the workflow at its deadline, not a moment earlier or later', async () => {
      const { DBOS, clock, sleeper, statusOf, deadlineOf, begun } = await setup();
      const handle = await DBOS.startWorkflow(sleeper, { workflowID: 'w', timeoutMS: 45_678 })();
      expect(await deadlineOf('w')).toBe(begun + 45_678);
      await clock.untilArmed(86_400_000);
      clock.advance(45_677);
      await new Promise((resolve) => setImmediate(resolve));
      expect(await statusOf('w')).toBe('PENDING');

      clock.advance(1);

      await expect(handle.getResult()).rejects.toMatchObject({ ...cancelled, workflowID: 'w' });
      expect(await DBOS.getWorkflowStatus('w')).toMatchObject({ status: 'CANCELLED', completedAt: begun + 45_678 });
      expect(clock.isArmed(86_400_000)).toBe(false);
    });

    test('may be set for the calls in a block', async () => {
      const { DBOS, clock, sleeper, deadlineOf, begun } = await setup();

      const handle = await DBOS.withWorkflowTimeout(45_678, () => DBOS.startWorkflow(sleeper, { workflowID: 'w' })());

      expect(await deadlineOf('w')).toBe(begun + 45_678);
      await clock.untilArmed(45_678);
      clock.advance(45_678);
      await expect(handle.getResult()).rejects.toMatchObject(cancelled);
    });

    test('given to the start wins over the one around it', async () => {
      const { DBOS, sleeper, deadlineOf, begun } = await setup();

      await DBOS.withWorkflowTimeout(45_678, async () => {
        await DBOS.startWorkflow(sleeper, { workflowID: 'own', timeoutMS: 1_000 })();
        await DBOS.startWorkflow(sleeper, { workflowID: 'none', timeoutMS: null })();
      });

      expect(await deadlineOf('own')).toBe(begun + 1_000);
      expect(await deadlineOf('none')).toBeUndefined();
    });

    test('of a parent is the deadline of its children', async () => {
      const { DBOS, clock, startChild, deadlineOf, begun } = await setup();
      const handle = await DBOS.startWorkflow(startChild, { workflowID: 'p', timeoutMS: 45_678 })({});
      await clock.untilArmed(86_400_000);
      expect(await deadlineOf('p-0')).toBe(begun + 45_678);

      clock.advance(45_678);

      await expect(handle.getResult()).rejects.toMatchObject({ ...cancelled, workflowID: 'p' });
      await expect(DBOS.retrieveWorkflow('p-0').getResult()).rejects.toMatchObject(awaitedCancelled);
    });

    test('of a parent does not concern children that are detached or have their own', async () => {
      const { DBOS, clock, startChild, deadlineOf, begun } = await setup();
      await DBOS.startWorkflow(startChild, { workflowID: 'detached', timeoutMS: 45_678 })({ timeoutMS: null });
      await DBOS.startWorkflow(startChild, { workflowID: 'longer', timeoutMS: 45_678 })({ timeoutMS: 99_999 });
      await until(async () => (await deadlineOf('longer-0')) !== undefined);
      await until(async () => (await DBOS.getWorkflowStatus('detached-0')) !== null);

      expect(await deadlineOf('detached-0')).toBeUndefined();
      expect(await deadlineOf('longer-0')).toBe(begun + 99_999);
      clock.advance(45_678);
      await expect(DBOS.retrieveWorkflow('longer').getResult()).rejects.toMatchObject(awaitedCancelled);
      expect((await DBOS.getWorkflowStatus('longer-0'))?.status).toBe('PENDING');
    });

    test('that a child inherits cancels the parent as well, even if the child is cancelled first', async () => {
      const { DBOS, clock, startChild, statusOf, begun } = await setup();
      const { deadlines, runtime } = engineOf(DBOS);
      const { databaseClock } = runtime;
      // A sweep, now or at a poll, would also find the parent's deadline in the database.
      await deadlines.stop();
      const late = newHalt();
      const reached = databaseClock.reached.bind(databaseClock);
      let watches = 0;
      vi.spyOn(databaseClock, 'reached').mockImplementation(async (at, signal) => {
        // The first is for the parent.
        if (at === begun + 12_345 && watches++ === 0) await late.here();
        await reached(at, signal);
      });
      const handle = await DBOS.startWorkflow(startChild, { workflowID: 'p', timeoutMS: 12_345 })({});
      const result = failureOf(handle.getResult());
      await clock.untilArmed(86_400_000);
      clock.advance(12_345);
      await until(async () => (await statusOf('p-0')) === 'CANCELLED');
      await new Promise((resolve) => setTimeout(resolve, 50));
      expect(await statusOf('p')).toBe('PENDING');

      late.release();

      expect(await result).toMatchObject({ ...cancelled, workflowID: 'p' });
      expect(await statusOf('p')).toBe('CANCELLED');
    });

    test('of a child is an error of the parent that waits for it', async () => {
      const { DBOS, clock, startChild } = await setup();
      const handle = await DBOS.startWorkflow(startChild, { workflowID: 'p' })({ timeoutMS: 45_678 });
      await clock.untilArmed(45_678);

      clock.advance(45_678);

      await expect(handle.getResult()).rejects.toMatchObject({ ...awaitedCancelled, workflowID: 'p-0' });
      expect((await DBOS.getWorkflowStatus('p'))?.status).toBe('ERROR');
    });

    test('leaves no timer behind when the workflow ends in time', async () => {
      const clock = new ManualClock();
      const { DBOS } = await createEngine(dialect, {}, clock.settings);
      const quick = DBOS.registerWorkflow(async () => 'in time', { name: 'quick' });
      const stepping = DBOS.registerWorkflow(() => DBOS.runStep(async () => 'in time'), { name: 'stepping' });
      await DBOS.launch();

      for (const workflow of [quick, stepping]) {
        const handle = await DBOS.startWorkflow(workflow, { timeoutMS: 45_678 })();
        expect(await handle.getResult()).toBe('in time');
        const named = await DBOS.startWorkflow(workflow, { timeoutMS: 45_678, workflowID: workflow.name })();
        expect(await named.getResult()).toBe('in time');
      }

      expect(clock.isArmed(45_678)).toBe(false);
    });

    test('goes on after a recovery', async () => {
      const clock = new ManualClock();
      const { first, second } = await createGenerations(dialect, {}, clock.settings);
      const register = (DBOS: DBOSInstance) =>
        DBOS.registerWorkflow(() => DBOS.sleepSeconds(86_400), { name: 'sleeper' });
      const sleeper = register(first);
      register(second);
      await first.launch();
      await first.startWorkflow(sleeper, { workflowID: 'w', timeoutMS: 100_000 })();
      await clock.untilArmed(100_000);
      clock.advance(60_001);
      await first.shutdown();
      await second.launch();
      await clock.untilArmed(39_999);

      clock.advance(39_999);

      await expect(second.retrieveWorkflow('w').getResult()).rejects.toMatchObject(awaitedCancelled);
    });

    test('counts for a workflow that waits in a queue, if it has a deadline', async () => {
      const { DBOS, clock, startChild, statusOf } = await setup();
      await DBOS.startWorkflow(startChild, { workflowID: 'p', timeoutMS: 12_345 })({ queueName: 'nobody serves' });
      await until(async () => (await statusOf('p-0')) === 'ENQUEUED');
      const result = failureOf(DBOS.retrieveWorkflow('p-0').getResult());

      // A sweep leaves those who run a workflow a moment to cancel it themselves.
      await until(() => clock.isArmed(12_345 + 50));
      clock.advance(12_345 + 50);

      expect(await result).toMatchObject(awaitedCancelled);
    });
  });

  describe('cancelWorkflow', () => {
    async function setup() {
      const { DBOS } = await createEngine(dialect);
      const halt = newHalt();
      const calls: string[] = [];
      const workflow = DBOS.registerWorkflow(
        async () => {
          await DBOS.runStep(async () => calls.push('first'), { name: 'first' });
          await halt.here();
          await DBOS.runStep(async () => calls.push('second'), { name: 'second' });
          return 'done';
        },
        { name: 'workflow' },
      );
      await DBOS.launch();
      return { DBOS, halt, calls, workflow };
    }

    test('of an unknown workflow does nothing', async () => {
      const { DBOS } = await setup();

      await DBOS.cancelWorkflow('nobody');

      expect(await DBOS.getWorkflowStatus('nobody')).toBeNull();
    });

    test('of a workflow that has ended does nothing', async () => {
      const { DBOS, halt, workflow } = await setup();
      halt.release();
      await DBOS.withNextWorkflowID('w', () => workflow());

      await DBOS.cancelWorkflow('w');

      expect(await DBOS.getWorkflowStatus('w')).toMatchObject({ status: 'SUCCESS', output: 'done' });
    });

    test('takes several at once', async () => {
      const { DBOS, halt, workflow } = await setup();
      for (const workflowID of ['a', 'b']) await DBOS.startWorkflow(workflow, { workflowID })();
      await halt.reached;

      await DBOS.cancelWorkflows(['a', 'b', 'nobody']);

      for (const workflowID of ['a', 'b']) {
        expect((await DBOS.getWorkflowStatus(workflowID))?.status).toBe('CANCELLED');
      }
      halt.release();
    });

    test('takes a workflow out of its queue', async () => {
      const { DBOS, workflow } = await setup();
      await DBOS.startWorkflow(workflow, { workflowID: 'w', queueName: 'q' })();

      await DBOS.cancelWorkflow('w');

      const status = await DBOS.getWorkflowStatus('w');
      expect(status?.status).toBe('CANCELLED');
      expect(status?.queueName).toBeUndefined();
      expect(status?.completedAt).toBeGreaterThanOrEqual(status?.createdAt ?? Infinity);
    });

    test('in a workflow is recorded under a number', async () => {
      const { DBOS } = await createEngine(dialect);
      const killer = DBOS.registerWorkflow(
        async () => {
          await DBOS.cancelWorkflow('x');
          await DBOS.cancelWorkflows(['y', 'z']);
        },
        { name: 'killer' },
      );
      await DBOS.launch();

      await DBOS.withNextWorkflowID('k', () => killer());

      expect((await DBOS.listWorkflowSteps('k'))!.map(({ name }) => name)).toEqual([
        'DBOS.cancelWorkflow',
        'DBOS.cancelWorkflow',
      ]);
    });

    test('wakes a workflow that waits for another', async () => {
      const { DBOS } = await createEngine(dialect);
      const halt = newHalt();
      const waiter = DBOS.registerWorkflow(
        async () => {
          halt.release();
          await DBOS.retrieveWorkflow('nobody').getResult();
        },
        { name: 'waiter' },
      );
      await DBOS.launch();
      const handle = await DBOS.startWorkflow(waiter, { workflowID: 'w' })();
      await halt.here();

      await DBOS.cancelWorkflow('w');

      await expect(handle.getResult()).rejects.toMatchObject(cancelled);
    });

    test.skipIf(!hasPush)('reaches a workflow that runs in another engine', async () => {
      const { DBOS: runner, url } = await createEngine(dialect);
      const asleep = newHalt();
      const ends: unknown[] = [];
      const sleeper = runner.registerWorkflow(
        async () => {
          asleep.release();
          await runner.sleepSeconds(86_400).catch((error: { code: string }) => ends.push(error.code));
        },
        { name: 'sleeper' },
      );
      await runner.launch();
      const { DBOS: other } = await createEngine(dialect, { systemDatabaseUrl: url });
      await other.launch();
      const handle = await runner.startWorkflow(sleeper, { workflowID: 'w' })();
      await asleep.here();

      await other.cancelWorkflow('w');

      await expect(handle.getResult()).rejects.toMatchObject(cancelled);
      await until(() => ends.length > 0);
      expect(ends).toEqual(['WORKFLOW_CANCELLED']);
    });
  });

  describe('resumeWorkflow', () => {
    test('continues a cancelled workflow from its last checkpoint, and the first handle gives its result', async () => {
      const { DBOS } = await createEngine(dialect);
      const halt = newHalt();
      const calls: string[] = [];
      const workflow = DBOS.registerWorkflow(
        async () => {
          const first = await DBOS.runStep(async () => calls.push('first'), { name: 'first' });
          await DBOS.runStep(() => halt.here(), { name: 'halt' });
          return [first, await DBOS.runStep(async () => calls.push('second'), { name: 'second' })];
        },
        { name: 'workflow' },
      );
      await DBOS.launch();
      const handle = await DBOS.startWorkflow(workflow, { workflowID: 'w', timeoutMS: 3_600_000 })();
      await halt.reached;
      await DBOS.cancelWorkflow('w');
      halt.release();
      await expect(handle.getResult()).rejects.toMatchObject(cancelled);

      const resumed = await DBOS.resumeWorkflow('w');

      expect(resumed.workflowID).toBe('w');
      expect(await resumed.getResult()).toEqual([1, 2]);
      expect(await handle.getResult()).toEqual([1, 2]);
      expect(calls).toEqual(['first', 'second']);
      const status = await DBOS.getWorkflowStatus('w');
      expect(status).toMatchObject({ status: 'SUCCESS', recoveryAttempts: 1 });
    });

    test('does not repeat the step that completed while its workflow was cancelled', async () => {
      const { DBOS } = await createEngine(dialect);
      const halt = newHalt();
      const bodies: string[] = [];
      const workflow = DBOS.registerWorkflow(
        async () => {
          const charged = await DBOS.runStep(
            async () => {
              bodies.push('charge');
              await halt.here();
              return 'charged';
            },
            { name: 'charge' },
          );
          return DBOS.runStep(async () => `${charged}, ${bodies.push('ship')}`, { name: 'ship' });
        },
        { name: 'workflow' },
      );
      await DBOS.launch();
      const handle = await DBOS.startWorkflow(workflow, { workflowID: 'w' })();
      await halt.reached;
      await DBOS.cancelWorkflow('w');
      halt.release();
      await expect(handle.getResult()).rejects.toMatchObject(cancelled);
      await until(async () => (await DBOS.listWorkflowSteps('w'))?.length === 1);

      await DBOS.resumeWorkflow('w');

      expect(await DBOS.retrieveWorkflow('w').getResult()).toBe('charged, 2');
      expect(bodies).toEqual(['charge', 'ship']);
    });

    test('waits for the checkpoint of a step that completed in this process before it', async () => {
      const { DBOS } = await createEngine(dialect);
      const [inStep, inWrite] = [newHalt(), newHalt()];
      let bodies = 0;
      const workflow = DBOS.registerWorkflow(
        () =>
          DBOS.runStep(
            async () => {
              bodies += 1;
              await inStep.here();
              return 'charged';
            },
            { name: 'charge' },
          ),
        { name: 'workflow' },
      );
      await DBOS.launch();
      await DBOS.startWorkflow(workflow, { workflowID: 'w' })();
      await inStep.reached;
      await DBOS.cancelWorkflow('w');
      const { database } = engineOf(DBOS).runtime;
      const commit = database.commit.bind(database);
      vi.spyOn(database, 'commit').mockImplementation(async (...args) => {
        await inWrite.here();
        return commit(...args);
      });
      inStep.release();
      await inWrite.reached;

      const resuming = DBOS.resumeWorkflow('w');
      // Without the wait, the resume would be through before the checkpoint.
      await DBOS.getWorkflowStatus('w');
      await DBOS.getWorkflowStatus('w');
      inWrite.release();
      await resuming;

      expect(await DBOS.retrieveWorkflow('w').getResult()).toBe('charged');
      expect(bodies).toBe(1);
    });

    test('repeats a step that failed while its workflow was cancelled: the cancellation may be the cause', async () => {
      const { DBOS } = await createEngine(dialect);
      const halt = newHalt();
      let attempts = 0;
      const workflow = DBOS.registerWorkflow(
        () =>
          DBOS.runStep(
            async () => {
              attempts += 1;
              if (attempts > 1) return 'done';
              await halt.here();
              throw new Error('interrupted');
            },
            { name: 'step' },
          ),
        { name: 'workflow' },
      );
      await DBOS.launch();
      const handle = await DBOS.startWorkflow(workflow, { workflowID: 'w' })();
      await halt.reached;
      await DBOS.cancelWorkflow('w');
      halt.release();
      await expect(handle.getResult()).rejects.toMatchObject(cancelled);

      await DBOS.resumeWorkflow('w');

      expect(await DBOS.retrieveWorkflow('w').getResult()).toBe('done');
    });

    test('asks again for the result of a child that was cancelled with its parent', async () => {
      const { DBOS } = await createEngine(dialect);
      const child = DBOS.registerWorkflow(() => DBOS.recv<string>('topic', 1000), { name: 'child' });
      const parent = DBOS.registerWorkflow(
        async () => {
          const handle = await DBOS.startWorkflow(child, { workflowID: 'child', queueName: 'q' })();
          return handle.getResult({ pollingIntervalMs: 10 });
        },
        { name: 'parent' },
      );
      await DBOS.launch();
      await DBOS.registerQueue('q');
      const handle = await DBOS.startWorkflow(parent, { workflowID: 'parent' })();
      await until(async () => (await DBOS.getWorkflowStatus('child'))?.status === 'PENDING');

      // Unannounced: the parent learns from its child, not from its own row.
      await cancelWorkflows(engineOf(DBOS).runtime.store.database, ['parent', 'child']);
      await expect(handle.getResult()).rejects.toMatchObject({ ...cancelled, workflowID: 'parent' });
      await DBOS.resumeWorkflows(['parent', 'child']);
      await DBOS.send('child', 'hello', 'topic');

      expect(await DBOS.retrieveWorkflow('parent').getResult()).toBe('hello');
    });

    test('of a workflow that has ended changes nothing', async () => {
      const { DBOS } = await createEngine(dialect);
      let calls = 0;
      const workflow = DBOS.registerWorkflow(async () => ++calls, { name: 'workflow' });
      await DBOS.launch();
      await DBOS.withNextWorkflowID('w', () => workflow());

      const handle = await DBOS.resumeWorkflow('w');

      expect(await handle.getResult()).toBe(1);
      expect(calls).toBe(1);
    });

    test('of several is all or nothing', async () => {
      const { DBOS } = await createEngine(dialect);
      const workflow = DBOS.registerWorkflow(async () => 'done', { name: 'workflow' });
      await DBOS.launch();
      await DBOS.startWorkflow(workflow, { workflowID: 'w', queueName: 'q' })();
      await DBOS.cancelWorkflow('w');

      await expect(DBOS.resumeWorkflows(['w', 'nobody'])).rejects.toMatchObject({ code: 'NON_EXISTENT_WORKFLOW' });
      expect((await DBOS.getWorkflowStatus('w'))?.status).toBe('CANCELLED');
      const [handle] = await DBOS.resumeWorkflows(['w']);
      expect(await handle?.getResult()).toBe('done');
    });

    test('may put it into a queue', async () => {
      const { DBOS } = await createEngine(dialect);
      const workflow = DBOS.registerWorkflow(async () => 'done', { name: 'workflow' });
      await DBOS.launch();
      await DBOS.startWorkflow(workflow, { workflowID: 'w', queueName: 'q' })();
      await DBOS.cancelWorkflow('w');

      await DBOS.resumeWorkflow('w', { queueName: 'other' });

      expect(await DBOS.getWorkflowStatus('w')).toMatchObject({ status: 'ENQUEUED', queueName: 'other' });
    });

    test('takes a running workflow away from its run, whose handle gives the new result', async () => {
      const { DBOS } = await createEngine(dialect);
      const halt = newHalt();
      let runs = 0;
      const ends: unknown[] = [];
      const workflow = DBOS.registerWorkflow(
        async () => {
          const run = ++runs;
          if (run === 1) await halt.here();
          await DBOS.runStep(async () => run).catch((error: { code: string }) => ends.push(error.code));
          return run;
        },
        { name: 'workflow' },
      );
      await DBOS.launch();
      const handle = await DBOS.startWorkflow(workflow, { workflowID: 'w' })();
      await halt.reached;

      const resumed = await DBOS.resumeWorkflow('w');

      expect(await resumed.getResult()).toBe(2);
      halt.release();
      expect(await handle.getResult()).toBe(2);
      expect(ends).toEqual([]);
    });

    test('in a workflow is recorded under a number', async () => {
      const { DBOS } = await createEngine(dialect);
      const workflow = DBOS.registerWorkflow(async () => 'done', { name: 'workflow' });
      const waker = DBOS.registerWorkflow(async () => (await DBOS.resumeWorkflow('w')).getResult(), { name: 'waker' });
      await DBOS.launch();
      await DBOS.startWorkflow(workflow, { workflowID: 'w', queueName: 'q' })();

      expect(await DBOS.withNextWorkflowID('k', () => waker())).toBe('done');
      expect((await DBOS.listWorkflowSteps('k'))!.map(({ name }) => name)).toEqual([
        'DBOS.resumeWorkflow',
        'DBOS.getResult',
      ]);
    });
  });

  test('a workflow that is cancelled while its process hangs is not finished by that process', async () => {
    const { first, url } = await createZombie(dialect);
    const halt = newHalt();
    const workflow = first.registerWorkflow(
      async () => {
        await first.runStep(() => halt.here(), { name: 'step' });
        return 'too late';
      },
      { name: 'workflow' },
    );
    await first.launch();
    const handle = await first.startWorkflow(workflow, { workflowID: 'w' })();
    await halt.reached;
    const { DBOS: operator } = await createEngine(dialect, { systemDatabaseUrl: url });
    await operator.launch();
    await operator.cancelWorkflow('w');

    halt.release();

    await expect(handle.getResult()).rejects.toMatchObject(cancelled);
    // The step that ran is recorded, so that a resume does not repeat it.
    await until(async () => (await operator.listWorkflowSteps('w'))?.length === 1);
  });
});
