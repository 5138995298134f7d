import { expect, test } from 'vitest';
import type { Database } from '../../src/store/database.js';
import {
  type EventDispatchState,
  findEventDispatchState,
  toEventDispatchState,
  upsertEventDispatchState,
} from '../../src/store/event-dispatch.js';
import { forEachDialect } from '../rig/dialects.js';

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
  test('a state with neither time nor number is always replaced', async () => {
    const database = await dialect.create();
    expect(await findEventDispatchState(database, KEY)).toBeUndefined();

    expect(await upsert(database, { value: 'a' })).toEqual({ value: 'a' });
    expect(await upsert(database, { value: 'b' })).toEqual({ value: 'b' });
    expect(await upsert(database, { value: 'c', updateTime: 5 })).toEqual({ value: 'c', updateTime: 5 });
    expect(await upsert(database, { value: 'd' })).toEqual({ value: 'c', updateTime: 5 });
  });

  test('only a later time or a greater number replaces the value, and the greater of each is kept', async () => {
    const database = await dialect.create();

    await upsert(database, { value: 'first', updateTime: 100, updateSeq: 7n });
    const same = await upsert(database, { value: 'same', updateTime: 100, updateSeq: 7n });
    const earlier = await upsert(database, { value: 'earlier', updateTime: 99, updateSeq: 6n });
    const later = await upsert(database, { value: 'later', updateTime: 101, updateSeq: 5n });
    const greater = await upsert(database, { value: 'greater', updateTime: 1, updateSeq: 8n });

    for (const kept of [same, earlier]) expect(kept).toEqual({ value: 'first', updateTime: 100, updateSeq: 7n });
    expect(later).toEqual({ value: 'later', updateTime: 101, updateSeq: 7n });
    expect(greater).toEqual({ value: 'greater', updateTime: 101, updateSeq: 8n });
  });

  test('a time does not replace what has only a number', async () => {
    const database = await dialect.create();

    await upsert(database, { value: 'numbered', updateSeq: 1n });

    expect(await upsert(database, { value: 'timed', updateTime: 5 })).toEqual({
      value: 'numbered',
      updateTime: 5,
      updateSeq: 1n,
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
});
