// The payloads of the 14 events that programs rely on: the fields keep their names and kinds, in the view and in the API, at
// every level that stores or derives them. Fields may be added.
import { describe, expect, test } from 'vitest';
import type { HistoryLevel } from '../../../src/features/history/event.js';
import { forEachDialect, type TestDialect } from '../../rig/dialects.js';
import { createEngine, engineOf } from '../../rig/engines.js';
import { until } from '../../rig/manual-clock.js';
import { raw } from '../../database/migrations/catalog.js';

const anyText = expect.any(String) as string;
const anyNumber = expect.any(Number) as number;
/** As JSON has it: with an offset or in UTC. */
const anyTime = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/) as string;

/** By workflow: the payload of each event in the view, which has values as well. */
const CONTRACT: Readonly<Record<string, Readonly<Record<string, object>>>> = {
  order: {
    WorkflowStarted: { workflow_name: 'order', input: expect.anything() as unknown, priority: 0, version: anyText },
    ActivityScheduled: { activity_name: 'add', input: [1, 2] },
    ActivityCompleted: { activity_name: 'add', duration_ms: anyNumber, result: 3 },
    TimerScheduled: { timer_id: 'order:1', fire_at: anyTime },
    TimerFired: { timer_id: 'order:1', fired_at: anyTime },
    SignalReceived: { signal_name: 'news', input: 'hello', message_id: anyText },
    WorkflowCompleted: { duration_ms: anyNumber, result: 'done' },
  },
  failing: {
    ActivityRetryScheduled: {
      activity_name: 'reserve',
      attempt: 2,
      delay: anyNumber,
      error: { name: 'TypeError', message: 'no stock' },
    },
    ActivityFailed: { activity_name: 'reserve', duration_ms: anyNumber, error: expect.anything() as unknown },
    WorkflowFailed: { duration_ms: anyNumber, error: expect.anything() as unknown },
  },
  cancelled: {
    WorkflowCancelRequested: { source: 'api', reason: 'not needed', from_status: 'PENDING', started_at: anyNumber },
    WorkflowCanceled: { duration_ms: anyNumber },
  },
  late: {
    WorkflowTimedOut: { source: 'deadline', deadline: anyNumber, timeout_seconds: 0.001, from_status: 'PENDING' },
  },
  parked: {
    WorkflowTaskYielded: { until: anyNumber, started_at: anyNumber },
  },
};

async function setup(dialect: TestDialect, history: HistoryLevel) {
  const { DBOS } = await createEngine(dialect, { history });
  const add = DBOS.registerStep(async (a: number, b: number) => a + b, { name: 'add' });
  const order = DBOS.registerWorkflow(
    async (_item: string) => {
      await add(1, 2);
      await DBOS.sleep(1);
      await DBOS.recv('news', 3600);
      return 'done';
    },
    { name: 'order' },
  );
  const reserve = async (): Promise<void> => {
    throw new TypeError('no stock');
  };
  const retried = { name: 'reserve', retriesAllowed: true, maxAttempts: 2, intervalSeconds: 0.001 };
  const failing = DBOS.registerWorkflow(async () => DBOS.runStep(reserve, retried), { name: 'failing' });
  const waiting = DBOS.registerWorkflow(async () => DBOS.recv('never', 3600), { name: 'waiting', parkAfterMs: 0 });
  const parked = DBOS.registerWorkflow(async () => DBOS.sleep(3_600_000), { name: 'parked', parkAfterMs: 1 });
  await DBOS.launch();
  const { database } = engineOf(DBOS).runtime;
  const runAll = async (): Promise<void> => {
    const ordered = await DBOS.startWorkflow(order, { workflowID: 'order' })('pen');
    await DBOS.send('order', 'hello', 'news');
    await ordered.getResult();
    await expect((await DBOS.startWorkflow(failing, { workflowID: 'failing' })()).getResult()).rejects.toThrow();
    await DBOS.startWorkflow(waiting, { workflowID: 'cancelled' })();
    await DBOS.cancelWorkflow('cancelled', { reason: 'not needed' });
    const late = await DBOS.startWorkflow(waiting, { workflowID: 'late', timeoutMS: 1 })();
    await expect(late.getResult()).rejects.toThrow();
    const sleeper = await DBOS.startWorkflow(parked, { workflowID: 'parked' })();
    await until(async () => (await sleeper.getStatus())?.waitingFor !== undefined);
  };
  const view = database.dialect.name === 'postgres' ? 'dbos_history.workflow_events' : 'history_workflow_events';
  const detailsOf = async (workflowID: string, type: string): Promise<unknown> => {
    const [row] = await database.read(
      raw(`SELECT CAST(details AS TEXT) AS details FROM ${view}
        WHERE workflow_id = '${workflowID}' AND event_type = '${type}' ORDER BY idx LIMIT 1`),
    );
    return JSON.parse((row?.['details'] as string | undefined) ?? 'null');
  };
  return { DBOS, runAll, detailsOf };
}

/** Without level `full`, the arguments of steps are not stored. */
function expected(level: HistoryLevel, type: string, payload: object): object {
  return type === 'ActivityScheduled' && level !== 'full' ? { ...payload, input: null } : payload;
}

forEachDialect((dialect) => {
  describe.each(['changes', 'full'] as const)('with level %s', (level) => {
    test('the 14 events have the payloads that were promised', async () => {
      const { DBOS, runAll, detailsOf } = await setup(dialect, level);

      await runAll();

      for (const [workflowID, payloads] of Object.entries(CONTRACT)) {
        for (const [type, payload] of Object.entries(payloads)) {
          const label = `${type} of ${workflowID}`;
          expect(await detailsOf(workflowID, type), label).toMatchObject(expected(level, type, payload));
          const [event] = await collect(DBOS.getHistory(workflowID, { types: [type], payloads: true, limit: 1 }));
          expect(Object.keys(event?.details ?? {}), label).toEqual(expect.arrayContaining(Object.keys(payload)));
        }
      }
      expect(Object.values(CONTRACT).flatMap((payloads) => Object.keys(payloads))).toHaveLength(14);
    });
  });
});

async function collect<T>(source: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const one of source) found.push(one);
  return found;
}
