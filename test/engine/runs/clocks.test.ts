// Sleeps, timeouts and deadlines go by the database's clock: processes whose clocks differ agree on them.
import { expect, test } from 'vitest';
import type { DBOSInstance } from '../../../src/index.js';
import { forEachDialect } from '../../rig/dialects.js';
import { createEngine, engineOf } from '../../rig/engines.js';
import { ManualClock, until } from '../../rig/manual-clock.js';

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
