import { describe, expect, test } from 'vitest';
import type { DBOSConfig } from '../../../src/run/config/config.js';
import type { DBOSInstance } from '../../../src/faces/library/dbos.js';
import { SchedulerMode } from '../../../src/faces/library/schedules.js';
import { forEachDialect, type TestDialect } from '../../rig/dialects.js';
import { createEngine } from '../../rig/engines.js';
import { ManualClock, until } from '../../rig/manual-clock.js';
import { failureOf } from '../../run/succession.js';

const MINUTE = 60_000;
/** A full minute. */
const START = Date.UTC(2027, 0, 4, 12, 0, 0);

interface Runs {
  readonly times: string[];
  readonly contexts: unknown[];
}

/** Registers a workflow for schedules that notes with what it was run. */
function registerTick(DBOS: DBOSInstance, runs: Runs = { times: [], contexts: [] }) {
  const tick = DBOS.registerWorkflow(
    async (at: Date, context: unknown) => {
      runs.times.push(at.toISOString().slice(11, 19));
      runs.contexts.push(context);
    },
    { name: 'tick' },
  );
  return { tick, runs };
}

async function setup(dialect: TestDialect, config: Partial<DBOSConfig> = {}, clock = new ManualClock(START)) {
  const { DBOS, url } = await createEngine(dialect, { applicationVersion: 'v1', ...config }, clock.settings);
  return { DBOS, url, clock, ...registerTick(DBOS) };
}

/** Moves the clock in steps, so that everything that comes due is dealt with at its time. */
async function pass(clock: ManualClock, durationMs: number, stepMs: number, isDone: () => boolean): Promise<void> {
  for (let passed = 0; passed < durationMs; passed += stepMs) {
    clock.advance(stepMs);
    await new Promise((resolve) => setImmediate(resolve));
  }
  await until(isDone);
}

describe('a schedule', () => {
  forEachDialect((dialect) => {
    test('runs its workflow when it is due, with the time and its context', async () => {
      const { DBOS, clock, tick, runs } = await setup(dialect);
      await DBOS.launch();
      await DBOS.createSchedule({
        scheduleName: 'each-minute',
        workflowFn: tick,
        schedule: '* * * * *',
        context: { shop: 1, since: new Date(0) },
      });

      clock.advance(MINUTE);
      await until(() => runs.times.length === 1);
      clock.advance(MINUTE);
      await until(() => runs.times.length === 2);

      expect(runs.times).toEqual(['12:01:00', '12:02:00']);
      expect(runs.contexts[0]).toEqual({ shop: 1, since: new Date(0) });
      const handle = DBOS.retrieveWorkflow('sched-each-minute-2027-01-04T12:01:00.000Z');
      await handle.getResult();
      const status = await handle.getStatus();
      expect(status).toMatchObject({ status: 'SUCCESS', scheduleName: 'each-minute', workflowName: 'tick' });
      expect((await DBOS.getSchedule('each-minute'))?.lastFiredAt).toBe('2027-01-04T12:02:00.000Z');
    });

    test('is fired once by several processes, whatever their clocks say', async () => {
      const clock = new ManualClock(START);
      const ahead = new ManualClock(START + 30_000);
      const { DBOS, url, tick, runs } = await setup(dialect, {}, clock);
      const config = { applicationVersion: 'v1', systemDatabaseUrl: url };
      const { DBOS: other } = await createEngine(dialect, config, { clock: ahead, databaseNow: () => clock.now() });
      registerTick(other, runs);
      await DBOS.launch();
      await DBOS.createSchedule({ scheduleName: 's', workflowFn: tick, schedule: '* * * * *' });
      await other.launch();

      for (const minute of [1, 2]) {
        // The one that is ahead would fire half a minute early by its own clock.
        for (const one of [clock, ahead]) one.advance(MINUTE / 2);
        await DBOS.getSchedule('s');
        expect(runs.times.length).toBe(minute - 1);
        for (const one of [clock, ahead]) one.advance(MINUTE / 2);
        await until(() => runs.times.length === minute);
        // The next leap ends leases: a run whose outcome is not recorded by then would be recovered.
        await until(async () => (await DBOS.listWorkflows({ status: 'SUCCESS' })).length === minute);
      }

      expect(runs.times).toEqual(['12:01:00', '12:02:00']);
    });

    test('can be changed, paused, resumed and deleted', async () => {
      const { DBOS, clock, tick, runs } = await setup(dialect);
      await DBOS.launch();
      await DBOS.createSchedule({ scheduleName: 's', workflowFn: tick, schedule: '* * * * *', context: 'a' });
      await DBOS.pauseSchedule('s');
      clock.advance(MINUTE);
      expect((await DBOS.getSchedule('s'))?.status).toBe('PAUSED');

      await DBOS.resumeSchedule('s');
      await DBOS.updateSchedule('s', { schedule: '*/5 * * * *', context: 'b' });
      clock.advance(4 * MINUTE);
      await until(() => runs.times.length === 1);
      await DBOS.deleteSchedule('s');
      clock.advance(5 * MINUTE);

      expect(runs).toEqual({ times: ['12:05:00'], contexts: ['b'] });
      expect(await DBOS.listSchedules()).toEqual([]);
      expect((await failureOf(DBOS.updateSchedule('s', {}))).message).toContain('Schedule "s" not found');
    });

    test('makes up for what was missed, if wanted', async () => {
      const { DBOS, clock, tick, runs } = await setup(dialect);
      await DBOS.launch();
      await DBOS.applySchedules([
        { scheduleName: 'kept', workflowFn: tick, schedule: '* * * * *', automaticBackfill: true, context: 'kept' },
        { scheduleName: 'lost', workflowFn: tick, schedule: '* * * * *', context: 'lost' },
      ]);
      clock.advance(MINUTE);
      await until(() => runs.times.length === 2);
      await DBOS.shutdown();
      clock.advance(3 * MINUTE);

      await DBOS.launch();
      await until(() => runs.times.length === 5);

      expect(runs.contexts.slice(2)).toEqual(['kept', 'kept', 'kept']);
      expect(runs.times.slice(2).sort()).toEqual(['12:02:00', '12:03:00', '12:04:00']);
    });

    test('can leave out a run while the one before is active, or cancel that one', async () => {
      const { DBOS, clock, runs } = await setup(dialect);
      const started: string[] = [];
      const slow = DBOS.registerWorkflow(
        async (at: Date, kind: string) => {
          started.push(`${kind} ${at.toISOString().slice(14, 16)}`);
          await DBOS.sleep(90_000);
        },
        { name: 'slow' },
      );
      await DBOS.launch();
      await DBOS.applySchedules([
        { scheduleName: 'skip', workflowFn: slow, schedule: '* * * * *', overlap: 'skip', context: 'skip' },
        {
          scheduleName: 'cancel',
          workflowFn: slow,
          schedule: '* * * * *',
          overlap: 'cancelPrevious',
          context: 'cancel',
        },
      ]);

      clock.advance(MINUTE);
      await until(() => started.length === 2);
      clock.advance(MINUTE);
      await until(() => started.length === 3);
      const first = DBOS.retrieveWorkflow('sched-skip-2027-01-04T12:01:00.000Z');
      clock.advance(MINUTE / 2);
      await first.getResult();
      clock.advance(MINUTE / 2);
      await until(() => started.length === 5);

      expect([...started].sort()).toEqual(['cancel 01', 'cancel 02', 'cancel 03', 'skip 01', 'skip 03']);
      expect(await DBOS.getWorkflowStatus('sched-cancel-2027-01-04T12:01:00.000Z')).toMatchObject({
        status: 'CANCELLED',
      });
      expect(runs.times).toEqual([]);
    });

    test('is fired later than due by its jitter, and the same in every process', async () => {
      const { DBOS, clock, tick, runs } = await setup(dialect);
      await DBOS.launch();
      await DBOS.createSchedule({
        scheduleName: 's',
        workflowFn: tick,
        schedule: '* * * * *',
        options: { jitterMs: 20_000 },
      });

      clock.advance(MINUTE);
      expect(runs.times).toEqual([]);
      await pass(clock, 20_000, 1000, () => runs.times.length === 1);

      expect(runs.times).toEqual(['12:01:00']);
    });

    test('can be triggered and backfilled by hand', async () => {
      const { DBOS, tick, runs } = await setup(dialect);
      await DBOS.launch();
      await DBOS.createSchedule({ scheduleName: 's', workflowFn: tick, schedule: '0 * * * *' });

      const handle = await DBOS.triggerSchedule('s');
      await handle.getResult();
      const handles = await DBOS.backfillSchedule('s', new Date(START - 3 * 60 * MINUTE), new Date(START));
      await Promise.all(handles.map((one) => one.getResult()));

      expect(handle.workflowID).toBe('sched-s-trigger-2027-01-04T12:00:00.000Z');
      expect(handles.map(({ workflowID }) => workflowID.slice(-24, -8))).toEqual([
        '2027-01-04T10:00',
        '2027-01-04T11:00',
      ]);
      expect(runs.times.length).toBe(3);
      expect((await failureOf(DBOS.triggerSchedule('x'))).message).toContain('Schedule "x" not found');
    });

    test('that is triggered several times in one millisecond runs as often', async () => {
      const { DBOS, tick, runs } = await setup(dialect);
      await DBOS.launch();
      await DBOS.createSchedule({ scheduleName: 's', workflowFn: tick, schedule: '0 * * * *' });

      const handles = await Promise.all([1, 2, 3].map(() => DBOS.triggerSchedule('s')));
      await Promise.all(handles.map((one) => one.getResult()));

      expect(handles.map(({ workflowID }) => workflowID).sort()).toEqual(
        [0, 1, 2].map((ms) => `sched-s-trigger-2027-01-04T12:00:00.00${ms}Z`),
      );
      expect(runs.times.length).toBe(3);
    });

    test('that is created in a workflow is created once', async () => {
      const { DBOS, tick } = await setup(dialect);
      const setUp = DBOS.registerWorkflow(
        async () => {
          await DBOS.createSchedule({ scheduleName: 's', workflowFn: tick, schedule: '0 0 * * *' });
          await DBOS.pauseSchedule('s');
          return (await DBOS.getSchedule('s'))?.status;
        },
        { name: 'setUp' },
      );
      await DBOS.launch();

      const handle = await DBOS.startWorkflow(setUp)();

      expect(await handle.getResult()).toBe('PAUSED');
      expect((await DBOS.listWorkflowSteps(handle.workflowID))!.map(({ name }) => name)).toEqual([
        'DBOS.createSchedule',
        'DBOS.pauseSchedule',
        'DBOS.getSchedule',
      ]);
    });

    test('tells its next runs', async () => {
      const { DBOS, tick } = await setup(dialect);
      await DBOS.launch();
      await DBOS.createSchedule({
        scheduleName: 's',
        workflowFn: tick,
        schedule: '0 9 * * *',
        options: { cronTimezone: 'Europe/Berlin' },
      });

      expect(await DBOS.nextRuns('s', 2)).toEqual([new Date('2027-01-05T08:00:00Z'), new Date('2027-01-06T08:00:00Z')]);
      expect(await DBOS.nextRuns({ schedule: '0 9 * * *' }, 1)).toEqual([new Date('2027-01-05T09:00:00Z')]);
    });
  });
});

describe('a schedule in the code', () => {
  forEachDialect((dialect) => {
    test('makes up for what was missed, or not, as its mode says', async () => {
      const clock = new ManualClock(START);
      const { DBOS } = await createEngine(dialect, { applicationVersion: 'v1' }, clock.settings);
      const runs: string[] = [];
      const register = (name: string, mode: SchedulerMode) => {
        const workflow = DBOS.registerWorkflow(
          async (due: Date, started: Date) => {
            runs.push(`${name} ${due.toISOString().slice(14, 16)} ${started.toISOString().slice(14, 16)}`);
          },
          { name },
        );
        DBOS.registerScheduled(workflow, { crontab: '* * * * *', mode });
      };
      register('always', SchedulerMode.ExactlyOncePerInterval);
      register('active', SchedulerMode.ExactlyOncePerIntervalWhenActive);
      await DBOS.launch();
      clock.advance(MINUTE);
      await until(() => runs.length === 2);
      await DBOS.shutdown();
      clock.advance(2 * MINUTE);
      await DBOS.launch();
      await until(() => runs.length === 4);

      expect([...runs].sort()).toEqual(['active 01 01', 'always 01 01', 'always 02 03', 'always 03 03']);
    });
  });
});

describe('application versions', () => {
  forEachDialect((dialect) => {
    test('are listed, and one of them is the latest', async () => {
      const { DBOS, url } = await setup(dialect);
      const { DBOS: next } = await createEngine(dialect, { applicationVersion: 'v2', systemDatabaseUrl: url });
      await DBOS.launch();
      await next.launch();

      expect((await DBOS.listApplicationVersions()).map(({ versionName }) => versionName).sort()).toEqual(['v1', 'v2']);
      await DBOS.setLatestApplicationVersion('v1');
      expect((await next.getLatestApplicationVersion()).versionName).toBe('v1');
      await DBOS.setLatestApplicationVersion('v2');
      expect((await next.getLatestApplicationVersion()).versionName).toBe('v2');
      expect((await failureOf(DBOS.setLatestApplicationVersion('v9'))).message).toContain('v9');
    });

    test('of another application cannot be used', async () => {
      const { DBOS, url } = await setup(dialect);
      const { DBOS: other } = await createEngine(dialect, {
        name: 'other',
        applicationVersion: 'v1',
        systemDatabaseUrl: url,
      });
      await DBOS.launch();

      expect((await failureOf(other.launch())).message).toContain('belongs to application "test"');
    });
  });
});
