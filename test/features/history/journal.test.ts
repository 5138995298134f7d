// The rows that triggers add to the journal, whichever statement changes a workflow, and that none can be changed.
import { expect, test } from 'vitest';
import type { Database } from '../../../src/database/database.js';
import { statementsOf } from '../../../src/features/history/facts.sql.js';
import { readHistory } from '../../../src/features/history/history.sql.js';
import { checkpointWrite } from '../../../src/features/history/step-facts.sql.js';
import { outcomeWrite } from '../../../src/features/history/workflow-facts.sql.js';
import { insertForks } from '../../../src/features/lifecycle/forks.sql.js';
import { rewindIfEnded } from '../../../src/features/lifecycle/rewind.sql.js';
import { delayIfWaiting, setPriorityIfActive } from '../../../src/features/queue/delays.sql.js';
import { insertCheckpoints } from '../../../src/run/rows/steps.js';
import {
  cancelOverdue,
  cancelWorkflows,
  deadLetterIfOwned,
  handBack,
  recoverIncarnation,
  resumeWorkflows,
} from '../../../src/run/rows/lifecycle.js';
import { finishIfOwned, insertWorkflows, type NewWorkflow } from '../../../src/run/rows/workflows.js';
import { forEachForm } from '../../rig/dialects.js';
import { newWorkflow, step } from '../../rig/records.js';
import { raw } from '../../database/migrations/catalog.js';

function schemaPrefix({ dialect }: Database): string {
  return dialect.name === 'postgres' ? 'dbos.' : '';
}

interface Stored {
  readonly type: string;
  readonly attempt: number | null;
  readonly executor: string | null;
  readonly actor: string | null;
  readonly details: Record<string, unknown>;
}

async function journalOf(database: Database, workflowID = 'w'): Promise<Stored[]> {
  const found = await database.read(
    raw(`SELECT event_type, attempt, executor, actor, CAST(details AS TEXT) AS details
      FROM ${schemaPrefix(database)}journal WHERE workflow_id = '${workflowID}' ORDER BY seq`),
  );
  return found.map((row) => ({
    type: row['event_type'] as string,
    attempt: row['attempt'] as number | null,
    executor: row['executor'] as string | null,
    actor: row['actor'] as string | null,
    details: JSON.parse(row['details'] as string) as Record<string, unknown>,
  }));
}

async function historyOf(database: Database, workflowID = 'w'): Promise<string[]> {
  const view = database.dialect.name === 'postgres' ? 'dbos_history.workflow_events' : 'history_workflow_events';
  const found = await database.read(
    raw(`SELECT event_type FROM ${view} WHERE workflow_id = '${workflowID}' ORDER BY idx ASC`),
  );
  return found.map((row) => row['event_type'] as string);
}

forEachForm((dialect) => {
  async function setup(
    fields: Partial<NewWorkflow> = {},
  ): Promise<{ database: Database; owned: { workflowID: string; owner: string } }> {
    const database = await dialect.create();
    const workflow = newWorkflow({ workflowID: 'w', owner: 'engine.1', ...fields });
    await database.run(insertWorkflows([workflow]));
    return { database, owned: { workflowID: 'w', owner: 'engine.1' } };
  }

  test('a workflow that just runs writes nothing to the journal', async () => {
    const { database, owned } = await setup();

    await database.run(insertCheckpoints([{ owner: owned.owner, step: step('w', 0) }]));
    await database.run(finishIfOwned([{ ...owned, status: 'SUCCESS', output: '1', error: null }]));

    expect(await journalOf(database)).toEqual([]);
    expect(await historyOf(database)).toEqual([
      'WorkflowStarted',
      'ActivityScheduled',
      'ActivityCompleted',
      'AttemptStarted',
      'WorkflowCompleted',
    ]);
  });

  test('a cancellation keeps who asked for it, why, and what it overwrites', async () => {
    const { database } = await setup();

    await cancelWorkflows(database, ['w'], { note: { source: 'api', reason: 'wrong order', actor: 'ops' } });

    expect(await journalOf(database)).toEqual([
      {
        type: 'WorkflowCancelRequested',
        attempt: 1,
        executor: 'local',
        actor: 'ops',
        details: {
          source: 'api',
          reason: 'wrong order',
          from_status: 'PENDING',
          started_at: expect.any(Number) as number,
        },
      },
    ]);
    expect((await historyOf(database)).slice(-2)).toEqual(['WorkflowCancelRequested', 'WorkflowCanceled']);
  });

  test('a note does not outlive its transaction', async () => {
    const { database } = await setup();
    await database.run(insertWorkflows([newWorkflow({ workflowID: 'other' })]));

    await cancelWorkflows(database, ['w'], { note: { source: 'api', reason: 'mine', actor: 'me' } });
    await cancelWorkflows(database, ['other']);

    expect(await journalOf(database, 'other')).toMatchObject([{ actor: null, details: { source: 'api' } }]);
    expect((await journalOf(database, 'other'))[0]?.details).not.toHaveProperty('reason');
  });

  test('a workflow that is cancelled at its deadline has timed out', async () => {
    const { database } = await setup({ deadlineAt: 5, timeoutMs: 1500 });

    await cancelOverdue(database, 10);

    expect(await journalOf(database)).toMatchObject([
      { type: 'WorkflowTimedOut', details: { source: 'deadline', deadline: 5, timeout_seconds: 1.5 } },
    ]);
    expect(await historyOf(database)).not.toContain('WorkflowCanceled');
  });

  test('each lost attempt is kept with its executor and its cause', async () => {
    const { database, owned } = await setup();

    await recoverIncarnation(database, 'engine');
    await database.run(
      raw(
        `UPDATE ${schemaPrefix(database)}workflow_status SET status = 'PENDING', owner_xid = 'engine.1', executor_id = 'second', recovery_attempts = 2, started_at_epoch_ms = 1`,
      ),
    );
    await handBack(database, [owned]);

    expect(await journalOf(database)).toMatchObject([
      { type: 'AttemptLost', attempt: 1, executor: 'local', details: { source: 'recovery' } },
      { type: 'AttemptLost', attempt: 2, executor: 'second', details: { source: 'handed back' } },
    ]);
  });

  test('a dead letter keeps its attempts, and a resume what it replaces', async () => {
    const { database, owned } = await setup({ recoveryAttempts: 7, queueName: 'mail' });

    await deadLetterIfOwned(database, [owned]);
    await resumeWorkflows(database, ['w'], { note: { reason: 'fixed', actor: 'ops' } });
    // A retry of the call changes nothing more.
    await resumeWorkflows(database, ['w'], { note: { reason: 'fixed', actor: 'ops' } });

    expect(await journalOf(database)).toMatchObject([
      { type: 'WorkflowDeadLettered', details: { attempts: 7, queue: 'mail' } },
      {
        type: 'WorkflowResumed',
        actor: 'ops',
        details: { reason: 'fixed', from_status: 'MAX_RECOVERY_ATTEMPTS_EXCEEDED', attempts: 7 },
      },
    ]);
  });

  test('changes of delay and priority are kept, whichever program makes them', async () => {
    const { database } = await setup({ status: 'ENQUEUED', queueName: 'mail', owner: null });

    await delayIfWaiting(database, 'w', { untilMs: 1000, note: { reason: 'later' } });
    await setPriorityIfActive(database, { workflowID: 'w', priority: 3, note: { actor: 'ops' } });
    await database.run(raw(`UPDATE ${schemaPrefix(database)}workflow_status SET priority = 5`));

    expect(await journalOf(database)).toMatchObject([
      { type: 'DelayChanged', details: { to: 1000, reason: 'later' } },
      { type: 'PriorityChanged', actor: 'ops', details: { from: 0, to: 3 } },
      { type: 'PriorityChanged', actor: null, details: { from: 3, to: 5 } },
    ]);
  });

  test('a fork is an event of its original', async () => {
    const { database } = await setup();
    const settings = {
      queueName: 'q',
      partitionKey: null,
      applicationVersion: 'v2',
      applicationName: 'test',
      timeoutMs: null,
    };

    await insertForks(database, [{ originalID: 'w', workflowID: 'fork', startStep: 0, creator: 'c' }], {
      ...settings,
      replacementChildren: new Map(),
      note: { reason: 'again', actor: 'ops' },
    });

    expect(await journalOf(database)).toMatchObject([
      { type: 'WorkflowForked', actor: 'ops', details: { new_id: 'fork', version: 'v2', reason: 'again' } },
    ]);
  });

  test('a rewind keeps the steps and the outcome that it deletes', async () => {
    const { database, owned } = await setup();
    const steps = [step('w', 0), step('w', 1, { name: 'second', output: null, error: '"boom"' })];
    await database.run(insertCheckpoints(steps.map((one) => ({ owner: owned.owner, step: one }))));
    await database.run(finishIfOwned([{ ...owned, status: 'ERROR', output: null, error: '"boom"' }]));
    const before = await historyOf(database);
    const target = { queueName: 'q', partitionKey: null, applicationVersion: null };

    await rewindIfEnded(database, { workflowID: 'w', startStep: 1, creator: 'r', ...target, note: { reason: 'bug' } });

    expect(await historyOf(database)).toEqual([...before, 'WorkflowRewound']);
    const kept = await journalOf(database);
    expect(kept.find(({ type }) => type === 'ActivityFailed')?.details).toMatchObject({ error: 'boom' });
    expect(kept.at(-1)).toMatchObject({ type: 'WorkflowRewound', details: { start_step: 1, reason: 'bug' } });
  });

  test('a rewind keeps the values of stored events, whose checkpoints it deletes', async () => {
    const { database, owned } = await setup();
    const fact = { eventType: 'ActivityCompleted', executor: 'local', attempt: null, details: '{"input":[1]}' };
    const outcome = { ...owned, status: 'SUCCESS', output: '[7]', error: null } as const;
    await database.commit([
      ...statementsOf(database.dialect, checkpointWrite, [{ owner: owned.owner, step: step('w', 0), fact }]),
      ...statementsOf(database.dialect, outcomeWrite, [
        { ...outcome, fact: { ...fact, eventType: 'WorkflowCompleted' } },
      ]),
    ]);
    const before = await historyOf(database);
    const target = { queueName: 'q', partitionKey: null, applicationVersion: null };

    await rewindIfEnded(database, { workflowID: 'w', startStep: 0, creator: 'r', ...target });
    await rewindIfEnded(database, { workflowID: 'w', startStep: 0, creator: 's', ...target });

    expect(await historyOf(database)).toEqual([...before, 'WorkflowRewound']);
    const events = await readHistory(database, { workflowID: 'w', limit: 100, payloads: false });
    const detailsOf = (type: string): unknown => JSON.parse(events.find((event) => event.type === type)?.details ?? '');
    expect(detailsOf('ActivityScheduled')).toMatchObject({ activity_name: 'step 0', input: [1] });
    expect(detailsOf('ActivityCompleted')).toMatchObject({ activity_name: 'step 0', duration_ms: 1, result: 1 });
    expect(detailsOf('WorkflowCompleted')).toMatchObject({ result: [7] });
  });

  test('the journal follows a workflow that gets another ID', async () => {
    const { database } = await setup();
    await cancelWorkflows(database, ['w']);

    await database.run(raw(`UPDATE ${schemaPrefix(database)}workflow_status SET workflow_uuid = 'renamed'`));

    expect(await journalOf(database, 'w')).toEqual([]);
    expect(await journalOf(database, 'renamed')).toHaveLength(1);
  });

  test('rows of the journal can be neither changed nor deleted, and go with their workflow', async () => {
    const { database } = await setup();
    await cancelWorkflows(database, ['w']);
    const table = `${schemaPrefix(database)}journal`;

    await expect(database.run(raw(`UPDATE ${table} SET event_type = 'x'`))).rejects.toThrow(/append-only/);
    await expect(database.run(raw(`DELETE FROM ${table}`))).rejects.toThrow(/append-only/);
    if (dialect.name === 'postgres') {
      await expect(database.run(raw(`TRUNCATE ${table}`))).rejects.toThrow(/append-only/);
    }
    expect(await journalOf(database)).toHaveLength(1);

    await database.run(raw(`DELETE FROM ${schemaPrefix(database)}workflow_status`));

    expect(await journalOf(database)).toEqual([]);
  });
});
