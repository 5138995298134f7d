// How recovered workflows get their histories without filling the memory.
import { expect, onTestFinished, test, vi } from 'vitest';
import { batchesBySize, HISTORY_BATCH_BYTES } from '../../../src/engine/history/batches.js';
import type { DBOSInstance } from '../../../src/index.js';
import type { Sql } from '../../../src/sql/sql.js';
import type { Row } from '../../../src/store/database.js';
import { PostgresDatabase } from '../../../src/store/postgres/postgres-database.js';
import { SqliteDatabase } from '../../../src/store/sqlite/sqlite-database.js';
import { forEachDialect } from '../../rig/dialects.js';
import { engineOf } from '../../rig/engines.js';
import { until } from '../../rig/manual-clock.js';
import { createGenerations } from '../runs/succession.js';

test('batches keep the order, fill up to the maximum, and hold a larger item alone', () => {
  expect(batchesBySize([3, 3, 3, 20, 0, 5, 5], (size) => size, 10)).toEqual([[3, 3, 3], [20], [0, 5, 5]]);
});

forEachDialect((dialect) => {
  const WORKFLOWS = 8;
  const TEXT = 'x'.repeat(HISTORY_BATCH_BYTES / 4);

  /** Workflows with a large history each, left asleep by a first engine. The second is not launched. */
  async function setup() {
    const { first, second } = await createGenerations(dialect);
    const register = (DBOS: DBOSInstance) =>
      DBOS.registerWorkflow(
        async () => {
          await DBOS.runStep(() => Promise.resolve(TEXT), { name: 'page' });
          await DBOS.recv('go', 3600);
        },
        { name: 'reader' },
      );
    const reader = register(first);
    register(second);
    await first.launch();
    for (let number = 0; number < WORKFLOWS; number += 1) {
      await first.startWorkflow(reader, { workflowID: `w${number}` })();
    }
    const steps = async () => {
      const all = await Promise.all((await first.listWorkflows({})).map((w) => first.listWorkflowSteps(w.workflowID)));
      return all.flatMap((of) => of ?? []).length;
    };
    await until(async () => (await steps()) === 2 * WORKFLOWS);
    await first.shutdown();
    return second;
  }

  /** The characters of outputs that single reads have returned. */
  function noteReads(): number[] {
    const database = dialect.name === 'postgres' ? PostgresDatabase : SqliteDatabase;
    // eslint-disable-next-line @typescript-eslint/unbound-method -- Given its object when it is called.
    const original: (this: unknown, statement: Sql) => Promise<Row[]> = database.prototype.read;
    const lengths: number[] = [];
    const spy = vi.spyOn(database.prototype as { read(statement: Sql): Promise<Row[]> }, 'read');
    spy.mockImplementation(async function (this: unknown, statement) {
      const rows = await original.call(this, statement);
      lengths.push(rows.reduce((sum, row) => sum + ((row['output'] as string | null | undefined)?.length ?? 0), 0));
      return rows;
    });
    onTestFinished(() => spy.mockRestore());
    return lengths;
  }

  test('a recovery does not read all histories of a claim at once, and drops what is replayed', async () => {
    const second = await setup();
    const lengths = noteReads();

    await second.launch();

    const { runs } = engineOf(second);
    await until(() => runs.all.length === WORKFLOWS && runs.queuedCount === 0);
    expect(Math.max(...lengths)).toBeLessThanOrEqual(HISTORY_BATCH_BYTES);
    expect(lengths.filter((length) => length > TEXT.length).length).toBeGreaterThanOrEqual(2);
    expect(runs.all.map(({ history }) => history?.at(0))).toEqual(Array.from({ length: WORKFLOWS }, () => undefined));
  });
});
