import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import type { PublishOptions } from '../../../src/plugins/outbox/publish/options.js';
import { topic } from '../../../src/plugins/outbox/topic.js';
import { wantsDialect } from '../../rig/dialects.js';
import { type AdapterName, ADAPTERS } from '../transaction/adapters.js';
import { generatePrismaClient } from '../transaction/prisma-client.js';
import { dropDatabase, effectsIn } from '../transaction/scene.js';
import { bodyOf, DIALECTS, type OutboxScene, pending, setOutbox } from './scene.js';

beforeAll(() => generatePrismaClient(inject('folder')));
afterAll(dropDatabase);

const orderPlaced = topic<{ order: number }>('order.placed', { key: ({ order }) => `order-${order}` });
const adapters = (Object.keys(ADAPTERS) as AdapterName[]).filter((name) => wantsDialect(ADAPTERS[name].dialect));
const note = `INSERT INTO effects (workflow_id, note) VALUES ('w', 'written')`;

/** Runs the body in a transaction of the data source. */
function inTransaction<T>({ source }: OutboxScene, body: () => Promise<T>): Promise<T> {
  return source.runTransaction(body, { name: 'publish' });
}

describe.each(adapters.map((name) => [name] as const))('publishing through %s', (name) => {
  test('a message commits with the write beside it', async () => {
    const scene = await setOutbox(name);

    const published = await inTransaction(scene, async () => {
      await scene.run(note);
      return scene.outbox.publish(orderPlaced, { order: 7 }, { headers: { tenant: 'a' }, timerId: 't' });
    });

    const [row] = await pending(scene);
    expect(published).toEqual({ id: String(row?.['id']), messageID: row?.['message_id'], deduplicated: false });
    expect(row).toMatchObject({ queue: 'order.placed', timer_id: 't', ordering_key: 'order-7', acquired_token: null });
    expect(bodyOf(row)).toEqual({ order: 7 });
    const headers = row?.['headers'];
    expect(typeof headers === 'string' ? JSON.parse(headers) : headers).toEqual({
      tenant: 'a',
      'content-type': 'application/json',
      correlation_id: expect.any(String) as string,
    });
    expect(await effectsIn(scene.scene)).toEqual(['written']);
  });

  test('a rollback takes the message with it', async () => {
    const scene = await setOutbox(name);

    const failed = inTransaction(scene, async () => {
      await scene.run(note);
      await scene.outbox.publish(orderPlaced, { order: 7 });
      throw new Error('no');
    });

    await expect(failed).rejects.toThrow('no');
    expect(await pending(scene)).toEqual([]);
    expect(await effectsIn(scene.scene)).toEqual([]);
  });

  test('many messages are one statement, each with options of its own', async () => {
    const scene = await setOutbox(name);
    const dueAt = Date.now() + 3_600_000;
    const messages = Array.from({ length: 50 }, (_, order) => ({
      body: { order },
      at: dueAt + order * 1000,
      priority: order,
    }));

    const published = await inTransaction(scene, () => scene.outbox.publishAll(orderPlaced, messages));

    const rows = await pending(scene);
    expect(rows.map(bodyOf)).toEqual(messages.map(({ body }) => body));
    expect(rows.map((row) => Number(row['next_attempt_at']))).toEqual(messages.map(({ at }) => at));
    expect(rows.map((row) => row['priority'])).toEqual(messages.map(({ priority }) => priority));
    expect(published.map(({ id }) => id)).toEqual(rows.map(({ id }) => String(id)));
  });
});

describe.each(DIALECTS)('publishing on %s', (dialect, name) => {
  test('outside of a transaction it is refused', async () => {
    const { outbox } = await setOutbox(name);

    await expect(outbox.publish(orderPlaced, { order: 1 })).rejects.toMatchObject({
      code: 'OUTBOX_TRANSACTION_REQUIRED',
    });
    await expect(outbox.publishAll(orderPlaced, [])).rejects.toMatchObject({ code: 'OUTBOX_TRANSACTION_REQUIRED' });
    await expect(outbox.cancelTimer(orderPlaced, 'a')).rejects.toMatchObject({ code: 'OUTBOX_TRANSACTION_REQUIRED' });
  });

  test('a workflow that replays its transaction does not publish again', async () => {
    const scene = await setOutbox(name, { isLaunched: false });
    const { DBOS, outbox } = scene;
    const workflow = DBOS.registerWorkflow(
      async () => {
        await inTransaction(scene, () => outbox.publish(orderPlaced, { order: 1 }));
        await DBOS.runStep(async () => 'after', { name: 'after' });
      },
      { name: 'workflow' },
    );
    await DBOS.launch();
    const handle = await DBOS.startWorkflow(workflow)();
    await handle.getResult();

    const fork = await DBOS.forkWorkflow(handle.workflowID, 1);
    await fork.getResult();

    expect(await pending(scene)).toHaveLength(1);
  });

  test.each([
    ['text', 'hello', 'text/plain'],
    ['JSON', [1, { a: null }], 'application/json'],
    ['bytes', new Uint8Array([0, 255, 1]), undefined],
    ['text with NUL', 'a\0b', 'text/plain'],
  ])('%s is stored as its bytes with its content type', async (_, body, contentType) => {
    const scene = await setOutbox(name);

    await inTransaction(scene, () => scene.outbox.publish('topic', body));

    const [row] = await pending(scene);
    const bytes = Buffer.from(row?.['payload'] as Uint8Array);
    const expected = body instanceof Uint8Array ? body : typeof body === 'string' ? body : JSON.stringify(body);
    expect(bytes).toEqual(Buffer.from(expected));
    const headers = row?.['headers'] as string | Record<string, string>;
    expect(
      (typeof headers === 'string' ? (JSON.parse(headers) as Record<string, string>) : headers)['content-type'],
    ).toBe(contentType);
  });

  test('a delay counts from the call, by the clock of the server', async () => {
    const scene = await setOutbox(name);

    await inTransaction(scene, () => scene.outbox.publish('topic', 1, { delay: '10m', expiresIn: '1m' }));

    const [row] = await pending(scene);
    const delayMs = Number(row?.['next_attempt_at']) - Number(row?.['created_at']);
    expect(delayMs).toBeGreaterThanOrEqual(600_000);
    expect(delayMs).toBeLessThan(900_000);
    expect(Number(row?.['expires_at']) - Number(row?.['next_attempt_at'])).toBeCloseTo(60_000, -2);
  });

  test('of two messages with a timer ID the pending one stays', async () => {
    const scene = await setOutbox(name);
    const publish = (body: number) => inTransaction(scene, () => scene.outbox.publish('topic', body, { timerId: 't' }));
    const first = await publish(1);

    const second = await publish(2);

    expect(second).toEqual({ ...first, deduplicated: true });
    expect((await pending(scene)).map(bodyOf)).toEqual([1]);
    await scene.query('DELETE FROM outbox');
    expect(await publish(3)).toMatchObject({ deduplicated: false });
  });

  test('messages without a timer ID are never duplicates, nor are those of other topics', async () => {
    const scene = await setOutbox(name);

    await inTransaction(scene, async () => {
      await scene.outbox.publish('topic', 1);
      await scene.outbox.publish('topic', 1);
      await scene.outbox.publish('topic', 1, { timerId: 't' });
      await scene.outbox.publish('other', 1, { timerId: 't' });
    });

    expect(await pending(scene)).toHaveLength(4);
  });

  test('replace keeps the row and changes the message, and one in flight becomes another message', async () => {
    const scene = await setOutbox(name);
    const publish = (body: number) =>
      inTransaction(scene, () => scene.outbox.publish('topic', body, { timerId: 't', dedupe: 'replace', delay: '1h' }));
    const first = await publish(1);

    const second = await publish(2);
    await scene.query(`UPDATE outbox SET acquired_token = ${uuid(dialect)}, acquired_at = created_at`);
    const third = await publish(3);
    const fourth = await publish(4);

    expect(second).toEqual({ ...first, deduplicated: true });
    expect(third).toEqual({ id: first.id, messageID: expect.any(String), deduplicated: false });
    expect(third.messageID).not.toBe(first.messageID);
    expect(fourth).toEqual({ ...third, deduplicated: true });
    expect((await pending(scene)).map(bodyOf)).toEqual([4]);
    expect(await inTransaction(scene, () => scene.outbox.cancelTimer('topic', 't'))).toBe('cancelled');
  });

  test('once can be published again after it was cancelled, and not after it was handled', async () => {
    const scene = await setOutbox(name);
    const publish = () =>
      inTransaction(scene, () => scene.outbox.publish('topic', 1, { timerId: 't', dedupe: { once: '7d' } }));
    const cancel = () => inTransaction(scene, () => scene.outbox.cancelTimer('topic', 't'));
    await publish();
    await cancel();

    expect(await publish()).toMatchObject({ deduplicated: false });

    await scene.query('DELETE FROM outbox');
    await inTransaction(scene, () => scene.outbox.publish('topic', 2, { timerId: 't' }));
    expect(await cancel()).toBe('cancelled');
    expect(await publish()).toMatchObject({ deduplicated: true });
  });

  test('debounce postpones the message up to a limit', async () => {
    const scene = await setOutbox(name);
    const publish = (body: number) =>
      inTransaction(scene, () =>
        scene.outbox.publish('topic', body, { timerId: 't', dedupe: { debounce: '1h' }, delay: '40m' }),
      );
    const dueIn = async (): Promise<number> => {
      const [row] = await pending(scene);
      return Number(row?.['next_attempt_at']) - Number(row?.['created_at']);
    };
    await publish(1);
    expect(await dueIn()).toBeCloseTo(2_400_000, -5);
    const early = dialect === 'postgres' ? `created_at - INTERVAL '30 minutes'` : 'created_at - 1800000';
    await scene.query(`UPDATE outbox SET created_at = ${early}`);

    await publish(2);

    expect(await dueIn()).toBe(3_600_000);
    expect((await pending(scene)).map(bodyOf)).toEqual([2]);
  });

  test('once remembers a timer ID after the message is gone', async () => {
    const scene = await setOutbox(name);
    const publish = () =>
      inTransaction(scene, () => scene.outbox.publish('topic', 1, { timerId: 't', dedupe: { once: '7d' } }));
    expect(await publish()).toMatchObject({ deduplicated: false });
    await scene.query('DELETE FROM outbox');

    expect(await publish()).toMatchObject({ deduplicated: true, id: undefined });
    expect(await pending(scene)).toEqual([]);
    await scene.query(`UPDATE outbox_state SET until = ${dialect === 'postgres' ? 'now()' : '0'}`);
    expect(await publish()).toMatchObject({ deduplicated: false });
  });

  test('once without its table is refused', async () => {
    const scene = await setOutbox(name, { stateTable: undefined });

    const published = inTransaction(scene, () =>
      scene.outbox.publish('topic', 1, { timerId: 't', dedupe: { once: '7d' } }),
    );

    await expect(published).rejects.toMatchObject({ code: 'INVALID_OUTBOX' });
  });

  test('a timer can be cancelled while it is pending, in the transaction', async () => {
    const scene = await setOutbox(name);
    const cancel = () => inTransaction(scene, () => scene.outbox.cancelTimer('topic', 't'));
    const publish = () => inTransaction(scene, () => scene.outbox.publish('topic', 1, { timerId: 't' }));
    expect(await cancel()).toBe('absent');
    await publish();
    expect(await cancel()).toBe('cancelled');
    await publish();
    await scene.query(`UPDATE outbox SET acquired_token = ${uuid(dialect)}, acquired_at = created_at`);

    expect(await cancel()).toBe('in-flight');

    await scene.query('UPDATE outbox SET acquired_token = NULL, acquired_at = NULL');
    const rolledBack = inTransaction(scene, async () => {
      await scene.outbox.cancelTimer('topic', 't');
      throw new Error('no');
    });
    await expect(rolledBack).rejects.toThrow('no');
    expect(await pending(scene)).toHaveLength(1);
  });

  test('a timer can be rescheduled while it is pending', async () => {
    const scene = await setOutbox(name);
    const dueAt = Date.now() + 86_400_000;
    const reschedule = () => inTransaction(scene, () => scene.outbox.reschedule('topic', 't', { at: dueAt }));
    expect(await reschedule()).toBe('absent');
    await inTransaction(scene, () => scene.outbox.publish('topic', 1, { timerId: 't' }));

    expect(await reschedule()).toBe('rescheduled');

    expect(Number((await pending(scene))[0]?.['next_attempt_at'])).toBe(dueAt);
    await scene.query(`UPDATE outbox SET acquired_token = ${uuid(dialect)}, acquired_at = created_at`);
    expect(await reschedule()).toBe('in-flight');
  });

  test.each([
    ['an empty topic', '', {}],
    ['a topic that is too long', 'a'.repeat(256), {}],
    ['two due times', 'topic', { delay: 1, at: 1 }],
    ['a delay without a unit', 'topic', { delay: '5' as never }],
    ['a negative delay', 'topic', { delay: -1 }],
    ['an invalid date', 'topic', { at: new Date(NaN) }],
    ['an empty timer ID', 'topic', { timerId: '' }],
    ['a priority that is too high', 'topic', { priority: 40_000 }],
    ['a header that is no text', 'topic', { headers: { a: 1 as never } }],
    ['a header name that cannot be stored', 'topic', { headers: { 'a\0': '1' } }],
    ['a header name with half of a surrogate pair', 'topic', { headers: { '\ud800': '1' } }],
    ['a trace context with a line break', 'topic', { traceparent: 'a\r\nb' }],
    ['a trace context that is none', 'topic', { traceparent: 'é\u2028' }],
    ['an unknown option', 'topic', { timerID: 't' }],
    ['an unknown deduplication', 'topic', { dedupe: 'sometimes' as never }],
  ])('%s is refused, and the transaction goes on', async (_, topicName, options) => {
    const scene = await setOutbox(name);

    const code = await inTransaction(scene, async () => {
      const refused = scene.outbox.publish(topicName, 1, options as PublishOptions).then(
        () => 'published',
        (error: { code: string }) => error.code,
      );
      await refused;
      await scene.run(note);
      return refused;
    });

    expect(code).toBe('INVALID_ARGUMENT');
    expect(await effectsIn(scene.scene)).toEqual(['written']);
    expect(await pending(scene)).toEqual([]);
  });

  test('headers of the envelope must not contradict it, and bodies must have a JSON form', async () => {
    const scene = await setOutbox(name);
    const publish = (body: unknown, headers: Record<string, string> = {}) =>
      inTransaction(scene, () => scene.outbox.publish('topic', body, { headers }));

    await expect(publish(1, { 'content-type': 'text/plain' })).rejects.toMatchObject({ code: 'INVALID_OUTBOX' });
    await expect(publish(() => {})).rejects.toMatchObject({ code: 'INVALID_OUTBOX' });
    await expect(publish(1n)).rejects.toMatchObject({ code: 'INVALID_OUTBOX' });
    await expect(publish('half \ud800')).rejects.toMatchObject({ code: 'INVALID_OUTBOX' });
    await publish(1, { correlation_id: 'mine' });
    expect(await pending(scene)).toHaveLength(1);
  });

  test('a trace context is taken from the header, unless it is none', async () => {
    const scene = await setOutbox(name);
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    const publish = (headers: Record<string, string>) =>
      inTransaction(scene, () => scene.outbox.publish('topic', 1, { headers }));

    await publish({ traceparent });
    await publish({ traceparent: 'not one' });

    expect((await pending(scene)).map((row) => row['traceparent'])).toEqual([traceparent, null]);
  });

  test('the schema of a topic is checked before anything is written', async () => {
    const scene = await setOutbox(name);
    const parse = (body: unknown): unknown => {
      if (typeof body !== 'number') throw new TypeError('not a number');
      return body + 1;
    };
    const checked = topic<number>('checked', { schema: { parse } });

    await expect(inTransaction(scene, () => scene.outbox.publish(checked, 'a' as never))).rejects.toThrow(
      'not a number',
    );
    await inTransaction(scene, () => scene.outbox.publish(checked, 1));

    expect((await pending(scene)).map(bodyOf)).toEqual([2]);
  });
});

function uuid(dialect: string): string {
  return dialect === 'postgres' ? 'gen_random_uuid()' : `'a'`;
}
