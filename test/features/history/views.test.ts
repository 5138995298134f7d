// The views in the form of sched's tables: its queries run as written, with its names and columns.
import { expect, test } from 'vitest';
import type { Database, Row } from '../../../src/database/database.js';
import {
  cancelOverdue,
  cancelWorkflows,
  recoverIncarnation,
  resumeWorkflows,
} from '../../../src/run/rows/lifecycle.js';
import { insertCheckpoints } from '../../../src/run/rows/steps.js';
import { finishIfOwned, insertWorkflows, type NewWorkflow } from '../../../src/run/rows/workflows.js';
import { forEachForm } from '../../rig/dialects.js';
import { newWorkflow, step } from '../../rig/records.js';
import { raw } from '../../database/migrations/catalog.js';

const COLUMNS = {
  workflow_executions: [
    'workflow_id',
    'run_id',
    'name',
    'status',
    'input',
    'result',
    'error',
    'start_time',
    'end_time',
    'version',
  ],
  workflow_events: ['workflow_id', 'idx', 'event_type', 'timestamp', 'details'],
  tasks: [
    'task_token',
    'workflow_id',
    'kind',
    'activity_name',
    'input',
    'status',
    'claim_token',
    'visibility_timeout',
    'created_at',
  ],
  timers: ['timer_id', 'workflow_id', 'fire_at', 'fired', 'created_at'],
} as const;

forEachForm((dialect) => {
  const view = (name: string): string => (dialect.name === 'postgres' ? `dbos_history.${name}` : `history_${name}`);

  async function setup(...workflows: Partial<NewWorkflow>[]): Promise<Database> {
    const database = await dialect.create();
    await database.run(
      insertWorkflows(workflows.map((fields) => newWorkflow({ owner: `${fields.workflowID}.1`, ...fields }))),
    );
    return database;
  }

  const query = (database: Database, text: string): Promise<Row[]> => database.read(raw(text));

  async function executionOf(database: Database, workflowID: string): Promise<Row | undefined> {
    const [found] = await query(
      database,
      `SELECT * FROM ${view('workflow_executions')} WHERE workflow_id = '${workflowID}'`,
    );
    return found;
  }

  test('the views have the columns of the tables', async () => {
    const database = await setup({
      workflowID: 'w',
      deadlineAt: 5_000_000_000_000,
    });
    await cancelWorkflows(database, ['none']);

    for (const [name, columns] of Object.entries(COLUMNS)) {
      const [row] = await query(database, `SELECT * FROM ${view(name)}`);
      expect(Object.keys(row ?? {}), name).toEqual(expect.arrayContaining([...columns]));
    }
  });

  test('a timeline is read by workflow in the order of idx, which counts from 1', async () => {
    const database = await setup({ workflowID: 'w' });
    await database.run(insertCheckpoints([{ owner: 'w.1', step: step('w', 0) }]));
    await cancelWorkflows(database, ['w']);

    const events = await query(
      database,
      `SELECT * FROM ${view('workflow_events')} WHERE workflow_id = 'w' ORDER BY idx ASC`,
    );

    expect(events.map((row) => Number(row['idx']))).toEqual(events.map((_, index) => index + 1));
    expect(events[0]).toMatchObject({ event_type: 'WorkflowStarted' });
    const completed = events.find((row) => row['event_type'] === 'ActivityCompleted')?.['details'];
    expect(typeof completed === 'string' ? JSON.parse(completed) : completed).toMatchObject({ result: 1 });
  });

  test('the five statuses tell a timeout from a cancellation', async () => {
    const database = await setup(
      { workflowID: 'running' },
      { workflowID: 'completed' },
      { workflowID: 'failed' },
      { workflowID: 'canceled' },
      { workflowID: 'late', deadlineAt: 5 },
    );
    const outcome = { output: null, error: null };
    await database.run(
      finishIfOwned([
        {
          workflowID: 'completed',
          owner: 'completed.1',
          ...outcome,
          status: 'SUCCESS',
          output: '{"json":[7],"__dbos_serializer":"superjson"}',
        },
        { workflowID: 'failed', owner: 'failed.1', ...outcome, status: 'ERROR', error: '"boom"' },
      ]),
    );
    await cancelWorkflows(database, ['canceled']);
    await cancelOverdue(database, 10);

    const statuses = await query(database, `SELECT workflow_id, status FROM ${view('workflow_executions')}`);

    expect(Object.fromEntries(statuses.map((row) => [row['workflow_id'], row['status']]))).toEqual({
      running: 'RUNNING',
      completed: 'COMPLETED',
      failed: 'FAILED',
      canceled: 'CANCELED',
      late: 'TIMED_OUT',
    });
    const completed = await executionOf(database, 'completed');
    expect(typeof completed?.['result'] === 'string' ? JSON.parse(completed['result']) : completed?.['result']).toEqual(
      [7],
    );
    expect(await executionOf(database, 'failed')).toMatchObject({ error: '"boom"' });
  });

  test('the version of a workflow grows with every change of its state', async () => {
    const database = await setup({ workflowID: 'w', owner: 'engine.1' });
    const versions: number[] = [];
    const note = async (): Promise<void> => {
      versions.push(Number((await executionOf(database, 'w'))?.['version']));
    };
    const prefix = dialect.name === 'postgres' ? 'dbos.' : '';
    const claim = raw(`UPDATE ${prefix}workflow_status SET status = 'PENDING', owner_xid = 'engine.2'`);

    await note();
    for (const change of [
      () => recoverIncarnation(database, 'engine'),
      () => database.run(claim),
      () => cancelWorkflows(database, ['w']),
      () => resumeWorkflows(database, ['w']),
      () => database.run(claim),
      () =>
        database.run(
          finishIfOwned([{ workflowID: 'w', owner: 'engine.2', status: 'SUCCESS', output: '1', error: null }]),
        ),
    ]) {
      await change();
      await note();
    }

    expect(versions).toEqual([...new Set(versions)].toSorted((a, b) => a - b));
    expect(versions).toHaveLength(7);
  });

  test('waiting and running workflows are tasks, with the token of their owner', async () => {
    const database = await setup(
      { workflowID: 'running' },
      { workflowID: 'waiting', status: 'ENQUEUED', queueName: 'q', owner: null },
    );

    const tasks = await query(database, `SELECT * FROM ${view('tasks')} ORDER BY workflow_id`);

    expect(tasks).toMatchObject([
      { workflow_id: 'running', kind: 'WORKFLOW', status: 'IN_FLIGHT', claim_token: 'running.1' },
      { workflow_id: 'waiting', kind: 'WORKFLOW', status: 'PENDING', claim_token: null },
    ]);
  });

  test('pending sleeps, backoffs, delays and deadlines are timers', async () => {
    const future = 5_000_000_000_000;
    const database = await setup(
      { workflowID: 'sleeping' },
      { workflowID: 'delayed', status: 'DELAYED', queueName: 'q', owner: null, delayMs: 1_000_000 },
      { workflowID: 'limited', deadlineAt: future },
    );
    const sleep = step('sleeping', 0, { name: 'DBOS.sleep', output: String(future), completedAt: future });
    await database.run(insertCheckpoints([{ owner: 'sleeping.1', step: sleep }]));
    const prefix = dialect.name === 'postgres' ? 'dbos.' : '';
    // The first one has been repeated with success.
    for (const stepID of [0, 1]) {
      await database.run(
        raw(`INSERT INTO ${prefix}step_attempts (workflow_uuid, function_id, attempts, retry_at_epoch_ms, errors)
          VALUES ('sleeping', ${stepID}, 1, ${future}, '[]')`),
      );
    }

    const timers = await query(database, `SELECT timer_id FROM ${view('timers')} WHERE NOT fired ORDER BY timer_id`);

    expect(timers.map((row) => row['timer_id'])).toEqual([
      'delayed:delay',
      'limited:deadline',
      'sleeping:0',
      'sleeping:1:retry',
    ]);
  });

  test('executions that ended long ago are deleted with their events', async () => {
    const database = await setup({ workflowID: 'old' }, { workflowID: 'new' });
    await cancelWorkflows(database, ['old', 'new']);
    const prefix = dialect.name === 'postgres' ? 'dbos.' : '';
    await database.run(raw(`UPDATE ${prefix}workflow_status SET completed_at = 5 WHERE workflow_uuid = 'old'`));
    const monthAgo =
      dialect.name === 'postgres' ? `NOW() - INTERVAL '30 days'` : `strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-30 days')`;

    await database.run(
      raw(`DELETE FROM ${view('workflow_executions')}
        WHERE status IN ('COMPLETED','FAILED','CANCELED') AND end_time < ${monthAgo}`),
    );

    expect(await executionOf(database, 'old')).toBeUndefined();
    expect(await executionOf(database, 'new')).toMatchObject({ status: 'CANCELED' });
    const [left] = await query(database, `SELECT COUNT(*) AS number FROM ${prefix}journal`);
    expect(Number(left?.['number'])).toBe(1);
  });
});
