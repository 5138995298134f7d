// What may be done with schedules, what is refused, and what stands in the tables afterwards.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import ts from 'typescript';
import { describe, expect, inject, test } from 'vitest';
import type { DBOSConfig } from '../../../src/run/config/config.js';
import type { DBOSInstance } from '../../../src/faces/library/dbos.js';
import type { ScheduledWorkflowFn, SchedulerConfig } from '../../../src/faces/library/schedules.js';
import { type Sql, sql, table } from '../../../src/kernel/sql/sql.js';
import { findEventDispatchState } from '../../../src/run/rows/event-dispatch.js';
import { forEachDialect, type TestDialect } from '../../rig/dialects.js';
import { createEngine, engineOf } from '../../rig/engines.js';
import { ManualClock, until } from '../../rig/manual-clock.js';
import { createZombie, failureOf, newHalt } from '../../run/succession.js';

const MINUTE = 60_000;
const START = Date.UTC(2027, 0, 4, 12, 0, 0);

async function setup(dialect: TestDialect, config: Partial<DBOSConfig> = {}) {
  const clock = new ManualClock(START);
  const { DBOS, url } = await createEngine(dialect, { applicationVersion: 'v1', ...config }, clock.settings);
  const runs: unknown[] = [];
  const tick = DBOS.registerWorkflow(async (_: Date, context: unknown): Promise<void> => void runs.push(context), {
    name: 'tick',
  });
  const tock = DBOS.registerWorkflow(async () => {}, { name: 'tock' });
  const create = (scheduleName: string, fields: { schedule?: string; options?: object; context?: unknown } = {}) =>
    DBOS.createSchedule({ scheduleName, workflowFn: tick, schedule: '0 0 * * *', ...fields });
  return { DBOS, url, clock, runs, tick, tock, create };
}

function inTables(DBOS: DBOSInstance, statement: Sql) {
  return engineOf(DBOS).runtime.database.run(statement);
}

/** A class whose workflow is a method of its instances. */
function instanceMethodOf(DBOS: DBOSInstance): ScheduledWorkflowFn {
  class Machine {}
  const descriptor = { value: async (): Promise<void> => {}, writable: true, configurable: true };
  const decorate = DBOS.workflow() as (...args: unknown[]) => PropertyDescriptor | undefined;
  const decorated = decorate(Machine.prototype, 'brew', descriptor) ?? descriptor;
  return decorated.value as ScheduledWorkflowFn;
}

const named = (list: readonly { readonly scheduleName: string }[]) => list.map(({ scheduleName }) => scheduleName);

describe('a schedule is refused', () => {
  forEachDialect((dialect) => {
    test('if its name is taken, by this application or by another one', async () => {
      const { DBOS, url, create } = await setup(dialect);
      const other = await setup(dialect, { name: 'other', applicationVersion: 'o1', systemDatabaseUrl: url });
      await DBOS.launch();
      await other.DBOS.launch();
      await create('s');

      const { message } = await failureOf(create('s'));
      const foreign = await failureOf(other.create('s'));
      const applied = await failureOf(
        other.DBOS.applySchedules([{ scheduleName: 's', workflowFn: other.tick, schedule: '0 0 * * *' }]),
      );
      const updated = await failureOf(other.DBOS.updateSchedule('s', { schedule: '0 1 * * *' }));

      expect(message).toContain('Schedule "s" already exists');
      for (const error of [foreign, applied, updated]) {
        expect(error.message).toContain('belongs to application "test"');
        expect(error.dbosErrorCode).toBe(1);
      }
      expect((await DBOS.getSchedule('s'))?.schedule).toBe('0 0 * * *');
      expect(named(await other.DBOS.listSchedules())).toEqual([]);
    });

    test('if what it says cannot be meant', async () => {
      const { DBOS, tick, create } = await setup(dialect);
      const brew = instanceMethodOf(DBOS);
      await DBOS.launch();

      const refusals: [Promise<unknown>, string][] = [
        [create('s', { schedule: '61 * * * *' }), '61'],
        [create('s', { schedule: '* * *' }), '5 or 6 fields'],
        [create('s', { schedule: '0 0 30 2 *' }), '0 0 30 2 *'],
        [create('s', { options: { cronTimezone: 'Mars/Base' } }), "Invalid timezone: 'Mars/Base'"],
        [create('s', { options: { overlap: 'wait' } }), 'overlap must be one of allow, skip, cancelPrevious'],
        [create('s', { options: { jitterMs: -1 } }), 'jitterMs must be an integer'],
        [create(' '), 'scheduleName must not be empty.'],
        [
          DBOS.createSchedule({ scheduleName: 's', workflowFn: brew, schedule: '0 0 * * *' }),
          'Cannot schedule instance method',
        ],
        [
          DBOS.applySchedules([
            { scheduleName: 'good', workflowFn: tick, schedule: '0 0 * * *' },
            { scheduleName: 'bad', workflowFn: tick, schedule: 'x * * * *' },
          ]),
          'x',
        ],
        [DBOS.createSchedule({ scheduleName: 's', workflowFn: async () => {}, schedule: '0 0 * * *' }), 'registered'],
      ];

      for (const [refused, text] of refusals) expect((await failureOf(refused)).message).toContain(text);
      expect(await DBOS.listSchedules()).toEqual([]);
    });

    test('by name if it does not exist, except where that changes nothing', async () => {
      const { DBOS } = await setup(dialect);
      await DBOS.launch();

      await DBOS.pauseSchedule('x');
      await DBOS.resumeSchedule('x');
      await DBOS.deleteSchedule('x');
      const updated = await failureOf(DBOS.updateSchedule('x', { schedule: '* * * * *' }));
      const triggered = await failureOf(DBOS.triggerSchedule('x'));
      const filled = await failureOf(DBOS.backfillSchedule('x', new Date(0), new Date(1)));

      expect(await DBOS.getSchedule('x')).toBe(null);
      expect(updated.message).toContain('Schedule "x" not found');
      expect(triggered.message).toContain('Schedule "x" not found');
      expect(filled.message).toContain('Schedule "x" not found');
      expect((await failureOf(DBOS.nextRuns('x', 1))).message).toContain('Schedule "x" not found');
    });
  });
});

describe('schedules', () => {
  forEachDialect((dialect) => {
    test('of another application are neither seen nor changed by name', async () => {
      const { DBOS, url, create } = await setup(dialect);
      const { DBOS: other } = await setup(dialect, { name: 'other', applicationVersion: 'o1', systemDatabaseUrl: url });
      await DBOS.launch();
      await other.launch();
      await create('s');
      await create('unowned');
      await inTables(
        DBOS,
        sql`UPDATE ${table('workflow_schedules')} SET application_name = NULL WHERE schedule_name = 'unowned'`,
      );
      const [from, to] = [new Date(START), new Date(START + MINUTE)];

      const verbs = (name: string): (() => Promise<unknown>)[] => [
        () => other.pauseSchedule(name),
        () => other.resumeSchedule(name),
        () => other.triggerSchedule(name),
        () => other.backfillSchedule(name, from, to),
        () => other.nextRuns(name, 1),
        () => other.deleteSchedule(name),
      ];

      for (const verb of verbs('s')) {
        expect((await failureOf(verb())).message).toContain('belongs to application "test"');
      }
      expect(await other.getSchedule('s')).toBe(null);
      expect(await DBOS.getSchedule('s')).toMatchObject({ status: 'ACTIVE', lastFiredAt: null });
      expect(await other.getSchedule('unowned')).toMatchObject({ status: 'ACTIVE' });
      for (const verb of verbs('unowned')) await verb();
      expect(named(await DBOS.listSchedules())).toEqual(['s']);
    });

    test('are listed by status, workflow, prefix and application, in the order of their names', async () => {
      const { DBOS, url, tick, tock } = await setup(dialect);
      const other = await setup(dialect, { name: 'other', applicationVersion: 'o1', systemDatabaseUrl: url });
      await DBOS.launch();
      await other.DBOS.launch();
      const of = (scheduleName: string, workflowFn = tick) => ({ scheduleName, workflowFn, schedule: '0 0 * * *' });
      await DBOS.applySchedules([of('b%1'), of('a_1'), of('b2', tock), of('a11')]);
      await other.create('foreign');
      await DBOS.pauseSchedule('b2');

      const list = async (filters: object) => named(await DBOS.listSchedules(filters));

      expect(await list({})).toEqual(['a11', 'a_1', 'b%1', 'b2']);
      expect(await list({ status: 'PAUSED' })).toEqual(['b2']);
      expect(await list({ status: ['PAUSED', 'ACTIVE'], workflowName: 'tick' })).toEqual(['a11', 'a_1', 'b%1']);
      expect(await list({ workflowName: ['tock', 'none'] })).toEqual(['b2']);
      expect(await list({ scheduleNamePrefix: 'b' })).toEqual(['b%1', 'b2']);
      // Neither % nor _ stands for anything else.
      expect(await list({ scheduleNamePrefix: ['a_', 'b%'] })).toEqual(['a_1', 'b%1']);
      expect(await list({ applicationName: 'other' })).toEqual(['foreign']);
      expect(await list({ applicationName: ['other', 'test'], scheduleNamePrefix: 'f' })).toEqual(['foreign']);
      expect(await list({ scheduleNamePrefix: [] })).toEqual([]);
    });

    test('are applied all or none, and keep their state and their last firing', async () => {
      const { DBOS, url, clock, runs, tock, create } = await setup(dialect);
      const other = await setup(dialect, { name: 'other', applicationVersion: 'o1', systemDatabaseUrl: url });
      await DBOS.launch();
      await other.DBOS.launch();
      await create('kept', { schedule: '* * * * *', context: 1 });
      await create('left');
      await other.create('foreign');
      await inTables(
        DBOS,
        sql`UPDATE ${table('workflow_schedules')} SET application_name = NULL WHERE schedule_name = 'left'`,
      );
      clock.advance(MINUTE);
      await until(() => runs.length === 1);
      await DBOS.pauseSchedule('kept');
      const before = await DBOS.getSchedule('kept');

      const wanted = { workflowFn: tock, schedule: '0 1 * * *' };
      const names = ['kept', 'left', 'new'];
      const refused = DBOS.applySchedules([...names, 'foreign'].map((scheduleName) => ({ ...wanted, scheduleName })));
      expect((await failureOf(refused)).message).toContain('belongs to application "other"');
      expect(await DBOS.getSchedule('kept')).toEqual(before);
      expect(await DBOS.getSchedule('new')).toBe(null);

      await DBOS.applySchedules(names.map((scheduleName) => ({ ...wanted, scheduleName, overlap: 'skip' as const })));

      expect(await DBOS.getSchedule('kept')).toEqual({
        ...before,
        workflowName: 'tock',
        schedule: '0 1 * * *',
        context: undefined,
        overlap: 'skip',
      });
      expect(before).toMatchObject({ status: 'PAUSED', lastFiredAt: '2027-01-04T12:01:00.000Z' });
      expect(await DBOS.getSchedule('left')).toMatchObject({ applicationName: 'test', workflowName: 'tock' });
      await DBOS.applySchedules([{ ...wanted, scheduleName: 'new' }]);
      expect(named(await DBOS.listSchedules())).toEqual(['kept', 'left', 'new']);
    });

    test('are changed by the keys that are given, and by no others', async () => {
      const { DBOS, clock, runs, create } = await setup(dialect);
      await DBOS.launch();
      await create('s', {
        schedule: '* * * * *',
        context: { a: 1 },
        options: { cronTimezone: 'Asia/Tokyo', queueName: 'q', automaticBackfill: true, overlap: 'skip', jitterMs: 5 },
      });
      const original = await DBOS.getSchedule('s');

      await DBOS.updateSchedule('s', {});
      expect(await DBOS.getSchedule('s')).toEqual(original);
      await DBOS.updateSchedule('s', { cronTimezone: undefined, queueName: undefined, schedule: undefined });
      expect(await DBOS.getSchedule('s')).toEqual(original);
      await DBOS.updateSchedule('s', { cronTimezone: null, queueName: null });
      expect(await DBOS.getSchedule('s')).toEqual({ ...original, cronTimezone: null, queueName: null });
      await DBOS.updateSchedule('s', { context: null, automaticBackfill: false, overlap: 'allow', jitterMs: 0 });
      expect(await DBOS.getSchedule('s')).toMatchObject({ context: null, automaticBackfill: false, jitterMs: 0 });
      await DBOS.updateSchedule('s', { context: undefined });
      expect((await DBOS.getSchedule('s'))?.context).toBe(undefined);
      for (const bad of [{ schedule: 'x' }, { cronTimezone: 'Nowhere' }, { jitterMs: 0.5 }]) {
        const before = await DBOS.getSchedule('s');
        await failureOf(DBOS.updateSchedule('s', bad));
        expect(await DBOS.getSchedule('s')).toEqual(before);
      }

      clock.advance(MINUTE);
      await until(() => runs.length === 1);
      expect(runs).toEqual([undefined]);
    });

    test('can be triggered and backfilled while paused, strictly between two times, and each time once', async () => {
      const { DBOS, runs, create } = await setup(dialect);
      await DBOS.launch();
      await create('s', { schedule: '0 * * * *', context: 'c' });
      await DBOS.pauseSchedule('s');
      const at = (hour: number): Date => new Date(Date.UTC(2027, 0, 4, hour));

      const triggered = await DBOS.triggerSchedule('s');
      const handles = await DBOS.backfillSchedule('s', at(6), at(9));
      const again = await DBOS.backfillSchedule('s', at(5), at(9));
      await Promise.all([triggered, ...handles, ...again].map((handle) => handle.getResult()));

      const idOf = (hour: number): string => `sched-s-${at(hour).toISOString()}`;
      expect(handles.map(({ workflowID }) => workflowID)).toEqual([idOf(7), idOf(8)]);
      expect(again.map(({ workflowID }) => workflowID)).toEqual([idOf(6), idOf(7), idOf(8)]);
      expect(runs).toEqual(['c', 'c', 'c', 'c']);
      expect(await DBOS.backfillSchedule('s', at(9), at(6))).toEqual([]);
      expect((await DBOS.getSchedule('s'))?.lastFiredAt).toBe(null);
      const invalid = await failureOf(DBOS.backfillSchedule('s', new Date(NaN), at(1)));
      expect(invalid.message).toBe('start must be a valid Date, but is an object.');
      for (const id of [triggered.workflowID, idOf(7)]) {
        expect(await DBOS.getWorkflowStatus(id)).toMatchObject({
          scheduleName: 's',
          queueName: '_dbos_internal_queue',
        });
      }
    });

    test('put their workflows into their queue', async () => {
      const { DBOS, clock, runs, create } = await setup(dialect);
      await DBOS.launch();
      await DBOS.registerQueue('q', { globalConcurrency: 1 });
      await create('s', { schedule: '* * * * *', options: { queueName: 'q' } });
      await create('nobody', { schedule: '* * * * *', options: { queueName: 'unserved' } });

      clock.advance(MINUTE);
      await until(() => runs.length === 1);

      const statusOf = (name: string) => DBOS.getWorkflowStatus(`sched-${name}-2027-01-04T12:01:00.000Z`);
      expect(await statusOf('s')).toMatchObject({ queueName: 'q' });
      expect(await statusOf('nobody')).toMatchObject({ queueName: 'unserved', status: 'ENQUEUED' });
    });

    test('that cannot be read are logged and left out', async () => {
      const lines: string[] = [];
      const warn = (entry: unknown) => void lines.push(String(entry));
      const logger = { debug() {}, info() {}, warn, error: warn };
      const { DBOS, clock, runs, create } = await setup(dialect, { logger });
      await DBOS.launch();
      for (const name of ['cron', 'zone', 'good']) await create(name, { schedule: '* * * * *', context: name });
      const change = (name: string, set: Sql) =>
        inTables(DBOS, sql`UPDATE ${table('workflow_schedules')} SET ${set} WHERE schedule_name = ${name}`);
      await change('cron', sql`schedule = '5 4 * * mon-xyz'`);
      await change('zone', sql`cron_timezone = 'Mars/Base'`);
      await DBOS.shutdown();
      await DBOS.launch();

      clock.advance(MINUTE);
      await until(() => runs.length === 1);

      expect(runs).toEqual(['good']);
      expect(lines.filter((line) => line.includes('Skipping schedule "cron"'))).not.toEqual([]);
      expect(lines.filter((line) => line.includes('Skipping schedule "zone"'))).not.toEqual([]);
      expect(named(await DBOS.listSchedules())).toEqual(['cron', 'good', 'zone']);
    });
  });
});

describe('in a workflow', () => {
  forEachDialect((dialect) => {
    /** Registers a workflow that uses schedules, and waits at the halt before its end. */
    function register(DBOS: DBOSInstance, halt: () => Promise<void>) {
      const tick = DBOS.registerWorkflow(async () => {}, { name: 'tick' });
      return DBOS.registerWorkflow(
        async () => {
          await DBOS.createSchedule({ scheduleName: 's', workflowFn: tick, schedule: '0 0 * * *', context: 1 });
          const created = await DBOS.getSchedule('s');
          await DBOS.pauseSchedule('s');
          await DBOS.resumeSchedule('s');
          await DBOS.updateSchedule('s', { context: 2 });
          const listed = await DBOS.listSchedules();
          await DBOS.runStep(halt, { name: 'halt' });
          await DBOS.deleteSchedule('s');
          return [created?.context, listed[0]?.context];
        },
        { name: 'manage' },
      );
    }
    const RECORDED = ['createSchedule', 'getSchedule', 'pauseSchedule', 'resumeSchedule', 'updateSchedule'];

    test('schedules are managed by recorded steps, which are not repeated by a recovery', async () => {
      const { first, second } = await createZombie(dialect);
      const halt = newHalt();
      const manage = register(first, () => halt.here());
      register(second, async () => {});
      await first.launch();
      await first.startWorkflow(manage, { workflowID: 'w' })();
      await halt.reached;
      // What a repeated step would trip over, or would see.
      await first.updateSchedule('s', { context: 3 });

      await second.launch();
      const result = await second.retrieveWorkflow('w').getResult();

      expect(result).toEqual([1, 2]);
      expect((await second.listWorkflowSteps('w'))!.map(({ name }) => name)).toEqual([
        ...RECORDED.map((verb) => `DBOS.${verb}`),
        'DBOS.listSchedules',
        'halt',
        'DBOS.deleteSchedule',
      ]);
      expect(await second.getSchedule('s')).toBe(null);
      halt.release();
    });

    test('a schedule whose creation was committed but not recorded is not in its own way', async () => {
      const { first, second } = await createZombie(dialect);
      const halt = newHalt();
      const manage = register(first, () => halt.here());
      register(second, async () => {});
      await first.launch();
      await first.startWorkflow(manage, { workflowID: 'w' })();
      await halt.reached;
      await inTables(first, sql`DELETE FROM ${table('operation_outputs')} WHERE workflow_uuid = 'w'`);

      await second.launch();

      expect(await second.retrieveWorkflow('w').getResult()).toEqual([2, 2]);
      halt.release();
    });

    test('schedules cannot be applied, triggered or backfilled', async () => {
      const { DBOS, tick, create } = await setup(dialect);
      const attempts = {
        applySchedules: () => DBOS.applySchedules([{ scheduleName: 'a', workflowFn: tick, schedule: '0 0 * * *' }]),
        triggerSchedule: () => DBOS.triggerSchedule('s'),
        backfillSchedule: () => DBOS.backfillSchedule('s', new Date(0), new Date(MINUTE)),
      };
      const attempt = DBOS.registerWorkflow(async (verb: keyof typeof attempts) => void (await attempts[verb]()), {
        name: 'attempt',
      });
      await DBOS.launch();
      await create('s');

      for (const verb of Object.keys(attempts) as (keyof typeof attempts)[]) {
        expect((await failureOf(attempt(verb))).message).toContain(`DBOS.${verb} cannot be called from a workflow`);
      }
      expect(named(await DBOS.listSchedules())).toEqual(['s']);
    });
  });
});

const DECORATED = `
  export function define(DBOS, crontab, runs) {
    @DBOS.className('Clock')
    class Watch {
      @DBOS.scheduled({ crontab, mode: 'ExactlyOncePerInterval' })
      @DBOS.workflow()
      static async outside(due: Date, started: Date) { runs.push(['outside', due, started]); }

      @DBOS.workflow({ name: 'renamed' })
      @DBOS.scheduled({ crontab, queueName: 'q' })
      static async inside(due: Date, started: Date) { runs.push(['inside', due, started]); }
    }
    return Watch;
  }`;

type Run = [name: string, due: Date, started: Date];

async function compile(kind: string) {
  const { outputText } = ts.transpileModule(DECORATED, {
    compilerOptions: {
      target: ts.ScriptTarget.ES2022,
      module: ts.ModuleKind.ESNext,
      experimentalDecorators: kind === 'legacy',
    },
  });
  const path = join(inject('folder'), `scheduled-${kind}.mjs`);
  writeFileSync(path, outputText);
  // The module is the text above.
  return (await import(pathToFileURL(path).href)) as {
    readonly define: (DBOS: DBOSInstance, crontab: string, runs: Run[]) => unknown;
  };
}

describe('@DBOS.scheduled', () => {
  forEachDialect((dialect) => {
    test.each(['standard', 'legacy'])(
      'as a %s decorator runs a static method, above or below the other',
      async (kind) => {
        const { DBOS, clock } = await setup(dialect);
        const { define } = await compile(kind);
        const runs: Run[] = [];
        define(DBOS, '* * * * *', runs);
        await DBOS.launch();
        await DBOS.registerQueue('q');

        clock.advance(MINUTE);
        await until(() => runs.length === 2);

        const due = new Date(START + MINUTE);
        expect(runs.sort()).toEqual([
          ['inside', due, due],
          ['outside', due, due],
        ]);
        const outside = await DBOS.getWorkflowStatus('sched-Clock.outside-2027-01-04T12:01:00.000Z');
        expect(outside).toMatchObject({ workflowClassName: 'Clock', queueName: '_dbos_internal_queue' });
        expect(await DBOS.getWorkflowStatus('sched-Clock.renamed-2027-01-04T12:01:00.000Z')).toMatchObject({
          workflowName: 'renamed',
          queueName: 'q',
        });
        const { database } = engineOf(DBOS).runtime.store;
        const state = { service: 'dbos.scheduler', workflowFnName: 'Clock.outside', key: 'lastState' };
        expect(await findEventDispatchState(database, state)).toEqual({
          ...state,
          value: String(START + MINUTE),
          updateTime: START + MINUTE,
          updateSeq: undefined,
        });
      },
    );

    test('is refused with a bad expression, and on the methods of instances', async () => {
      const launched = async (prepare: (DBOS: DBOSInstance) => void): Promise<void> => {
        const { DBOS } = await setup(dialect);
        prepare(DBOS);
        await DBOS.launch();
      };
      const config: SchedulerConfig = { crontab: '* * * * *' };

      const onInstance = await failureOf(
        launched((DBOS) => DBOS.registerScheduled(instanceMethodOf(DBOS) as () => Promise<void>, config)),
      );
      const badCron = await failureOf(
        launched((DBOS) => {
          const workflow = DBOS.registerWorkflow(async () => {}, { name: 'w' });
          DBOS.registerScheduled(workflow, { crontab: 'soon' });
        }),
      );

      expect(onInstance.message).toContain('Cannot schedule instance method');
      expect(badCron.message).toContain('soon');
    });
  });
});
