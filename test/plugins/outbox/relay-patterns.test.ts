// Relays of all topics whose names match a pattern.
import { afterAll, describe, expect, test } from 'vitest';
import type { RelayMessage, RelayTarget } from '../../../src/plugins/outbox/relays/target.js';
import { until } from '../../crash/processes.js';
import { dropDatabase } from '../transaction/scene.js';
import { DIALECTS, type OutboxScene, pending, setOutbox } from './scene.js';

afterAll(dropDatabase);

function collecting(): RelayTarget & { readonly arrived: RelayMessage[] } {
  const arrived: RelayMessage[] = [];
  return {
    name: 'a list',
    arrived,
    async publish(messages) {
      arrived.push(...messages);
      return messages.map(() => ({ kind: 'ok' }) as const);
    },
  };
}

function publish({ source, outbox }: OutboxScene, topics: readonly string[]): Promise<unknown> {
  return source.runTransaction(
    async () => {
      for (const topic of topics) await outbox.publish(topic, topic);
    },
    { name: 'publish' },
  );
}

describe.each(DIALECTS)('a relay of a pattern on %s', (_, name) => {
  test('gets the messages of all topics that match, those of later ones too', async () => {
    const scene = await setOutbox(name, { isLaunched: false });
    const target = collecting();
    scene.outbox.relay('order.*', target);
    await scene.DBOS.launch();

    await publish(scene, ['order.placed', 'invoice.sent']);
    await until('the first has arrived', async () => target.arrived.length === 1);
    await publish(scene, ['order.shipped', 'order.eu.placed', 'orders']);
    await until('the others have arrived', async () => target.arrived.length === 3);
    await publish(scene, ['order.placed']);
    await until('another has arrived', async () => target.arrived.length === 4);

    expect(target.arrived.map(({ topic }) => topic).toSorted()).toEqual([
      'order.eu.placed',
      'order.placed',
      'order.placed',
      'order.shipped',
    ]);
    expect((await pending(scene)).map((row) => row['queue']).toSorted()).toEqual(['invoice.sent', 'orders']);
  });

  test('leaves a topic that has a subscription of its own to that', async () => {
    const scene = await setOutbox(name, { isLaunched: false });
    const target = collecting();
    const handled: unknown[] = [];
    scene.outbox.relay('*', target);
    scene.outbox.on('order.placed', (body) => void handled.push(body));
    await scene.DBOS.launch();

    await publish(scene, ['order.placed', 'order.shipped']);
    await until('nothing is pending', async () => (await pending(scene)).length === 0);

    expect(handled).toEqual(['order.placed']);
    expect(target.arrived.map(({ topic }) => topic)).toEqual(['order.shipped']);
  });

  test('takes over what a process that died has leased', async () => {
    const scene = await setOutbox(name, { isLaunched: false });
    const target = collecting();
    scene.outbox.relay('order.*', target, { lease: 100 });
    const isPostgres = scene.scene.url.startsWith('postgres');
    const id = '00000000-0000-4000-8000-000000000001';
    await scene.query(
      `INSERT INTO outbox (queue, payload, headers, message_id, acquired_token, acquired_at)
       VALUES ('order.placed', ${isPostgres ? `'1'` : `x'31'`}, '{}', '${id}', '${id}', ${isPostgres ? 'now()' : '0'})`,
    );
    await scene.DBOS.launch();

    await until('it has arrived', async () => target.arrived.length > 0);

    expect(target.arrived[0]?.messageID).toBe(id);
  });
});

test('a handler, and one of several subscriptions, cannot have a pattern', async () => {
  const { outbox } = await setOutbox('better-sqlite3', { isLaunched: false });

  expect(() => outbox.on('order.*', () => {})).toThrow('only a relay');
  expect(() => outbox.relay('order.*', collecting(), { subscription: 'a' })).toThrow('several subscriptions');
});
