// What runs add to the journal at each level.
import { expect, test, vi } from 'vitest';
import type { HistoryLevel } from '../../../src/features/history/event.js';
import type { Database } from '../../../src/database/database.js';
import { statementsOf } from '../../../src/features/history/facts.sql.js';
import { insertEntries } from '../../../src/features/history/journal.sql.js';
import { checkpointWrite } from '../../../src/features/history/step-facts.sql.js';
import { outcomeWrite, startWrite } from '../../../src/features/history/workflow-facts.sql.js';
import { insertWorkflows } from '../../../src/run/rows/workflows.js';
import { render } from '../../../src/kernel/sql/sql.js';
import { forEachForm, type TestDialect } from '../../rig/dialects.js';
import { createEngine, engineOf } from '../../rig/engines.js';
import { newWorkflow, step } from '../../rig/records.js';
import { raw } from '../../database/migrations/catalog.js';

function journal(database: Database): string {
  return database.dialect.name === 'postgres' ? 'dbos.journal_events' : 'journal_events';
}

async function stored(database: Database, workflowID: string) {
  const found = await database.read(
    raw(`SELECT event_type, step, attempt, executor, CAST(details AS TEXT) AS details
      FROM ${journal(database)} WHERE workflow_id = '${workflowID}' ORDER BY seq, part`),
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
  const teller = DBOS.registerWorkflow(
    async (ids: string[]) => DBOS.sendBulk(ids.map((destinationID) => ({ destinationID, message: 'hello' }))),
    { name: 'teller' },
  );
  const priced = DBOS.registerWorkflow(
    async (count: number) => {
      for (let amount = 0; amount < count; amount += 1) await fetchPrice('x', amount);
    },
    { name: 'priced' },
  );
  await DBOS.launch();
  return { DBOS, order, quiet, loud, priced, teller, database: engineOf(DBOS).runtime.database };
}

forEachForm((dialect) => {
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
    const database = await dialect.create();
    const fact = { eventType: 'WorkflowStarted', executor: 'one', attempt: 1, details: '{}' };
    const start = newWorkflow({ workflowID: 'w', owner: 'e.1', creator: 'e.1', fact });
    const recorded = {
      owner: 'e.1',
      step: step('w', 0),
      fact: { ...fact, eventType: 'ActivityCompleted', attempt: null },
    };
    const outcome = {
      workflowID: 'w',
      owner: 'e.1',
      status: 'SUCCESS',
      output: '1',
      error: null,
      fact: { ...fact, eventType: 'WorkflowCompleted', attempt: null },
    } as const;
    const fired = { ...TIMER, owner: 'e.1' };
    const statements = [
      ...statementsOf(database.dialect, startWrite, [start]),
      insertEntries([fired, { ...fired, key: 'other', owner: 'another run' }]),
      ...statementsOf(database.dialect, checkpointWrite, [recorded]),
      ...statementsOf(database.dialect, outcomeWrite, [outcome]),
    ];

    await database.commit(statements);
    await database.commit(statements);

    expect((await stored(database, 'w')).map(({ event_type: type }) => type)).toEqual([
      'WorkflowStarted',
      'AttemptStarted',
      'TimerFired',
      'ActivityScheduled',
      'ActivityCompleted',
      'WorkflowCompleted',
    ]);
  });

  test('a write that is refused says nothing', async () => {
    const database = await dialect.create();
    const fact = { eventType: 'WorkflowStarted', executor: 'one', attempt: null, details: null };
    await database.run(insertWorkflows([newWorkflow({ workflowID: 'w', owner: 'e.1', creator: 'e.1' })]));
    const stale = { owner: 'e.0', step: step('w', 0), fact: { ...fact, eventType: 'ActivityCompleted' } };
    const outcome = { workflowID: 'w', owner: 'e.0', status: 'SUCCESS', output: '1', error: null } as const;

    await database.commit([
      ...statementsOf(database.dialect, startWrite, [newWorkflow({ workflowID: 'w', creator: 'e.2', fact })]),
      ...statementsOf(database.dialect, checkpointWrite, [stale]),
      ...statementsOf(database.dialect, outcomeWrite, [
        { ...outcome, fact: { ...fact, eventType: 'WorkflowCompleted' } },
      ]),
    ]);

    expect(await stored(database, 'w')).toEqual([]);
  });

  test('a workflow of three steps costs five rows of the journal', async () => {
    const { DBOS, database, priced } = await setup(dialect, 'full');

    await (await DBOS.startWorkflow(priced, { workflowID: 'w' })(3)).getResult();

    const [counted] = await database.read(
      raw(`SELECT COUNT(*) AS number FROM ${journal(database).replace('_events', '')} WHERE workflow_id = 'w'`),
    );
    expect(Number(counted?.['number'])).toBe(5);
    expect(await stored(database, 'w')).toHaveLength(9);
  });

  test('a workflow that just runs sends the same statements with changes as with off, and writes the same rows', async () => {
    const sent = [];
    for (const level of ['off', 'changes'] as const) {
      const { DBOS, database, priced } = await setup(dialect, level);
      const commit = vi.spyOn(database, 'commit');

      await (await DBOS.startWorkflow(priced, { workflowID: 'w' })(3)).getResult();
      await DBOS.shutdown();

      // How many share a commit depends on the moment. A statement with one row has another text than one with several.
      const statements = commit.mock.calls.flatMap(([together]) =>
        together.map((one) => render(one, database.dialect).text),
      );
      sent.push(
        statements
          .filter((text) => /(INSERT INTO|UPDATE) \S*(workflow_status|operation_outputs|journal)/.test(text))
          .sort(),
      );
    }

    expect(sent[0]).toHaveLength(5);
    expect(sent[1]).toEqual(sent[0]);
  });

  test('workflows that are enqueued together, and messages that are sent together, have their events', async () => {
    const { DBOS, database, loud, teller } = await setup(dialect, 'full');
    await DBOS.registerQueue('q');

    const starts = ['a', 'b'].map((workflowID) => ({ args: [] as [], workflowID }));
    await DBOS.startWorkflows(loud, starts, { queueName: 'q' });
    await DBOS.retrieveWorkflow('b').getResult();
    await (await DBOS.startWorkflow(teller, { workflowID: 'teller' })(['a', 'b'])).getResult();

    expect((await stored(database, 'b')).map(({ event_type: type }) => type).slice(0, 2)).toEqual([
      'WorkflowStarted',
      'AttemptStarted',
    ]);
    expect((await stored(database, 'teller')).map(({ event_type: type }) => type)).toContain('OperationCompleted');
  });
});

const TIMER = {
  workflowID: 'w',
  eventType: 'TimerFired',
  step: 5,
  attempt: null,
  executor: null,
  details: '{}',
  completedAt: 7,
  key: 'step:5:done:7',
} as const;
