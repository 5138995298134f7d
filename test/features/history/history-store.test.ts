// One suite for all implementations of the store interface.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { HistoryStore } from '../../../src/features/history/history-store.sql.js';
import { openHistoryStore } from '../../../src/features/history/open-history-store.sql.js';
import { bundled } from '../../rig/bundle.js';
import { forEachDialect } from '../../rig/dialects.js';

function conforms(open: () => Promise<HistoryStore>): void {
  async function setup(): Promise<HistoryStore> {
    const store = await open();
    onTestFinished(() => store.close());
    return store;
  }

  test('a workflow is created once, found and listed', async () => {
    const store = await setup();

    const created = await store.createWorkflow({ workflowID: 'w', name: 'order', input: { item: 'pen' } });

    expect(created).toMatchObject({ workflowID: 'w', name: 'order', status: 'RUNNING', input: { item: 'pen' } });
    expect(created).toMatchObject({ result: null, error: null, endTime: null });
    expect(await store.getWorkflow('w')).toEqual(created);
    expect(await store.getWorkflow('missing')).toBeUndefined();
    await expect(store.createWorkflow({ workflowID: 'w', name: 'other' })).rejects.toMatchObject({
      code: 'WORKFLOW_ID_IN_USE',
    });
    await store.createWorkflow({ workflowID: 'x', name: 'order' });
    await store.completeWorkflow('x', { status: 'FAILED', error: 'boom' });
    expect((await store.listWorkflows({ status: 'RUNNING' })).map(({ workflowID }) => workflowID)).toEqual(['w']);
    expect(await store.listWorkflows({ limit: 1 })).toHaveLength(1);
    expect(await store.listWorkflows()).toHaveLength(2);
  });

  test('a workflow ends once, and its version grows', async () => {
    const store = await setup();
    const { version, runID } = await store.createWorkflow({ workflowID: 'w', name: 'order' });

    const isStale = await store.completeWorkflow('w', { status: 'COMPLETED', version: version + 100 });
    const isDone = await store.completeWorkflow('w', { status: 'COMPLETED', result: [1], version });
    const isRepeated = await store.completeWorkflow('w', { status: 'CANCELED' });

    expect([isStale, isDone, isRepeated]).toEqual([false, true, false]);
    const ended = await store.getWorkflow('w');
    expect(ended).toMatchObject({ status: 'COMPLETED', result: [1], runID, endTime: expect.any(Date) as Date });
    expect(ended?.version).toBeGreaterThan(version);
    await expect(store.completeWorkflow('missing', { status: 'CANCELED' })).rejects.toMatchObject({
      code: 'NON_EXISTENT_WORKFLOW',
    });
  });

  test('a version is raised only from the one that the caller has seen', async () => {
    const store = await setup();
    const { version } = await store.createWorkflow({ workflowID: 'w', name: 'order' });

    const outcomes = await Promise.all([1, 2, 3].map(() => store.bumpVersion('w', version)));

    expect(outcomes.filter((outcome) => outcome !== undefined)).toEqual([(await store.getWorkflow('w'))?.version]);
  });

  test('events get the next number of their workflow, also at the same time', async () => {
    const store = await setup();
    await store.createWorkflow({ workflowID: 'w', name: 'order' });

    const appended = await Promise.all(
      [0, 1, 2, 3].map((number) => store.appendEvent('w', { eventType: 'Noted', details: { number } })),
    );
    await store.completeWorkflow('w', { status: 'TIMED_OUT' });

    expect(appended.map(({ idx }) => idx).toSorted()).toEqual([2, 3, 4, 5]);
    expect(appended[0]?.timestamp).toBeInstanceOf(Date);
    const history = await store.getHistory('w');
    expect(history.map(({ idx }) => idx)).toEqual([1, 2, 3, 4, 5, 6]);
    const types = history.map(({ eventType }) => eventType);
    expect(types).toEqual(['WorkflowStarted', 'Noted', 'Noted', 'Noted', 'Noted', 'WorkflowTimedOut']);
    const { idx } = appended[3] ?? { idx: 0 };
    expect(history[idx - 1]?.details).toEqual({ number: 3 });
    expect(await store.getHistory('missing')).toEqual([]);
    await expect(store.appendEvent('missing', { eventType: 'Noted' })).rejects.toMatchObject({
      code: 'NON_EXISTENT_WORKFLOW',
    });
  });

  test('a cancellation is told as sched tells it', async () => {
    const store = await setup();
    await store.createWorkflow({ workflowID: 'w', name: 'order' });

    await store.completeWorkflow('w', { status: 'CANCELED' });

    expect((await store.getHistory('w')).map(({ eventType }) => eventType)).toEqual([
      'WorkflowStarted',
      'WorkflowCancelRequested',
      'WorkflowCanceled',
    ]);
    expect(await store.getWorkflow('w')).toMatchObject({ status: 'CANCELED' });
  });

  test('timers fire once, when they are due, the earliest first', async () => {
    const store = await setup();
    await store.createWorkflow({ workflowID: 'w', name: 'order' });
    const insert = (timerID: string, time: number) =>
      store.insertTimer({ timerID, workflowID: 'w', fireAt: new Date(time) });
    await insert('second', 2000);
    await insert('first', 1000);
    await insert('first', 9000);
    await insert('future', 5_000_000_000_000);

    expect((await store.fetchDueTimers(1)).map(({ timerID }) => timerID)).toEqual(['first']);
    expect((await store.getPendingTimers('w')).map(({ timerID }) => timerID)).toEqual(['second', 'future']);
    expect((await store.fetchDueTimers(10)).map(({ timerID }) => timerID)).toEqual(['second']);
    expect(await store.fetchDueTimers(10)).toEqual([]);
    expect([await store.markTimerFired('future'), await store.markTimerFired('future')]).toEqual([true, false]);
    expect(await store.getPendingTimers()).toEqual([]);
    expect((await store.getHistory('w')).map(({ eventType }) => eventType).slice(-3)).toEqual([
      'TimerFired',
      'TimerFired',
      'TimerFired',
    ]);
  });
}

describe('memory', () => conforms(() => openHistoryStore()));

forEachDialect((dialect) => {
  conforms(async () => openHistoryStore(await dialect.createURL()));

  test('8 processes never fire a timer twice', async () => {
    const url = await dialect.createURL();
    const store = await openHistoryStore(url);
    onTestFinished(() => store.close());
    await store.createWorkflow({ workflowID: 'w', name: 'order' });
    const timerIDs = Array.from({ length: 100 }, (_, index) => `timer-${index}`);
    for (const timerID of timerIDs) await store.insertTimer({ timerID, workflowID: 'w', fireAt: new Date(1000) });
    const program = await bundled(new URL('./timer-process.ts', import.meta.url));

    const outputs = await Promise.all(
      Array.from({ length: 8 }, () => promisify(execFile)(process.execPath, [...program, url])),
    );

    const taken = outputs.flatMap(({ stdout }) => JSON.parse(stdout) as string[]);
    expect(taken.toSorted()).toEqual(timerIDs.toSorted());
    const fired = (await store.getHistory('w')).filter(({ eventType }) => eventType === 'TimerFired');
    expect(fired).toHaveLength(100);
  });
});
