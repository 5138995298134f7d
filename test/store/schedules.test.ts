import { expect, test } from 'vitest';
import { createSchedule } from '../../src/control/schedules.js';
import { occurrenceID } from '../../src/model/schedules.js';
import { sql, table } from '../../src/sql/sql.js';
import type { Database } from '../../src/store/database.js';
import { type Firing, fireOccurrences } from '../../src/store/schedule-firing.js';
import { findSchedules } from '../../src/store/schedules.js';
import { forEachDialect, type TestDialect } from '../rig/dialects.js';
import { operatorOn } from '../rig/operators.js';
import { newWorkflow } from '../rig/records.js';

const NAMES = Array.from({ length: 200 }, (_, n) => `s-${n}`);
const ROUNDS = 8;
const dueAtOf = (round: number): number => 1_800_000_000_000 + round * 1000;

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

  test('a late firing does not put the last firing back', async () => {
    const [first] = await setup(dialect);

    await fireOccurrences(first, firingsOf(['s-1'], dueAtOf(5)));
    const late = await fireOccurrences(first, firingsOf(['s-1'], dueAtOf(4)));

    expect(late.creators.size).toBe(1);
    const [schedule] = await findSchedules(first, { names: ['s-1'] });
    expect(schedule?.lastFiredAt).toBe(new Date(dueAtOf(5)).toISOString());
  });
});
