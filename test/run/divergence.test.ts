// Code that does not fit the history of its workflow, such as after a deploy that has renamed a step. The code must not hear
// of it: it would compensate for what has not failed.
import { describe, expect, test } from 'vitest';
import { silentLogger } from '../../src/kernel/base/log.js';
import { registerDataSource, registerTransaction } from '../../src/plugins/transaction/datasource.js';
import type { DBOSConfig } from '../../src/run/config/config.js';
import type { DBOSInstance } from '../../src/index.js';
import { sql, table } from '../../src/kernel/sql/sql.js';
import { forEachDialect } from '../rig/dialects.js';
import { createEngine, engineOf } from '../rig/engines.js';
import { ManualClock, until } from '../rig/manual-clock.js';
import { failureOf, newHalt } from './succession.js';

type Code = (DBOS: DBOSInstance) => Promise<unknown>;

const step = (DBOS: DBOSInstance, name: string): Promise<string> => DBOS.runStep(async () => name, { name });

const transactions = new WeakMap<DBOSInstance, () => Promise<string>>();
const children = new WeakMap<DBOSInstance, () => Promise<string>>();

const transactionOf = (DBOS: DBOSInstance) => transactions.get(DBOS) as () => Promise<string>;
const childOf = (DBOS: DBOSInstance) => children.get(DBOS) as () => Promise<string>;

/** What the code calls first, by the name under which that is recorded. */
const OPERATIONS: Record<string, Code> = {
  charge: (DBOS) => step(DBOS, 'charge'),
  transaction: (DBOS) => transactionOf(DBOS)(),
  child: (DBOS) => childOf(DBOS)(),
  'DBOS.send': (DBOS) => DBOS.send('w', 'message', 'topic'),
  'DBOS.recv': (DBOS) => DBOS.recv('none', 0),
  'DBOS.setEvent': (DBOS) => DBOS.setEvent('key', 'value'),
  'DBOS.getEvent': (DBOS) => DBOS.getEvent('w', 'none', 0),
  'DBOS.writeStream': (DBOS) => DBOS.writeStream('key', 'value'),
  'DBOS.sleep': (DBOS) => DBOS.sleep(1),
  'DBOS.now': (DBOS) => DBOS.now(),
  getStatus: (DBOS) => DBOS.getWorkflowStatus('w'),
};

forEachDialect((dialect) => {
  /** An engine whose workflow has this code, on a queue of one slot. Notes what its code hears and what is logged. */
  async function setup(code: Code, config: Partial<DBOSConfig> = {}, clock?: ManualClock) {
    const heard: string[] = [];
    const errors: string[] = [];
    const logger = { ...silentLogger, error: (entry: unknown) => void errors.push(String(entry)) };
    const { DBOS, url } = await createEngine(dialect, { applicationVersion: 'v1', logger, ...config }, clock?.settings);
    registerDataSource(plainSource, DBOS);
    const body = async (): Promise<string> => 'transaction';
    transactions.set(DBOS, registerTransaction('source', body, { name: 'transaction' }, DBOS));
    children.set(
      DBOS,
      DBOS.registerWorkflow(async () => 'child', { name: 'child' }),
    );
    const workflow = DBOS.registerWorkflow(
      async () => {
        try {
          return await code(DBOS);
        } catch (error) {
          heard.push(`caught ${String(error)}`);
          await DBOS.runStep(async () => heard.push('compensated'), { name: 'compensate' });
          throw error;
        } finally {
          heard.push('finally');
        }
      },
      { name: 'workflow', maxRecoveryAttempts: 2 },
    );
    const parent = DBOS.registerWorkflow(
      async () => {
        try {
          return await DBOS.retrieveWorkflow('w').getResult();
        } catch (error) {
          heard.push(`parent caught ${String(error)}`);
          throw error;
        }
      },
      { name: 'parent' },
    );
    return { DBOS, url, workflow, parent, heard, errors };
  }

  /** A workflow on queue "q" that has run `before` until its process ended. */
  async function leave(before: Code): Promise<{ url: string }> {
    const halt = newHalt();
    const { DBOS, url, workflow } = await setup(async (DBOS) => {
      await before(DBOS);
      await halt.here();
    });
    await DBOS.launch();
    await DBOS.registerQueue('q', { globalConcurrency: 1 });
    await DBOS.startWorkflow(workflow, { workflowID: 'w', queueName: 'q' })();
    await halt.reached;
    await engineOf(DBOS).runtime.store.writer.idle();
    await DBOS.shutdown();
    return { url };
  }

  /** The same workflow in a process with other code. */
  async function setupChange(before: Code, after: Code, clock?: ManualClock) {
    const { url } = await leave(before);
    const scene = await setup(after, { systemDatabaseUrl: url }, clock);
    await scene.DBOS.launch();
    await until(() => scene.errors.length > 0);
    await until(() => engineOf(scene.DBOS).runs.all.length === 0);
    return { ...scene, url };
  }

  test.each(Object.entries(OPERATIONS))(
    'code that calls another operation than %s was stopped there, and does not hear of it',
    async (name, before) => {
      const { DBOS, heard, errors } = await setupChange(before, async (DBOS) => {
        await DBOS.runStep(async () => heard.push('ran'), { name: 'renamed' });
        await step(DBOS, 'next');
      });

      const failure = await failureOf(DBOS.retrieveWorkflow('w').getResult());

      const expected = {
        code: 'UNEXPECTED_STEP',
        dbosErrorCode: 26,
        workflowID: 'w',
        stepID: 0,
        expectedName: 'renamed',
      };
      expect(failure).toMatchObject({ ...expected, recordedName: name });
      expect(await failureOf(DBOS.getResult('w'))).toBe(failure);
      expect(heard).toEqual([]);
      expect(errors).toEqual([
        `Workflow "w" (workflow) was stopped, because its code does not fit its history. ${failure.message} ` +
          'It stays PENDING, and is tried again by a process that starts. Deploy code that fits, fork it, or cancel it.',
      ]);
      expect(await DBOS.getWorkflowStatus('w')).toMatchObject({ status: 'PENDING', queueName: 'q' });
      expect((await DBOS.listWorkflowSteps('w'))?.map((one) => one.name)).toContain(name);
      expect((await DBOS.listWorkflowSteps('w'))?.map((one) => one.name)).not.toContain('compensate');
    },
  );

  test.each(Object.entries(OPERATIONS))('%s in the place of another operation is not performed', async (_, after) => {
    const { DBOS, heard } = await setupChange(
      (DBOS) => step(DBOS, 'first'),
      after === OPERATIONS['charge'] ? (DBOS) => step(DBOS, 'other') : after,
    );

    expect(await failureOf(DBOS.retrieveWorkflow('w').getResult())).toMatchObject({ recordedName: 'first' });
    expect(heard).toEqual([]);
    expect((await DBOS.listWorkflowSteps('w'))?.map(({ name }) => name)).toEqual(['first']);
    expect((await DBOS.listWorkflows({})).map(({ workflowID }) => workflowID)).toEqual(['w']);
  });

  describe('a workflow that has diverged', () => {
    const renamed = (clock?: ManualClock) =>
      setupChange(
        (DBOS) => step(DBOS, 'charge'),
        (DBOS) => step(DBOS, 'chargeCard'),
        clock,
      );

    test('holds no slot of its queue', async () => {
      const { DBOS } = await renamed();

      const handle = await DBOS.startWorkflow(childOf(DBOS), { queueName: 'q' })();

      expect(await handle.getResult()).toBe('child');
      expect(await DBOS.getWorkflowStatus('w')).toMatchObject({ status: 'PENDING' });
    });

    test('is explained, and found by a diagnosis', async () => {
      const { DBOS } = await renamed();

      expect(await DBOS.explainWorkflow('w')).toMatchObject({
        reason: 'diverged',
        message: expect.stringContaining('Deploy code that fits'),
        details: { executorID: 'local', applicationVersion: 'v1' },
      });
    });

    test('is not tried again by its process, nor by peers of the same code that are there', async () => {
      const clock = new ManualClock(Date.now() + 60_000);
      const { DBOS, errors, url } = await renamed(clock);
      const peer = await setup((DBOS) => step(DBOS, 'chargeCard'), { systemDatabaseUrl: url }, clock);
      await peer.DBOS.launch();

      // Orphans are handed back after 20 seconds.
      clock.advance(25_000);
      await engineOf(DBOS).ownership.requeueOrphans();
      await until(async () => (await DBOS.startWorkflow(childOf(DBOS))()) !== undefined);

      expect(await DBOS.getWorkflowStatus('w')).toMatchObject({ status: 'PENDING', recoveryAttempts: 1 });
      expect([...errors, ...peer.errors]).toHaveLength(1);
    });

    test('goes on in the next process whose code fits, without repeating a step', async () => {
      const { DBOS, url } = await renamed();
      await DBOS.shutdown();
      const charged: string[] = [];
      const next = await setup(
        async (DBOS) => {
          await DBOS.runStep(async () => charged.push('again'), { name: 'charge' });
          return step(DBOS, 'ship');
        },
        { systemDatabaseUrl: url },
      );

      await next.DBOS.launch();

      expect(await next.DBOS.retrieveWorkflow('w').getResult()).toBe('ship');
      expect(charged).toEqual([]);
    });

    test.each(['shutdown', 'death'])(
      'counts no attempt, however often a process with its code ends: %s',
      async (end) => {
        const { url } = await leave((DBOS) => step(DBOS, 'charge'));
        const attempts: unknown[] = [];
        for (let round = 0; round < 5; round += 1) {
          const clock = new ManualClock(Date.now() + round * 600_000);
          const config = { systemDatabaseUrl: url, executorID: 'one', useListenNotify: false };
          const scene = await setup((DBOS) => step(DBOS, 'chargeCard'), config, clock);
          await scene.DBOS.launch();
          await until(() => scene.errors.length > 0);
          await until(() => engineOf(scene.DBOS).runs.all.length === 0);
          attempts.push((await scene.DBOS.getWorkflowStatus('w'))?.recoveryAttempts);
          // One that is launched later by its own clock takes over from an engine that is still there.
          if (end === 'shutdown') await scene.DBOS.shutdown();
        }

        expect(attempts).toEqual([1, 1, 1, 1, 1]);
      },
    );

    test('can be cancelled, and a caller then learns of that', async () => {
      const { DBOS } = await renamed();

      await DBOS.cancelWorkflow('w');

      expect(await failureOf(DBOS.retrieveWorkflow('w').getResult())).toMatchObject({
        code: 'AWAITED_WORKFLOW_CANCELLED',
      });
    });

    test('can be resumed, and diverges again', async () => {
      const { DBOS, errors } = await renamed();

      const handle = await DBOS.resumeWorkflow('w');

      expect(await failureOf(handle.getResult())).toMatchObject({ code: 'UNEXPECTED_STEP' });
      expect(errors).toHaveLength(2);
    });

    test('is nothing that a workflow which awaits it hears of', async () => {
      const { DBOS, parent, heard } = await renamed();
      const handle = await DBOS.startWorkflow(parent)();
      await until(() => engineOf(DBOS).runs.all.some(({ waits }) => waits.isWaiting));

      await DBOS.cancelWorkflow('w');

      expect(await failureOf(handle.getResult())).toMatchObject({ code: 'AWAITED_WORKFLOW_CANCELLED' });
      expect(heard).toEqual([expect.stringContaining('DBOSAwaitedWorkflowCancelledError')]);
    });
  });

  describe('code that ends without having used a record', () => {
    const twoSteps: Code = async (DBOS) => [await step(DBOS, 'charge'), await step(DBOS, 'ship')];

    test.each<[string, Code]>([
      ['returns', (DBOS) => step(DBOS, 'charge')],
      ['returns at once', async () => 'nothing'],
      ['continues as new', (DBOS) => step(DBOS, 'charge').then(() => DBOS.continueAsNew())],
    ])('has diverged, and its outcome is not recorded: %s', async (_, after) => {
      const { DBOS } = await setupChange(twoSteps, after);

      const failure = await failureOf(DBOS.retrieveWorkflow('w').getResult());

      expect(failure).toMatchObject({ code: 'UNEXPECTED_STEP', expectedName: 'the end of the workflow' });
      expect(await DBOS.getWorkflowStatus('w')).toMatchObject({ status: 'PENDING', output: undefined });
      expect((await DBOS.listWorkflowSteps('w'))?.map(({ name }) => name)).toEqual(['charge', 'ship']);
    });

    test('has diverged if it has failed, and the log says with what', async () => {
      const { url } = await leave(twoSteps);
      const errors: string[] = [];
      const logger = { ...silentLogger, error: (entry: unknown) => void errors.push(String(entry)) };
      const { DBOS } = await createEngine(dialect, { applicationVersion: 'v1', systemDatabaseUrl: url, logger });
      DBOS.registerWorkflow(() => Promise.reject(new Error('no configuration')), { name: 'workflow' });
      await DBOS.launch();

      const failure = await failureOf(DBOS.retrieveWorkflow('w').getResult());

      expect(failure).toMatchObject({ recordedName: 'charge', cause: { message: 'no configuration' } });
      expect(errors).toEqual([expect.stringContaining('It has failed with: Error: no configuration')]);
      expect(await DBOS.getWorkflowStatus('w')).toMatchObject({ status: 'PENDING' });
    });

    test('has diverged if it is a branch', async () => {
      const branches =
        (names: readonly string[]): Code =>
        (DBOS) =>
          DBOS.parallel([
            () => step(DBOS, 'other'),
            async () => {
              for (const name of names) await step(DBOS, name);
            },
          ]);
      const { DBOS } = await setupChange(branches(['charge', 'ship']), branches(['charge']));

      expect(await failureOf(DBOS.retrieveWorkflow('w').getResult())).toMatchObject({ recordedName: 'ship' });
    });
  });

  test('a recorded outcome that cannot be read is nothing that code hears of', async () => {
    const code: Code = (DBOS) => step(DBOS, 'charge');
    const { url } = await leave(code);
    const database = await dialect.open(url);
    await database.run(sql`UPDATE ${table('operation_outputs')} SET serialization = 'removed'`);
    const { DBOS, heard, errors } = await setup(code, { systemDatabaseUrl: url });
    await DBOS.launch();

    const failure = await failureOf(DBOS.retrieveWorkflow('w').getResult());

    expect(failure).toMatchObject({ code: 'UNEXPECTED_STEP', recordedName: 'charge' });
    expect(failure.message).toContain('the recorded outcome of function charge cannot be read');
    expect(heard).toEqual([]);
    expect(errors).toHaveLength(1);
    expect(await DBOS.getWorkflowStatus('w')).toMatchObject({ status: 'PENDING' });
  });

  describe('code has used all records', () => {
    const ROUNDS = 700;

    /** Runs the code until the process ends, then again to its end. */
    async function replay(code: Code): Promise<unknown> {
      const { url } = await leave(code);
      const { DBOS } = await setup(code, { systemDatabaseUrl: url });
      await DBOS.launch();
      return DBOS.retrieveWorkflow('w').getResult();
    }

    test.each<[string, Code]>([
      [
        'when the loser of a race is replayed after the end',
        async (DBOS) => {
          const polling = async (): Promise<string> => {
            for (let round = 0; round < ROUNDS; round += 1) await step(DBOS, 'poll');
            return 'polled';
          };
          return DBOS.race([DBOS.sleep(0).then(() => 'slept'), polling()]);
        },
      ],
      [
        'when operations that are not awaited are replayed after the end',
        async (DBOS) => {
          void (async () => {
            await step(DBOS, 'first');
            await step(DBOS, 'second');
          })();
          await step(DBOS, 'charge');
          return 'done';
        },
      ],
      [
        'when a message was there in time although its timer is recorded',
        async (DBOS) => {
          const receiving = DBOS.recv('topic', 60);
          await DBOS.sleep(1);
          await DBOS.send('w', 'message', 'topic');
          return receiving;
        },
      ],
      [
        'when an event was there in time although its timer is recorded',
        async (DBOS) => {
          const getting = DBOS.getEvent('w', 'key', 60);
          await DBOS.sleep(1);
          await DBOS.setEvent('key', 'value');
          return getting;
        },
      ],
    ])('%s', async (_, code) => {
      expect(await replay(code)).toBeDefined();
    });

    test('in a fork from a step behind its end', async () => {
      const { DBOS, workflow } = await setup(async (DBOS) => [await step(DBOS, 'charge'), await step(DBOS, 'ship')]);
      await DBOS.launch();
      await (await DBOS.startWorkflow(workflow, { workflowID: 'w' })()).getResult();

      const fork = await DBOS.forkWorkflow('w', 7);

      expect(await fork.getResult()).toEqual(['charge', 'ship']);
    });
  });

  test('a workflow with a deadline is cancelled at it after it has diverged', async () => {
    const clock = new ManualClock(Date.now() + 60_000);
    const halt = newHalt();
    const first = await setup(
      async (DBOS) => {
        await step(DBOS, 'charge');
        await halt.here();
      },
      {},
      clock,
    );
    await first.DBOS.launch();
    await first.DBOS.startWorkflow(first.workflow, { workflowID: 'w', timeoutMS: 300_000 })();
    await halt.reached;
    await engineOf(first.DBOS).runtime.store.writer.idle();
    await first.DBOS.shutdown();
    const second = await setup((DBOS) => step(DBOS, 'chargeCard'), { systemDatabaseUrl: first.url }, clock);
    await second.DBOS.launch();
    await until(() => second.errors.length > 0);
    await until(() => engineOf(second.DBOS).runs.all.length === 0);

    await until(async () => {
      clock.advance(60_000);
      return (await second.DBOS.getWorkflowStatus('w'))?.status === 'CANCELLED';
    });
  });

  test('a step in flight beside the operation that diverges gets its signal, and is not recorded', async () => {
    const [began, aborted] = [newHalt(), newHalt()];
    const { DBOS } = await setupChange(
      async (DBOS) => {
        // A number for the step that has no record: it is in flight when the process ends.
        const inFlight = DBOS.runStep(() => new Promise<void>(() => {}), { name: 'long' });
        await step(DBOS, 'charge');
        return inFlight === undefined;
      },
      async (DBOS) => {
        const long = DBOS.runStep(
          () =>
            new Promise<void>((resolve) => {
              DBOS.stepStatus?.cancelSignal.addEventListener('abort', () => {
                void aborted.here();
                resolve();
              });
              void began.here();
            }),
          { name: 'long' },
        );
        await began.reached;
        await step(DBOS, 'chargeCard');
        await long;
      },
    );

    await aborted.reached;
    await engineOf(DBOS).runtime.store.writer.idle();
    expect((await DBOS.listWorkflowSteps('w'))?.map(({ name }) => name)).toEqual(['charge']);
  });
});

/** A data source without a database. */
const plainSource = {
  name: 'source',
  dsType: 'test',
  initialize: () => Promise.resolve(),
  destroy: () => Promise.resolve(),
  invokeTransactionFunction: <This, Args extends unknown[], Return>(
    _: unknown,
    target: This,
    func: (this: This, ...args: Args) => Promise<Return>,
    ...args: Args
  ) => func.apply(target, args),
};
