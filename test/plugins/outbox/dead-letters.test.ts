import { afterAll, describe, expect, test } from 'vitest';
import { renderError, toFailure } from '../../../src/plugins/outbox/dead-letters/failure.js';
import { Reject } from '../../../src/plugins/outbox/consume/outcomes.js';
import { until } from '../../crash/processes.js';
import { dropDatabase } from '../transaction/scene.js';
import { DIALECTS, type OutboxScene, pending, setOutbox } from './scene.js';

afterAll(dropDatabase);

/** An outbox in which every message becomes a dead letter until `isBroken` is false. */
async function broken(name: (typeof DIALECTS)[number][1], count: number) {
  const scene = await setOutbox(name, { isLaunched: false });
  const state = { isBroken: true };
  const handled: unknown[] = [];
  scene.outbox.on('topic', (body) => {
    if (state.isBroken) throw new Reject(Number(body) % 2 === 0 ? `even ${String(body)}` : 'odd');
    handled.push(body);
  });
  await scene.DBOS.launch();
  const messages = Array.from({ length: count }, (_, n) => ({ body: n, key: `k${n}`, headers: { n: String(n) } }));
  await scene.source.runTransaction(() => scene.outbox.publishAll('topic', messages), { name: 'publish' });
  await gone(scene);
  return { ...scene, state, handled };
}

const gone = (scene: OutboxScene) => until('the outbox is empty', async () => (await pending(scene)).length === 0);

describe.each(DIALECTS)('dead letters on %s', (_, name) => {
  test('are listed page by page, the newest first', async () => {
    const { outbox } = await broken(name, 7);

    const first = await outbox.dlq.list({ topic: 'topic', limit: 3 });
    const second = await outbox.dlq.list({ topic: 'topic', limit: 3, cursor: first.cursor });
    const third = await outbox.dlq.list({ topic: 'topic', limit: 3, cursor: second.cursor });

    const bodies = [first, second, third].flatMap(({ letters }) => letters.map(({ body }) => body));
    expect(bodies).toHaveLength(7);
    expect(new Set(bodies)).toEqual(new Set([0, 1, 2, 3, 4, 5, 6]));
    expect(third.cursor).toBeUndefined();
    const failedAt = first.letters.map((letter) => letter.failedAt);
    expect(failedAt).toEqual(failedAt.toSorted((a, b) => b - a));
    expect(first.letters[0]).toMatchObject({
      reason: 'rejected',
      errorName: 'Reject',
      attempts: 1,
      deliveries: 1,
      replays: 0,
    });
    expect(await outbox.dlq.get(first.letters[0]?.id ?? '')).toEqual(first.letters[0]);
    expect(await outbox.dlq.get('999999')).toBeUndefined();
  });

  test('are grouped by failure: numbers in the message do not count', async () => {
    const { outbox } = await broken(name, 6);

    const groups = await outbox.dlq.groups({ topic: 'topic' });

    expect(groups).toHaveLength(2);
    expect(groups.map(({ count }) => count)).toEqual([3, 3]);
    const { letters } = await outbox.dlq.list({ fingerprint: groups[0]?.fingerprint });
    expect(letters).toHaveLength(3);
  });

  test('come back with the same message ID, and are handled', async () => {
    const scene = await broken(name, 4);
    const { letters } = await scene.outbox.dlq.list();
    scene.state.isBroken = false;

    expect(await scene.outbox.dlq.requeue({ topic: 'topic' }, { dryRun: true })).toEqual({ requeued: 4, skipped: 0 });
    const result = await scene.outbox.dlq.requeue({ topic: 'topic' });
    await gone(scene);

    expect(result).toEqual({ requeued: 4, skipped: 0 });
    expect(scene.handled.toSorted()).toEqual([0, 1, 2, 3]);
    expect((await scene.outbox.dlq.list()).letters).toEqual([]);
    expect(letters.every(({ messageID }) => messageID !== undefined)).toBe(true);
  });

  test('can be edited, delayed and limited when they come back', async () => {
    const scene = await broken(name, 5);

    const result = await scene.outbox.dlq.requeue(
      { topic: 'topic' },
      { edit: (body) => `edited ${String(body)}`, delay: '1h', limit: 2 },
    );

    expect(result).toEqual({ requeued: 2, skipped: 0 });
    const rows = await pending(scene);
    expect(
      rows
        .map((row) => Buffer.from(row['payload'] as Uint8Array).toString())
        .every((text) => text.startsWith('edited')),
    ).toBe(true);
    expect(rows).toHaveLength(2);
    expect(rows.map((row) => [row['replay_count'], Number(row['attempts_count'])])).toEqual([
      [1, 0],
      [1, 0],
    ]);
    const headers = rows[0]?.['headers'] as string | object;
    expect(typeof headers === 'string' ? JSON.parse(headers) : headers).toMatchObject({ 'content-type': 'text/plain' });
    expect((await scene.outbox.dlq.list()).letters).toHaveLength(3);
  });

  test('keep the trace context, there and back', async () => {
    const scene = await setOutbox(name, { isLaunched: false });
    const seen: unknown[] = [];
    for (const subscription of ['one', 'two']) {
      scene.outbox.on(
        'topic',
        (_, { traceparent, attempts }) => {
          seen.push(traceparent);
          if (subscription === 'one' && attempts === 0 && seen.length < 3) throw new Reject('no');
        },
        { subscription },
      );
    }
    await scene.DBOS.launch();
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    await scene.source.runTransaction(() => scene.outbox.publish('topic', 1, { traceparent }), { name: 'publish' });
    await until('one is a dead letter', async () => (await scene.outbox.dlq.list()).letters.length === 1);

    const { letters } = await scene.outbox.dlq.list();
    await until('both were called', async () => seen.length === 2);
    await scene.outbox.dlq.requeue({ all: true });
    await gone(scene);

    expect(letters).toMatchObject([{ traceparent }]);
    expect(seen).toEqual([traceparent, traceparent, traceparent]);
  });

  test('count how often they came back', async () => {
    const scene = await broken(name, 1);

    await scene.outbox.dlq.requeue({ all: true });
    await until('it is a dead letter again', async () => (await scene.outbox.dlq.list()).letters[0]?.replays === 1);
  });

  test('whose timer ID is pending stay', async () => {
    const scene = await setOutbox(name, { isLaunched: false });
    let isBroken = true;
    scene.outbox.on('topic', () => {
      if (isBroken) throw new Reject('no');
    });
    await scene.DBOS.launch();
    const publish = (delay: number) =>
      scene.source.runTransaction(() => scene.outbox.publish('topic', 1, { timerId: 't', delay }), { name: 'publish' });
    await publish(0);
    await gone(scene);
    isBroken = false;
    await publish(3_600_000);

    expect(await scene.outbox.dlq.requeue({ all: true })).toEqual({ requeued: 0, skipped: 1 });

    expect((await scene.outbox.dlq.list()).letters).toMatchObject([{ timerId: 't' }]);
    expect(await pending(scene)).toHaveLength(1);
  });

  test('can be discarded and archived', async () => {
    const { outbox } = await broken(name, 6);
    const [group] = await outbox.dlq.groups();
    const fingerprint = group?.fingerprint ?? '';

    expect(await outbox.dlq.archive({ fingerprint })).toEqual({ archived: 3 });
    expect((await outbox.dlq.list()).letters).toHaveLength(3);
    expect((await outbox.dlq.list({ archived: true })).letters).toHaveLength(3);
    expect(await outbox.dlq.discard({ all: true }, { dryRun: true })).toEqual({ discarded: 3 });
    expect(await outbox.dlq.discard({ all: true }, { limit: 2 })).toEqual({ discarded: 2 });
    expect(await outbox.dlq.discard({ before: Date.now() + 60_000, archived: 'both' })).toEqual({ discarded: 4 });
  });

  test('a filter that matches everything must say so, and bad input is refused', async () => {
    const { outbox } = await setOutbox(name);

    await expect(outbox.dlq.discard({})).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    await expect(outbox.dlq.requeue({ archived: true })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    await expect(outbox.dlq.list({ cursor: 'x' })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    await expect(outbox.dlq.list({ limit: 0 })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    await expect(outbox.dlq.get("1' OR 1=1")).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    await expect(outbox.dlq.archive({ archived: true, topic: 'a' })).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
    });
  });

  test('are off without their table', async () => {
    const { outbox } = await setOutbox(name, { dlqTable: undefined });

    expect(() => outbox.dlq).toThrow('keeps no dead letters');
  });

  test('keep of the error what the renderer gives', async () => {
    const scene = await setOutbox(name, { isLaunched: false, renderError: () => null });
    scene.outbox.on('topic', () => {
      throw new Reject('secret');
    });
    await scene.DBOS.launch();

    await scene.source.runTransaction(() => scene.outbox.publish('topic', 1), { name: 'publish' });
    await gone(scene);

    expect((await scene.outbox.dlq.list()).letters).toMatchObject([{ error: undefined, errorName: 'Reject' }]);
  });
});

describe('the text of an error', () => {
  test('is bounded, storable, and names the cause', () => {
    const long = toFailure(new Error('a'.repeat(10_000))).text ?? '';
    expect(long).toHaveLength(8192);
    expect(long.endsWith('… [truncated]')).toBe(true);
    expect(toFailure(new Error('a\0b')).text).not.toContain('\0');
    expect(renderError(new Error('outer', { cause: new Error('inner') }))).toContain('Caused by: Error: inner');
    expect(toFailure('just text')).toMatchObject({ text: 'just text', name: 'string' });
    expect(toFailure(undefined)).toEqual({ text: null, name: null, fingerprint: null });
  });

  test('is well-formed where it was cut', () => {
    for (const start of ['', 'x']) {
      const { text, name } = toFailure(
        Object.assign(new Error('x'), { stack: start + '😀'.repeat(6000), name: start + '😀'.repeat(200) }),
      );
      for (const kept of [text, name]) expect(Buffer.from(kept ?? '').toString()).toBe(kept);
    }
  });

  test.each([
    [
      'a renderer that throws',
      new Error('x'),
      () => {
        throw new Error('renderer');
      },
    ],
    ['an object without a form', Object.create(null), undefined],
    ['fields that are no text', Object.assign(new Error('x'), { name: 5, stack: 5, message: Symbol('x') }), undefined],
    [
      'a cause that is the error',
      (() => {
        const error = new Error('x');
        error.cause = error;
        return error;
      })(),
      undefined,
    ],
  ])('is kept of %s', (_, error, render) => {
    expect(toFailure(error, render as never).text).toEqual(expect.any(String));
  });

  test('costs little, however long its stack is', () => {
    const error = new Error('x');
    error.stack = `Error: x\n    at x ${':1'.repeat(50_000)}x`;
    const begunAt = process.cpuUsage();

    toFailure(error);

    expect(process.cpuUsage(begunAt).user).toBeLessThan(1_000_000);
  });
});
