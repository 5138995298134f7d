import { describe, expect, test } from 'vitest';
import { ConfiguredInstance, type EnqueueOptions } from '../../../src/index.js';
import { forEachDialect } from '../../rig/dialects.js';
import { createEngine } from '../../rig/engines.js';
import { ManualClock, until } from '../../rig/manual-clock.js';
import { setupEnqueueing } from './enqueueing.js';
import { failureOf, newHalt } from '../../run/succession.js';

forEachDialect((dialect) => {
  const setup = (clock?: ManualClock) => setupEnqueueing(dialect, clock);

  describe('a workflow that is enqueued', () => {
    test('waits with the settings of a plain one', async () => {
      const { enqueue } = await setup();

      const handle = await enqueue();

      expect(await handle.getStatus()).toMatchObject({
        status: 'ENQUEUED',
        workflowName: 'echo',
        queueName: 'q',
        priority: 0,
        input: ['x'],
        executorId: 'ex',
        applicationVersion: 'v1',
        applicationName: 'shop',
        recoveryAttempts: 0,
        deduplicationID: undefined,
        queuePartitionKey: undefined,
        delayUntilEpochMS: undefined,
        deadlineEpochMS: undefined,
        dequeuedAt: undefined,
      });
    });

    test('has all that its options say', async () => {
      const clock = new ManualClock();
      const { enqueue } = await setup(clock);

      const handle = await enqueue(
        {
          deduplicationID: 'user-1',
          priority: 7,
          queuePartitionKey: 'eu',
          applicationVersion: 'v9',
          delaySeconds: 1.5,
          applicationName: 'other',
        },
        {
          workflowID: 'w',
          timeoutMS: 500,
          authenticatedUser: 'ann',
          authenticatedRoles: ['admin'],
          workflowAttributes: { tenant: 'acme' },
        },
      );

      expect(handle.workflowID).toBe('w');
      expect(await handle.getStatus()).toMatchObject({
        status: 'DELAYED',
        deduplicationID: 'user-1',
        priority: 7,
        queuePartitionKey: 'eu',
        applicationVersion: 'v9',
        delayUntilEpochMS: clock.now() + 1500,
        applicationName: 'other',
        timeoutMS: 500,
        deadlineEpochMS: undefined,
        authenticatedUser: 'ann',
        authenticatedRoles: ['admin'],
        attributes: { tenant: 'acme' },
      });
    });

    test('with a delay of nothing is not delayed', async () => {
      const { enqueue } = await setup();

      const handle = await enqueue({ delaySeconds: 0 });

      expect((await handle.getStatus())?.status).toBe('ENQUEUED');
    });

    test('sees its user, and the process that took it', async () => {
      const { DBOS } = await createEngine(dialect, { executorID: 'ex' });
      const workflow = DBOS.registerWorkflow(
        async () => [DBOS.authenticatedUser, DBOS.authenticatedRoles, DBOS.workflowID],
        { name: 'workflow' },
      );
      await DBOS.launch();
      await DBOS.registerQueue('q');

      const handle = await DBOS.withAuthedContext('ann', ['admin'], () =>
        DBOS.startWorkflow(workflow, { queueName: 'q', workflowID: 'w' })(),
      );

      expect(await handle.getResult()).toEqual(['ann', ['admin'], 'w']);
      expect(await handle.getStatus()).toMatchObject({ executorId: 'ex', recoveryAttempts: 1 });
    });

    test('can be a method of a class or of an instance', async () => {
      const { DBOS } = await createEngine(dialect);
      class Mailer extends ConfiguredInstance {
        @DBOS.workflow()
        static async greet(name: string) {
          return `hello ${name}`;
        }
        @DBOS.workflow()
        async sign(name: string) {
          return `${name}, ${this.name}`;
        }
      }
      const mailer = new Mailer('desk', DBOS);
      await DBOS.launch();
      await DBOS.registerQueue('q');

      const greeting = await DBOS.startWorkflow(Mailer, { queueName: 'q' }).greet('ann');
      const signature = await DBOS.startWorkflow(mailer, { queueName: 'q' }).sign('bob');

      expect(await greeting.getResult()).toBe('hello ann');
      expect(await signature.getResult()).toBe('bob, desk');
      expect(await signature.getStatus()).toMatchObject({ workflowClassName: 'Mailer', workflowConfigName: 'desk' });
    });
  });

  describe('enqueue options', () => {
    test.each<[EnqueueOptions, string]>([
      [{ deduplicationID: 'd' }, 'deduplicationID'],
      [{ priority: 1 }, 'priority'],
      [{ priority: 0 }, 'priority'],
      [{ queuePartitionKey: 'k' }, 'queuePartitionKey'],
      [{ delaySeconds: 1 }, 'delaySeconds'],
      [{ applicationName: 'other' }, 'applicationName'],
      [{ priority: 1, delaySeconds: 1 }, 'priority, delaySeconds'],
    ])('%j without a queue are refused', async (enqueueOptions, names) => {
      const { DBOS, echo } = await setup();

      const error = await failureOf(DBOS.startWorkflow(echo, { enqueueOptions })());

      expect(error).toMatchObject({ name: 'DBOSInvalidArgumentError' });
      expect(error.message).toBe(
        `Enqueue option(s) ${names} set on a workflow that is not being enqueued. Set queueName.`,
      );
    });

    test.each([-1, 0.5, NaN, 2_147_483_648])('with a priority of %s are refused', async (priority) => {
      const { enqueue } = await setup();

      const error = await failureOf(enqueue({ priority }));

      expect(error).toMatchObject({ name: 'DBOSInvalidQueuePriorityError', dbosErrorCode: 29 });
      expect(error.message).toBe(`Invalid priority ${priority}. Use an integer from 0 to 2147483647.`);
    });

    test('take the bounds of a priority', async () => {
      const { enqueue } = await setup();

      const handles = [await enqueue({ priority: 0 }), await enqueue({ priority: 2_147_483_647 })];

      const statuses = await Promise.all(handles.map((handle) => handle.getStatus()));
      expect(statuses.map((status) => status?.priority)).toEqual([0, 2_147_483_647]);
    });

    test.each([-1, NaN, Infinity])('with a delay of %s are refused', async (delaySeconds) => {
      const { enqueue } = await setup();

      const error = await failureOf(enqueue({ delaySeconds }));

      expect(error.message).toBe(`delaySeconds must be a number of at least 0, but is ${delaySeconds}.`);
    });

    test('cannot have an empty queue name', async () => {
      const { DBOS, echo } = await setup();

      const error = await failureOf(DBOS.startWorkflow(echo, { queueName: ' ' })());

      expect(error.message).toBe('queueName must not be empty.');
    });
  });

  describe('a partition key', () => {
    test('is needed in a partitioned queue, however the queue was chosen', async () => {
      const { DBOS, echo } = await setup();
      await DBOS.registerQueue('parts', { partitionConcurrency: 1 });
      const queueName = 'parts';

      const errors = [
        await failureOf(DBOS.startWorkflow(echo, { queueName })()),
        await failureOf(DBOS.withWorkflowQueue(queueName, () => DBOS.startWorkflow(echo)())),
        await failureOf(DBOS.startWorkflows(echo, [{ args: [] }], { queueName })),
        await failureOf(DBOS.enqueueWorkflowWithOptions({ queueName, workflowName: 'echo' })),
      ];

      expect(errors.map((error) => error['code'])).toEqual(errors.map(() => 'INVALID_QUEUE'));
      expect(errors[0]?.message).toContain('Queue "parts" is partitioned');
    });

    test('changes nothing in a queue without partitions', async () => {
      const { DBOS, enqueue } = await setup();
      const handle = await enqueue({ queuePartitionKey: 'k' });

      await DBOS.resumeQueue('q');

      expect(await handle.getResult()).toEqual(['x']);
    });
  });

  describe('withWorkflowQueue', () => {
    test('enqueues what is started in it, with enqueue options too', async () => {
      const { DBOS, echo } = await setup();

      const [plain, prior] = await DBOS.withWorkflowQueue('q', async () => [
        await DBOS.startWorkflow(echo)(1),
        await DBOS.startWorkflow(echo, { enqueueOptions: { priority: 3 } })(2),
      ]);

      expect(await plain?.getStatus()).toMatchObject({ status: 'ENQUEUED', queueName: 'q' });
      expect(await prior?.getStatus()).toMatchObject({ status: 'ENQUEUED', queueName: 'q', priority: 3 });
    });

    test('gives way to a queue that the start names, and ends with its callback', async () => {
      const { DBOS, echo } = await setup();
      await DBOS.registerQueue('inner');

      const [inner, nested, outer] = await DBOS.withWorkflowQueue('q', async () => [
        await DBOS.startWorkflow(echo, { queueName: 'inner' })(),
        await DBOS.withWorkflowQueue('inner', () => DBOS.startWorkflow(echo)()),
        await DBOS.startWorkflow(echo)(),
      ]);
      const after = await DBOS.startWorkflow(echo)();

      expect((await inner?.getStatus())?.queueName).toBe('inner');
      expect((await nested?.getStatus())?.queueName).toBe('inner');
      expect((await outer?.getStatus())?.queueName).toBe('q');
      expect((await after.getStatus())?.queueName).toBeUndefined();
    });

    test('lets a call wait for the result', async () => {
      const { DBOS, echo } = await setup();
      await DBOS.registerQueue('open');

      expect(await DBOS.withWorkflowQueue('open', () => echo(1))).toEqual([1]);
    });
  });

  describe('the timeout of an enqueued workflow', () => {
    test('begins when it is taken', async () => {
      const clock = new ManualClock();
      const { DBOS } = await createEngine(dialect, {}, clock.settings);
      const halt = newHalt();
      const workflow = DBOS.registerWorkflow(
        async () => {
          await halt.here();
          await DBOS.runStep(async () => {}, { name: 'step' });
        },
        { name: 'workflow' },
      );
      await DBOS.launch();
      await DBOS.registerQueue('q');
      await DBOS.pauseQueue('q');
      const handle = await DBOS.startWorkflow(workflow, { queueName: 'q', timeoutMS: 1000 })();
      clock.advance(5000);
      expect(await handle.getStatus()).toMatchObject({ status: 'ENQUEUED', deadlineEpochMS: undefined });

      await DBOS.resumeQueue('q');
      await halt.reached;
      expect((await handle.getStatus())?.deadlineEpochMS).toBe(clock.now() + 1000);
      clock.advance(1000);
      await until(async () => (await handle.getStatus())?.status === 'CANCELLED');

      halt.release();
      expect((await failureOf(handle.getResult())).name).toMatch(/Cancelled/);
    });

    test('is the deadline of its parent, unless it has a timeout of its own or is detached', async () => {
      const clock = new ManualClock();
      const { DBOS, echo, inWorkflow } = await setup(clock);
      const deadline = clock.now() + 60_000;

      const statuses = await DBOS.withWorkflowTimeout(60_000, () =>
        inWorkflow(async () => {
          const handles = [
            await DBOS.startWorkflow(echo, { queueName: 'q' })(),
            await DBOS.enqueueWorkflowWithOptions({ queueName: 'q', workflowName: 'echo' }),
            await DBOS.startWorkflow(echo, { queueName: 'q', timeoutMS: 5 })(),
            await DBOS.startWorkflow(echo, { queueName: 'q', timeoutMS: null })(),
          ];
          return Promise.all(handles.map((handle) => handle.getStatus()));
        }),
      );

      expect(statuses.map((status) => [status?.deadlineEpochMS, status?.timeoutMS])).toEqual([
        [deadline, undefined],
        [deadline, undefined],
        [undefined, 5],
        [undefined, undefined],
      ]);
    });

    test('that has come while it waits cancels it', async () => {
      const clock = new ManualClock();
      const { DBOS, echo, inWorkflow } = await setup(clock);
      const handle = await DBOS.withWorkflowTimeout(7000, () =>
        inWorkflow(() => DBOS.startWorkflow(echo, { queueName: 'q', workflowID: 'w' })()),
      );
      await clock.untilArmed(7050);

      clock.advance(7050);

      await until(async () => (await DBOS.getWorkflowStatus(handle.workflowID))?.status === 'CANCELLED');
    });
  });
});
