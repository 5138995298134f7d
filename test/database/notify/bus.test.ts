import { describe, expect, onTestFinished, test } from 'vitest';
import { silentLogger } from '../../../src/kernel/base/log.js';
import { sql } from '../../../src/kernel/sql/sql.js';
import { Bus } from '../../../src/database/notify/bus.js';
import { type Listener, type Wakeup, type WakeupHandler } from '../../../src/database/notify/listener.js';
import { topics } from '../../../src/database/notify/topics.js';
import { Store } from '../../../src/run/writer/store.js';
import { onlyOn } from '../../rig/dialects.js';
import { ManualClock, until } from '../../rig/manual-clock.js';

/** A bus over a transport that the test plays. */
function setup() {
  const sent: string[] = [];
  let wake: WakeupHandler = () => {};
  const listener: Listener = {
    channels: Object.values(topics).map(({ channel }) => channel),
    session: 0,
    isLockHeld: true,
    start: async () => {},
    stop: async () => {},
    subscribe: (handler) => {
      wake = handler;
      return () => {};
    },
    notify: (channel, payload) => void sent.push(`${channel} ${payload}`),
    afterCommit: (_, commit) => commit(),
  };
  const clock = new ManualClock();
  const bus = new Bus({ clock, logger: silentLogger, listener });
  return { bus, sent, clock, wake: (wakeup: Wakeup) => wake(wakeup) };
}

describe('the bus', () => {
  test('publishing delivers here at once, and sends to other processes', () => {
    const { bus, sent } = setup();
    const heard: unknown[] = [];
    bus.subscribe(topics.work, (keys, origin) => void heard.push([keys, origin]));

    bus.publish(topics.work, { queueName: 'q', partitionKey: 'k' });

    const name = expect.any(String) as string;
    expect(heard).toEqual([[[{ queueName: 'q', partitionKey: 'k', name }], 'here']]);
    expect(sent).toEqual([expect.stringMatching(/^everstep_queues \["q","k","\w+"\]$/)]);
  });

  test('work is announced under a name that its subscribers here and elsewhere share', () => {
    const { bus, sent } = setup();
    const heard: unknown[] = [];
    bus.subscribe(topics.work, (announced) => void heard.push(...announced));

    bus.publishAll(topics.work, [{ queueName: 'q' }, { queueName: 'q' }, { queueName: 'r' }]);

    expect(sent.map((text) => topics.work.decode(text.slice('everstep_queues '.length)))).toEqual(heard);
    expect(new Set(heard.map((one) => (one as { name: string }).name)).size).toBe(2);
  });

  test('a batch is delivered once and holds each fact once', () => {
    const { bus, sent } = setup();
    const heard: unknown[] = [];
    bus.subscribe(topics.changes, (workflowIDs) => void heard.push(workflowIDs));

    bus.publishAll(topics.changes, ['a', 'b', 'a']);

    expect(heard).toEqual([['a', 'b']]);
    expect(sent).toEqual(['everstep_changes a', 'everstep_changes b']);
  });

  test('a notification of another process reaches the subscribers of its topic alone', () => {
    const { bus, wake } = setup();
    const heard: unknown[] = [];
    bus.subscribe(topics.work, (keys, origin) => void heard.push([keys, origin]));
    bus.subscribe(topics.delays, () => void heard.push('delays'));

    wake({ kind: 'message', channel: 'everstep_queues', payload: '["q"]' });

    expect(heard).toEqual([[[{ queueName: 'q', partitionKey: undefined }], 'elsewhere']]);
  });

  test.each(['', '{', 'null', '[5]', '{"a":1}'])('a malformed notification %j is ignored', (payload) => {
    const { bus, wake } = setup();
    const heard: unknown[] = [];
    bus.subscribe(topics.work, (keys) => void heard.push(keys));

    wake({ kind: 'message', channel: 'everstep_queues', payload });
    wake({ kind: 'message', channel: 'unknown', payload });

    expect(heard).toEqual([]);
  });

  test('a filter keeps facts from other processes, not from this one', () => {
    const { bus, sent } = setup();
    const heard: string[] = [];
    bus.subscribe(topics.outcomes, (workflowIDs) => void heard.push(...workflowIDs));
    bus.filterOutgoing(topics.outcomes, (workflowID) => workflowID === 'wanted');

    bus.publishAll(topics.outcomes, ['wanted', 'unwanted']);

    expect(heard).toEqual(['wanted', 'unwanted']);
    expect(sent).toEqual(['everstep_outcomes wanted']);
  });

  test('publishAndWait resolves when subscribers have acted, and rejects if one fails', async () => {
    const { bus } = setup();
    const done: string[] = [];
    const unsubscribe = bus.subscribe(topics.schedules, async (names) => {
      await new Promise((resolve) => setImmediate(resolve));
      done.push(...names);
    });

    await bus.publishAndWait(topics.schedules, ['nightly']);
    expect(done).toEqual(['nightly']);

    bus.subscribe(topics.schedules, () => Promise.reject(new Error('cannot read')));
    await expect(bus.publishAndWait(topics.schedules, ['x'])).rejects.toThrow('cannot read');
    unsubscribe();
  });

  test('a subscriber that throws keeps no other from its fact', () => {
    const { bus } = setup();
    const heard: string[] = [];
    bus.subscribe(topics.delays, () => {
      throw new Error('broken');
    });
    bus.subscribe(topics.delays, () => void heard.push('second'));

    bus.publish(topics.delays, '');

    expect(heard).toEqual(['second']);
  });

  test('when anything may have changed, every handler is called, a throttled one at most once an interval', () => {
    const { bus, clock, wake } = setup();
    let [calls, throttled] = [0, 0];
    bus.onAnything(() => {
      calls += 1;
      throw new Error('broken');
    });
    const stop = bus.onAnything(() => void (throttled += 1), 250);

    for (let n = 0; n < 3; n += 1) wake({ kind: 'anything' });
    expect([calls, throttled]).toEqual([3, 1]);
    clock.advance(250);
    expect(throttled).toBe(2);
    stop();
    wake({ kind: 'anything' });
    expect([calls, throttled]).toEqual([4, 2]);
  });

  onlyOn('postgres', (dialect) => {
    test('a fact published in a transaction is delivered with its commit, and not after a rollback', async () => {
      const url = await dialect.createURL();
      const open = async (): Promise<Store> => {
        const store = await Store.open({ url, logger: silentLogger });
        onTestFinished(() => store.close());
        return store;
      };
      const [sender, receiver] = [await open(), await open()];
      const heard: unknown[] = [];
      receiver.bus.subscribe(topics.work, (keys) => void heard.push(...keys.map(({ queueName }) => queueName)));

      await sender.database
        .transaction(async (tx) => {
          await sender.bus.publishIn(tx, topics.work, { queueName: 'undone' });
          throw new Error('rolled back');
        })
        .catch(() => {});
      await sender.database.transaction(async (tx) => {
        await sender.bus.publishIn(tx, topics.work, { queueName: 'done' });
        // Postgres would refuse it, and with it the transaction.
        await sender.bus.publishIn(tx, topics.work, { queueName: 'x'.repeat(9000) });
        await tx.run(sql`SELECT 1`);
      });

      await until(() => heard.length > 0);
      expect(heard).toEqual(['done']);
    });
  });
});
