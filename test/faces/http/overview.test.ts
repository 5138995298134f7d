import { describe, expect, onTestFinished, test } from 'vitest';
import { createAdmin } from '../../../src/faces/http/admin.js';
import { Cached } from '../../../src/faces/http/dashboard/cached.js';
import { internals } from '../../../src/kernel/base/internals.js';
import { DBOSClient } from '../../../src/faces/client/client.js';
import { percentileOf } from '../../../src/features/listing/overview.js';
import { sql, table } from '../../../src/kernel/sql/sql.js';
import { forEachDialect } from '../../rig/dialects.js';
import { ManualClock } from '../../rig/manual-clock.js';
import { callerOf, setup, TOKEN } from './scene.js';

interface Bucket {
  readonly at: number;
  readonly created: number;
  readonly succeeded: number;
  readonly failed: number;
  readonly waiting: number;
  readonly p50Ms: number | null;
}

const sumOf = (buckets: readonly Bucket[], field: 'created' | 'succeeded' | 'failed'): number =>
  buckets.reduce((sum, bucket) => sum + bucket[field], 0);

forEachDialect((dialect) => {
  describe('the overview', () => {
    test.each(['1h', '24h'])('of %s counts what was created and how it ended', async (window) => {
      const { call, run, enqueue, DBOS } = await setup(dialect);
      await run('add', { args: [1, 2] });
      await run('add', { args: [3, 4] });
      await run('fail');
      await DBOS.pauseQueue('q');
      await enqueue('add', { args: [5, 6] });

      const { status, body } = await call('GET', `/api/v1/overview?window=${window}`);
      const buckets = body.buckets as Bucket[];

      expect(status).toBe(200);
      expect(body).toMatchObject({ window, bucketMs: window === '1h' ? 60_000 : 900_000 });
      expect(buckets).toHaveLength(window === '1h' ? 60 : 96);
      expect(buckets.map(({ at }) => at)).toEqual(
        buckets.map((_, index) => (buckets[0]?.at ?? 0) + index * Number(body.bucketMs)),
      );
      expect([sumOf(buckets, 'created'), sumOf(buckets, 'succeeded'), sumOf(buckets, 'failed')]).toEqual([4, 2, 1]);
      expect(buckets.at(-1)?.waiting).toBe(1);
      expect(buckets[0]?.waiting).toBe(0);
      expect(buckets.some(({ p50Ms }) => p50Ms !== null)).toBe(true);
      expect(body.queues).toMatchObject([{ queueName: 'q', enqueued: 1 }]);
    });
  });

  describe('what needs attention', () => {
    test('is nothing at first', async () => {
      const { call } = await setup(dialect);

      expect((await call('GET', '/api/v1/attention')).body).toEqual({ items: [] });
    });

    test('has failures by kind, unserved and paused queues, stranded versions, silent executors and dead letters', async () => {
      const { run, enqueue, DBOS, url } = await setup(dialect);
      await run('fail');
      await run('fail');
      await DBOS.pauseQueue('q');
      await enqueue('add', { args: [1, 2] });
      await enqueue('add', { queueName: '<i>nowhere</i>', args: [1, 2] });
      await enqueue('add', { queueName: 'q', args: [1, 2], appVersion: 'gone' });
      // A live engine would clean up after the dead one.
      await DBOS.shutdown();
      const client = await DBOSClient.create({ systemDatabaseUrl: url, applicationName: 'test' });
      onTestFinished(() => client.destroy());
      const { database } = client[internals].operator;
      await database.run(sql`
        INSERT INTO ${table('executors')}
          (incarnation_id, executor_id, application_name, application_version, host, pid, started_at, heartbeat_at,
           lease_until_epoch_ms, metadata)
        VALUES ('dead', 'web-2', 'test', 'gone', 'elsewhere', 1, 1, 1, 1, NULL)`);
      await database.run(sql`
        INSERT INTO ${table('workflow_status')}
          (workflow_uuid, status, name, application_name, created_at, updated_at, completed_at, recovery_attempts)
        VALUES ('letter', 'MAX_RECOVERY_ATTEMPTS_EXCEEDED', 'add', 'test', 1000, 1000, 1000, 100)`);
      const call = callerOf(createAdmin({ source: client, token: TOKEN }).fetch);

      const { body } = await call('GET', '/api/v1/attention');
      const items = body.items as { kind: string; title: string; count: number; harm: string; link: object }[];

      const shown = items.map(({ kind, title, count }) => [kind, title, count]);
      for (const expected of [
        ['dead-letters', 'Dead letters', 1],
        ['silent-executor', 'web-2', 1],
        ['unserved-queue', '<i>nowhere</i>', 1],
        ['stranded-version', 'gone', 1],
        ['failing-function', 'fail', 2],
        ['paused-queue', 'q', 2],
      ]) {
        expect(shown).toContainEqual(expected);
      }
      const harms = items.map(({ harm }) => ['high', 'medium', 'low'].indexOf(harm));
      expect(harms).toEqual(harms.toSorted((a, b) => a - b));
      expect(items.find(({ kind }) => kind === 'failing-function')).toMatchObject({
        reason: 'Error: It failed.',
        link: { page: 'workflows', query: { workflowName: 'fail', status: 'ERROR' } },
      });
    });
  });
});

describe('readings', () => {
  test('are shared by those who ask at once, and for a while', async () => {
    const clock = new ManualClock();
    const cached = new Cached<string, number>({ minMs: 2000 });
    let readings = 0;
    const get = (): Promise<number> => cached.get('a', clock, async () => ++readings);

    expect(await Promise.all([get(), get(), get()])).toEqual([1, 1, 1]);
    clock.advance(1999);
    expect(await get()).toBe(1);
    clock.advance(1);
    expect(await get()).toBe(2);
  });

  test('that take long are kept ten times as long', async () => {
    const clock = new ManualClock();
    const cached = new Cached<string, number>({ minMs: 2000 });
    let readings = 0;
    const get = (): Promise<number> =>
      cached.get('a', clock, async () => {
        clock.advance(1000);
        return ++readings;
      });

    await get();
    clock.advance(9999);
    expect(await get()).toBe(1);
    clock.advance(1);
    expect(await get()).toBe(2);
  });

  test('that fail are not kept', async () => {
    const cached = new Cached<string, number>({ minMs: 2000 });
    const clock = new ManualClock();

    await expect(cached.get('a', clock, () => Promise.reject(new Error('down')))).rejects.toThrow('down');
    expect(await cached.get('a', clock, async () => 7)).toBe(7);
  });
});

test('percentiles are those of the classes', () => {
  expect(percentileOf(new Map(), 0.5)).toBeNull();
  expect(percentileOf(new Map([[1, 1]]), 0.95)).toBe(1);
  expect(
    percentileOf(
      new Map([
        [2, 95],
        [7, 5],
      ]),
      0.95,
    ),
  ).toBe(2);
  expect(
    percentileOf(
      new Map([
        [2, 94],
        [7, 6],
      ]),
      0.95,
    ),
  ).toBe(10);
});
