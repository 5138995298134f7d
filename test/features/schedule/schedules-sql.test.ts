import { expect, test } from 'vitest';
import { garbageCollect } from '../../../src/features/retention/retention.js';
import { createSchedule, type ScheduleOptions } from '../../../src/features/schedule/schedules.js';
import { OCCURRENCE_KEPT_MS, occurrenceID } from '../../../src/features/schedule/schedule.js';
import { type Sql, sql, table } from '../../../src/kernel/sql/sql.js';
import type { Database } from '../../../src/database/database.js';
import { findEventDispatchState } from '../../../src/run/rows/event-dispatch.js';
import {
  fireCodeOccurrence,
  type Firing,
  fireOccurrences,
} from '../../../src/features/schedule/schedule-firing.sql.js';
import { findSchedules } from '../../../src/features/schedule/schedules.sql.js';
import { forEachDialect, type TestDialect } from '../../rig/dialects.js';
import { operatorOn } from '../../rig/operators.js';
import { newWorkflow } from '../../rig/records.js';

const NAMES = Array.from({ length: 200 }, (_, n) => `s-${n}`);
const ROUNDS = 8;
const dueAtOf = (round: number): number => 1_700_000_000_000 + round * 1000;

/** Connections as of three processes, to a database with schedules. */
async function setup(dialect: TestDialect): Promise<[Database, Database, Database]> {
  const url = await dialect.createURL();
  const databases = [await dialect.open(url), await dialect.open(url), await dialect.open(url)] as const;
  const operator = operatorOn(databases[0]);
  const definition = { workflowName: 'workflow', workflowClassName: null, schedule: '* * * * * *' };
  for (const scheduleName of NAMES) await createSchedule(operator, { ...definition, scheduleName }, scheduleName);
  return [...databases];
}

function firingsOf(names: readonly string[], dueAt: number): Firing[] {
  return names.map((scheduleName) => {
    const workflowID = occurrenceID(scheduleName, dueAt);
    const workflow = newWorkflow({ workflowID, scheduleName, status: 'ENQUEUED', queueName: 'q', owner: null });
    return { scheduleName, dueAt, isCancellingPrevious: false, workflow };
  });
}

forEachDialect((dialect) => {
  test('processes that fire the same occurrences in different orders do not block each other', async () => {
    const [first, second, third] = await setup(dialect);
    const some = NAMES.filter((_, n) => n % 3 === 0).reverse();
    let created = 0;

    for (let round = 0; round < ROUNDS; round += 1) {
      const dueAt = dueAtOf(round);
      // A deadlock would make one of them fail.
      const fired = await Promise.all([
        fireOccurrences(first, firingsOf(NAMES, dueAt)),
        fireOccurrences(second, firingsOf([...NAMES].reverse(), dueAt)),
        fireOccurrences(third, firingsOf(some, dueAt)),
      ]);
      created += fired.reduce((sum, { creators }) => sum + creators.size, 0);
    }

    const [row] = await first.read(sql`SELECT COUNT(*) AS number FROM ${table('workflow_status')} AS w`);
    expect(Number(row?.['number'])).toBe(ROUNDS * NAMES.length);
    expect(created).toBe(ROUNDS * NAMES.length);
    const last = new Date(dueAtOf(ROUNDS - 1)).toISOString();
    for (const { lastFiredAt } of await findSchedules(first, {})) expect(lastFiredAt).toBe(last);
  });

  /** A schedule, and a database whose clock stands at a time that the test sets. */
  async function setupClock(options: ScheduleOptions = {}) {
    const time = { read: () => dueAtOf(0) };
    const database = await dialect.create({ now: () => time.read() });
    const definition = {
      scheduleName: 's',
      workflowName: 'workflow',
      workflowClassName: null,
      schedule: '* * * * * *',
    };
    await createSchedule(operatorOn(database), { ...definition, ...options });
    return { database, time };
  }

  test('a late firing does not put the last firing back', async () => {
    const { database, time } = await setupClock();
    time.read = () => dueAtOf(6);

    await fireOccurrences(database, firingsOf(['s'], dueAtOf(5)));
    const late = await fireOccurrences(database, firingsOf(['s'], dueAtOf(4)));

    expect(late.creators.size).toBe(1);
    const [schedule] = await findSchedules(database, { names: ['s'] });
    expect(schedule?.lastFiredAt).toBe(new Date(dueAtOf(5)).toISOString());
  });

  /** Ends all workflows and collects all garbage. */
  async function collect(database: Database): Promise<unknown> {
    await database.run(sql`UPDATE ${table('workflow_status')} SET status = 'SUCCESS'`);
    return garbageCollect(operatorOn(database), { cutoffEpochTimestampMs: Number.MAX_SAFE_INTEGER });
  }

  test('an occurrence whose workflow was collected does not fire a second time', async () => {
    const { database, time } = await setupClock();
    const fire = (round: number) => fireOccurrences(database, firingsOf(['s'], dueAtOf(round)));
    time.read = () => dueAtOf(0);
    await fire(0);
    time.read = () => dueAtOf(1);
    await fire(1);

    // At first the row stays. When it is gone, the schedule says that a later one was fired.
    expect(await collect(database)).toMatchObject({ workflows: 0 });
    const soon = await fire(0);
    time.read = () => dueAtOf(0) + 3 * OCCURRENCE_KEPT_MS;
    expect(await collect(database)).toMatchObject({ workflows: 2 });
    const late = [await fire(0), await fire(1), await fire(2)];

    expect(soon.creators.size).toBe(0);
    expect(late.map(({ creators }) => creators.size)).toEqual([0, 0, 1]);
  });

  test('neither does one of a schedule in the code', async () => {
    const { database, time } = await setupClock();
    const key = { service: 'dbos.scheduler', workflowFnName: 'code', key: 'lastState' };
    const fire = (round: number) => {
      const [firing] = firingsOf(['code'], dueAtOf(round)) as [Firing];
      return fireCodeOccurrence(database, firing, {
        ...key,
        value: String(dueAtOf(round)),
        updateTime: dueAtOf(round),
      });
    };
    await fire(0);
    time.read = () => dueAtOf(0) + 3 * OCCURRENCE_KEPT_MS;
    expect(await collect(database)).toMatchObject({ workflows: 1 });

    await fire(0);
    await fire(1);

    const found = await database.read(sql`SELECT w.workflow_uuid AS id FROM ${table('workflow_status')} AS w`);
    expect(found).toEqual([{ id: occurrenceID('code', dueAtOf(1)) }]);
  });

  test.each(['allow', 'skip', 'cancelPrevious'] as const)(
    'nothing is fired before it is due by the clock of the database, and then it is (overlap: %s)',
    async (overlap) => {
      const { database, time } = await setupClock({ overlap });
      const fire = () => fireOccurrences(database, firingsOf(['s'], dueAtOf(1)));

      time.read = () => dueAtOf(1) - 1;
      const early = await fire();
      const [before] = await findSchedules(database, {});
      time.read = () => dueAtOf(1);
      const fired = await fire();
      const [after] = await findSchedules(database, {});

      expect([early.creators.size, early.now, before?.lastFiredAt]).toEqual([0, dueAtOf(1) - 1, null]);
      expect([fired.creators.size, after?.lastFiredAt]).toEqual([1, new Date(dueAtOf(1)).toISOString()]);
    },
  );

  test.each(['allow', 'skip'] as const)(
    'what comes due while it is being fired is not noted without having been fired (overlap: %s)',
    async (overlap) => {
      const { database, time } = await setupClock({ overlap });
      // Due by the time of the note, but neither of the question for the time nor of the insert.
      let asked = 0;
      time.read = () => dueAtOf(1) - ((asked += 1) <= 3 ? 1 : 0);

      const early = await fireOccurrences(database, firingsOf(['s'], dueAtOf(1)));
      const [before] = await findSchedules(database, {});
      const fired = await fireOccurrences(database, firingsOf(['s'], dueAtOf(1)));

      expect([early.creators.size, early.now, before?.lastFiredAt]).toEqual([0, dueAtOf(1) - 1, null]);
      expect(fired.creators.size).toBe(1);
    },
  );

  test('one that is left out is noted, also if the run before ends in the same moment', async () => {
    const { database, time } = await setupClock({ overlap: 'skip' });
    const [first] = firingsOf(['s'], dueAtOf(0)) as [Firing];
    await fireOccurrences(database, [first]);
    time.read = () => dueAtOf(2);
    const end = sql`
      UPDATE ${table('workflow_status')}
      SET status = 'SUCCESS', completed_at = ${dueAtOf(2)}
      WHERE workflow_uuid = ${first.workflow.workflowID}`;
    const commit = database.commit.bind(database);
    // Between the insert and the note.
    Object.assign(database, {
      commit: (statements: readonly Sql[]) => commit([...statements.slice(0, 2), end, ...statements.slice(2)]),
    });

    const fired = await fireOccurrences(database, firingsOf(['s'], dueAtOf(1)));

    expect(fired.creators.size).toBe(0);
    const [schedule] = await findSchedules(database, {});
    expect(schedule?.lastFiredAt).toBe(new Date(dueAtOf(1)).toISOString());
  });

  test('neither is an occurrence of a schedule in the code', async () => {
    const { database, time } = await setupClock();
    const [firing] = firingsOf(['code'], dueAtOf(1)) as [Firing];
    const key = { service: 'dbos.scheduler', workflowFnName: 'code', key: 'lastState' };
    const state = { ...key, value: String(dueAtOf(1)), updateTime: dueAtOf(1) };
    const count = async () => {
      const [row] = await database.read(sql`SELECT COUNT(*) AS number FROM ${table('workflow_status')} AS w`);
      return Number(row?.['number']);
    };

    time.read = () => dueAtOf(1) - 1;
    await fireCodeOccurrence(database, firing, state);
    const before = [await count(), (await findEventDispatchState(database, key))?.value];
    time.read = () => dueAtOf(1);
    await fireCodeOccurrence(database, firing, state);
    const after = [await count(), (await findEventDispatchState(database, key))?.value];

    expect(before).toEqual([0, undefined]);
    expect(after).toEqual([1, String(dueAtOf(1))]);
  });
});
