// The order of a key where messages are copied to subscriptions or become workflows.
import { afterAll, describe, expect, test } from 'vitest';
import { deferred } from '../../../src/kernel/base/deferred.js';
import { LEASE_MS } from '../../../src/plugins/outbox/consume/options.js';
import { split } from '../../../src/plugins/outbox/consume/splitting.js';
import { OutboxDatabase } from '../../../src/plugins/outbox/database.js';
import { makeOutboxTable } from '../../../src/plugins/outbox/schema/tables.js';
import { until } from '../../crash/processes.js';
import { dropDatabase } from '../transaction/scene.js';
import { bodyOf, DIALECTS, type OutboxScene, pending, setOutbox, sourceOf } from './scene.js';

afterAll(dropDatabase);

type Handler = (body: string) => Promise<void>;
const SUBSCRIBE: Readonly<Record<string, (scene: OutboxScene, handler: Handler) => void>> = {
  'by a handler': ({ outbox }, handler) => outbox.on<string>('topic', handler, { order: 'key' }),
  'by a subscription': ({ outbox }, handler) =>
    outbox.on<string>('topic', handler, { order: 'key', subscription: 'one' }),
  'by a workflow': ({ outbox, DBOS }, handler) =>
    outbox.on<string>('topic', DBOS.registerWorkflow(handler, { name: 'take' }), { order: 'key' }),
};

describe.each(DIALECTS)('messages of a key on %s', (dialect, name) => {
  test.each(Object.entries(SUBSCRIBE))('wait for an earlier one %s, and no others do', async (_, subscribe) => {
    const scene = await setOutbox(name, { isLaunched: false });
    const seen: string[] = [];
    subscribe(scene, async (body) => void seen.push(body));
    await scene.DBOS.launch();

    await scene.source.runTransaction(
      () =>
        scene.outbox.publishAll('topic', [
          { body: 'first', key: 'k', delay: 500 },
          { body: 'second', key: 'k' },
          { body: 'third', key: 'k', priority: 5 },
          { body: 'other', key: 'other' },
        ]),
      { name: 'publish' },
    );
    await until('all are handled', () => seen.length === 4);

    expect(seen).toEqual(['other', 'first', 'second', 'third']);
  });

  test.runIf(dialect === 'postgres')(
    'are not copied to subscriptions while another process copies earlier ones',
    async () => {
      const scene = await setOutbox(name);
      const database = new OutboxDatabase(sourceOf(scene));
      const pick = {
        table: makeOutboxTable(),
        stateTable: undefined,
        topic: 'topic',
        queue: 'topic',
        max: 1,
        leaseMs: LEASE_MS,
        isOrdered: false,
      };
      const copy = (mayCommit: () => Promise<void>) =>
        database.transact(async (tx) => {
          await split(tx, pick, { dialect: database.dialect, queues: ['copies'], wake: () => {} });
          await mayCommit();
        });
      const messages = [1, 2].map((body) => ({ body, key: 'k' }));
      await scene.source.runTransaction(() => scene.outbox.publishAll('topic', messages), { name: 'publish' });
      const copies = async () => (await pending(scene)).filter((row) => row['queue'] === 'copies').map(bodyOf);
      const commit = deferred<void>();

      const copied = deferred<void>();
      const first = copy(() => {
        copied.resolve();
        return commit.promise;
      });
      await copied.promise;
      await copy(async () => {});
      const early = await copies();
      commit.resolve();
      await first;
      await copy(async () => {});

      expect(early).toEqual([]);
      expect(await copies()).toEqual([1, 2]);
    },
  );
});
