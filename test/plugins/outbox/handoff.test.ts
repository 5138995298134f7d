// Messages that become workflows.
import { afterAll, describe, expect, test } from 'vitest';
import type { MessageInfo } from '../../../src/plugins/outbox/consume/message.js';
import { topic } from '../../../src/plugins/outbox/topic.js';
import { until } from '../../crash/processes.js';
import { dropDatabase } from '../transaction/scene.js';
import { DIALECTS, type OutboxScene, pending, setOutbox } from './scene.js';

afterAll(dropDatabase);

const orders = topic<{ order: number }>('orders', { key: ({ order }) => `o${order % 3}` });

const cases = DIALECTS.flatMap(([dialect, name]) => [
  [`${dialect}, in the system database`, name, true] as const,
  [`${dialect}, apart from the system database`, name, false] as const,
]);

const gone = (scene: OutboxScene) => until('the outbox is empty', async () => (await pending(scene)).length === 0);

function publish({ source, outbox }: OutboxScene, count: number): Promise<unknown> {
  const messages = Array.from({ length: count }, (_, order) => ({ body: { order } }));
  return source.runTransaction(() => outbox.publishAll(orders, messages), { name: 'publish' });
}

async function untilEnded({ DBOS }: OutboxScene, count: number): Promise<void> {
  await until('all workflows have ended', async () => {
    const ended = await DBOS.listWorkflows({ status: 'SUCCESS', limit: 1000 });
    return ended.length >= count;
  });
}

describe.each(cases)('handoff on %s', (_, name, isShared) => {
  test('each message becomes one workflow', async () => {
    const scene = await setOutbox(name, { isShared, isLaunched: false });
    const runs: { order: number; info: MessageInfo }[] = [];
    const workflow = scene.DBOS.registerWorkflow(
      async ({ order }: { order: number }, info: MessageInfo) => void runs.push({ order, info }),
      { name: 'fulfil' },
    );
    scene.outbox.on(orders, workflow);
    await scene.DBOS.launch();

    await publish(scene, 30);
    await gone(scene);
    await untilEnded(scene, 30);

    expect(runs.map(({ order }) => order).toSorted((a, b) => a - b)).toEqual(Array.from({ length: 30 }, (_, n) => n));
    const [run] = runs;
    expect(run?.info).toMatchObject({ topic: 'orders', key: `o${(run?.order ?? 0) % 3}` });
    expect(await scene.DBOS.getWorkflowStatus(`outbox-fulfil-${run?.info.messageID}`)).toMatchObject({
      status: 'SUCCESS',
    });
  });

  test('two processes hand each message over once', async () => {
    const scene = await setOutbox(name, { isShared, isLaunched: false });
    const other = await scene.another({ executorID: 'two' });
    const runs: number[] = [];
    for (const { DBOS, outbox } of [scene, other]) {
      const workflow = DBOS.registerWorkflow(async ({ order }: { order: number }) => void runs.push(order), {
        name: 'fulfil',
      });
      outbox.on(orders, workflow, { batch: 7 });
    }
    await scene.DBOS.launch();
    await other.DBOS.launch();

    await publish(scene, 100);
    await gone(scene);
    await untilEnded(scene, 100);

    expect(runs.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 100 }, (_, n) => n));
  });

  test('an ID of the application makes messages one workflow', async () => {
    const scene = await setOutbox(name, { isShared, isLaunched: false });
    let runs = 0;
    const workflow = scene.DBOS.registerWorkflow(async (_body: { order: number }) => void (runs += 1), {
      name: 'once',
    });
    scene.outbox.on(orders, workflow, { id: ({ order }) => `order-${order % 2}` });
    await scene.DBOS.launch();

    await publish(scene, 10);
    await gone(scene);
    await untilEnded(scene, 2);

    expect(runs).toBe(2);
  });

  test('workflows of a key run in order, one at a time', async () => {
    const scene = await setOutbox(name, { isShared, isLaunched: false });
    const seen: Record<string, number[]> = {};
    const workflow = scene.DBOS.registerWorkflow(
      async ({ order }: { order: number }) => void (seen[order % 3] ??= []).push(order),
      { name: 'ordered' },
    );
    scene.outbox.on(orders, workflow, { order: 'key' });
    await scene.DBOS.launch();

    await publish(scene, 30);
    await gone(scene);
    await untilEnded(scene, 30);

    for (const order of Object.values(seen)) expect(order).toEqual(order.toSorted((a, b) => a - b));
    expect(Object.values(seen).flat()).toHaveLength(30);
  });

  test('a message that cannot become a workflow is a dead letter, and the others go on', async () => {
    const scene = await setOutbox(name, { isShared, isLaunched: false });
    const inputSchema = {
      parse(args: unknown) {
        const [{ order }] = args as [{ order: number }];
        if (order === 1) throw new Error('bad order');
        return args;
      },
    };
    const workflow = scene.DBOS.registerWorkflow(async (_body: { order: number }) => {}, {
      name: 'picky',
      inputSchema,
    });
    scene.outbox.on(orders, workflow);
    await scene.DBOS.launch();

    await publish(scene, 3);
    await gone(scene);
    await untilEnded(scene, 2);

    const letters = await scene.query('SELECT failure_reason, last_exception, queue FROM outbox_dlq');
    expect(letters).toMatchObject([{ failure_reason: 'rejected', queue: 'orders' }]);
  });

  test('a workflow starts with the commit of the transaction, and not without', async () => {
    const scene = await setOutbox(name, { isShared, isLaunched: false });
    const workflow = scene.DBOS.registerWorkflow(async (text: string) => `got ${text}`, { name: 'started' });
    await scene.DBOS.launch();
    const start = (fails: boolean) =>
      scene.source.runTransaction(
        async () => {
          const workflowID = await scene.outbox.start(workflow, ['a'], { workflowID: fails ? 'not' : 'yes' });
          if (fails) throw new Error('no');
          return workflowID;
        },
        { name: 'start' },
      );

    await expect(start(true)).rejects.toThrow('no');
    const workflowID = await start(false);
    await gone(scene);

    expect(workflowID).toBe('yes');
    expect(await scene.DBOS.retrieveWorkflow('yes').getResult()).toBe('got a');
    expect(await scene.DBOS.getWorkflowStatus('not')).toBeNull();
  });

  test('a message to a workflow is sent with the commit', async () => {
    const scene = await setOutbox(name, { isShared, isLaunched: false });
    const { DBOS, outbox, source } = scene;
    const workflow = DBOS.registerWorkflow(() => DBOS.recv('topic', 20), { name: 'waiting' });
    await DBOS.launch();
    const handle = await DBOS.startWorkflow(workflow, { workflowID: 'w' })();

    await source.runTransaction(() => outbox.send('w', { at: new Date(5) }, 'topic'), { name: 'send' });

    expect(await handle.getResult()).toEqual({ at: new Date(5) });
    await gone(scene);
  });

  test('a message to a workflow that does not exist is a dead letter', async () => {
    const scene = await setOutbox(name, { isShared });

    await scene.source.runTransaction(() => scene.outbox.send('nobody', 1), { name: 'send' });
    await gone(scene);

    expect(await scene.query('SELECT failure_reason FROM outbox_dlq')).toEqual([{ failure_reason: 'unroutable' }]);
  });

  test('bad arguments fail in the transaction of the caller', async () => {
    const scene = await setOutbox(name, { isShared, isLaunched: false });
    const workflow = scene.DBOS.registerWorkflow(async () => {}, { name: 'started' });
    await scene.DBOS.launch();
    const inTransaction = <T>(body: () => Promise<T>) => scene.source.runTransaction(body, { name: 'start' });

    await expect(inTransaction(() => scene.outbox.start(async () => {}, []))).rejects.toThrow(/not a registered/);
    await expect(inTransaction(() => scene.outbox.start(workflow, [], { queue: 'q' } as never))).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
    });
    await expect(scene.outbox.start(workflow, [])).rejects.toMatchObject({ code: 'OUTBOX_TRANSACTION_REQUIRED' });
    await expect(inTransaction(() => scene.outbox.send(7 as never, 1))).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
    });
  });
});
