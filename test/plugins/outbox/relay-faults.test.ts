// A message that cannot be sent costs that message attempts. Only a target that is down makes messages wait.
import { afterAll, describe, expect, test } from 'vitest';
import { newID } from '../../../src/kernel/base/ids.js';
import { Reject } from '../../../src/plugins/outbox/consume/outcomes.js';
import { constant } from '../../../src/plugins/outbox/consume/strategies.js';
import { OutboxBroker } from '../../../src/plugins/outbox/outbox-broker.js';
import type { RelayOptions } from '../../../src/plugins/outbox/relays/relay.js';
import {
  type PerMessage,
  type RelayMessage,
  type RelayTarget,
  settingOf,
} from '../../../src/plugins/outbox/relays/target.js';
import { until } from '../../crash/processes.js';
import { dropDatabase } from '../transaction/scene.js';
import { DIALECTS, type OutboxScene, pending, setOutbox } from './scene.js';

afterAll(dropDatabase);

const OPTIONS: RelayOptions = { breaker: { threshold: 3, max: 20 }, retry: constant({ delay: 1, attempts: 3 }) };

/** A target that publishes all of a batch, or says nothing about it. */
class Wire implements RelayTarget {
  readonly name = 'a wire';
  readonly arrived: RelayMessage[] = [];
  isDown = false;
  /** Calls with a message that is not sent, and how many messages they had. */
  readonly silent: number[] = [];

  constructor(readonly place?: PerMessage<string>) {}

  build(message: RelayMessage): RelayMessage {
    if (message.headers['reject'] !== undefined) throw new Reject('it cannot be built');
    if (message.headers['throw'] !== undefined) throw new Error('the function of the user failed');
    return message;
  }

  placeOf(message: RelayMessage): string {
    return this.place === undefined ? '' : settingOf('place', this.place, message);
  }

  async publish(messages: readonly RelayMessage[]) {
    if (this.isDown || messages.some(({ headers }) => headers['silent'] !== undefined)) {
      this.silent.push(messages.length);
      throw new Error('no answer');
    }
    this.arrived.push(...messages);
    return messages.map(() => ({ kind: 'ok' }) as const);
  }
}

async function relaying(name: (typeof DIALECTS)[number][1], target: Wire, options: RelayOptions = {}) {
  const scene = await setOutbox(name, { isLaunched: false });
  scene.outbox.relay('order.*', target, { ...OPTIONS, ...options });
  await scene.DBOS.launch();
  return scene;
}

interface Published {
  readonly topic?: string;
  readonly headers?: Record<string, string>;
  readonly key?: string;
}

function publish({ source, outbox }: OutboxScene, messages: readonly Published[]): Promise<unknown> {
  return source.runTransaction(
    async () => {
      for (const { topic = 'order.placed', ...options } of messages) await outbox.publish(topic, 1, options);
    },
    { name: 'publish' },
  );
}

const good = (count: number): Published[] => Array.from({ length: count }, (_, n) => ({ key: `k${n % 20}` }));
const isEmpty = (scene: OutboxScene) => until('the outbox is empty', async () => (await pending(scene)).length === 0);
const letters = async ({ outbox }: OutboxScene) => (await outbox.dlq.list()).letters;

describe.each(DIALECTS)('a relay on %s', (_, name) => {
  test.each([
    ['that its target never answers', { silent: '1' }, { reason: 'retry_terminal', attempts: 3 }],
    ['that a function of the user fails for', { throw: '1' }, { reason: 'retry_terminal', attempts: 3 }],
    ['that cannot be built', { reject: '1' }, { reason: 'rejected', attempts: 1 }],
  ])('sends all others around a message %s, which becomes a dead letter', async (_, headers, expected) => {
    const target = new Wire();
    const scene = await relaying(name, target);

    await publish(scene, [{ headers, key: 'bad' }, ...good(300)]);
    await isEmpty(scene);

    expect(target.arrived).toHaveLength(300);
    expect(await letters(scene)).toMatchObject([{ topic: 'order.placed', key: 'bad', ...expected }]);
  });

  test('sends all others around a silent message when keys keep their order', async () => {
    const target = new Wire();
    const scene = await relaying(name, target, { order: 'key' });

    await publish(scene, [{ headers: { silent: '1' }, key: 'bad' }, ...good(200)]);
    await isEmpty(scene);

    expect(target.arrived).toHaveLength(200);
    expect(await letters(scene)).toMatchObject([{ key: 'bad', reason: 'retry_terminal', attempts: 3 }]);
  });

  test('that has met an outage because of one message tries the others, too', async () => {
    const target = new Wire();
    const scene = await relaying(name, target);
    await publish(scene, [{ headers: { silent: '1' } }, { headers: { silent: '1' }, topic: 'order.shipped' }]);
    await until('it was tried again and again', async () => target.silent.length > 10);

    await publish(scene, good(1));
    await until('the other one has arrived', async () => target.arrived.length === 1);
    await publish(scene, good(50));
    await isEmpty(scene);

    expect(target.arrived).toHaveLength(51);
    expect(await letters(scene)).toMatchObject([{ attempts: 3 }, { attempts: 3 }]);
  });

  test('sends a message that was at fault alone', async () => {
    const target = new Wire();
    const scene = await relaying(name, target);

    await publish(scene, [...good(50), { headers: { silent: '1' } }, ...good(49)]);
    await isEmpty(scene);

    const [first, ...others] = target.silent;
    expect(first).toBeGreaterThan(1);
    expect(new Set(others)).toEqual(new Set([1]));
  });

  test('takes a place that is silent while others answer to be at fault, and not the target', async () => {
    const target = new Wire(({ headers }) => headers['place'] ?? '');
    const scene = await relaying(name, target, { batch: 20 });

    const lost = { place: 'lost', silent: '1' };
    await publish(scene, [...Array.from({ length: 60 }, () => ({ headers: lost })), ...good(100)]);
    await until('all others have arrived', async () => target.arrived.length === 100);
    await publish(scene, good(1));
    await isEmpty(scene);

    expect(await letters(scene)).toHaveLength(60);
  });

  test('counts no attempts while its target is down, whatever waits', async () => {
    const target = new Wire();
    const scene = await relaying(name, target);
    target.isDown = true;

    await publish(scene, good(150));
    await until('many were tried', async () => target.silent.length > 30);
    const attempts = (await pending(scene)).map((row) => Number(row['attempts_count']));
    target.isDown = false;
    await isEmpty(scene);

    expect(Math.max(...attempts)).toBe(0);
    expect(attempts).toHaveLength(150);
    expect(target.arrived).toHaveLength(150);
    expect(await letters(scene)).toEqual([]);
  });
});

test('a handler is called for other messages while one waits for what is down', async () => {
  const scene = await setOutbox('better-sqlite3', { isLaunched: false });
  const handled: unknown[] = [];
  const { Unavailable } = await import('../../../src/plugins/outbox/consume/outcomes.js');
  scene.outbox.on(
    'order.placed',
    (body) => {
      if (body === 'bad') throw new Unavailable('it is down');
      handled.push(body);
    },
    { breaker: { threshold: 1, max: 20 } },
  );
  await scene.DBOS.launch();

  await scene.source.runTransaction(() => scene.outbox.publish('order.placed', 'bad'), { name: 'publish' });
  const good = newID();
  await scene.source.runTransaction(() => scene.outbox.publish('order.placed', good), { name: 'publish' });
  await until('the other one was handled', async () => handled.length > 0);

  expect(handled).toEqual([good]);
  expect(scene.outbox).toBeInstanceOf(OutboxBroker);
});
