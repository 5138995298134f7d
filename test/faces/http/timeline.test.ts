import { describe, expect, onTestFinished, test } from 'vitest';
import { forEachDialect, type TestDialect } from '../../rig/dialects.js';
import { until } from '../../rig/manual-clock.js';
import { createEngine } from '../../rig/engines.js';
import { createAdmin } from '../../../src/faces/http/admin.js';
import type { DBOSConfig } from '../../../src/run/config/config.js';
import { callerOf, TOKEN } from './scene.js';

/** A workflow that does one of everything, and ends by waiting for an approval. */
async function launch(dialect: TestDialect, config: Partial<DBOSConfig> = {}) {
  const { DBOS } = await createEngine(dialect, config);
  let failures = 2;
  const child = DBOS.registerWorkflow(async () => 'shipped', { name: 'ship' });
  const order = DBOS.registerWorkflow(
    async () => {
      await DBOS.runStep(async () => 'reserved', { name: 'reserve' });
      const charge = async (): Promise<string> => {
        if (failures-- > 0) throw new Error('card <b>declined</b>');
        return 'charged';
      };
      await DBOS.runStep(charge, { name: 'charge', retriesAllowed: true, intervalSeconds: 0.001, maxAttempts: 5 });
      await DBOS.sleep(1);
      await DBOS.setEvent('progress', 50);
      const handle = await DBOS.startWorkflow(child, { workflowID: `${DBOS.workflowID}-ship` })();
      await handle.getResult();
      return DBOS.recv<string>('approval', 86_400);
    },
    { name: 'order' },
  );
  await DBOS.launch();
  const admin = createAdmin({ source: DBOS, token: TOKEN });
  onTestFinished(() => admin.close());
  const call = callerOf(admin.fetch);
  await DBOS.startWorkflow(order, { workflowID: 'order-17' })();
  const rowsOf = async (query = '') => {
    const { body } = await call('GET', `/api/v1/workflows/order-17/timeline${query}`);
    return body.rows as { step: number; name: string; kind: string; state: string; [field: string]: unknown }[];
  };
  /** The wait shows once its time limit is recorded. */
  const waiting = () =>
    until(async () => (await rowsOf()).some(({ kind, state }) => kind === 'wait' && state === 'running'));
  return { DBOS, order, call, rowsOf, waiting };
}

forEachDialect((dialect) => {
  describe('a timeline', () => {
    test('has steps, failed attempts, sleeps, children and the wait in flight', async () => {
      const { rowsOf, waiting, call } = await launch(dialect);
      await waiting();

      const rows = await rowsOf();
      const { body } = await call('GET', '/api/v1/workflows/order-17/timeline');

      expect(rows.map(({ name, kind, state }) => [name, kind, state])).toEqual([
        ['reserve', 'step', 'done'],
        ['charge', 'step', 'done'],
        ['DBOS.sleep', 'sleep', 'done'],
        ['DBOS.setEvent', 'event', 'done'],
        ['ship', 'child', 'done'],
        ['DBOS.getResult', 'wait', 'done'],
        ['DBOS.wait', 'wait', 'running'],
      ]);
      const [reserve, charge, , , ship] = rows;
      const wait = rows.at(-1);
      expect(reserve).toMatchObject({ retries: [], childWorkflowID: null, startedAt: expect.any(Number) as number });
      expect(charge?.['retries']).toMatchObject([
        { attempt: 1, error: 'Error: card <b>declined</b>' },
        { attempt: 2, error: 'Error: card <b>declined</b>' },
      ]);
      expect(ship?.['childWorkflowID']).toBe('order-17-ship');
      expect(wait).toMatchObject({ endedAt: null, dueAt: expect.any(Number) as number });
      expect(Number(wait?.['dueAt']) - Number(wait?.['startedAt'])).toBeGreaterThan(80_000_000);
      expect(body).toMatchObject({ workflowID: 'order-17', status: 'PENDING', completedAt: null, nextAfter: null });
      expect(body.marks).toContainEqual(expect.objectContaining({ type: 'AttemptStarted', attempt: 1 }));
    });

    test('comes in pages', async () => {
      const { rowsOf, waiting, call } = await launch(dialect);
      await waiting();
      const all = await rowsOf();

      const { body: first } = await call('GET', '/api/v1/workflows/order-17/timeline?limit=2');
      const rest = await rowsOf(`?after=${first.nextAfter}`);

      expect([...(first.rows as object[]), ...rest]).toEqual(all);
      expect(first.nextAfter).toBe(1);
    });

    test('of a wait that got its message shows it as done, with its time limit', async () => {
      const { DBOS, rowsOf, waiting } = await launch(dialect);
      await waiting();

      await DBOS.send('order-17', 'yes', 'approval');
      await DBOS.retrieveWorkflow('order-17').getResult();

      expect((await rowsOf()).at(-1)).toMatchObject({
        name: 'DBOS.recv',
        kind: 'wait',
        state: 'done',
        endedAt: expect.any(Number) as number,
        dueAt: expect.any(Number) as number,
      });
    });

    test('of a cancelled workflow ends its wait', async () => {
      const { DBOS, rowsOf, waiting, call } = await launch(dialect);
      await waiting();

      await DBOS.cancelWorkflow('order-17', { reason: 'too late', actor: 'ops' });

      expect((await rowsOf()).at(-1)).toMatchObject({
        kind: 'wait',
        state: 'stopped',
        endedAt: expect.any(Number) as number,
      });
      const { body } = await call('GET', '/api/v1/workflows/order-17/timeline');
      expect(body.marks).toContainEqual(expect.objectContaining({ type: 'WorkflowCancelRequested', actor: 'ops' }));
    });

    test('of a missing workflow is not found, nor is its tree', async () => {
      const { call } = await launch(dialect);

      for (const path of ['timeline', 'tree', 'comparison?with=order-17']) {
        expect([path, (await call('GET', `/api/v1/workflows/none/${path}`)).status]).toEqual([path, 404]);
      }
    });
  });

  test('a tree has parents and children', async () => {
    const { call, waiting } = await launch(dialect);
    await waiting();

    const { body: fromAbove } = await call('GET', '/api/v1/workflows/order-17/tree');
    const { body: fromBelow } = await call('GET', '/api/v1/workflows/order-17-ship/tree');

    expect(fromAbove).toEqual(fromBelow);
    expect(fromAbove).toMatchObject({
      isTruncated: false,
      workflows: [
        { workflowID: 'order-17', parentWorkflowID: null, workflowName: 'order', status: 'PENDING' },
        { workflowID: 'order-17-ship', parentWorkflowID: 'order-17', workflowName: 'ship', status: 'SUCCESS' },
      ],
    });
  });

  test('a fork is compared with its original', async () => {
    const { DBOS, call, waiting } = await launch(dialect);
    await waiting();
    await DBOS.send('order-17', 'yes', 'approval');
    await DBOS.retrieveWorkflow('order-17').getResult();
    const fork = await DBOS.forkWorkflow('order-17', 6, { newWorkflowID: 'again' });
    await DBOS.send('again', 'no', 'approval');
    await fork.getResult();

    const { body } = await call('GET', '/api/v1/workflows/again/comparison?with=order-17');

    expect(body.same).toBe(6);
    const outcome = (body.differences as { at: unknown; first?: object; second?: object }[]).find(
      ({ at }) => at === 'outcome',
    );
    expect(outcome).toMatchObject({
      first: { payloads: { result: { json: 'no' } } },
      second: { payloads: { result: { json: 'yes' } } },
    });
  });

  test('a parked wait is explained with what helps', async () => {
    const { call } = await launch(dialect, { parkAfterMs: 1 });
    const explained = async (): Promise<unknown> =>
      (await call('GET', '/api/v1/workflows/order-17/explanation')).body as unknown;
    // It may have been parked before, while it waited for its child.
    await until(async () => /"reason":"parked".*approval/.test(JSON.stringify(await explained())));

    const body = await explained();

    expect(body).toMatchObject({
      reason: 'parked',
      message: expect.stringContaining('a message of topic "approval"') as string,
      details: { waitsFor: [{ kind: 'message', topic: 'approval' }] },
      action: { kind: 'send-message' },
    });
  });
});
