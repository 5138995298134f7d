import { afterAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { deferred } from '../../../src/kernel/base/deferred.js';
import { silentLogger } from '../../../src/kernel/base/log.js';
import type { Message } from '../../../src/plugins/outbox/consume/message.js';
import type { HandlerOptions } from '../../../src/plugins/outbox/consume/options.js';
import { Reject, RetryAfter, Unavailable } from '../../../src/plugins/outbox/consume/outcomes.js';
import { constant, noRetry } from '../../../src/plugins/outbox/consume/strategies.js';
import { topic } from '../../../src/plugins/outbox/topic.js';
import { until } from '../../crash/processes.js';
import { dropDatabase } from '../transaction/scene.js';
import { DIALECTS, type OutboxScene, pending, setOutbox } from './scene.js';

afterAll(dropDatabase);

const numbers = topic<number>('numbers');

/** Renewed every 3 seconds. A process that stops for some seconds does not lose it. */
const LEASE_MS = 9000;

function publish({ source, outbox }: OutboxScene, ...bodies: number[]): Promise<unknown> {
  return source.runTransaction(
    () =>
      outbox.publishAll(
        numbers,
        bodies.map((body) => ({ body })),
      ),
    { name: 'publish' },
  );
}

/** A launched outbox whose handler does what `handle` does. Gives the bodies that it was called with. */
async function handling(
  name: (typeof DIALECTS)[number][1],
  handle: (body: number, message: Message) => unknown = () => {},
  options: HandlerOptions = {},
): Promise<OutboxScene & { readonly calls: number[]; readonly messages: Message[] }> {
  const scene = await setOutbox(name, { isLaunched: false });
  const calls: number[] = [];
  const messages: Message[] = [];
  scene.outbox.on(
    numbers,
    (body, message) => {
      calls.push(body);
      messages.push(message);
      return handle(body, message);
    },
    options,
  );
  await scene.DBOS.launch();
  return { ...scene, calls, messages };
}

const gone = (scene: OutboxScene) => until('the outbox is empty', async () => (await pending(scene)).length === 0);
const deadLetters = ({ query }: OutboxScene) => query('SELECT * FROM outbox_dlq ORDER BY id');

describe.each(DIALECTS)('a handler on %s', (dialect, name) => {
  const past = dialect === 'postgres' ? `now() - INTERVAL '1 hour'` : '0';

  test('gets each message once, in order, and the message is deleted', async () => {
    const scene = await handling(name);

    await publish(scene, 1, 2, 3);
    await gone(scene);

    expect(scene.calls).toEqual([1, 2, 3]);
    expect(scene.messages[0]).toMatchObject({ topic: 'numbers', attempts: 0, deliveries: 1 });
    expect(await deadLetters(scene)).toEqual([]);
  });

  test('hears of a message without a poll', async () => {
    const scene = await handling(name, () => {}, { pollInterval: '1h' });

    for (let count = 1; count <= 5; count += 1) {
      await publish(scene, count);
      await until('it is handled', async () => scene.calls.length === count);
    }

    expect(scene.calls).toEqual([1, 2, 3, 4, 5]);
  });

  test('does not get a message before it is due, and then without a poll', async () => {
    const scene = await handling(name, () => {}, { pollInterval: '1h' });
    const begunAt = Date.now();

    await scene.source.runTransaction(() => scene.outbox.publish(numbers, 1, { delay: 300 }), { name: 'publish' });
    await until('it is handled', async () => scene.calls.length === 1);

    expect(Date.now() - begunAt).toBeGreaterThanOrEqual(299);
  });

  test('is retried after an error, and its attempts are counted', async () => {
    const scene = await handling(
      name,
      (_, { attempts }) => {
        if (attempts < 2) throw new Error('not yet');
      },
      { retry: constant({ delay: 1 }) },
    );

    await publish(scene, 1);
    await gone(scene);

    expect(scene.messages.map(({ attempts, deliveries }) => [attempts, deliveries])).toEqual([
      [0, 1],
      [1, 2],
      [2, 3],
    ]);
  });

  test('keeps the time of the first attempt', async () => {
    const scene = await handling(
      name,
      () => {
        throw new RetryAfter('1h');
      },
      { retry: noRetry() },
    );
    await publish(scene, 1);
    await until('it was tried', async () => Number((await pending(scene))[0]?.['attempts_count']) === 1);
    const [first] = await pending(scene);
    await scene.query(`UPDATE outbox SET next_attempt_at = ${past}`);
    await scene.outbox.resume(numbers);

    await until('it was tried again', async () => Number((await pending(scene))[0]?.['attempts_count']) === 2);

    const [second] = await pending(scene);
    expect(second?.['first_attempt_at']).toEqual(first?.['first_attempt_at']);
    expect(Number(second?.['last_attempt_at'])).toBeGreaterThanOrEqual(Number(first?.['last_attempt_at']));
    expect(second).toMatchObject({ acquired_token: null, acquired_at: null });
  });

  test.each([
    ['the strategy is exhausted', () => new Error('bad'), 'retry_terminal', 1],
    ['it is rejected', () => new Reject('never'), 'rejected', 1],
  ])('becomes a dead letter when %s', async (_, error, reason, attempts) => {
    const scene = await handling(
      name,
      () => {
        throw error();
      },
      { retry: noRetry() },
    );

    await publish(scene, 7);
    await gone(scene);

    const [letter] = await deadLetters(scene);
    expect(letter).toMatchObject({ queue: 'numbers', failure_reason: reason, error_name: error().name });
    expect(Number(letter?.['attempts_count'])).toBe(attempts);
    expect(letter?.['last_exception']).toContain(error().message);
    expect(Buffer.from(letter?.['payload'] as Uint8Array).toString()).toBe('7');
    expect(letter?.['message_id']).toBe(scene.messages[0]?.messageID);
  });

  test('without a table for dead letters, a message that cannot be handled is deleted', async () => {
    const scene = await setOutbox(name, { isLaunched: false, dlqTable: undefined });
    scene.outbox.on(numbers, () => {
      throw new Reject('never');
    });
    await scene.DBOS.launch();

    await publish(scene, 1);

    await gone(scene);
  });

  test('a body that is not what its content type says becomes a dead letter', async () => {
    const scene = await handling(name);
    const bytes =
      dialect === 'postgres'
        ? `'\\x7b', '{"content-type": "application/json"}'::jsonb`
        : `x'7b', '{"content-type": "application/json"}'`;

    await scene.query(`INSERT INTO outbox (queue, payload, headers) VALUES ('numbers', ${bytes})`);
    // A plain INSERT sends no notification.
    if (dialect === 'postgres') await scene.outbox.resume(numbers);
    await gone(scene);

    expect(scene.calls).toEqual([]);
    expect((await deadLetters(scene))[0]).toMatchObject({ failure_reason: 'rejected', error_name: 'SyntaxError' });
  });

  test('after too many deliveries it becomes a dead letter without being handled', async () => {
    const scene = await handling(name, () => {}, { maxDeliveries: 3 });
    await scene.outbox.pause(numbers);
    await publish(scene, 1);
    await scene.query('UPDATE outbox SET deliveries_count = 3');

    await scene.outbox.resume(numbers);
    await gone(scene);

    expect(scene.calls).toEqual([]);
    const [letter] = await deadLetters(scene);
    expect(letter).toMatchObject({ failure_reason: 'max_deliveries', last_exception: null });
    expect(Number(letter?.['attempts_count'])).toBe(0);
  });

  test('a message that has expired is not handled', async () => {
    const scene = await handling(name);
    await scene.outbox.pause(numbers);
    await scene.source.runTransaction(() => scene.outbox.publish(numbers, 1, { expiresIn: 1 }), { name: 'publish' });
    await scene.query(`UPDATE outbox SET expires_at = ${past}`);

    await scene.outbox.resume(numbers);
    await gone(scene);

    expect(scene.calls).toEqual([]);
    expect((await deadLetters(scene))[0]).toMatchObject({ failure_reason: 'expired' });
  });

  test('urgent messages come first', async () => {
    const scene = await handling(name);
    await scene.outbox.pause(numbers);
    await scene.source.runTransaction(
      () => scene.outbox.publishAll(numbers, [{ body: 1 }, { body: 2, priority: 5 }, { body: 3, priority: 9 }]),
      { name: 'publish' },
    );

    await scene.outbox.resume(numbers);
    await gone(scene);

    expect(scene.calls).toEqual([3, 2, 1]);
  });

  test('a paused topic is left alone by all processes', async () => {
    const scene = await setOutbox(name, { isLaunched: false });
    const calls: unknown[] = [];
    for (const topic of [numbers, 'other']) scene.outbox.on(topic, (body) => void calls.push(body));
    await scene.DBOS.launch();
    await scene.outbox.pause(numbers);
    await publish(scene, 1);
    // By the time that these are handled, one after the other, it would have been handled too.
    for (const body of ['a', 'b', 'c']) {
      await scene.source.runTransaction(() => scene.outbox.publish('other', body), { name: 'publish' });
      await until('the other topic is served', async () => calls.includes(body));
    }
    expect(calls).toEqual(['a', 'b', 'c']);

    await scene.outbox.resume(numbers);

    await gone(scene);
    expect(calls).toEqual(['a', 'b', 'c', 1]);
  });

  test('several workers run at a time, and no more', async () => {
    let running = 0;
    let most = 0;
    const full = deferred<void>();
    const scene = await handling(
      name,
      async () => {
        most = Math.max(most, (running += 1));
        if (running === 4) full.resolve();
        await full.promise;
        await new Promise((resolve) => setTimeout(resolve, 5));
        running -= 1;
      },
      { workers: 4, batch: 20 },
    );

    await publish(scene, ...Array.from({ length: 60 }, (_, index) => index));
    await gone(scene);

    expect(most).toBe(4);
    expect(scene.calls.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 60 }, (_, index) => index));
  });

  test('an expired lease is taken over, and counts as a delivery only', async () => {
    const scene = await handling(name);
    await scene.outbox.pause(numbers);
    await publish(scene, 1);
    const token = dialect === 'postgres' ? 'gen_random_uuid()' : `'gone'`;
    await scene.query(`UPDATE outbox SET acquired_token = ${token}, acquired_at = ${past}, deliveries_count = 1`);

    await scene.outbox.resume(numbers);
    await gone(scene);

    expect(scene.messages[0]).toMatchObject({ attempts: 0, deliveries: 2 });
  });

  test('a lease is renewed while the handler runs', async () => {
    const finish = deferred<void>();
    const scene = await handling(name, () => finish.promise, { lease: LEASE_MS });
    await publish(scene, 1);
    await until('it runs', async () => scene.calls.length === 1);
    const begunAt = Number((await pending(scene))[0]?.['acquired_at']);

    await until('the lease was renewed', async () => Number((await pending(scene))[0]?.['acquired_at']) > begunAt);
    finish.resolve();
    await gone(scene);

    expect(scene.calls).toEqual([1]);
    expect(scene.messages[0]?.signal.aborted).toBe(false);
  });

  test('a handler whose lease was lost is told, and changes nothing', async () => {
    const finish = deferred<void>();
    const scene = await handling(name, () => finish.promise, { lease: LEASE_MS });
    await publish(scene, 1);
    await until('it runs', async () => scene.calls.length === 1);
    const token = dialect === 'postgres' ? `'00000000-0000-0000-0000-000000000000'` : `'other'`;
    const future = dialect === 'postgres' ? `now() + INTERVAL '1 hour'` : String(Date.now() + 3_600_000);
    await scene.query(`UPDATE outbox SET acquired_token = ${token}, acquired_at = ${future}`);

    await until('it is told', async () => scene.messages[0]?.signal.aborted === true);
    finish.resolve();
    // Waits for what is in flight.
    await scene.DBOS.shutdown();

    expect(scene.messages[0]?.signal.reason).toMatchObject({ code: 'OUTBOX_LEASE_LOST' });
    expect(await pending(scene)).toHaveLength(1);
  });

  test('a shutdown waits for handlers and gives back what has not begun', async () => {
    const finish = deferred<void>();
    const scene = await handling(name, () => finish.promise, { batch: 5 });
    await publish(scene, 1, 2, 3);
    await until('it runs', async () => scene.calls.length === 1);

    const stopped = scene.DBOS.shutdown();
    await until(
      'the others were given back',
      async () => (await pending(scene)).filter((row) => row['acquired_token'] === null).length === 2,
    );
    finish.resolve();
    await stopped;

    const rows = await pending(scene);
    expect(rows).toHaveLength(2);
    expect(rows.map((row) => [Number(row['deliveries_count']), row['acquired_token']])).toEqual([
      [0, null],
      [0, null],
    ]);
    expect(scene.calls).toEqual([1]);
  });

  test('a handler that outlasts the shutdown is aborted, and its message is given back', async () => {
    const scene = await handling(
      name,
      (_, { signal }) =>
        new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('aborted')))),
      { drain: 50 },
    );
    await publish(scene, 1);
    await until('it runs', async () => scene.calls.length === 1);

    await scene.DBOS.shutdown();

    const [row] = await pending(scene);
    expect(row).toMatchObject({ acquired_token: null });
    expect([Number(row?.['attempts_count']), Number(row?.['deliveries_count'])]).toEqual([0, 0]);
  });

  test('an outage counts no attempt, and the topic is left alone for a while', async () => {
    let isDown = true;
    const scene = await handling(
      name,
      () => {
        if (isDown) throw new Unavailable('broker down');
      },
      { breaker: { threshold: 3, max: 100 }, workers: 2 },
    );
    const begunAt = Date.now();
    await publish(scene, 1, 2, 3, 4);
    // At most four are tried at once; then one at a time, each after a pause of about 100 ms.
    await until('it was probed', async () => scene.calls.length >= 7);
    expect(Date.now() - begunAt).toBeGreaterThan(200);
    isDown = false;

    await gone(scene);

    expect(new Set(scene.messages.slice(-4).map(({ attempts }) => attempts))).toEqual(new Set([0]));
    expect(await deadLetters(scene)).toEqual([]);
  });

  test('a rate limit spreads the messages', async () => {
    const scene = await handling(name, () => {}, { rateLimit: { max: 5, per: 200 } });
    const begunAt = Date.now();

    await publish(scene, ...Array.from({ length: 15 }, (_, index) => index));
    await gone(scene);

    expect(Date.now() - begunAt).toBeGreaterThanOrEqual(350);
    expect(scene.calls).toHaveLength(15);
  });

  test('two processes share the messages, and each is handled once', async () => {
    const scene = await setOutbox(name, { isLaunched: false });
    const other = await scene.another({ executorID: 'two' });
    const calls: number[] = [];
    for (const { outbox } of [scene, other]) outbox.on(numbers, (body) => void calls.push(body), { workers: 4 });
    await scene.DBOS.launch();
    await other.DBOS.launch();

    for (let from = 0; from < 200; from += 50) {
      await publish(scene, ...Array.from({ length: 50 }, (_, index) => from + index));
    }
    await gone(scene);

    expect(calls.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 200 }, (_, index) => index));
  });

  test('messages of a key are handled in order, retries included, by two processes', async () => {
    const keyed = topic<{ key: string; n: number }>('keyed', { key: ({ key }) => key });
    const scene = await setOutbox(name, { isLaunched: false });
    const other = await scene.another({ executorID: 'two' });
    const seen: Record<string, number[]> = {};
    const running = new Set<string>();
    const overlaps: string[] = [];
    for (const { outbox } of [scene, other]) {
      outbox.on(
        keyed,
        async ({ key, n }, { attempts }) => {
          if (running.has(key)) overlaps.push(key);
          running.add(key);
          await new Promise((resolve) => setTimeout(resolve, 1));
          running.delete(key);
          if (n === 2 && attempts === 0) throw new Error('again');
          (seen[key] ??= []).push(n);
        },
        { order: 'key', workers: 4, retry: constant({ delay: 20 }) },
      );
    }
    await scene.DBOS.launch();
    await other.DBOS.launch();
    const messages = Array.from({ length: 40 }, (_, index) => ({
      body: { key: `k${index % 5}`, n: Math.floor(index / 5) },
    }));

    await scene.source.runTransaction(() => scene.outbox.publishAll(keyed, messages), { name: 'publish' });
    await gone(scene);

    expect(overlaps).toEqual([]);
    expect(Object.keys(seen)).toHaveLength(5);
    for (const order of Object.values(seen)) expect(order).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  });

  test.each([
    ['replace', 'replace', () => {}],
    ['debounce', { debounce: '1h' }, () => {}],
    ['replace, and the handler fails', 'replace', () => expect.fail('no')],
  ] as const)('a message that is replaced while it is handled comes after it: %s', async (_, dedupe, end) => {
    const finish = deferred<void>();
    const scene = await handling(name, (body) => (body === 1 ? finish.promise.then(end) : undefined), {
      retry: noRetry(),
    });
    const replace = (body: number) =>
      scene.source.runTransaction(() => scene.outbox.publish(numbers, body, { timerId: 't', dedupe }), {
        name: 'publish',
      });
    const first = await replace(1);
    await until('it runs', () => scene.calls.length === 1);

    const second = await replace(2);
    finish.resolve();
    await gone(scene);

    expect(scene.calls).toEqual([1, 2]);
    expect(scene.messages.map(({ messageID }) => messageID)).toEqual([first.messageID, second.messageID]);
    expect(scene.messages[1]).toMatchObject({ attempts: 0, deliveries: 1 });
    expect(await deadLetters(scene)).toEqual([]);
  });

  test('a delayed message that replaced one of a process that died is not handled before it is due', async () => {
    const scene = await handling(name);
    const replace = (body: number) =>
      scene.source.runTransaction(
        () => scene.outbox.publish(numbers, body, { timerId: 't', dedupe: 'replace', delay: '1h' }),
        { name: 'publish' },
      );
    await replace(1);
    const token = dialect === 'postgres' ? 'gen_random_uuid()' : `'gone'`;
    await scene.query(`UPDATE outbox SET acquired_token = ${token}, acquired_at = created_at`);
    await replace(2);
    await scene.query(`UPDATE outbox SET acquired_at = ${past}`);

    // Leases that ran out are taken first.
    await publish(scene, 3);
    await until('another one is handled', () => scene.calls.length > 0);

    expect(scene.calls).toEqual([3]);
    expect(await pending(scene)).toHaveLength(1);
  });

  test('a transactional handler writes and is done in one commit', async () => {
    const scene = await setOutbox(name, { isLaunched: false });
    const { outbox, source, run, DBOS } = scene;
    let failures = 1;
    outbox.on(
      numbers,
      async (body) => {
        await run(`INSERT INTO effects (workflow_id, note) VALUES ('w', 'n${body}')`);
        await outbox.publish('next', body);
        if (failures-- > 0) throw new Error('roll back');
      },
      { transactional: source as never, retry: constant({ delay: 1 }) },
    );
    await DBOS.launch();

    await publish(scene, 1);
    await until('it is handled', async () => (await pending(scene)).every((row) => row['queue'] === 'next'));

    expect(await scene.query('SELECT note FROM effects')).toEqual([{ note: 'n1' }]);
    expect(await pending(scene)).toHaveLength(1);
  });

  test('subscriptions with names each get every message', async () => {
    const scene = await setOutbox(name, { isLaunched: false });
    const billing: number[] = [];
    const mail: number[] = [];
    const ids = new Set<string>();
    scene.outbox.on(numbers, (body, { messageID }) => void (billing.push(body), ids.add(messageID)), {
      subscription: 'billing',
    });
    scene.outbox.on(
      numbers,
      (body, { messageID, attempts }) => {
        if (attempts === 0) throw new Error('again');
        mail.push(body);
        ids.add(messageID);
      },
      { subscription: 'mail', retry: constant({ delay: 1 }) },
    );
    await scene.DBOS.launch();

    await publish(scene, 1, 2, 3);
    await gone(scene);

    expect([billing, mail.toSorted()]).toEqual([
      [1, 2, 3],
      [1, 2, 3],
    ]);
    expect(ids.size).toBe(3);
  });

  test('a missing table is logged once, and its messages are handled when it is there', async () => {
    const warnings: string[] = [];
    const logger = { ...silentLogger, warn: (entry: unknown) => void warnings.push(String(entry)) };
    const scene = await setOutbox(name, { isLaunched: false, config: { logger } });
    const calls: number[] = [];
    scene.outbox.on(numbers, (body) => void calls.push(body));
    await scene.query('ALTER TABLE outbox RENAME TO hidden');
    await scene.DBOS.launch();
    await until('it is logged', async () => warnings.some((text) => text.includes('Messages of "numbers"')));

    await scene.query('ALTER TABLE hidden RENAME TO outbox');
    await publish(scene, 1);
    await gone(scene);

    expect(calls).toEqual([1]);
    expect(warnings.filter((text) => text.includes('"numbers"'))).toHaveLength(1);
  });

  test('the statistics count by queue', async () => {
    const scene = await setOutbox(name);
    await publish(scene, 1, 2, 3);
    await scene.query(`UPDATE outbox SET next_attempt_at = ${past}`);
    await scene.source.runTransaction(() => scene.outbox.publish('later', 1, { delay: '1h' }), { name: 'publish' });
    const token = dialect === 'postgres' ? 'gen_random_uuid()' : `'gone'`;
    const ids = `SELECT MIN(id) FROM outbox`;
    await scene.query(
      `UPDATE outbox SET acquired_token = ${token}, acquired_at = ${past}, attempts_count = 1 WHERE id = (${ids})`,
    );

    const [later, queue] = await scene.outbox.statistics();

    expect(later).toEqual({
      queue: 'later',
      depth: 1,
      due: 0,
      inFlight: 0,
      stale: 0,
      retrying: 0,
      lagMs: 0,
      deadLetters: 0,
    });
    expect(queue).toMatchObject({
      queue: 'numbers',
      depth: 3,
      due: 2,
      inFlight: 1,
      stale: 1,
      retrying: 1,
      deadLetters: 0,
    });
    expect(queue?.lagMs).toBeGreaterThanOrEqual(60 * 60_000);
  });

  test('subscriptions that would compete, and options that cannot work, are refused', async () => {
    const { outbox, DBOS } = await setOutbox(name, { isLaunched: false });
    const handler = () => {};
    outbox.on(numbers, handler);

    expect(() => outbox.on(numbers, handler)).toThrow(/another subscription/);
    expect(() => outbox.on(numbers, handler, { subscription: 'a' })).toThrow(/another subscription/);
    expect(() => outbox.on('other', handler, { workers: 0 })).toThrow('options.workers must be a positive integer');
    expect(() => outbox.on('other', handler, { lease: 1 })).toThrow(/cannot be renewed/);
    expect(() => outbox.on('other', handler, { lesae: 1 } as never)).toThrow(/Did you mean "lease"/);
    expect(() => outbox.on('other', undefined as never)).toThrow('handler must be a function');
    const foreign = { name: 'other', runTransaction: () => {} } as never;
    expect(() => outbox.on('other', handler, { transactional: foreign })).toThrow(/only be transactional/);
    await DBOS.launch();
    expect(() => outbox.on('other', handler)).toThrow(/before DBOS.launch/);
  });
});

test('a message is delivered although the database restarts its connections', async () => {
  vi.setConfig({ testTimeout: 30_000 });
  onTestFinished(() => vi.resetConfig());
  if (!DIALECTS.some(([dialect]) => dialect === 'postgres')) return;
  const scene = await handling('node-postgres', () => {}, { pollInterval: '1h' });
  await publish(scene, 1);
  await gone(scene);

  await scene.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`,
  );
  await until('it can publish again', () =>
    publish(scene, 2).then(
      () => true,
      () => false,
    ),
  );
  await gone(scene);

  expect(scene.calls).toEqual([1, 2]);
});
