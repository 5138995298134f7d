import { describe, expect, onTestFinished, test } from 'vitest';
import { DBOSClient, type DBOSInstance, type StartWorkflowParams } from '../../src/index.js';
import { silentLogger } from '../../src/kernel/base/log.js';
import { forEachDialect } from '../rig/dialects.js';
import { createEngine } from '../rig/engines.js';
import { failureOf, newHalt } from './succession.js';

forEachDialect((dialect) => {
  /** A launched engine with a workflow that gives back its arguments, and one that gives its own ID. */
  async function setup() {
    const { DBOS, url } = await createEngine(dialect, { name: 'shop', executorID: 'ex', applicationVersion: 'v1' });
    let calls = 0;
    const echo = DBOS.registerWorkflow(
      async (...args: unknown[]) => {
        calls += 1;
        return args;
      },
      { name: 'echo' },
    );
    const ownID = DBOS.registerWorkflow(async () => DBOS.workflowID, { name: 'ownID' });
    const startOther = DBOS.registerWorkflow(async () => [DBOS.workflowID, await ownID()], { name: 'startOther' });
    await DBOS.launch();
    return { DBOS, url, echo, ownID, startOther, callCount: () => calls };
  }

  test('a queue that is not known is warned of, but not one of another application', async () => {
    const warnings: unknown[] = [];
    const logger = { ...silentLogger, warn: (entry: unknown) => void warnings.push(entry) };
    const { DBOS } = await createEngine(dialect, { name: 'shop', logger });
    const workflow = DBOS.registerWorkflow(async () => {}, { name: 'workflow' });
    await DBOS.launch();

    await DBOS.startWorkflow(workflow, { queueName: 'theirs', enqueueOptions: { applicationName: 'bank' } })();
    await DBOS.startWorkflow(workflow, { queueName: 'ours', enqueueOptions: { applicationName: 'shop' } })();

    expect(warnings).toEqual([expect.stringContaining('Queue "ours" is not known here.')]);
  });

  describe('a call', () => {
    test('runs the workflow and gives its result', async () => {
      const { echo } = await setup();

      expect(await echo(1, 'two', [3])).toEqual([1, 'two', [3]]);
    });

    test('gives the error of the workflow', async () => {
      const { DBOS } = await createEngine(dialect);
      const fail = DBOS.registerWorkflow(
        async () => Promise.reject(Object.assign(new TypeError('wrong'), { code: 'E_WRONG' })),
        { name: 'fail' },
      );
      await DBOS.launch();

      await expect(fail()).rejects.toMatchObject({ name: 'TypeError', message: 'wrong', code: 'E_WRONG' });
    });

    test('under an ID that was used before gives the first result', async () => {
      const { DBOS, echo, callCount } = await setup();
      await DBOS.withNextWorkflowID('w', () => echo('first'));

      const again = await DBOS.withNextWorkflowID('w', () => echo('second'));

      expect(again).toEqual(['first']);
      expect(callCount()).toBe(1);
    });

    test('of a workflow with an ID that failed before fails again in the same way', async () => {
      const { DBOS } = await createEngine(dialect);
      let calls = 0;
      const fail = DBOS.registerWorkflow(async () => Promise.reject(new Error(`failure ${++calls}`)), { name: 'fail' });
      await DBOS.launch();
      await failureOf(DBOS.withNextWorkflowID('w', () => fail()));

      await expect(DBOS.withNextWorkflowID('w', () => fail())).rejects.toThrow('failure 1');
    });
  });

  describe('startWorkflow', () => {
    test('takes a function and resolves before the workflow has ended', async () => {
      const { DBOS } = await createEngine(dialect);
      const halt = newHalt();
      const slow = DBOS.registerWorkflow(
        async (x: number) => {
          await halt.here();
          return x + 1;
        },
        { name: 'slow' },
      );
      await DBOS.launch();

      const handle = await DBOS.startWorkflow(slow)(1);

      expect((await handle.getStatus())?.status).toBe('PENDING');
      halt.release();
      expect(await handle.getResult()).toBe(2);
    });

    test('takes a class and starts its static workflows', async () => {
      const { DBOS } = await createEngine(dialect);
      class Shop {
        static readonly city = 'Ulm';
        static async order(item: string) {
          return `${item} in ${this.city}`;
        }
      }
      // eslint-disable-next-line @typescript-eslint/unbound-method -- It is given its class when it is called.
      Shop.order = DBOS.registerWorkflow(Shop.order, { name: 'order', ctorOrProto: Shop });
      await DBOS.launch();

      const handle = await DBOS.startWorkflow(Shop).order('tea');

      expect(await handle.getResult()).toBe('tea in Ulm');
      expect(await handle.getStatus()).toMatchObject({ workflowName: 'order', workflowClassName: 'Shop' });
    });

    test('gives a static workflow its class also when it is started as a function', async () => {
      const { DBOS } = await createEngine(dialect);
      class Shop {
        static readonly city = 'Ulm';
        static async order(this: { city: string } | void) {
          return this?.city;
        }
      }
      // eslint-disable-next-line @typescript-eslint/unbound-method -- It is given its class when it is called.
      const order = DBOS.registerWorkflow(Shop.order, { name: 'order', ctorOrProto: Shop });
      await DBOS.launch();

      const handle = await DBOS.startWorkflow(order)();

      expect(await handle.getResult()).toBe('Ulm');
    });

    test('refuses a function and a property that are not workflows', async () => {
      const { DBOS } = await setup();
      class Shop {
        static async close() {
          return 1;
        }
      }
      const stranger = async () => 1;
      const close = async () => DBOS.startWorkflow(Shop).close();

      const errors = [await failureOf((async () => DBOS.startWorkflow(stranger)())()), await failureOf(close())];

      expect(errors.map(({ code }) => code)).toEqual(['NOT_REGISTERED', 'NOT_REGISTERED']);
      expect(errors.map(({ message }) => message)).toEqual([
        'stranger is not a registered DBOS workflow function',
        'close is not a registered DBOS workflow function',
      ]);
    });

    test('refuses a step', async () => {
      const { DBOS } = await createEngine(dialect);
      const step = DBOS.registerStep(async () => 1, { name: 'step' });
      await DBOS.launch();

      const error = await failureOf((async () => DBOS.startWorkflow(step)())());

      expect(error).toMatchObject({ code: 'INVALID_WORKFLOW_TRANSITION' });
      expect(error.message).toContain('Attempt to start or enqueue step "step"');
    });
  });

  describe('an ID', () => {
    test('is fresh unless given', async () => {
      const { DBOS, ownID } = await setup();

      const handles = [await DBOS.startWorkflow(ownID)(), await DBOS.startWorkflow(ownID)()];

      const ids = await Promise.all(handles.map((handle) => handle.getResult()));
      expect(ids).toEqual(handles.map((handle) => handle.workflowID));
      expect(new Set(ids).size).toBe(2);
    });

    test('may be given, and starts the workflow once', async () => {
      const { DBOS, echo, callCount } = await setup();

      const handles = await Promise.all([1, 2, 3].map((x) => DBOS.startWorkflow(echo, { workflowID: 'w' })(x)));

      const results = await Promise.all(handles.map((handle) => handle.getResult()));
      expect(results[1]).toEqual(results[0]);
      expect(results[2]).toEqual(results[0]);
      expect(callCount()).toBe(1);
    });

    test('set for the next workflow is used once', async () => {
      const { DBOS, ownID } = await setup();

      const [first, second] = await DBOS.withNextWorkflowID('next', async () => [await ownID(), await ownID()]);

      expect(first).toBe('next');
      expect(second).not.toBe('next');
    });

    test('set for the next workflow is not seen by the workflows that it starts', async () => {
      const { DBOS, startOther } = await setup();

      const ids = await DBOS.withNextWorkflowID('next', () => startOther());

      expect(ids).toEqual(['next', 'next-0']);
    });

    test('that is set within another setting is undone at its end', async () => {
      const { DBOS, ownID } = await setup();

      const ids = await DBOS.withNextWorkflowID('outer', async () => [
        await DBOS.withNextWorkflowID('inner', () => ownID()),
        await ownID(),
      ]);

      expect(ids).toEqual(['inner', 'outer']);
    });

    test('given to startWorkflow wins over one that is set around it', async () => {
      const { DBOS, ownID } = await setup();

      const handle = await DBOS.withNextWorkflowID('outer', () => DBOS.startWorkflow(ownID, { workflowID: 'given' })());

      expect(handle.workflowID).toBe('given');
    });

    test('must not be blank', async () => {
      const { DBOS, ownID } = await setup();

      await expect(DBOS.startWorkflow(ownID, { workflowID: ' ' })()).rejects.toThrow('must not be empty');
      await expect((async () => DBOS.withNextWorkflowID(' ', () => ownID()))()).rejects.toThrow('must not be empty');
      await expect(
        (async () => DBOS.runWithContext({ idAssignedForNextWorkflow: ' ' }, () => ownID()))(),
      ).rejects.toThrow('must not be empty');
    });

    test('is none if a caller passes on an empty header', async () => {
      const { DBOS, ownID, url } = await setup();
      const client = await DBOSClient.create({ systemDatabaseUrl: url, logger: silentLogger });
      onTestFinished(() => client.destroy());
      const enqueued = await client.enqueue({ queueName: 'q', workflowName: 'w', workflowID: '' });

      expect(enqueued.workflowID).toMatch(/./);
      expect((await DBOS.startWorkflow(ownID, { workflowID: '' })()).workflowID).toMatch(/./);
      expect(await DBOS.withNextWorkflowID('', () => ownID())).toMatch(/./);
      expect(
        await DBOS.withNextWorkflowID('outer', async () => {
          const handle = await DBOS.startWorkflow(ownID, { workflowID: '' })();
          return handle.workflowID;
        }),
      ).toBe('outer');
      const fork = await DBOS.forkWorkflow('outer', 0, { newWorkflowID: '' });
      expect(fork.workflowID).toMatch(/./);
      expect(await DBOS.runWithContext({ idAssignedForNextWorkflow: '' }, () => ownID())).toMatch(/./);
    });

    test('that is in use can be refused', async () => {
      const { DBOS, echo } = await setup();
      const params: StartWorkflowParams = { workflowID: 'w', workflowIDReusePolicy: 'reject' };
      await (await DBOS.startWorkflow(echo, params)(1)).getResult();

      const error = await failureOf(DBOS.startWorkflow(echo, params)(2));

      expect(error).toMatchObject({
        code: 'WORKFLOW_ID_IN_USE',
        dbosErrorCode: 36,
        workflowID: 'w',
        status: 'SUCCESS',
        workflowName: 'echo',
      });
    });

    test('of another function is a conflict', async () => {
      const { DBOS, echo, ownID } = await setup();
      await DBOS.startWorkflow(echo, { workflowID: 'w' })();

      const error = await failureOf(DBOS.startWorkflow(ownID, { workflowID: 'w' })());

      expect(error).toMatchObject({ code: 'CONFLICTING_WORKFLOW', dbosErrorCode: 22, workflowID: 'w' });
      expect(error.message).toContain('it runs "echo", not "ownID"');
    });

    test('of a function of another class is a conflict', async () => {
      const { DBOS } = await createEngine(dialect);
      const one = DBOS.registerWorkflow(async () => 1, { name: 'f', className: 'One' });
      const two = DBOS.registerWorkflow(async () => 2, { name: 'f', className: 'Two' });
      await DBOS.launch();
      await DBOS.startWorkflow(one, { workflowID: 'w' })();

      const error = await failureOf(DBOS.startWorkflow(two, { workflowID: 'w' })());

      expect(error.message).toContain('it belongs to class "One", not "Two"');
    });
  });

  describe('arguments', () => {
    test('are copied: what the caller changes afterwards is not seen', async () => {
      const { DBOS } = await createEngine(dialect);
      const halt = newHalt();
      const read = DBOS.registerWorkflow(
        async (list: number[]) => {
          await halt.here();
          return list;
        },
        { name: 'read' },
      );
      await DBOS.launch();
      const list = [1];
      const handle = await DBOS.startWorkflow(read)(list);
      list.push(2);

      halt.release();

      expect(await handle.getResult()).toEqual([1]);
      expect(await handle.getWorkflowInputs()).toEqual([[1]]);
    });

    test('keep their types', async () => {
      const { DBOS, echo } = await setup();
      const args = [new Date(7), new Map([['k', new Set([1n])]]), undefined, null, NaN, new Error('e')];

      const handle = await DBOS.startWorkflow(echo)(...args);

      expect(await handle.getResult()).toEqual(args);
      expect(await handle.getWorkflowInputs()).toEqual(args);
    });

    test('that cannot be stored refuse the start', async () => {
      const { DBOS, echo, callCount } = await setup();
      const unstorable = {
        get value(): string {
          throw new Error('cannot be read');
        },
      };

      await expect(DBOS.startWorkflow(echo, { workflowID: 'w' })(unstorable)).rejects.toThrow('cannot be read');
      expect(await DBOS.getWorkflowStatus('w')).toBeNull();
      expect(callCount()).toBe(0);
    });

    test('that are instances have stand-ins for their methods that say what happened', async () => {
      const { DBOS } = await createEngine(dialect);
      class Tool {
        use(): string {
          return 'used';
        }
      }
      const call = DBOS.registerWorkflow(async (tool: Tool) => tool.use(), { name: 'call' });
      await DBOS.launch();

      await expect(call(new Tool())).rejects.toThrow("Attempted to call 'use'");
    });
  });

  describe('results', () => {
    test('reach the caller as a copy', async () => {
      const { DBOS } = await createEngine(dialect);
      const shared = { list: [1] };
      const give = DBOS.registerWorkflow(async () => shared, { name: 'give' });
      await DBOS.launch();

      const result = await give();

      expect(result).toEqual({ list: [1] });
      expect(result).not.toBe(shared);
    });

    test('that cannot be stored are the error of the workflow', async () => {
      const { DBOS } = await createEngine(dialect);
      const give = DBOS.registerWorkflow(
        async () => ({
          get value(): string {
            throw new Error('cannot be read');
          },
        }),
        { name: 'give' },
      );
      await DBOS.launch();

      const handle = await DBOS.startWorkflow(give)();

      await expect(handle.getResult()).rejects.toThrow('cannot be read');
      expect(await handle.getStatus()).toMatchObject({ status: 'ERROR', error: { message: 'cannot be read' } });
    });
  });

  describe('settings', () => {
    test('the status tells all that was set', async () => {
      const { DBOS, echo } = await setup();
      const before = Date.now();

      const handle = await DBOS.startWorkflow(echo, {
        workflowID: 'w',
        timeoutMS: 60_000,
        authenticatedUser: 'ann',
        authenticatedRoles: ['admin', 'user'],
        workflowAttributes: { tenant: 7, tags: ['a'] },
      })('in');
      await handle.getResult();

      const status = await handle.getStatus();
      expect(status).toMatchObject({
        workflowID: 'w',
        status: 'SUCCESS',
        workflowName: 'echo',
        workflowClassName: '',
        workflowConfigName: '',
        authenticatedUser: 'ann',
        authenticatedRoles: ['admin', 'user'],
        assumedRole: '',
        input: ['in'],
        output: ['in'],
        executorId: 'ex',
        applicationVersion: 'v1',
        applicationName: 'shop',
        timeoutMS: 60_000,
        priority: 0,
        wasForkedFrom: false,
        attributes: { tenant: 7, tags: ['a'] },
        recoveryAttempts: 1,
      });
      for (const field of ['queueName', 'error', 'deduplicationID', 'parentWorkflowID', 'forkedFrom'] as const) {
        expect(status?.[field]).toBeUndefined();
      }
      const { createdAt = 0, completedAt = 0, deadlineEpochMS = 0 } = status ?? {};
      expect(createdAt).toBeGreaterThanOrEqual(before - 1);
      expect(completedAt).toBeGreaterThanOrEqual(createdAt);
      expect(deadlineEpochMS - createdAt).toBe(60_000);
    });

    test('the user and roles around the call are stored and seen by the workflow and its children', async () => {
      const { DBOS } = await createEngine(dialect);
      const whoami = async () => [DBOS.authenticatedUser, DBOS.authenticatedRoles];
      const child = DBOS.registerWorkflow(whoami, { name: 'child' });
      const parent = DBOS.registerWorkflow(async () => [await whoami(), await DBOS.runStep(whoami), await child()], {
        name: 'parent',
      });
      await DBOS.launch();

      const handle = await DBOS.withAuthedContext('ann', ['user'], () =>
        DBOS.startWorkflow(parent, { workflowID: 'w' })(),
      );

      expect(await handle.getResult()).toEqual(Array(3).fill(['ann', ['user']]));
      expect(await DBOS.getWorkflowStatus('w-1')).toMatchObject({
        authenticatedUser: 'ann',
        authenticatedRoles: ['user'],
      });
      expect([DBOS.authenticatedUser, DBOS.authenticatedRoles, DBOS.assumedRole]).toEqual(['', [], '']);
    });

    test('the user given to the start wins over the one around it', async () => {
      const { DBOS, echo } = await setup();

      const handle = await DBOS.withAuthedContext('ann', ['a'], () =>
        DBOS.startWorkflow(echo, { authenticatedUser: 'bob', authenticatedRoles: ['b'] })(),
      );

      expect(await handle.getStatus()).toMatchObject({ authenticatedUser: 'bob', authenticatedRoles: ['b'] });
    });

    test('attributes are not inherited by children', async () => {
      const { DBOS, startOther } = await setup();

      await (await DBOS.startWorkflow(startOther, { workflowID: 'w', workflowAttributes: { a: 1 } })()).getResult();

      expect((await DBOS.getWorkflowStatus('w'))?.attributes).toEqual({ a: 1 });
      expect((await DBOS.getWorkflowStatus('w-0'))?.attributes).toBeUndefined();
    });

    test.each<[string, unknown]>([
      ['a list', [1]],
      ['a text', 'text'],
      ['a circle', circle()],
      ['a big number', { a: 1n }],
    ])('attributes that are %s are refused', async (_, attributes) => {
      const { DBOS, echo } = await setup();
      const workflowAttributes = attributes as Record<string, unknown>;

      const start = DBOS.startWorkflow(echo, { workflowID: 'w', workflowAttributes })();

      await expect(start).rejects.toThrow('Invalid workflow attributes');
      expect(await DBOS.getWorkflowStatus('w')).toBeNull();
    });

    test.each([NaN, Infinity, -1])('a timeout of %d is refused', async (timeoutMS) => {
      const { DBOS, ownID } = await setup();

      await expect(DBOS.startWorkflow(ownID, { timeoutMS })()).rejects.toThrow('timeoutMS must be');
      await expect((async () => DBOS.withWorkflowTimeout(timeoutMS, () => ownID()))()).rejects.toThrow(
        'timeoutMS must be',
      );
    });

    test.each(['deduplicationID', 'priority', 'queuePartitionKey', 'delaySeconds', 'applicationName'])(
      'the enqueue option %s is refused without a queue',
      async (option) => {
        const { DBOS, ownID } = await setup();

        const start = DBOS.startWorkflow(ownID, { enqueueOptions: { [option]: 1 } })();

        await expect(start).rejects.toThrow(`Enqueue option(s) ${option} set on a workflow that is not being enqueued`);
      },
    );

    test.each([-1, 0.5, 2_147_483_648])('a priority of %d is refused', async (priority) => {
      const { DBOS, ownID } = await setup();

      const start = DBOS.startWorkflow(ownID, { queueName: 'q', enqueueOptions: { priority } })();

      await expect(start).rejects.toMatchObject({ code: 'INVALID_QUEUE_PRIORITY', dbosErrorCode: 29 });
    });

    test('returning the holder of a deduplication ID needs a queue and such an ID', async () => {
      const { DBOS, ownID } = await setup();
      const duplicationPolicy = 'return-existing';

      await expect(DBOS.startWorkflow(ownID, { duplicationPolicy })()).rejects.toMatchObject({
        code: 'INVALID_WORKFLOW_TRANSITION',
      });
      await expect(DBOS.startWorkflow(ownID, { duplicationPolicy, queueName: 'q' })()).rejects.toMatchObject({
        code: 'INVALID_WORKFLOW_TRANSITION',
      });
    });

    test('several can be made at once', async () => {
      const { DBOS } = await createEngine(dialect);
      const request = { path: '/' };
      const seen = DBOS.registerWorkflow(
        async () => [DBOS.workflowID, DBOS.authenticatedUser, DBOS.authenticatedRoles, DBOS.requestObject()],
        { name: 'seen' },
      );
      await DBOS.launch();

      const result = await DBOS.runWithContext(
        { idAssignedForNextWorkflow: 'w', authenticatedUser: 'ann', authenticatedRoles: ['a'], request },
        () => seen(),
      );

      expect(result).toEqual(['w', 'ann', ['a'], request]);
    });

    test('an enqueued workflow waits in its queue', async () => {
      const { DBOS, ownID } = await setup();

      const handle = await DBOS.withWorkflowQueue('mail', () =>
        DBOS.startWorkflow(ownID, { enqueueOptions: { priority: 3 } })(),
      );

      expect(await handle.getStatus()).toMatchObject({
        status: 'ENQUEUED',
        queueName: 'mail',
        priority: 3,
        recoveryAttempts: 0,
      });
    });
  });

  test('every operation that needs a launched engine says so before the launch', async () => {
    const { DBOS } = await createEngine(dialect);
    const workflow = DBOS.registerWorkflow(async () => 1, { name: 'workflow' });
    const attempts: [reason: string, attempt: () => unknown][] = [
      ['workflows', () => workflow()],
      ['workflows', () => DBOS.startWorkflow(workflow)()],
      ['workflows', () => DBOS.withNextWorkflowID('w', () => workflow())],
      ['getWorkflowStatus', () => DBOS.getWorkflowStatus('w')],
      ['getResult', () => DBOS.getResult('w')],
      ['waitFirst', () => DBOS.waitFirst([])],
      ['waitAll', () => DBOS.waitAll([])],
      ['retrieveWorkflow', () => DBOS.retrieveWorkflow('w')],
      ['listWorkflowSteps', () => DBOS.listWorkflowSteps('w')],
      ['cancelWorkflow', () => DBOS.cancelWorkflow('w')],
      ['resumeWorkflow', () => DBOS.resumeWorkflow('w')],
    ];

    for (const [reason, attempt] of attempts) {
      const error = await failureOf((async () => attempt())());
      expect(error).toMatchObject({ name: 'DBOSExecutorNotInitializedError', dbosErrorCode: 20 });
      expect(error.message).toBe(`\`DBOS.launch()\` must be called before running ${reason}.`);
    }
  });

  test('the default logger and the version are there when launched', async () => {
    const { DBOS } = await setup();
    const seen = (one: DBOSInstance) => [one.executorID, one.applicationVersion, one.isInitialized()];

    expect(seen(DBOS)).toEqual(['ex', 'v1', true]);
  });
});

function circle(): object {
  const object: Record<string, unknown> = {};
  object['self'] = object;
  return object;
}
