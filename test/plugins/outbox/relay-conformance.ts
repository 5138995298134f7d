// What every target of a relay has to do. A rig adds the broker.
import { describe, expect, test } from 'vitest';
import type { RelayOptions } from '../../../src/plugins/outbox/relays/relay.js';
import type { RelayMessage, RelayResult, RelayTarget } from '../../../src/plugins/outbox/relays/target.js';
import { newID } from '../../../src/kernel/base/ids.js';
import { until } from '../../crash/processes.js';
import { type OutboxScene, pending, setOutbox } from './scene.js';

export interface Arrived {
  readonly messageID: string | undefined;
  readonly body: Buffer;
  readonly headers: Readonly<Record<string, string>>;
  readonly key?: string | undefined;
}

export interface RelayRig {
  readonly name: string;
  /** A place of its own for a test: a target, and what has arrived there. */
  place(): Promise<{ readonly target: RelayTarget<unknown>; readonly arrived: () => Promise<Arrived[]> }>;
  /** A target whose place does not exist, if it can tell. */
  readonly nowhere?: () => Promise<RelayTarget<unknown>>;
  stop(): Promise<void> | void;
  start(): Promise<void> | void;
}

const OPTIONS: RelayOptions = { breaker: { threshold: 1, max: 100 } };

export async function relaying(target: RelayTarget<unknown>, options: RelayOptions = {}): Promise<OutboxScene> {
  const scene = await setOutbox('better-sqlite3', { isLaunched: false });
  scene.outbox.relay('order.placed', target, { ...OPTIONS, ...options });
  await scene.DBOS.launch();
  return scene;
}

/** What becomes of a message that a target is given directly. */
export async function sendTo(target: RelayTarget<unknown>, message: Partial<RelayMessage> = {}): Promise<RelayResult> {
  const whole = { messageID: newID(), topic: 't', key: undefined, headers: {}, contentType: undefined, createdAt: 0 };
  const built = target.build?.({ ...whole, payload: Buffer.from('x'), ...message });
  const [result] = await target.publish([built], new AbortController().signal);
  return result as RelayResult;
}

export async function publish({ source, outbox }: OutboxScene, bodies: readonly unknown[]): Promise<string[]> {
  const messages = bodies.map((body, n) => ({ body, key: `k${n}`, headers: { tenant: 'acme' } }));
  const published = await source.runTransaction(() => outbox.publishAll('order.placed', messages), { name: 'publish' });
  return published.map(({ messageID }) => messageID);
}

export const isEmpty = (scene: OutboxScene) =>
  until('the outbox is empty', async () => (await pending(scene)).length === 0);

export function describeTarget(rig: RelayRig): void {
  describe('as a target', () => {
    test('gets every message as it was published, with its ID and headers', async () => {
      const { target, arrived } = await rig.place();
      const scene = await relaying(target);

      const ids = await publish(scene, [{ n: 1 }, 'text', Buffer.from([0, 255, 1])]);
      await isEmpty(scene);

      const found = await arrived();
      expect(new Set(found.map(({ messageID }) => messageID))).toEqual(new Set(ids));
      const byID = new Map(found.map((one) => [one.messageID, one]));
      expect(ids.map((id) => byID.get(id)?.body)).toEqual([
        Buffer.from('{"n":1}'),
        Buffer.from('text'),
        Buffer.from([0, 255, 1]),
      ]);
      expect((await scene.outbox.dlq.list()).letters).toEqual([]);
    });

    test('gets CloudEvents if they are asked for', async () => {
      const { target, arrived } = await rig.place();
      const scene = await relaying(target, { envelope: { cloudEvents: { source: '/shop' } } });

      const [id] = await publish(scene, [{ n: 1.5 }]);
      await isEmpty(scene);

      const [found] = await arrived();
      expect(JSON.parse(found?.body.toString() ?? '')).toMatchObject({
        specversion: '1.0',
        id,
        source: '/shop',
        type: 'order.placed',
        subject: 'k0',
        datacontenttype: 'application/json',
        data: { n: 1.5 },
      });
    });

    test('gets CloudEvents in headers, or refuses that', async () => {
      const { target, arrived } = await rig.place();
      const options = { envelope: { cloudEvents: { source: '/shop', mode: 'binary' } } } as const;
      const prefix = target.cloudEventsPrefix;
      if (prefix === undefined) return expect(relaying(target, options)).rejects.toThrow('binary mode');
      const scene = await relaying(target, options);

      const [id] = await publish(scene, [{ n: 1.5 }]);
      await isEmpty(scene);

      const [found] = await arrived();
      expect(found?.body.toString()).toBe('{"n":1.5}');
      expect(found?.headers).toMatchObject({
        [`${prefix}specversion`]: '1.0',
        [`${prefix}id`]: id,
        [`${prefix}source`]: '/shop',
        [`${prefix}type`]: 'order.placed',
        [`${prefix}subject`]: 'k0',
      });
    });

    test('gets large batches whole', async () => {
      const { target, arrived } = await rig.place();
      const scene = await relaying(target);

      const ids = await publish(
        scene,
        Array.from({ length: 500 }, (_, n) => n),
      );
      await isEmpty(scene);

      const found = (await arrived()).map(({ messageID }) => messageID);
      expect(new Set(found)).toEqual(new Set(ids));
    });

    test('may be down: messages wait, count no attempt, and arrive when it is back', async () => {
      const { target, arrived } = await rig.place();
      const scene = await relaying(target);
      await publish(scene, ['before']);
      await isEmpty(scene);

      await rig.stop();
      const ids = await publish(scene, [1, 2, 3]);
      await until('the relay has met the outage', async () =>
        (await pending(scene)).every((row) => row['acquired_token'] === null),
      );
      const waiting = await pending(scene);
      await rig.start();
      await isEmpty(scene);

      expect(waiting).toHaveLength(3);
      expect(waiting.map((row) => Number(row['attempts_count']))).toEqual([0, 0, 0]);
      const found = new Set((await arrived()).map(({ messageID }) => messageID));
      expect(ids.every((id) => found.has(id))).toBe(true);
    });

    test.runIf(rig.nowhere)('refuses what has no place, and it becomes a dead letter', async () => {
      const scene = await relaying((await rig.nowhere?.()) as RelayTarget<unknown>, { retry: () => undefined });

      await publish(scene, [1]);
      await isEmpty(scene);

      expect((await scene.outbox.dlq.list()).letters).toMatchObject([{ topic: 'order.placed', body: 1 }]);
    });
  });
}
