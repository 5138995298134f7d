// Messages that cannot be stored. One of them must not stop the receiver, nor take its batch with it.
import { describe, expect, test } from 'vitest';
import type { Adapter, ConsumerOptions } from '../../../src/plugins/receiver/adapter.js';
import { Mailbox } from '../../../src/plugins/receiver/mailbox.js';
import { Receiver } from '../../../src/plugins/receiver/receiver.js';
import type { DBOSConfig } from '../../../src/run/config/config.js';
import { forEachDialect, type TestDialect } from '../../rig/dialects.js';
import { createEngine } from '../../rig/engines.js';
import { Tally } from './spy.js';

interface Note {
  readonly id: unknown;
  readonly key?: unknown;
  readonly value?: unknown;
}

type Options = ConsumerOptions<Note>;

async function setup(dialect: TestDialect, options: Options = {}, config: Partial<DBOSConfig> = {}) {
  const { DBOS } = await createEngine(dialect, config);
  const box = new Mailbox<Note>();
  const adapter: Adapter<Note, Options> = {
    name: 'memory',
    describe: () => 'box',
    workflowIDOf: ({ id }) => id as string,
    decode: ({ value }) => [value],
    connect: async () => ({
      fetch: (max, signal) => box.take(max, signal),
      acknowledge: async () => {},
      close: async () => {},
    }),
  };
  const done = new Tally();
  const work = DBOS.registerWorkflow(async () => done.add(), { name: 'work' });
  const receiver = new Receiver(adapter, { dbos: DBOS });
  receiver.registerConsumer(work, options);
  await DBOS.launch();
  return { DBOS, box, done, deadLetters: () => receiver.listDeadLetters(work) };
}

const cyclic: Record<string, unknown> = { name: 'cyclic' };
cyclic['self'] = cyclic;

describe('a poison message', () => {
  forEachDialect((dialect) => {
    test.each<[string, unknown]>([
      ['a NUL', 'a\0b'],
      ['9,000 characters', 'x'.repeat(9000)],
      ['half of a surrogate pair', 'a\ud800'],
      ['white space only', '  '],
      ['a number', 7],
      ['an object', {}],
    ])('whose ID is %s becomes a dead letter under a fresh ID', async (_, id) => {
      const { box, done, deadLetters } = await setup(dialect);

      box.push({ id, value: 1 });
      box.push({ id: 'good', value: 2 });
      await done.reach(1);

      expect(await deadLetters()).toMatchObject([{ id: expect.stringMatching(/^[0-9a-f-]{36}$/) as string }]);
    });

    test.each<[string, unknown]>([
      ['a NUL', 'a\0b'],
      ['9,000 characters', 'x'.repeat(9000)],
      ['a number', 7],
    ])('whose ordering key is %s becomes a dead letter', async (_, key) => {
      const { box, done, deadLetters } = await setup(dialect, { orderingKey: (note) => note.key as string });

      box.push({ id: 'bad', key });
      box.push({ id: 'good', key: 'a' });
      await done.reach(1);

      expect(await deadLetters()).toMatchObject([
        { id: 'bad', error: expect.stringContaining('ordering key') as string },
      ]);
    });

    test('that is cyclic, or fails when it is read, is kept as text', async () => {
      const failing = {
        get toJSON(): never {
          throw new Error('no');
        },
      };
      const { box, done, deadLetters } = await setup(dialect, {
        decode: ({ id }) => {
          if (id === 'good') return [];
          throw new Error('undecodable\0');
        },
      });

      box.push({ id: 'cyclic', value: cyclic });
      box.push({ id: 'failing', value: failing });
      box.push({ id: 'good' });
      await done.reach(1);

      expect(await deadLetters()).toMatchObject([
        { id: 'cyclic', error: 'undecodable\0', message: expect.stringContaining('Circular') as string },
        { id: 'failing', message: expect.any(String) as string },
      ]);
    });

    test('that decodes to no arguments, or fails with no error, becomes a dead letter', async () => {
      const { box, done, deadLetters } = await setup(dialect, {
        decode: ({ id }) => {
          if (id === 'thrown') throw Object.create(null);
          return (id === 'text' ? 'no array' : []) as unknown[];
        },
      });

      box.push({ id: 'text' });
      box.push({ id: 'thrown' });
      box.push({ id: 'good' });
      await done.reach(1);

      expect((await deadLetters()).map(({ id }) => id)).toEqual(['text', 'thrown']);
    });

    test('for which the serializer writes a NUL becomes a dead letter', async () => {
      const serializer = {
        name: () => 'raw',
        stringify: (value: unknown) => (JSON.stringify(value) ?? 'null').replace('NUL', '\0'),
        parse: (text: string | null | undefined) => JSON.parse(text ?? 'null') as unknown,
      };
      const { box, done, deadLetters } = await setup(dialect, {}, { serializer });

      box.push({ id: 'bad', value: 'NUL' });
      box.push({ id: 'good', value: 1 });
      await done.reach(1);

      expect(await deadLetters()).toMatchObject([{ id: 'bad' }]);
    });
  });
});
