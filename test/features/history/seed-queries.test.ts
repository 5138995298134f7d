// What sched's documents say of its tables, asked of the views.
import { expect, test } from 'vitest';
import { deleteWorkflows } from '../../../src/features/lifecycle/deletion.sql.js';
import { insertMessages } from '../../../src/features/message/messages.sql.js';
import type { Database, Row } from '../../../src/database/database.js';
import { cancelWorkflows } from '../../../src/run/rows/lifecycle.js';
import { insertCheckpoints } from '../../../src/run/rows/steps.js';
import { insertWorkflows, type NewWorkflow } from '../../../src/run/rows/workflows.js';
import { forEachDialect } from '../../rig/dialects.js';
import { newMessage, newWorkflow, step } from '../../rig/records.js';
import { raw } from '../../database/migrations/catalog.js';

const FUTURE = 5_000_000_000_000;

forEachDialect((dialect) => {
  const isPostgres = dialect.name === 'postgres';
  const view = (name: string): string => (isPostgres ? `dbos_history.${name}` : `history_${name}`);
  const prefix = isPostgres ? 'dbos.' : '';

  async function setup(...workflows: Partial<NewWorkflow>[]): Promise<Database> {
    const database = await dialect.create();
    await database.run(
      insertWorkflows(workflows.map((fields) => newWorkflow({ owner: `${fields.workflowID}.1`, ...fields }))),
    );
    return database;
  }

  const query = (database: Database, text: string): Promise<Row[]> => database.read(raw(text));

  async function timelineOf(database: Database, workflowID: string) {
    const found = await query(
      database,
      `SELECT * FROM ${view('workflow_events')} WHERE workflow_id = '${workflowID}' ORDER BY idx ASC`,
    );
    return found.map((row) => ({
      idx: Number(row['idx']),
      type: row['event_type'] as string,
      details: (typeof row['details'] === 'string' ? JSON.parse(row['details']) : row['details']) as object,
    }));
  }

  test('idx has no gaps, also when events come from outside', async () => {
    const database = await setup({ workflowID: 'w' }, { workflowID: 'other' });
    const isWithoutGaps = async (events: number): Promise<void> => {
      const timeline = await timelineOf(database, 'w');
      expect(timeline.map(({ idx }) => idx)).toEqual(Array.from({ length: events }, (_, index) => index + 1));
    };
    await isWithoutGaps(2);

    await database.run(insertMessages([{ message: newMessage({ destinationID: 'w' }) }]));
    await isWithoutGaps(3);
    await database.run(insertCheckpoints([{ owner: 'w.1', step: step('w', 0) }]));
    await isWithoutGaps(5);
    // The request to cancel takes the place of the attempt, and has its number and executor.
    await cancelWorkflows(database, ['w']);
    await isWithoutGaps(6);
  });

  test('a sleep, a signal and a cancellation are events with their details', async () => {
    const database = await setup({ workflowID: 'w' });
    const sleep = step('w', 0, { name: 'DBOS.sleep', output: String(FUTURE), completedAt: FUTURE });
    await database.run(insertCheckpoints([{ owner: 'w.1', step: sleep }]));
    await database.run(insertMessages([{ message: newMessage({ destinationID: 'w', topic: 'news', text: '"hi"' }) }]));
    await cancelWorkflows(database, ['w'], { note: { reason: 'out of stock' } });

    const timeline = await timelineOf(database, 'w');

    const detailsOf = (type: string) => timeline.find((event) => event.type === type)?.details;
    const scheduled = detailsOf('TimerScheduled') as { readonly timer_id: string; readonly fire_at: string };
    expect({ ...scheduled, fire_at: Date.parse(scheduled.fire_at) }).toEqual({ timer_id: 'w:0', fire_at: FUTURE });
    expect(detailsOf('SignalReceived')).toMatchObject({ signal_name: 'news', input: 'hi' });
    expect(detailsOf('WorkflowCancelRequested')).toMatchObject({ reason: 'out of stock' });
    expect(timeline.at(-1)?.type).toBe('WorkflowCanceled');
    const timers = await query(database, `SELECT * FROM ${view('timers')} WHERE workflow_id = 'w'`);
    expect(timers).toEqual([]);
  });

  test('what happened lately is found by its timestamp, which the database sets', async () => {
    const database = await setup({ workflowID: 'old' }, { workflowID: 'new' });
    await database.run(raw(`UPDATE ${prefix}workflow_status SET created_at = 5 WHERE workflow_uuid = 'old'`));
    await database.run(raw(`UPDATE ${prefix}workflow_status SET started_at_epoch_ms = 5 WHERE workflow_uuid = 'old'`));
    // A machine may be slow; an hour stands for the 30 seconds.
    const since = isPostgres ? `NOW() - INTERVAL '1 hour'` : `strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-1 hour')`;

    const found = await query(
      database,
      `SELECT * FROM ${view('workflow_events')} WHERE timestamp >= ${since} ORDER BY timestamp DESC`,
    );

    expect(found.map((row) => row['workflow_id'])).toEqual(['new', 'new']);
  });

  test('events belong to executions, and go with them', async () => {
    const database = await setup({ workflowID: 'w' }, { workflowID: 'other' });
    await cancelWorkflows(database, ['w', 'other']);
    const orphans = `SELECT * FROM ${view('workflow_events')} AS e WHERE NOT EXISTS (
      SELECT 1 FROM ${view('workflow_executions')} AS x WHERE x.workflow_id = e.workflow_id)`;

    await deleteWorkflows(database, ['w']);

    expect(await query(database, orphans)).toEqual([]);
    expect(await timelineOf(database, 'other')).not.toEqual([]);
    // Only who deleted a workflow stays, if the caller has said it.
    await deleteWorkflows(database, ['other'], { note: { actor: 'ops' } });
    expect(await query(database, orphans)).toMatchObject([{ workflow_id: 'other', event_type: 'WorkflowDeleted' }]);
  });

  test('tasks that wait are found in the order of their creation', async () => {
    const waiting = { status: 'ENQUEUED', queueName: 'q', owner: null } as const;
    const database = await setup({ workflowID: 'b', ...waiting }, { workflowID: 'a', ...waiting }, { workflowID: 'c' });
    for (const [index, id] of ['b', 'a', 'c'].entries()) {
      await database.run(
        raw(`UPDATE ${prefix}workflow_status SET created_at = ${index} WHERE workflow_uuid = '${id}'`),
      );
    }

    const found = await query(
      database,
      `SELECT * FROM ${view('tasks')} WHERE status = 'PENDING' AND kind = 'WORKFLOW' ORDER BY created_at`,
    );

    expect(found.map((row) => row['workflow_id'])).toEqual(['b', 'a']);
  });
});
