// The dead letters of a receiver, with the verbs of the outbox.
import { describe, expect, test } from 'vitest';
import type { Adapter, ConsumerOptions } from '../../../src/plugins/receiver/adapter.js';
import { Mailbox } from '../../../src/plugins/receiver/mailbox.js';
import { Receiver } from '../../../src/plugins/receiver/receiver.js';
import { until } from '../../crash/processes.js';
import { forEachDialect, type TestDialect } from '../../rig/dialects.js';
import { createEngine } from '../../rig/engines.js';

interface Note {
  readonly id: string;
  readonly data: Uint8Array;
}

/** A receiver that refuses some notes as long as it is strict. */
async function setup(dialect: TestDialect) {
  const { DBOS } = await createEngine(dialect);
  const box = new Mailbox<Note>();
  const state = { isStrict: true };
  const adapter: Adapter<Note, ConsumerOptions<Note>> = {
    name: 'memory',
    describe: () => 'box',
    workflowIDOf: ({ id }) => id,
    decode: ({ id, data }) => {
      if (state.isStrict) throw new Error(id.startsWith('odd') ? `odd ${id.slice(3)}` : 'even');
      return [Buffer.from(data).toString()];
    },
    connect: async () => ({
      fetch: (max, signal) => box.take(max, signal),
      acknowledge: async () => {},
      close: async () => {},
    }),
  };
  const done: string[] = [];
  const work = DBOS.registerWorkflow(async (text: string) => void done.push(text), { name: 'work' });
  const receiver = new Receiver(adapter, { dbos: DBOS });
  receiver.registerConsumer(work, {});
  await DBOS.launch();
  const send = async (...ids: string[]) => {
    for (const id of ids) box.push({ id, data: Buffer.from(`body of ${id}`) });
    await until('all are dead letters', async () => (await receiver.listDeadLetters(work)).length === ids.length);
  };
  return { dlq: receiver.dlq(work), state, done, send };
}

describe('dead letters of a receiver', () => {
  forEachDialect((dialect) => {
    test('are listed page by page, shown and grouped', async () => {
      const { dlq, send } = await setup(dialect);
      await send('odd1', 'odd3', 'odd5', 'even2');

      const first = await dlq.list({ limit: 3 });
      const rest = await dlq.list({ limit: 3, cursor: first.cursor });
      const groups = await dlq.groups();

      const ids = [...first.letters, ...rest.letters].map(({ id }) => id);
      expect(new Set(ids)).toEqual(new Set(['odd1', 'odd3', 'odd5', 'even2']));
      expect(rest.cursor).toBeUndefined();
      expect(groups.map(({ count }) => count)).toEqual([3, 1]);
      expect((await dlq.list({ fingerprint: groups[0]?.fingerprint })).letters).toHaveLength(3);
      expect(await dlq.get('even2')).toMatchObject({ error: 'even' });
      expect(await dlq.get('other')).toBeUndefined();
    });

    test('start their workflows after all, with their bytes', async () => {
      const { dlq, send, state, done } = await setup(dialect);
      await send('a', 'b', 'c');

      expect(await dlq.requeue({ all: true })).toEqual({ requeued: 0, skipped: 3 });
      state.isStrict = false;
      expect(await dlq.requeue({ all: true }, { dryRun: true })).toEqual({ requeued: 3, skipped: 0 });
      const seen: number[] = [];
      const options = { limit: 2, onProgress: (done: number) => void seen.push(done) };
      expect(await dlq.requeue({ ids: ['a', 'b'] }, options)).toEqual({ requeued: 2, skipped: 0 });
      expect(seen).toEqual([2]);
      const edit = (message: unknown) => ({ ...(message as Note), data: Buffer.from('edited') });
      expect(await dlq.requeue({ ids: ['c'] }, { edit })).toEqual({ requeued: 1, skipped: 0 });

      await until('all have run', async () => done.length === 3);
      expect(done.toSorted()).toEqual(['body of a', 'body of b', 'edited']);
      expect((await dlq.list()).letters).toEqual([]);
    });

    test('can be archived and discarded', async () => {
      const { dlq, send } = await setup(dialect);
      await send('odd1', 'odd3', 'even2');
      const [group] = await dlq.groups();

      expect(await dlq.archive({ fingerprint: group?.fingerprint ?? '' })).toEqual({ archived: 2 });
      expect((await dlq.list()).letters.map(({ id }) => id)).toEqual(['even2']);
      expect((await dlq.list({ archived: true })).letters).toHaveLength(2);
      expect(await dlq.discard({ all: true }, { dryRun: true })).toEqual({ discarded: 1 });
      expect(await dlq.discard({ all: true })).toEqual({ discarded: 1 });
      expect(await dlq.discard({ before: Date.now() + 60_000, archived: true })).toEqual({ discarded: 2 });
      expect((await dlq.list({ archived: true })).letters).toEqual([]);
    });

    test('a filter that matches everything must say so', async () => {
      const { dlq } = await setup(dialect);

      await expect(dlq.discard({})).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
      await expect(dlq.archive({ archived: true, ids: ['a'] })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
      await expect(dlq.list({ limit: 0 })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    });
  });
});
