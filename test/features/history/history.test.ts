// The history that users read: complete at every level, with stable names and fields, from engine and client.
import { describe, expect, onTestFinished, test } from 'vitest';
import { DBOSClient, type HistoryEvent } from '../../../src/index.js';
import type { HistoryLevel } from '../../../src/features/history/event.js';
import { forEachForm, onlyOn, type TestDialect } from '../../rig/dialects.js';
import { createEngine, engineOf } from '../../rig/engines.js';
import { raw } from '../../database/migrations/catalog.js';

async function all<T>(source: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const one of source) found.push(one);
  return found;
}

/** The first events. On Postgres they appear when no transaction of the whole server can precede them. */
async function take<T>(source: AsyncGenerator<T, void, undefined>, count: number): Promise<T[]> {
  const found: T[] = [];
  for await (const one of source) if (found.push(one) === count) break;
  return found;
}

const typesOf = (events: readonly HistoryEvent[]): string[] => events.map(({ type }) => type);

async function setup(dialect: TestDialect, history: HistoryLevel = 'changes') {
  const { DBOS, url } = await createEngine(dialect, { history, executorID: 'one' });
  const child = DBOS.registerWorkflow(async (text: string) => text.length, { name: 'child' });
  const add = DBOS.registerStep(async (a: number, b: number) => a + b, { name: 'add' });
  let attempts = 0;
  const order = DBOS.registerWorkflow(
    async (item: string) => {
      const sum = await add(1, 2);
      await DBOS.sleep(1);
      const message = await DBOS.recv<string>('news', 60);
      await DBOS.setEvent('progress', 1);
      const size = await (await DBOS.startWorkflow(child)(item)).getResult();
      await DBOS.runStep(
        async () => {
          attempts += 1;
          if (attempts === 1) throw new Error('flaky');
        },
        { name: 'retry', retriesAllowed: true, intervalSeconds: 0.001 },
      );
      return [sum, message, size];
    },
    { name: 'order' },
  );
  const failing = DBOS.registerWorkflow(
    async () =>
      DBOS.runStep(
        async () => {
          throw new TypeError('no stock');
        },
        { name: 'reserve' },
      ),
    { name: 'failing' },
  );
  const waiting = DBOS.registerWorkflow(async () => DBOS.recv('never', 3600), { name: 'waiting' });
  await DBOS.launch();
  const runOrder = async (workflowID: string) => {
    const handle = await DBOS.startWorkflow(order, { workflowID })('pen');
    await DBOS.send(workflowID, 'hello', 'news');
    await handle.getResult();
    return handle;
  };
  return { DBOS, url, runOrder, failing, waiting, database: engineOf(DBOS).runtime.database };
}

const ORDERED = [
  'WorkflowStarted',
  'ActivityScheduled',
  'ActivityCompleted',
  'TimerScheduled',
  'TimerFired',
  'MessageConsumed',
  'EventSet',
  'ChildWorkflowStarted',
  'ChildWorkflowCompleted',
  'ActivityRetryScheduled',
  'ActivityScheduled',
  'ActivityCompleted',
  'WorkflowCompleted',
];
/** When they come depends on timing, or on whether a wait found something at once. */
const FLOATING = [
  'AttemptStarted',
  'SignalReceived',
  'TimerScheduled',
  'TimerFired',
  'ActivityRetryScheduled',
  'ActivityScheduled',
];

forEachForm((dialect) => {
  describe.each(['off', 'changes', 'full'] as const)('with level %s', (level) => {
    test('a history has every event once, the first and last in their places', async () => {
      const { runOrder } = await setup(dialect, level);

      const handle = await runOrder('w');

      const types = typesOf(await all(handle.history()));
      const isSettled = (type: string): boolean => !FLOATING.includes(type);
      expect(types.filter(isSettled)).toEqual(ORDERED.filter(isSettled));
      expect(types[0]).toBe('WorkflowStarted');
      expect(types.at(-1)).toBe('WorkflowCompleted');
      for (const type of ['AttemptStarted', 'SignalReceived', 'TimerFired']) {
        expect(types.filter((one) => one === type)).toEqual([type]);
      }
      expect(types.filter((type) => type === 'ActivityScheduled')).toHaveLength(2);
      expect(types.filter((type) => type === 'ActivityRetryScheduled')).toHaveLength(level === 'off' ? 0 : 1);
    });

    test('the details have the fields that were promised, with payloads on request', async () => {
      const { DBOS, runOrder } = await setup(dialect, level);
      await runOrder('w');

      const events = await all(DBOS.getHistory('w', { payloads: true }));
      const plain = await all(DBOS.getHistory('w'));

      const detailsOf = (type: string) => events.find((event) => event.type === type)?.details;
      expect(detailsOf('WorkflowStarted')).toMatchObject({ workflow_name: 'order', input: ['pen'] });
      expect(detailsOf('ActivityScheduled')).toMatchObject({
        activity_name: 'add',
        input: level === 'full' ? [1, 2] : null,
      });
      expect(detailsOf('ActivityCompleted')).toMatchObject({ activity_name: 'add', result: 3 });
      expect(detailsOf('TimerScheduled')).toMatchObject({
        timer_id: 'w:1',
        fire_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT/) as string,
      });
      expect(detailsOf('TimerFired')).toMatchObject({ timer_id: 'w:1' });
      expect(detailsOf('SignalReceived')).toMatchObject({ signal_name: 'news', input: 'hello' });
      expect(detailsOf('ChildWorkflowStarted')).toMatchObject({ child_id: expect.stringMatching(/^w-/) as string });
      expect(detailsOf('WorkflowCompleted')).toMatchObject({ result: [3, 'hello', 3] });
      expect(plain.find(({ type }) => type === 'WorkflowCompleted')?.details).not.toHaveProperty('result');
      expect(events.find(({ type }) => type === 'AttemptStarted')).toMatchObject({ attempt: 1, executor: 'one' });
    });

    test('a failure is told with its error', async () => {
      const { DBOS, failing } = await setup(dialect, level);

      await expect((await DBOS.startWorkflow(failing, { workflowID: 'w' })()).getResult()).rejects.toThrow('no stock');

      const events = await all(DBOS.getHistory('w', { payloads: true }));
      expect(typesOf(events).slice(-2)).toEqual(['ActivityFailed', 'WorkflowFailed']);
      expect(events.at(-2)?.details).toMatchObject({ activity_name: 'reserve', error: { message: 'no stock' } });
      expect(events.at(-1)?.details['error']).toMatchObject({ message: 'no stock' });
    });

    test('a cancellation and a timeout are told apart, and say why', async () => {
      const { DBOS, waiting } = await setup(dialect, level);
      await DBOS.startWorkflow(waiting, { workflowID: 'c' })();
      const late = await DBOS.startWorkflow(waiting, { workflowID: 't', timeoutMS: 1 })();

      await DBOS.cancelWorkflow('c', { reason: 'no longer needed', actor: 'ops@example.com' });
      await expect(late.getResult()).rejects.toThrow();

      const cancelled = await all(DBOS.getHistory('c'));
      // The timer of the wait may be recorded at the same time.
      const ends = cancelled.filter(({ type }) => type.startsWith('WorkflowCancel'));
      expect(typesOf(ends)).toEqual(['WorkflowCancelRequested', 'WorkflowCanceled']);
      expect(ends[0]).toMatchObject({ actor: 'ops@example.com', details: { reason: 'no longer needed' } });
      expect(typesOf(await all(DBOS.getHistory('t')))).toContain('WorkflowTimedOut');
      const statuses = await DBOS.listWorkflows({ workflowIDs: ['c', 't'] });
      expect(statuses.find(({ workflowID }) => workflowID === 'c')).toMatchObject({
        cancelReason: 'no longer needed',
        cancelledBy: 'ops@example.com',
      });
      expect(await late.getStatus()).toMatchObject({ status: 'CANCELLED', cancelReason: 'timeout' });
      expect(await DBOS.explainWorkflow('c')).toMatchObject({
        message: expect.stringMatching(/by ops@example.com \(no longer needed\)/) as string,
      });
      expect(await DBOS.explainWorkflow('t')).toMatchObject({ message: expect.stringMatching(/timed out/) as string });
    });
  });

  test('a history is read in parts, by type, and by a client', async () => {
    const { DBOS, url, runOrder } = await setup(dialect);
    await runOrder('w');
    const client = await DBOSClient.create({ systemDatabaseUrl: url });
    onTestFinished(() => client.destroy());
    const events = await all(DBOS.getHistory('w'));

    const first = await all(client.getHistory('w', { limit: 3 }));
    const rest = await all(client.getHistory('w', { after: first.at(-1)?.cursor }));
    const completed = await all(client.retrieveWorkflow('w').history({ types: ['ActivityCompleted'] }));

    expect([...first, ...rest]).toEqual(events);
    expect(typesOf(completed)).toEqual(['ActivityCompleted', 'ActivityCompleted']);
    expect(await all(client.getHistory('missing'))).toEqual([]);
    await expect(all(client.getHistory('w', { after: 'nonsense' }))).rejects.toThrow(/cursor/);
  });

  test('a fork differs from its original from the step on that it ran again', async () => {
    const { DBOS, failing, runOrder } = await setup(dialect);
    await runOrder('w');
    await expect((await DBOS.startWorkflow(failing, { workflowID: 'f' })()).getResult()).rejects.toThrow();

    const fork = await DBOS.forkWorkflow('w', 100, { newWorkflowID: 'copy', reason: 'to compare' });
    await fork.getResult();

    expect(await DBOS.diffHistory('w', 'copy')).toMatchObject({ differences: [] });
    const { differences } = await DBOS.diffHistory('w', 'f');
    expect(differences[0]).toMatchObject({
      at: 0,
      first: { type: 'ActivityCompleted' },
      second: { type: 'ActivityFailed' },
    });
    expect(differences.at(-1)).toMatchObject({ at: 'outcome', second: { type: 'WorkflowFailed' } });
    expect((await all(DBOS.getHistory('w', { types: ['WorkflowForked'] })))[0]?.details).toMatchObject({
      new_id: 'copy',
      reason: 'to compare',
    });
  });

  test('a history is exported as JSON lines', async () => {
    const { DBOS, runOrder } = await setup(dialect);
    await runOrder('w');

    const lines = (await all(DBOS.exportHistory('w'))).join('').trim().split('\n');

    expect(lines.map((line) => (JSON.parse(line) as HistoryEvent).type)).toEqual(
      typesOf(await all(DBOS.getHistory('w'))),
    );
  });

  test('the journal of all workflows can be followed from a time and from an event', async () => {
    const { DBOS, waiting } = await setup(dialect);
    for (const workflowID of ['a', 'b', 'c']) await DBOS.startWorkflow(waiting, { workflowID })();
    await DBOS.cancelWorkflows(['a']);
    await DBOS.cancelWorkflows(['b']);

    const recent = await take(DBOS.tailHistory({ since: 0 }), 2);
    expect(recent.map(({ workflowID }) => workflowID)).toEqual(['a', 'b']);

    const stop = new AbortController();
    const following = DBOS.tailHistory({ since: recent[0]?.cursor, signal: stop.signal });
    expect((await following.next()).value).toMatchObject({ workflowID: 'b' });
    const next = following.next();
    await DBOS.cancelWorkflows(['c']);
    expect((await next).value).toMatchObject({ workflowID: 'c', type: 'WorkflowCancelRequested' });
    const last = following.next();
    stop.abort();
    expect((await last).done).toBe(true);
    expect(await all(DBOS.tailHistory({ since: 0, types: ['AttemptLost'], follow: false }))).toEqual([]);
  });
});

forEachForm((dialect) => {
  test('following continues after any event, also between those that share a row', async () => {
    const { DBOS, failing } = await setup(dialect, 'full');
    await expect((await DBOS.startWorkflow(failing, { workflowID: 'w' })()).getResult()).rejects.toThrow();
    const types = ['WorkflowStarted', 'AttemptStarted', 'ActivityScheduled', 'ActivityFailed', 'WorkflowFailed'];

    const events = await take(DBOS.tailHistory({ since: 0 }), types.length);

    expect(typesOf(events)).toEqual(types);
    for (const [index, { cursor }] of events.slice(0, -1).entries()) {
      const rest = events.slice(index + 1);
      expect(await take(DBOS.tailHistory({ since: cursor }), rest.length)).toEqual(rest);
    }
  });
});

onlyOn('postgres', (dialect) => {
  test('following the journal does not skip what an older transaction commits later', async () => {
    const { DBOS, waiting, database } = await setup(dialect);
    for (const workflowID of ['early', 'late']) await DBOS.startWorkflow(waiting, { workflowID })();
    await database.transaction(async (tx) => {
      await tx.run(raw(`UPDATE dbos.workflow_status SET priority = 7 WHERE workflow_uuid = 'late'`));
      await DBOS.cancelWorkflows(['early']);
      // Its row is committed, but one that precedes it is not.
      expect(await all(DBOS.tailHistory({ since: 0, follow: false }))).toEqual([]);
    });

    const [first, second] = await take(DBOS.tailHistory({ since: 0 }), 2);
    expect(first).toMatchObject({ workflowID: 'late', type: 'PriorityChanged' });
    expect(second).toMatchObject({ workflowID: 'early' });
    expect(await take(DBOS.tailHistory({ since: first?.cursor }), 1)).toEqual([second]);
  });
});
