// Workflows that run from the commit that hands them over, without a claim.
import { afterAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { deferred } from '../../../src/kernel/base/deferred.js';
import { OutboxDatabase } from '../../../src/plugins/outbox/database.js';
import { until } from '../../crash/processes.js';
import { dropDatabase } from '../transaction/scene.js';
import { DIALECTS, type OutboxScene, pending, setOutbox } from './scene.js';

afterAll(dropDatabase);

function publish({ source, outbox }: OutboxScene, count: number): Promise<unknown> {
  const messages = Array.from({ length: count }, (_, body) => ({ body }));
  return source.runTransaction(() => outbox.publishAll('orders', messages), { name: 'publish' });
}

const ended = (scene: OutboxScene, count: number) =>
  until('all workflows have ended', async () => {
    return (await scene.DBOS.listWorkflows({ status: 'SUCCESS', limit: 1000 })).length >= count;
  });

describe.each(DIALECTS)('a handoff in the system database on %s', (_, name) => {
  test('starts workflows here as if they had been claimed', async () => {
    const scene = await setOutbox(name, { isShared: true, isLaunched: false });
    const held = deferred<void>();
    scene.outbox.on(
      'orders',
      scene.DBOS.registerWorkflow(async (_body: number) => held.promise, { name: 'fulfil' }),
    );
    await scene.DBOS.launch();

    await publish(scene, 2);
    await until('they run', async () => (await scene.DBOS.listWorkflows({ status: 'PENDING' })).length === 2);
    const running = await scene.DBOS.listWorkflows({ status: 'PENDING' });
    held.resolve();
    await ended(scene, 2);

    for (const workflow of running) {
      expect(workflow).toMatchObject({ executorId: 'one', recoveryAttempts: 1 });
      expect(workflow.queueName).toMatch('_everstep_outbox');
    }
  });

  test('leaves them to a paused queue', async () => {
    const scene = await setOutbox(name, { isShared: true, isLaunched: false });
    const runs: number[] = [];
    const workflow = scene.DBOS.registerWorkflow(async (body: number) => void runs.push(body), { name: 'fulfil' });
    scene.outbox.on('orders', workflow, { queueName: 'mine' });
    await scene.DBOS.launch();
    await scene.DBOS.registerQueue('mine');
    await scene.DBOS.pauseQueue('mine');

    await publish(scene, 2);
    await until('they are handed over', async () => (await pending(scene)).length === 0);
    expect((await scene.DBOS.listWorkflows({})).map(({ status }) => status)).toEqual(['ENQUEUED', 'ENQUEUED']);
    await scene.DBOS.resumeQueue('mine');
    await ended(scene, 2);

    expect(runs.toSorted()).toEqual([0, 1]);
  });

  test('runs no more at once than this process may', async () => {
    const scene = await setOutbox(name, { isShared: true, isLaunched: false, config: { maxConcurrentWorkflows: 5 } });
    let running = 0;
    let most = 0;
    const workflow = scene.DBOS.registerWorkflow(
      async (_body: number) => {
        running += 1;
        most = Math.max(most, running);
        await scene.DBOS.runStep(async () => new Promise((resolve) => setImmediate(resolve)), { name: 'wait' });
        running -= 1;
      },
      { name: 'fulfil' },
    );
    scene.outbox.on('orders', workflow, { batch: 3 });
    await scene.DBOS.launch();

    await publish(scene, 40);
    await ended(scene, 40);

    expect(most).toBeLessThanOrEqual(5);
    expect(await pending(scene)).toEqual([]);
  });

  test.each(['before', 'after'] as const)('runs each once if the connection is lost %s the commit', async (point) => {
    const scene = await setOutbox(name, { isShared: true, isLaunched: false });
    const runs: number[] = [];
    const workflow = scene.DBOS.registerWorkflow(async (body: number) => void runs.push(body), { name: 'fulfil' });
    scene.outbox.on('orders', workflow);
    failHandoff(point);
    await scene.DBOS.launch();

    await publish(scene, 10);
    await ended(scene, 10);

    expect(runs.toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(await pending(scene)).toEqual([]);
  });
});

/** Has the first transaction that creates workflows fail. */
function failHandoff(point: 'before' | 'after'): void {
  // Called with the instance below.
  // eslint-disable-next-line @typescript-eslint/unbound-method
  const transact = OutboxDatabase.prototype.transact;
  let hasFailed = false;
  const spy = vi.spyOn(OutboxDatabase.prototype, 'transact').mockImplementation(async function (
    this: OutboxDatabase,
    body,
    options,
  ) {
    let isHandoff = false;
    const lose = (): void => {
      if (!isHandoff || hasFailed) return;
      hasFailed = true;
      throw new Error('the connection was lost');
    };
    const result = await transact.call(
      this,
      async (tx) => {
        const query: typeof tx.query = (text, values) => {
          isHandoff ||= text.includes('workflow_status');
          return tx.query(text, values);
        };
        const value = await body({ ...tx, query });
        if (point === 'before') lose();
        return value;
      },
      options,
    );
    lose();
    return result;
  });
  onTestFinished(() => spy.mockRestore());
}
