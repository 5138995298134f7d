// A long history is read in pages, between which other work has its turn.
import { expect, test } from 'vitest';
import { systemClock } from '../../../src/kernel/base/clock.js';
import { silentLogger } from '../../../src/kernel/base/log.js';
import { HISTORY_BATCH_BYTES, loadHistories } from '../../../src/run/history/load-histories.js';
import type { Runtime } from '../../../src/run/runtime.js';
import type { Sql } from '../../../src/kernel/sql/sql.js';
import { Writer } from '../../../src/run/writer/writer.js';
import { forEachDialect, type TestDialect } from '../../rig/dialects.js';
import { newWorkflow, step } from '../../rig/records.js';

const PAGE = 1000;
const STEPS = 2 * PAGE + 1;

/** A workflow with a long history, and how many rows each read has returned. */
async function setup(dialect: TestDialect) {
  const database = await dialect.create();
  const writer = new Writer(database, { clock: systemClock, logger: silentLogger });
  const workflow = newWorkflow({ workflowID: 'long' });
  await writer.start(workflow);
  const stepIDs = Array.from({ length: STEPS }, (_, stepID) => stepID);
  await Promise.all(
    stepIDs.map((stepID) => writer.checkpoint({ owner: workflow.owner ?? '', step: step('long', stepID) })),
  );
  const reads: number[] = [];
  const read = async (statement: Sql) => {
    const rows = await database.read(statement);
    reads.push(rows.length);
    return rows;
  };
  const noted = new Proxy(database, {
    get(target, property) {
      if (property === 'read') return read;
      const value: unknown = Reflect.get(target, property, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
  const runtime = { database: noted, retrying: (operation: () => Promise<unknown>) => operation() };
  return { runtime: runtime as unknown as Runtime, reads, stepIDs };
}

forEachDialect((dialect) => {
  test('a history that fits into memory is read in pages, and is complete and in order', async () => {
    const { runtime, reads, stepIDs } = await setup(dialect);

    const histories = await loadHistories(runtime, ['long'], new Map([['long', STEPS * 400]]));

    const records = [...(histories.get('long')?.records ?? [])];
    expect(records.map(({ stepID }) => stepID)).toEqual(stepIDs);
    expect(records.at(-1)).toEqual(step('long', STEPS - 1));
    expect(reads).toEqual([PAGE, PAGE, 1]);
  });

  test('so are the outlines and the texts of a larger one', async () => {
    const { runtime, reads, stepIDs } = await setup(dialect);

    const histories = await loadHistories(runtime, ['long'], new Map([['long', HISTORY_BATCH_BYTES + 1]]));
    const history = histories.get('long');
    const records = [...(history?.records ?? [])];
    const complete = [];
    for (const record of records) complete.push(await history?.complete(record));

    expect(records.map(({ stepID }) => stepID)).toEqual(stepIDs);
    expect(complete).toEqual(stepIDs.map((stepID) => step('long', stepID)));
    expect(reads).toEqual([PAGE, PAGE, 1, PAGE, PAGE, 1]);
  });

  test('other work has its turn between the pages', async () => {
    const { runtime } = await setup(dialect);
    let turns = 0;
    const count = (): void => {
      turns += 1;
      immediate = setImmediate(count);
    };
    let immediate = setImmediate(count);

    await loadHistories(runtime, ['long'], new Map([['long', STEPS * 400]]));
    clearImmediate(immediate);

    expect(turns).toBeGreaterThanOrEqual(2);
  });
});
