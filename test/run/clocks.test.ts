// Sleeps, timeouts and deadlines go by the database's clock: processes whose clocks differ agree on them.
import { expect, test } from 'vitest';
import type { DBOSInstance } from '../../src/index.js';
import { forEachDialect } from '../rig/dialects.js';
import { createEngine, engineOf } from '../rig/engines.js';
import { ManualClock, until } from '../rig/manual-clock.js';

const HOUR = 3_600_000;
const config = { applicationVersion: 'v1', executorID: 'one', useListenNotify: false };

/** A clock that is ahead of the database's. */
class SkewedClock extends ManualClock {
  constructor(
    readonly database: ManualClock,
    aheadMs: number,
  ) {
    super(database.now() + aheadMs);
  }

  override get settings() {
    return { clock: this, databaseNow: () => this.database.now() };
  }

  override advance(byMs: number): void {
    this.database.advance(byMs);
    super.advance(byMs);
  }
}

function register(DBOS: DBOSInstance) {
  const sleeper = DBOS.registerWorkflow(() => DBOS.sleep(HOUR), { name: 'sleeper' });
  const receiver = DBOS.registerWorkflow(() => DBOS.recv('topic', 3600), { name: 'receiver' });
  const reader = DBOS.registerWorkflow(() => DBOS.getEvent('nobody', 'key', 3600), { name: 'reader' });
  return { sleeper, receiver, reader };
}

forEachDialect((dialect) => {
  test.each([-HOUR / 2, HOUR / 2])(
    'a sleep and timeouts that begin where the clock is off by %i ms end on time in another process',
    async (aheadMs) => {
      const database = new ManualClock();
      const skewed = new SkewedClock(database, aheadMs);
      const { DBOS: first, url } = await createEngine(dialect, config, skewed.settings);
      const workflows = register(first);
      await first.launch();
      for (const [workflowID, workflow] of Object.entries(workflows)) {
        await first.startWorkflow(workflow, { workflowID })();
      }
      const stepsOf = async (workflowID: string) => (await first.listWorkflowSteps(workflowID))?.length;
      for (const workflowID of Object.keys(workflows)) await until(async () => (await stepsOf(workflowID)) === 1);
      const begunAt = database.now();
      const right = new SkewedClock(database, 0);
      const { DBOS: second } = await createEngine(dialect, { ...config, systemDatabaseUrl: url }, right.settings);
      register(second);
      await second.launch();
      const { runs } = engineOf(second);
      // It leaves the first its share for a moment.
      await until(() => {
        right.advance(10);
        return runs.all.length === 3 && runs.slots.busy === 0;
      });

      // In two leaps, so that one that ends too early has ended by then.
      right.advance(begunAt + 0.9 * HOUR - database.now());
      for (let turn = 0; turn < 20; turn += 1) {
        await new Promise((resolve) => setImmediate(resolve));
        await second.listWorkflows({});
      }
      right.advance(begunAt + HOUR - 1 - database.now());
      const pending = await second.listWorkflows({ status: 'PENDING' });
      right.advance(1);

      expect(pending).toHaveLength(3);
      for (const workflowID of Object.keys(workflows)) await second.retrieveWorkflow(workflowID).getResult();
      for (const { completedAt } of await second.listWorkflows({})) expect(completedAt).toBe(begunAt + HOUR);
    },
  );

  test.each([-HOUR, HOUR])('waits and limits go on as before when the own clock is set by %i ms', async (byMs) => {
    const clock = new ManualClock();
    const { DBOS } = await createEngine(dialect, config, clock.settings);
    const sleeper = DBOS.registerWorkflow(() => DBOS.sleep(1000), { name: 'sleeper' });
    const flaky = { attempts: 0 };
    const retried = DBOS.registerWorkflow(
      () =>
        DBOS.runStep(
          async () => {
            flaky.attempts += 1;
            if (flaky.attempts === 1) throw new Error('not yet');
          },
          { name: 'flaky', retriesAllowed: true, intervalSeconds: 1 },
        ),
      { name: 'retried' },
    );
    await DBOS.launch();
    await DBOS.registerQueue('limited', { rateLimit: { limitPerPeriod: 1, periodSec: 1 } });
    clock.set(byMs);
    const startedAt = clock.monotonic();

    const handles = [
      await DBOS.startWorkflow(sleeper, { workflowID: 'sleeper' })(),
      await DBOS.startWorkflow(retried)(),
      await DBOS.startWorkflow(sleeper, { queueName: 'limited' })(),
      await DBOS.startWorkflow(sleeper, { queueName: 'limited' })(),
      await DBOS.startWorkflow(sleeper, { queueName: 'limited', enqueueOptions: { delaySeconds: 2 } })(),
    ];
    const ended = Promise.all(handles.map((handle) => handle.getResult()));
    let isOver = false;
    void ended.then(() => (isOver = true));
    await until(() => {
      clock.advance(20);
      return isOver || clock.monotonic() - startedAt > HOUR / 2;
    });

    expect(isOver).toBe(true);
    const [timer] = (await DBOS.listWorkflowSteps('sleeper')) ?? [];
    expect(Number(timer?.output)).toBeLessThan(startedAt + 60_000);
  });

  test('a workflow is cancelled at its deadline by the database clock, where the own clock is ahead', async () => {
    const skewed = new SkewedClock(new ManualClock(), HOUR);
    const { DBOS } = await createEngine(dialect, config, skewed.settings);
    const { sleeper } = register(DBOS);
    await DBOS.launch();

    const handle = await DBOS.startWorkflow(sleeper, { workflowID: 'w', timeoutMS: 10_000 })();
    await skewed.untilArmed(10_000);
    const child = await DBOS.getWorkflowStatus('w');
    skewed.advance(9_999);
    const before = await DBOS.getWorkflowStatus('w');
    skewed.advance(1);

    await expect(handle.getResult()).rejects.toMatchObject({ code: 'WORKFLOW_CANCELLED' });
    expect(before?.status).toBe('PENDING');
    expect(child?.deadlineEpochMS).toBe(skewed.database.now());
  });
});
