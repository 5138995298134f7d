import { describe, expect, test, vi } from 'vitest';
import type { DBOSInstance, StackTrace, WorkflowHandle } from '../../src/index.js';
import { silentLogger } from '../../src/kernel/base/log.js';
import { sql, table } from '../../src/kernel/sql/sql.js';
import { topics } from '../../src/database/notify/topics.js';
import { forEachDialect, onlyOn } from '../rig/dialects.js';
import { createEngine, engineOf } from '../rig/engines.js';
import { ManualClock } from '../rig/manual-clock.js';
import { createGenerations, createHangingEngine, createZombie, failureOf, newHalt } from './succession.js';

forEachDialect((dialect) => {
  describe('a workflow whose process hangs', () => {
    /** The first engine runs a workflow that halts in a step; the second has taken it over and ended it. */
    async function setup() {
      const { first, second } = await createZombie(dialect);
      const halt = newHalt();
      const calls: string[] = [];
      const ends: unknown[] = [];
      const register = (DBOS: DBOSInstance, who: string) =>
        DBOS.registerWorkflow(
          async () => {
            try {
              await DBOS.runStep(async () => calls.push(`${who}: begin`), { name: 'begin' });
              const by = await DBOS.runStep(
                async () => {
                  if (who === 'zombie') await halt.here();
                  return who;
                },
                { name: 'work' },
              );
              await DBOS.runStep(async () => calls.push(`${who}: end`), { name: 'end' });
              return by;
            } catch (error) {
              ends.push((error as { code: string }).code);
              throw error;
            }
          },
          { name: 'workflow' },
        );
      const workflow = register(first, 'zombie');
      register(second, 'heir');
      await first.launch();
      const handle = await first.startWorkflow(workflow, { workflowID: 'w' })();
      await halt.reached;
      await second.launch();
      const result = await second.retrieveWorkflow<string>('w').getResult();
      return { first, second, halt, calls, ends, handle, result };
    }

    test('is taken over by one with the same executor ID and goes on from its last checkpoint', async () => {
      const { second, calls, result } = await setup();

      expect(result).toBe('heir');
      expect(calls).toEqual(['zombie: begin', 'heir: end']);
      expect(await second.getWorkflowStatus('w')).toMatchObject({ status: 'SUCCESS', recoveryAttempts: 2 });
    });

    test('is not changed by the first one when that goes on, whose handle gives the new outcome', async () => {
      const { second, halt, calls, ends, handle } = await setup();

      halt.release();

      expect(await handle.getResult()).toBe('heir');
      expect(ends).toEqual([]);
      expect(calls).toEqual(['zombie: begin', 'heir: end']);
      expect(await second.listWorkflowSteps('w')).toMatchObject([
        { name: 'begin' },
        { name: 'work', output: 'heir' },
        { name: 'end' },
      ]);
    });
  });

  test('the outcome of a run that was taken over is discarded', async () => {
    const { first, second } = await createZombie(dialect);
    const halt = newHalt();
    const heirHalt = newHalt();
    const workflow = first.registerWorkflow(
      async () => {
        await halt.here();
        throw new Error('outcome of the zombie');
      },
      { name: 'workflow' },
    );
    second.registerWorkflow(
      async () => {
        await heirHalt.here();
        return 'outcome of the heir';
      },
      { name: 'workflow' },
    );
    await first.launch();
    const handle = await first.startWorkflow(workflow, { workflowID: 'w' })();
    await halt.reached;
    await second.launch();
    await heirHalt.reached;
    halt.release();
    await new Promise((resolve) => setImmediate(resolve));
    expect((await second.getWorkflowStatus('w'))?.status).toBe('PENDING');

    heirHalt.release();

    expect(await second.retrieveWorkflow('w').getResult()).toBe('outcome of the heir');
    expect(await first.getResult('w')).toBe('outcome of the heir');
    expect(await handle.getResult()).toBe('outcome of the heir');
  });

  test('a launch takes over nothing of an engine that is alive under another executor ID', async () => {
    const { DBOS: one, url } = await createEngine(dialect, { executorID: 'one', applicationVersion: 'v1' });
    const halt = newHalt();
    let runs = 0;
    const register = (DBOS: DBOSInstance) =>
      DBOS.registerWorkflow(
        async () => {
          runs += 1;
          await DBOS.runStep(() => halt.here());
          return DBOS.executorID;
        },
        { name: 'workflow' },
      );
    const workflow = register(one);
    await one.launch();
    const handle = await one.startWorkflow(workflow, { workflowID: 'w' })();
    await halt.reached;
    const config = { executorID: 'two', applicationVersion: 'v1', systemDatabaseUrl: url };
    const { DBOS: two } = await createEngine(dialect, config);
    register(two);

    await two.launch();

    expect(await two.getWorkflowStatus('w')).toMatchObject({ status: 'PENDING', executorId: 'one' });
    halt.release();
    expect(await handle.getResult()).toBe('one');
    expect(runs).toBe(1);
  });

  test('a workflow of another version is left to that version', async () => {
    const { first, url } = await createGenerations(dialect, { applicationVersion: 'v1' });
    const halt = newHalt();
    const workflow = first.registerWorkflow(() => halt.here(), { name: 'workflow' });
    await first.launch();
    await first.startWorkflow(workflow, { workflowID: 'w' })();
    await halt.reached;
    await first.shutdown();
    const launchAs = async (applicationVersion: string) => {
      const { DBOS } = await createEngine(dialect, { applicationVersion, systemDatabaseUrl: url });
      DBOS.registerWorkflow(async () => `done by ${applicationVersion}`, { name: 'workflow' });
      const signal = DBOS.registerWorkflow(async () => 'dispatched', { name: 'signal' });
      await DBOS.launch();
      await (
        await DBOS.startWorkflow(signal, { queueName: 'q', workflowID: `signal ${applicationVersion}` })()
      ).getStatus();
      return DBOS;
    };

    const newer = await launchAs('v2');
    await (await newer.resumeWorkflow('signal v2')).getResult();
    expect(await newer.getWorkflowStatus('w')).toMatchObject({ status: 'ENQUEUED', applicationVersion: 'v1' });
    const same = await launchAs('v1');

    expect(await same.retrieveWorkflow('w').getResult()).toBe('done by v1');
  });

  test('a workflow whose function is not registered is left to one who has it', async () => {
    const { first, second, url } = await createGenerations(dialect);
    const halt = newHalt();
    const workflow = first.registerWorkflow(() => halt.here(), { name: 'workflow' });
    const signal = second.registerWorkflow(async () => 'dispatched', { name: 'signal' });
    await first.launch();
    await first.startWorkflow(workflow, { workflowID: 'w' })();
    await halt.reached;
    await first.shutdown();
    await second.launch();
    await second.startWorkflow(signal, { queueName: 'q', workflowID: 'signal' })();
    await (await second.resumeWorkflow('signal')).getResult();
    expect(await second.getWorkflowStatus('w')).toMatchObject({ status: 'ENQUEUED' });
    const { DBOS: third } = await createEngine(dialect, { applicationVersion: 'v1', systemDatabaseUrl: url });
    third.registerWorkflow(async () => 'done', { name: 'workflow' });

    await third.launch();

    expect(await second.retrieveWorkflow('w').getResult()).toBe('done');
  });

  test('who recovers a workflow without having its function says so', async () => {
    const { DBOS: first, url } = await createHangingEngine(dialect);
    const halt = newHalt();
    const workflow = first.registerWorkflow(() => halt.here(), { name: 'workflow' });
    await first.launch();
    await first.startWorkflow(workflow, { workflowID: 'w' })();
    await halt.reached;
    const warnings: unknown[] = [];
    const { DBOS: second } = await createEngine(dialect, {
      applicationVersion: 'v1',
      executorID: 'one',
      systemDatabaseUrl: url,
      logger: { ...silentLogger, warn: (entry) => warnings.push(entry) },
    });

    await second.launch();

    expect(warnings).toContainEqual(expect.stringMatching(/Workflow "w" .*"workflow" is not registered here/));
    halt.release();
  });

  test('the user and roles are there again after a recovery', async () => {
    const { first, second } = await createGenerations(dialect);
    const halt = newHalt();
    const register = (DBOS: DBOSInstance) =>
      DBOS.registerWorkflow(
        async () => {
          if (DBOS === first) await halt.here();
          return [DBOS.authenticatedUser, DBOS.authenticatedRoles, DBOS.workflowID];
        },
        { name: 'workflow' },
      );
    const workflow = register(first);
    register(second);
    await first.launch();
    await first.withAuthedContext('ann', ['admin'], () => first.startWorkflow(workflow, { workflowID: 'w' })());
    await halt.reached;
    await first.shutdown();

    await second.launch();

    expect(await second.retrieveWorkflow('w').getResult()).toEqual(['ann', ['admin'], 'w']);
  });

  describe('a workflow that kills its process again and again', () => {
    /** A workflow with at most two recoveries, whose process has died three times, so that the fourth gives it up. */
    async function setup() {
      const url = await dialect.createURL();
      const errors: unknown[] = [];
      const logger = { ...silentLogger, error: (_: unknown, { error }: StackTrace = {}) => void errors.push(error) };
      const runs: number[] = [];
      const state = { isHealthy: false };
      const launchGeneration = async (generation: number) => {
        const { DBOS } = await createHangingEngine(dialect, { systemDatabaseUrl: url, logger });
        const halt = newHalt();
        const workflow = DBOS.registerWorkflow(
          async () => {
            runs.push(generation);
            await DBOS.runStep(async () => 'begun', { name: 'begin' });
            if (!state.isHealthy) await DBOS.runStep(() => halt.here(), { name: 'crash' });
            return `ended in generation ${generation}`;
          },
          { name: 'workflow', maxRecoveryAttempts: 2 },
        );
        await DBOS.launch();
        return { DBOS, workflow, halt };
      };
      const first = await launchGeneration(1);
      await first.DBOS.startWorkflow(first.workflow, { workflowID: 'w' })();
      await first.halt.reached;
      for (const generation of [2, 3]) await (await launchGeneration(generation)).halt.reached;
      const { DBOS } = await launchGeneration(4);
      return { DBOS, state, runs, errors };
    }

    test('becomes a dead letter', async () => {
      const { DBOS, runs, errors } = await setup();

      const error = await failureOf(DBOS.retrieveWorkflow('w').getResult());

      expect(error).toMatchObject({
        code: 'AWAITED_WORKFLOW_EXCEEDED_MAX_RECOVERY_ATTEMPTS',
        dbosErrorCode: 30,
        workflowID: 'w',
      });
      expect(runs).toEqual([1, 2, 3]);
      const status = await DBOS.getWorkflowStatus('w');
      expect(status).toMatchObject({ status: 'MAX_RECOVERY_ATTEMPTS_EXCEEDED', recoveryAttempts: 4 });
      expect(status?.queueName).toBeUndefined();
      expect(errors).toMatchObject([{ code: 'MAX_RECOVERY_ATTEMPTS_EXCEEDED', workflowID: 'w' }]);
    });

    test('is published to other processes as a dead letter, not only to its own', async () => {
      const { DBOS } = await createEngine(dialect);
      const workflow = DBOS.registerWorkflow(async () => 'done', { name: 'workflow' });
      await DBOS.launch();
      await DBOS.registerQueue('q');
      await DBOS.pauseQueue('q');
      await DBOS.startWorkflow(workflow, { workflowID: 'w', queueName: 'q' })();
      const { bus, database } = engineOf(DBOS).runtime;
      await database.run(sql`UPDATE ${table('workflow_status')} SET recovery_attempts = 1000`);
      const elsewhere = vi.spyOn(bus, 'publishElsewhere');

      await DBOS.resumeQueue('q');
      await failureOf(DBOS.retrieveWorkflow('w').getResult());

      expect(elsewhere.mock.calls).toContainEqual([topics.outcomes, 'w']);
    });

    test('can be resumed, and has all its attempts again', async () => {
      const { DBOS, state, runs } = await setup();
      await failureOf(DBOS.retrieveWorkflow('w').getResult());
      state.isHealthy = true;

      const handle = await DBOS.resumeWorkflow('w');

      expect(await handle.getResult()).toBe('ended in generation 4');
      expect(runs).toEqual([1, 2, 3, 4]);
      expect((await DBOS.getWorkflowStatus('w'))?.recoveryAttempts).toBe(1);
    });

    test('can be cancelled', async () => {
      const { DBOS } = await setup();
      await failureOf(DBOS.retrieveWorkflow('w').getResult());

      await DBOS.cancelWorkflow('w');

      expect((await DBOS.getWorkflowStatus('w'))?.status).toBe('CANCELLED');
    });
  });

  test('zero recoveries stand for the default', async () => {
    const { first, second } = await createZombie(dialect);
    const halt = newHalt();
    const config = { name: 'workflow', maxRecoveryAttempts: 0 };
    const workflow = first.registerWorkflow(() => halt.here(), config);
    second.registerWorkflow(async () => {}, config);
    await first.launch();
    await first.startWorkflow(workflow, { workflowID: 'w' })();
    await halt.reached;

    await second.launch();

    expect(await second.retrieveWorkflow('w').getResult()).toBeUndefined();
  });

  test('arguments that cannot be read are the error of the workflow', async () => {
    const { first, second } = await createGenerations(dialect);
    class Temperature {
      constructor(readonly degrees: number) {}
    }
    first.registerSerialization<Temperature, number>({
      name: 'Temperature',
      isApplicable: (value): value is Temperature => value instanceof Temperature,
      serialize: ({ degrees }) => degrees,
      deserialize: (degrees) => new Temperature(degrees),
    });
    const halt = newHalt();
    const workflow = first.registerWorkflow(
      async (temperature: Temperature) => {
        await halt.here();
        return temperature.degrees;
      },
      { name: 'workflow' },
    );
    second.registerWorkflow(async (temperature: Temperature) => temperature.degrees, { name: 'workflow' });
    await first.launch();
    await first.startWorkflow(workflow, { workflowID: 'w' })(new Temperature(20));
    await halt.reached;
    await first.shutdown();

    await second.launch();

    await expect(second.retrieveWorkflow('w').getResult()).rejects.toThrow(/Temperature/);
    expect((await second.getWorkflowStatus('w'))?.status).toBe('ERROR');
  });

  test('engines that write at the same time do not take the workflows of each other for lost', async () => {
    const { first, second } = await createGenerations(dialect);
    const [one, two] = [first, second].map((DBOS) =>
      DBOS.registerWorkflow((x: number) => DBOS.runStep(async () => x), { name: 'workflow' }),
    ) as [(x: number) => Promise<number>, (x: number) => Promise<number>];
    await first.launch();
    await second.launch();

    const results = await Promise.all(
      Array.from({ length: 100 }, async (_, index) => {
        for (let turn = 0; turn < index; turn += 1) await new Promise((resolve) => setImmediate(resolve));
        return Promise.all([one(index), two(index)]);
      }),
    );

    expect(results).toEqual(Array.from({ length: 100 }, (_, index) => [index, index]));
  });
});

onlyOn('postgres', (dialect) => {
  test('a workflow whose row is still being written is not taken for lost', async () => {
    const clock = new ManualClock();
    const { DBOS, url } = await createEngine(dialect, { leaseSeconds: 77, callTimeoutMs: '1 hour' }, clock.settings);
    const begun = newHalt();
    const workflow = DBOS.registerWorkflow(
      async () => {
        await begun.here();
        return DBOS.runStep(async () => 'done');
      },
      { name: 'workflow' },
    );
    await DBOS.launch();
    await clock.untilArmed(30_000);
    const database = await dialect.open(url);
    let handle: Promise<WorkflowHandle<string>> | undefined;
    await database.transaction(async (tx) => {
      await tx.run(sql`LOCK TABLE ${table('workflow_status')} IN SHARE MODE`);
      handle = DBOS.startWorkflow(workflow)();
      await begun.reached;
      // Time for the engine to verify what it runs.
      clock.advance(30_000);
      await clock.untilArmed(30_000);
    });

    begun.release();

    expect(await (await handle)?.getResult()).toBe('done');
  });
});
