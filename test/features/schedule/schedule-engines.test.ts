// Schedules where several engines share a database: changes that reach the others, clocks that differ, and backfills.
import { describe, expect, test } from 'vitest';
import type { DBOSInstance } from '../../../src/faces/library/dbos.js';
import { type Sql, sql, table } from '../../../src/kernel/sql/sql.js';
import type { Executor } from '../../../src/database/database.js';
import { forEachDialect, hasPush, onlyOn } from '../../rig/dialects.js';
import { ManualClock, until } from '../../rig/manual-clock.js';
import { HOUR, inTables, keepingLogger, MINUTE, setup, START, turns } from './schedule-scene.js';
import { engineOf } from '../../rig/engines.js';

describe('a change made by one engine', () => {
  /** Makes each kind of change in the first engine; `reach` waits until the second one knows of it. */
  async function changeAll(
    scene: Awaited<ReturnType<typeof setup>>,
    { clock, reach }: { readonly clock: ManualClock; readonly reach: (isKnown: () => boolean) => Promise<void> },
  ): Promise<void> {
    const { first, second, dues } = scene;
    const fired = async (count: number): Promise<void> => {
      await until(() => dues().length >= count);
      await turns();
    };
    const { scheduler } = engineOf(second.DBOS);
    const reload = scheduler.reload.bind(scheduler);
    let begun = 0;
    // The last reload to begin among those that have ended: one that was on its way before a change may not know of it.
    let ended = 0;
    Object.assign(scheduler, {
      reload: async (names?: readonly string[]) => {
        const reloading = ++begun;
        await reload(names);
        ended = Math.max(ended, reloading);
      },
    });
    const change = async (body: () => Promise<unknown>): Promise<void> => {
      const before = begun;
      await body();
      await reach(() => ended > before);
    };

    await change(() => first.DBOS.createSchedule({ scheduleName: 's', workflowFn: first.tick, schedule: '0 * * * *' }));
    clock.advance(HOUR - (clock.now() % HOUR));
    await fired(1);
    await change(() => first.DBOS.pauseSchedule('s'));
    clock.advance(HOUR);
    await turns();
    await change(() => first.DBOS.resumeSchedule('s'));
    clock.advance(HOUR - (clock.now() % HOUR));
    await fired(2);
    await change(() => first.DBOS.updateSchedule('s', { schedule: '30 * * * *' }));
    clock.advance(HOUR - ((clock.now() + HOUR / 2) % HOUR));
    await fired(3);
    await change(() => first.DBOS.deleteSchedule('s'));
    clock.advance(HOUR);
    await turns();

    expect(dues().map((due) => due.slice(3))).toEqual(['00:00', '00:00', '30:00']);
  }

  forEachDialect((dialect) => {
    test.skipIf(!hasPush)('is in force in the others by a push', async () => {
      const clock = new ManualClock(START);
      // The engine that makes the changes fires nothing: for it, time all but stands still.
      const standing = new ManualClock(START);
      const scene = await setup(dialect, { settings: [standing.settings, clock.settings] });
      await scene.first.DBOS.launch();
      await scene.second.DBOS.launch();

      // No time passes here but what the throttle of looking around takes.
      await changeAll(scene, {
        clock,
        reach: async (isKnown) => {
          const at = clock.now();
          await until(async () => {
            if (clock.now() < at + 1000) for (const one of [clock, standing]) one.advance(50);
            await turns(5);
            return isKnown();
          });
        },
      });
    });
  });

  onlyOn('postgres', (dialect) => {
    test('is in force in the others by the poll, where nothing is pushed', async () => {
      const clock = new ManualClock(START);
      const standing = new ManualClock(START);
      const config = { useListenNotify: false };
      const scene = await setup(dialect, { config, settings: [standing.settings, clock.settings] });
      await scene.first.DBOS.launch();
      await scene.second.DBOS.launch();

      await changeAll(scene, {
        clock,
        reach: async (isKnown) => {
          const at = clock.now();
          await until(async () => {
            // 30 s, and a quarter at most against all looking at once. Twice: the poll before may end late.
            if (clock.now() < at + 75_000) clock.advance(500);
            await turns(5);
            return isKnown();
          });
        },
      });
    });
  });
});

describe('clocks that are apart', () => {
  const STEP_MS = 1000;

  /** Calls `around` for each call of the database that the engine makes. */
  function wrapDatabase(DBOS: DBOSInstance, around: <T>(call: () => Promise<T>) => Promise<T>): void {
    const { database } = engineOf(DBOS).runtime.store;
    const read = database.read.bind(database);
    const run = database.run.bind(database);
    const commit = database.commit.bind(database);
    const transaction = database.transaction.bind(database);
    Object.assign(database, {
      read: (statement: Sql) => around(() => read(statement)),
      run: (statement: Sql) => around(() => run(statement)),
      commit: (statements: readonly Sql[]) => around(() => commit(statements)),
      transaction: <T>(body: (tx: Executor) => Promise<T>) => around(() => transaction(body)),
    });
  }

  /** Tells whether the engine waits for the database. */
  function watchDatabase(DBOS: DBOSInstance): () => boolean {
    let calls = 0;
    wrapDatabase(DBOS, async (call) => {
      calls += 1;
      return call().finally(() => (calls -= 1));
    });
    return () => calls > 0;
  }

  forEachDialect((dialect) => {
    test('change nothing, and neither does one that is put forward and runs fast', async () => {
      const database = new ManualClock(START);
      const databaseNow = () => database.now();
      const ahead = new ManualClock(START + 30_000);
      const behind = new ManualClock(START - 30_000);
      const scene = await setup(dialect, {
        settings: [
          { clock: ahead, databaseNow },
          { clock: behind, databaseNow },
        ],
      });
      const { first, second, dues } = scene;
      await first.DBOS.launch();
      await second.DBOS.launch();
      const isWaiting = [first, second].map(({ DBOS }) => watchDatabase(DBOS));
      // No time passes while the database works: how long it takes says nothing about the schedules.
      const rest = async (): Promise<void> => {
        let quiet = 0;
        await until(() => (quiet = isWaiting.some((is) => is()) ? 0 : quiet + 1) > 10);
      };
      const pass = async (ms: number): Promise<void> => {
        for (let passed = 0; passed < ms; passed += STEP_MS) {
          for (const clock of [database, ahead, behind]) clock.advance(STEP_MS);
          await rest();
        }
      };
      await first.DBOS.createSchedule({ scheduleName: 's', workflowFn: first.tick, schedule: '* * * * *' });
      await until(async () => (await second.DBOS.listSchedules()).length === 1);
      await pass(MINUTE + 5000);
      await until(() => dues().length === 1);

      // Somebody sets one of the clocks, and it runs wrong as well: by 3 s a minute.
      ahead.advance(20_000);
      await rest();
      for (let passed = 0; passed < 3 * MINUTE; passed += 20_000) {
        await pass(20_000);
        ahead.advance(1000);
        await rest();
      }
      await until(() => dues().length === 4);
      await turns();

      expect(dues()).toEqual(['12:01:00', '12:02:00', '12:03:00', '12:04:00']);
      const rows = await inTables(
        first.DBOS,
        sql`SELECT w.workflow_uuid AS id, w.created_at AS fired_at FROM ${table('workflow_status')} AS w`,
      );
      for (const row of rows) {
        const lateMs = Number(row['fired_at']) - Date.parse((row['id'] as string).slice(-24));
        expect(lateMs, 'none is fired early').toBeGreaterThanOrEqual(0);
        expect(lateMs, 'none is fired later than by the step in which time passes').toBeLessThanOrEqual(STEP_MS);
      }
    });

    test('do not make a lone engine fire early when its own is put forward', async () => {
      const database = new ManualClock(START);
      const clock = new ManualClock(START);
      const { first, dues } = await setup(dialect, { settings: [{ clock, databaseNow: () => database.now() }] });
      await first.DBOS.launch();
      await first.DBOS.createSchedule({ scheduleName: 's', workflowFn: first.tick, schedule: '* * * * *' });

      clock.advance(61_000);
      await turns(200);
      expect(dues(), 'the database says that it is 12:00:00').toEqual([]);
      for (let passed = 0; passed < 60; passed += 1) {
        for (const one of [database, clock]) one.advance(1000);
        await turns(4);
      }
      await until(() => dues().length === 1);

      expect(dues()).toEqual(['12:01:00']);
    });

    test.each(['stored', 'in the code'])(
      'do not make one fire early that is put forward while the database is asked for the time (schedule: %s)',
      async (kind) => {
        const database = new ManualClock(START);
        const clock = new ManualClock(START);
        const { first, dues } = await setup(dialect, { settings: [{ clock, databaseNow: () => database.now() }] });
        const { DBOS, tick } = first;
        if (kind === 'in the code') DBOS.registerScheduled(tick, { crontab: '* * * * *' });
        await DBOS.launch();
        if (kind === 'stored') {
          await DBOS.createSchedule({ scheduleName: 's', workflowFn: tick, schedule: '* * * * *' });
        }
        let leaps = 0;
        wrapDatabase(DBOS, async (call) => {
          const answer = await call();
          if (leaps-- > 0) clock.advance(MINUTE);
          return answer;
        });

        // Wakes the engine, whose clock leaps again and again while it asks.
        leaps = 5;
        clock.advance(MINUTE);
        await turns(200);
        await until(() => leaps <= 0);
        expect(dues(), 'the database says that it is 12:00:00').toEqual([]);
        for (let passed = 0; passed < 60; passed += 1) {
          for (const one of [database, clock]) one.advance(1000);
          await turns(4);
        }
        await until(() => dues().length === 1);

        expect(dues()).toEqual(['12:01:00']);
        const [row] = await inTables(DBOS, sql`SELECT w.created_at AS fired_at FROM ${table('workflow_status')} AS w`);
        expect(Number(row?.['fired_at'])).toBeGreaterThanOrEqual(START + MINUTE);
      },
    );
  });
});

describe('making up for what was missed', () => {
  forEachDialect((dialect) => {
    test('is bounded, told in the log, and not done twice by two engines', async () => {
      const clock = new ManualClock(START);
      const { logger, lines } = keepingLogger();
      const scene = await setup(dialect, { config: { logger }, settings: [clock.settings, clock.settings] });
      const { first, second, dues } = scene;
      await first.DBOS.launch();
      await first.DBOS.applySchedules([
        { scheduleName: 'busy', workflowFn: first.tick, schedule: '* * * * * *', automaticBackfill: true },
        { scheduleName: 'calm', workflowFn: first.tick, schedule: '0 * * * *', automaticBackfill: true },
      ]);
      await inTables(
        first.DBOS,
        sql`UPDATE ${table('workflow_schedules')} SET last_fired_at = '2027-01-04T12:00:00.000Z'`,
      );
      await first.DBOS.shutdown();
      clock.advance(3 * HOUR);

      await Promise.all([first.DBOS.launch(), second.DBOS.launch()]);
      await until(async () => (await first.DBOS.getSchedule('busy'))?.lastFiredAt === '2027-01-04T15:00:00.000Z');
      await until(() => dues().length >= 1003);
      await turns();

      const rows = await inTables(
        first.DBOS,
        sql`SELECT w.workflow_uuid AS id FROM ${table('workflow_status')} AS w WHERE w.schedule_name = 'busy'`,
      );
      const times = rows.map((row) => Date.parse((row['id'] as string).slice(-24)));
      expect(times).toHaveLength(1000);
      expect(Math.min(...times)).toBe(START + 3 * HOUR - 999_000);
      expect(dues()).toHaveLength(1003);
      expect(lines).toContain('warn Schedule "busy" has missed too many runs. Backfilling only the last 1000.');
      expect(lines).toContain('info Schedule "calm" has missed 3 runs. Backfilling them.');
      expect(lines.filter((line) => line.startsWith('info Backfilling missed runs of schedules:'))).toContain(
        'info Backfilling missed runs of schedules: 100 of 1000 done.',
      );
    });

    test('goes on after a pause only if it is wanted', async () => {
      const clock = new ManualClock(START);
      const { first, dues } = await setup(dialect, { settings: [clock.settings] });
      const { DBOS, tick } = first;
      await DBOS.launch();
      await DBOS.createSchedule({ scheduleName: 's', workflowFn: tick, schedule: '* * * * *' });
      clock.advance(MINUTE);
      await until(() => dues().length === 1);
      await DBOS.pauseSchedule('s');
      clock.advance(5 * MINUTE);
      await turns();

      await DBOS.resumeSchedule('s');
      clock.advance(MINUTE);
      await until(() => dues().length === 2);

      expect(dues()).toEqual(['12:01:00', '12:07:00']);
    });
  });
});
