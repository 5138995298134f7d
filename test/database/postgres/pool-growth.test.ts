// How many connections a pool opens, and when.
import { describe, expect, test } from 'vitest';
import { deferred } from '../../../src/kernel/base/deferred.js';
import { sql } from '../../../src/kernel/sql/sql.js';
import { onlyOn } from '../../rig/dialects.js';
import { until } from '../../rig/manual-clock.js';

/** Too long to play a part. */
const HOUR = 3_600_000;
const now = sql`SELECT 1 AS one`;

describe('a pool', () => {
  onlyOn('postgres', (dialect) => {
    async function setup(growthPauseMs: number) {
      const database = await dialect.open(await dialect.createURL(), { growthPauseMs });
      await database.read(now);
      /** Holds a connection until it is told to return it. */
      const hold = async () => {
        const held = deferred<void>();
        const released = deferred<void>();
        const done = database.exclusive(async () => {
          held.resolve();
          await released.promise;
        });
        await held.promise;
        return async () => {
          released.resolve();
          await done;
        };
      };
      const openCount = (): number | undefined => database.connectionUse?.()?.open;
      return { database, hold, openCount };
    }

    test('sends statements one after the other rather than open connections for them', async () => {
      const { database, openCount } = await setup(HOUR);

      await Promise.all(Array.from({ length: 30 }, () => database.read(now)));

      expect(openCount()).toBe(1);
    });

    test('opens another connection if those that it has stay in use', async () => {
      const { database, hold, openCount } = await setup(1);
      const releases = [await hold(), await hold()];

      await Promise.all([database.read(now), database.read(now)]);

      expect(openCount()).toBeGreaterThan(2);
      for (const release of releases) await release();
    });

    test('has callers wait in turn when it is full', async () => {
      const database = await dialect.open(await dialect.createURL(), { poolSize: 2, growthPauseMs: 1 });
      const held = deferred<void>();
      const holding = [1, 2].map(() => database.exclusive(() => held.promise));
      await until(() => database.connectionUse?.()?.open === 2);
      const reads = Array.from({ length: 5 }, () => database.read(now));

      held.resolve();

      expect((await Promise.all(reads)).flat()).toHaveLength(5);
      await Promise.all(holding);
    });

    test('replaces a connection that broke while others wait for it', async () => {
      const { database, openCount } = await setup(HOUR);
      const broken = database.run(sql`SELECT pg_terminate_backend(pg_backend_pid())`);
      const waiting = database.read(now);

      await expect(broken).rejects.toThrow();

      expect(await waiting).toEqual([{ one: 1 }]);
      expect(openCount()).toBe(1);
    });
  });
});
