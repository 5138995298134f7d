// What runs add to the journal at each level.
import { expect, test } from 'vitest';
import type { HistoryLevel } from '../../../src/model/history.js';
import type { Database } from '../../../src/store/database.js';
import { insertEntries } from '../../../src/store/journal/journal.js';
import { forEachDialect, type TestDialect } from '../../rig/dialects.js';
import { createEngine, engineOf } from '../../rig/engines.js';
import { raw } from '../../store/migrations/catalog.js';

function journal(database: Database): string {
  return database.dialect.name === 'postgres' ? 'dbos.journal' : 'journal';
}

async function stored(database: Database, workflowID: string) {
  const found = await database.read(
    raw(`SELECT event_type, step, attempt, executor, CAST(details AS TEXT) AS details
      FROM ${journal(database)} WHERE workflow_id = '${workflowID}' ORDER BY seq`),
  );
  return found.map((row) => ({
    ...row,
    event_type: row['event_type'] as string,
    details: JSON.parse(row['details'] as string) as Record<string, unknown>,
  }));
}

async function setup(dialect: TestDialect, history: HistoryLevel) {
  const { DBOS } = await createEngine(dialect, { history, executorID: 'one' });
  let failures = 1;
  const fetchPrice = DBOS.registerStep(async (item: string, amount: number) => `${item}:${amount}`, {
    name: 'fetchPrice',
  });
  const order = DBOS.registerWorkflow(
    async (item: string) => {
      const price = await fetchPrice(item, 3);
      await DBOS.sleep(1);
      await DBOS.runStep(
        async () => {
          if (failures > 0) throw new Error(`failure ${failures--}`);
        },
        { name: 'flaky', retriesAllowed: true, intervalSeconds: 0.001, maxAttempts: 3 },
      );
      return price;
    },
    { name: 'order' },
  );
  const quiet = DBOS.registerWorkflow(async () => fetchPrice('x', 1), { name: 'quiet', history: 'off' });
  const loud = DBOS.registerWorkflow(async () => fetchPrice('x\u0000y', 1), { name: 'loud', history: 'full' });
  await DBOS.launch();
  return { DBOS, order, quiet, loud, database: engineOf(DBOS).runtime.database };
}

forEachDialect((dialect) => {
  test('with full, every event of a run is a row, with the inputs of registered steps', async () => {
    const { DBOS, order, database } = await setup(dialect, 'full');

    await (await DBOS.startWorkflow(order, { workflowID: 'w' })('pen')).getResult();

    const events = await stored(database, 'w');
    expect(events.map(({ event_type: type }) => type)).toEqual([
      'WorkflowStarted',
      'AttemptStarted',
      'ActivityScheduled',
      'ActivityCompleted',
      'TimerScheduled',
      'ActivityRetryScheduled',
      'TimerFired',
      'ActivityScheduled',
      'ActivityCompleted',
      'WorkflowCompleted',
    ]);
    expect(events[2]).toMatchObject({ step: 0, details: { activity_name: 'fetchPrice', input: ['pen', 3] } });
    expect(events[4]?.details).toMatchObject({ timer_id: 'w:1', fire_at: expect.stringMatching(/^20.*Z$/) as string });
    expect(events[5]).toMatchObject({
      attempt: 1,
      executor: 'one',
      details: { activity_name: 'flaky', attempt: 2, error: { name: 'Error', message: 'failure 1' } },
    });
  });

  test('with changes, only the failed attempt of a step is a row', async () => {
    const { DBOS, order, database } = await setup(dialect, 'changes');

    await (await DBOS.startWorkflow(order, { workflowID: 'w' })('pen')).getResult();

    expect(await stored(database, 'w')).toMatchObject([
      { event_type: 'ActivityRetryScheduled', step: 2, attempt: 1, details: { activity_name: 'flaky' } },
    ]);
  });

  test('with off, a run adds nothing', async () => {
    const { DBOS, order, database } = await setup(dialect, 'off');

    await (await DBOS.startWorkflow(order, { workflowID: 'w' })('pen')).getResult();

    expect(await stored(database, 'w')).toEqual([]);
  });

  test('the level of a workflow wins over that of the configuration', async () => {
    const { DBOS, quiet, loud, database } = await setup(dialect, 'changes');

    await (await DBOS.startWorkflow(quiet, { workflowID: 'q' })()).getResult();
    await (await DBOS.startWorkflow(loud, { workflowID: 'l' })()).getResult();

    expect(await stored(database, 'q')).toEqual([]);
    // A character that Postgres cannot store in JSON does not fail the step.
    expect((await stored(database, 'l')).map(({ event_type: type }) => type)).toEqual([
      'WorkflowStarted',
      'AttemptStarted',
      'ActivityScheduled',
      'ActivityCompleted',
      'WorkflowCompleted',
    ]);
  });

  test('a workflow from a queue says with its first write that its attempt has started', async () => {
    const { DBOS, loud, database } = await setup(dialect, 'changes');
    await DBOS.registerQueue('q');

    await (await DBOS.startWorkflow(loud, { workflowID: 'w', queueName: 'q' })()).getResult();

    const events = await stored(database, 'w');
    expect(events.map(({ event_type: type }) => type).slice(0, 3)).toEqual([
      'WorkflowStarted',
      'AttemptStarted',
      'ActivityScheduled',
    ]);
    expect(events[1]).toMatchObject({ attempt: 1, executor: 'one' });
  });

  test('an event that a repeated commit writes again is there once', async () => {
    const { DBOS, loud, database } = await setup(dialect, 'changes');
    await (await DBOS.startWorkflow(loud, { workflowID: 'w' })()).getResult();
    const [before] = await database.read(
      raw(`SELECT owner_xid FROM ${journal(database).replace('journal', 'workflow_status')} WHERE workflow_uuid = 'w'`),
    );
    const entry = {
      workflowID: 'w',
      guard: 'ended',
      token: before?.['owner_xid'] as string,
      subject: 'SUCCESS',
      subjectStep: null,
      completedAt: null,
      eventType: 'WorkflowCompleted',
      step: null,
      attempt: null,
      executor: null,
      details: '{}',
      key: `outcome:${before?.['owner_xid'] as string}`,
    } as const;

    await database.run(insertEntries([entry]));
    await database.run(insertEntries([entry, { ...entry, key: 'other', token: 'another run' }]));

    expect((await stored(database, 'w')).filter(({ event_type: type }) => type === 'WorkflowCompleted')).toHaveLength(
      1,
    );
  });
});
