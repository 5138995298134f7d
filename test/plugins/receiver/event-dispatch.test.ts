import { expect, test } from 'vitest';
import type { Database } from '../../../src/database/database.js';
import {
  type EventDispatchState,
  findEventDispatchState,
  toEventDispatchState,
  upsertEventDispatchState,
} from '../../../src/run/rows/event-dispatch.js';
import { forEachDialect } from '../../rig/dialects.js';

const KEY = { service: 'service', workflowFnName: 'Class.name', key: 'key' } as const;

/** Stores a state; gives what is stored then, which is the same when it is read. */
async function upsert(database: Database, fields: Partial<EventDispatchState>): Promise<Partial<EventDispatchState>> {
  const [row] = await database.run(upsertEventDispatchState({ ...KEY, ...fields }));
  const stored = toEventDispatchState(row ?? {});
  expect(await findEventDispatchState(database, KEY)).toEqual(stored);
  const { value, updateTime, updateSeq } = stored;
  return { value, updateTime, updateSeq };
}

forEachDialect((dialect) => {
  test('a state is replaced, and keeps the time or number that the new one does not give', async () => {
    const database = await dialect.create();
    expect(await findEventDispatchState(database, KEY)).toBeUndefined();

    expect(await upsert(database, { value: 'a' })).toEqual({ value: 'a' });
    expect(await upsert(database, { value: 'b' })).toEqual({ value: 'b' });
    expect(await upsert(database, { value: 'c', updateTime: 5 })).toEqual({ value: 'c', updateTime: 5 });
    expect(await upsert(database, { value: 'd' })).toEqual({ value: 'd', updateTime: 5 });
    expect(await upsert(database, { updateSeq: 1n })).toEqual({ updateTime: 5, updateSeq: 1n });
  });

  test('a state of an earlier time or with a smaller number changes nothing', async () => {
    const database = await dialect.create();
    const first = { value: 'first', updateTime: 100, updateSeq: 7n };
    await upsert(database, first);

    expect(await upsert(database, { value: 'early', updateTime: 99 })).toEqual(first);
    expect(await upsert(database, { value: 'small', updateSeq: 6n })).toEqual(first);
    expect(await upsert(database, { value: 'later but small', updateTime: 101, updateSeq: 6n })).toEqual(first);
    expect(await upsert(database, { value: 'greater but early', updateTime: 99, updateSeq: 8n })).toEqual(first);
    expect(await upsert(database, { value: 'same', updateTime: 100, updateSeq: 7n })).toMatchObject({ value: 'same' });
    const greater = { value: 'greater', updateTime: 101, updateSeq: 8n };
    expect(await upsert(database, greater)).toEqual(greater);
  });

  test('a time is not compared with a number', async () => {
    const database = await dialect.create();

    await upsert(database, { value: 'numbered', updateSeq: 9n });

    expect(await upsert(database, { value: 'timed', updateTime: 5 })).toEqual({
      value: 'timed',
      updateTime: 5,
      updateSeq: 9n,
    });
  });

  test('numbers and times with fractions keep their digits', async () => {
    const database = await dialect.create();
    const updateSeq = 2n ** 62n + 1n;

    expect(await upsert(database, { updateTime: 1_700_000_000_000.25, updateSeq })).toEqual({
      updateTime: 1_700_000_000_000.25,
      updateSeq,
    });
    expect(await upsert(database, { value: 'more', updateSeq: updateSeq + 1n })).toMatchObject({
      value: 'more',
      updateSeq: updateSeq + 1n,
    });
  });

  test.each([2n ** 63n - 1n, 2n ** 63n, 10n ** 20n + 1n, 10n ** 38n - 2n])(
    'a number of up to 38 digits keeps them all, and its order: %s',
    async (updateSeq) => {
      const database = await dialect.create();
      const first = { value: 'first', updateSeq };

      expect(await upsert(database, first)).toEqual(first);
      expect(await upsert(database, { value: 'smaller', updateSeq: updateSeq - 1n })).toEqual(first);
      const next = { value: 'next', updateSeq: updateSeq + 1n };
      expect(await upsert(database, next)).toEqual(next);
      expect(await upsert(database, { value: 'small', updateSeq: 5n })).toEqual(next);
    },
  );
});
