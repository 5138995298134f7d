// Firing schedules: by two engines, with overlap, versions and jitter, and at rest.
import { describe, expect, test } from 'vitest';
import type { DBOSInstance } from '../../../src/faces/library/dbos.js';
import { jitterOf } from '../../../src/features/schedule/schedule.js';
import { render, type Sql, sql, table } from '../../../src/kernel/sql/sql.js';
import { forEachDialect } from '../../rig/dialects.js';
import { createEngine, engineOf } from '../../rig/engines.js';
import { ManualClock, until } from '../../rig/manual-clock.js';
import {
  inTables,
  keepingLogger,
  MINUTE,
  register,
  type Runs,
  setup,
  START,
  turns,
  untilIn,
} from './schedule-scene.js';
import { newHalt } from '../../run/succession.js';

describe('two engines', () => {
  forEachDialect((dialect) => {
    test('fire and note nothing of a schedule that somebody has paused without telling', async () => {
      const clock = new ManualClock(START);
      const { first, dues } = await setup(dialect, { settings: [clock.settings] });
      const { DBOS, tick } = first;
      await DBOS.launch();
      await DBOS.applySchedules(
        ['paused', 'other'].map((scheduleName) => ({ scheduleName, workflowFn: tick, schedule: '* * * * *' })),
      );
      await inTables(
        DBOS,
        sql`UPDATE ${table('workflow_schedules')} SET status = 'PAUSED' WHERE schedule_name = 'paused'`,
      );

      clock.advance(MINUTE);
      await until(() => dues().length === 1);

      const listed = (await DBOS.listSchedules()).map(({ scheduleName, lastFiredAt }) => [scheduleName, lastFiredAt]);
      expect(listed).toEqual([
        ['other', '2027-01-04T12:01:00.000Z'],
        ['paused', null],
      ]);
    });

    test('fire all others when the context of one cannot be read', async () => {
      const clock = new ManualClock(START);
      const { logger, lines } = keepingLogger();
      const { first, dues } = await setup(dialect, { config: { logger }, settings: [clock.settings] });
      const { DBOS, tick } = first;
      await DBOS.launch();
      await DBOS.applySchedules(
        ['broken', 'sound'].map((scheduleName) => ({ scheduleName, workflowFn: tick, schedule: '* * * * *' })),
      );
      await inTables(
        DBOS,
        sql`UPDATE ${table('workflow_schedules')} SET context = 'gASVBQ==' WHERE schedule_name = 'broken'`,
      );
      await engineOf(DBOS).scheduler.reload();

      for (const minute of [1, 2]) {
        clock.advance(MINUTE);
        await until(() => dues().length === minute);
      }

      expect(dues()).toEqual(['12:01:00', '12:02:00']);
      expect(lines.join('\n')).toContain('warn Skipping schedule "broken": its context cannot be decoded');
    });

    test('agree on overlap', async () => {
      const clock = new ManualClock(START);
      const url = await dialect.createURL();
      const started: string[] = [];
      const halts = new Map<string, ReturnType<typeof newHalt>>();
      const launch = async () => {
        // The clock leaps over a minute: no engine shall be taken for dead meanwhile.
        const config = { applicationVersion: 'v1', systemDatabaseUrl: url, leaseSeconds: 86_400 };
        const { DBOS } = await createEngine(dialect, config, clock.settings);
        const slow = DBOS.registerWorkflow(
          async (at: Date, kind: string) => {
            const run = `${kind} ${at.toISOString().slice(14, 16)}`;
            const halt = newHalt();
            halts.set(run, halt);
            started.push(run);
            await halt.here();
          },
          { name: 'slow' },
        );
        await DBOS.launch();
        return { DBOS, slow };
      };
      const [first, second] = [await launch(), await launch()];
      await first.DBOS.applySchedules(
        (['allow', 'skip', 'cancelPrevious'] as const).map((overlap) => ({
          scheduleName: overlap,
          workflowFn: first.slow,
          schedule: '* * * * *',
          overlap,
          context: overlap,
        })),
      );
      await engineOf(second.DBOS).scheduler.reload();
      const statusOf = async (id: string) => (await first.DBOS.getWorkflowStatus(id))?.status;

      clock.advance(MINUTE);
      await untilIn(clock, () => started.length === 3);
      clock.advance(MINUTE);
      await untilIn(clock, () => started.length === 5);
      await turns(200);
      halts.get('skip 01')?.release();
      await until(async () => (await statusOf('sched-skip-2027-01-04T12:01:00.000Z')) === 'SUCCESS');
      clock.advance(MINUTE);
      await untilIn(clock, () => started.length === 8);
      await turns(200);
      halts.forEach((halt) => halt.release());

      expect([...started].sort()).toEqual([
        'allow 01',
        'allow 02',
        'allow 03',
        'cancelPrevious 01',
        'cancelPrevious 02',
        'cancelPrevious 03',
        'skip 01',
        'skip 03',
      ]);
      expect(await statusOf('sched-cancelPrevious-2027-01-04T12:01:00.000Z')).toBe('CANCELLED');
      expect(await statusOf('sched-cancelPrevious-2027-01-04T12:02:00.000Z')).toBe('CANCELLED');
    });

    test('do not fire late what one of them has left out', async () => {
      const [clock, lagging] = [new ManualClock(START), new ManualClock(START)];
      const url = await dialect.createURL();
      const started: string[] = [];
      const halt = newHalt();
      const launch = async (own: ManualClock) => {
        // The clock leaps over a minute: no engine shall be taken for dead meanwhile.
        const config = { applicationVersion: 'v1', systemDatabaseUrl: url, leaseSeconds: 86_400 };
        const { DBOS } = await createEngine(dialect, config, own.settings);
        const slow = DBOS.registerWorkflow(
          async (at: Date) => {
            started.push(at.toISOString().slice(11, 16));
            if (started.length === 1) await halt.here();
          },
          { name: 'slow' },
        );
        await DBOS.launch();
        return { DBOS, slow };
      };
      const { DBOS, slow } = await launch(clock);
      await DBOS.createSchedule({
        scheduleName: 's',
        workflowFn: slow,
        schedule: '* * * * *',
        options: { overlap: 'skip' },
      });
      const late = await launch(lagging);
      clock.advance(MINUTE);
      await untilIn(clock, () => started.length === 1);
      clock.advance(MINUTE);
      await until(async () => (await DBOS.getSchedule('s'))?.lastFiredAt === '2027-01-04T12:02:00.000Z');
      halt.release();
      await until(async () => (await DBOS.getWorkflowStatus('sched-s-2027-01-04T12:01:00.000Z'))?.status === 'SUCCESS');

      lagging.advance(2 * MINUTE);
      await turns(200);
      await engineOf(late.DBOS).scheduler.stop();
      for (const one of [clock, lagging]) one.advance(MINUTE);
      await untilIn(clock, () => started.length >= 2);

      expect(started).toEqual(['12:01', '12:03']);
    });

    test('of two versions: what is fired has no version and runs in the latest one only', async () => {
      const clock = new ManualClock(START);
      const url = await dialect.createURL();
      const runs: Runs = [];
      const launch = async (applicationVersion: string) => {
        const { DBOS } = await createEngine(dialect, { applicationVersion, systemDatabaseUrl: url }, clock.settings);
        const tick = register(DBOS, applicationVersion, runs);
        await DBOS.launch();
        return { DBOS, tick };
      };
      const old = await launch('v1');
      await old.DBOS.createSchedule({ scheduleName: 's', workflowFn: old.tick, schedule: '* * * * *' });
      clock.advance(MINUTE);
      await until(() => runs.length === 1);
      clock.advance(1);
      const { DBOS: latest } = await launch('v2');
      clock.advance(MINUTE);
      await untilIn(clock, () => runs.length === 2);
      clock.advance(1);
      await latest.shutdown();
      clock.advance(MINUTE);
      await until(async () => (await old.DBOS.getSchedule('s'))?.lastFiredAt === '2027-01-04T12:03:00.000Z');
      await turns(200);

      expect(runs).toEqual(['v1 12:01:00', 'v2 12:02:00']);
      const waiting = await old.DBOS.getWorkflowStatus('sched-s-2027-01-04T12:03:00.000Z');
      expect(waiting).toMatchObject({ status: 'ENQUEUED', queueName: '_dbos_internal_queue' });
      expect(waiting?.applicationVersion).toBeUndefined();
    });
  });
});

describe('jitter', () => {
  forEachDialect((dialect) => {
    test('that is longer than the interval loses no run', async () => {
      const clock = new ManualClock(START);
      const { first, dues } = await setup(dialect, { settings: [clock.settings] });
      await first.DBOS.launch();
      const options = { jitterMs: 10_000 };
      await first.DBOS.createSchedule({ scheduleName: 's', workflowFn: first.tick, schedule: '* * * * * *', options });

      for (let passed = 0; passed < 40; passed += 1) {
        clock.advance(1000);
        await turns(10);
      }
      await until(() => dues().length >= 30);
      await turns();

      const expected = dues().map((_, index) => new Date(START + (index + 1) * 1000).toISOString().slice(11, 19));
      expect(dues()).toEqual(expected);
      expect(jitterOf('s', START, 10_000)).toBe(jitterOf('s', START, 10_000));
    });
  });
});

describe('10,000 schedules', () => {
  forEachDialect((dialect) => {
    test('that are not due cost at most 20 statements a minute', async () => {
      const clock = new ManualClock(START);
      const { first } = await setup(dialect, { settings: [clock.settings] });
      const { DBOS } = first;
      await DBOS.launch();
      await addMany(DBOS, 10_000);
      await DBOS.shutdown();
      await DBOS.launch();
      const statements = countScheduleStatements(DBOS);
      const pass = async (ms: number) => {
        for (let passed = 0; passed < ms; passed += 500) {
          clock.advance(500);
          await turns(3);
          await until(() => statements.underWay() === 0);
        }
      };
      await pass(MINUTE);
      const before = statements.count();

      await pass(10 * MINUTE);

      expect(statements.count() - before).toBeGreaterThan(0);
      expect((statements.count() - before) / 10).toBeLessThanOrEqual(20);
    });
  });
});

/** Adds schedules that are due at noon of some day of the year to come. */
async function addMany(DBOS: DBOSInstance, count: number): Promise<void> {
  const { database } = engineOf(DBOS).runtime.store;
  const context = '{"json":null,"__dbos_serializer":"superjson"}';
  const statements = Array.from(
    { length: count },
    (_, n) => sql`
      INSERT INTO ${table('workflow_schedules')} (schedule_id, schedule_name, workflow_name, schedule, status, context)
      VALUES (${`id-${n}`}, ${`s-${n}`}, 'tick', ${`0 0 ${1 + (n % 28)} ${2 + (n % 11)} *`}, 'ACTIVE', ${context})`,
  );
  for (let first = 0; first < count; first += 500) await database.commit(statements.slice(first, first + 500));
}

/** Counts what is sent to the database that has to do with schedules, or asks for the time alone. */
function countScheduleStatements(DBOS: DBOSInstance) {
  const { database } = engineOf(DBOS).runtime.store;
  let [count, underWay] = [0, 0];
  const read = database.read.bind(database);
  const run = database.run.bind(database);
  const commit = database.commit.bind(database);
  const counted = async <R>(size: number, answer: Promise<R>): Promise<R> => {
    count += size;
    underWay += 1;
    return answer.finally(() => (underWay -= 1));
  };
  const isOfScheduler = (statement: Sql): boolean => {
    const text = render(statement, database.dialect).text.trim();
    return /schedules/.test(text) || /^SELECT[^]{0,80} AS now$/.test(text);
  };
  Object.assign(database, {
    read: (statement: Sql) => counted(isOfScheduler(statement) ? 1 : 0, read(statement)),
    run: (statement: Sql) => counted(isOfScheduler(statement) ? 1 : 0, run(statement)),
    commit: (statements: readonly Sql[]) => counted(statements.filter(isOfScheduler).length, commit(statements)),
  });
  return { count: () => count, underWay: () => underWay };
}
