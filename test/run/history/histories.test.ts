// How recovered workflows get their histories without filling the memory.
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { batchesBySize, HISTORY_BATCH_BYTES } from '../../../src/run/history/load-histories.js';
import { PAGE_BYTES } from '../../../src/run/history/text-pages.js';
import type { DBOSInstance } from '../../../src/index.js';
import type { Sql } from '../../../src/kernel/sql/sql.js';
import type { Row } from '../../../src/database/database.js';
import { PostgresDatabase } from '../../../src/database/postgres/postgres-database.js';
import { findOwnedBy } from '../../../src/run/rows/lifecycle.js';
import { SqliteDatabase } from '../../../src/database/sqlite/sqlite-database.js';
import { forEachDialect } from '../../rig/dialects.js';
import { createEngine, engineOf } from '../../rig/engines.js';
import { until } from '../../rig/manual-clock.js';
import { createGenerations, failureOf, newHalt } from '../succession.js';

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

  /** The characters of outputs that single reads have returned. `onRead` may hold an answer back. */
  function noteReads(onRead: (length: number) => Promise<void> | void = () => {}): number[] {
    const database = dialect.name === 'postgres' ? PostgresDatabase : SqliteDatabase;
    // eslint-disable-next-line @typescript-eslint/unbound-method -- Given its object when it is called.
    const original: (this: unknown, statement: Sql) => Promise<Row[]> = database.prototype.read;
    const lengths: number[] = [];
    const spy = vi.spyOn(database.prototype as { read(statement: Sql): Promise<Row[]> }, 'read');
    spy.mockImplementation(async function (this: unknown, statement) {
      const rows = await original.call(this, statement);
      const length = rows.reduce((sum, row) => sum + ((row['output'] as string | null | undefined)?.length ?? 0), 0);
      lengths.push(length);
      await onRead(length);
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
    await until(() => runs.all.length === WORKFLOWS && runs.slots.busy === 0);
    expect(Math.max(...lengths)).toBeLessThanOrEqual(HISTORY_BATCH_BYTES);
    expect(lengths.filter((length) => length > TEXT.length).length).toBeGreaterThanOrEqual(2);
    expect(runs.all.map(({ history }) => history?.at(0))).toEqual(Array.from({ length: WORKFLOWS }, () => undefined));
  });

  test('a workflow whose history is still to be read is not taken for an orphan', async () => {
    const second = await setup();
    const halt = newHalt();
    onTestFinished(() => halt.release());
    let reads = 0;
    noteReads((length) => {
      if (length > TEXT.length) reads += 1;
      return length > TEXT.length && reads === 2 ? halt.here() : undefined;
    });
    await second.launch();
    const { runtime, ownership, runs } = engineOf(second);
    await until(() => reads === 2);
    expect(runs.all.length).toBeLessThan(WORKFLOWS);

    await ownership.requeue(await findOwnedBy(runtime.database, runtime.incarnationID, 0));

    const statuses = (await second.listWorkflows({})).map(({ status }) => status);
    expect(statuses).toEqual(Array.from({ length: WORKFLOWS }, () => 'PENDING'));
    halt.release();
    await until(() => runs.all.length === WORKFLOWS && runs.slots.busy === 0);
  });

  describe('a history larger than what is read at once', () => {
    const BRANCHES = 6;
    const TURNS = 4;
    const text = (branch: number, turn: number): string => `${branch}.${turn} ${'y'.repeat(PAGE_BYTES / 4)}`;

    /** Branches that replay side by side, each with pages of its own, and a failed step. */
    async function setupBranches() {
      const { first, second } = await createGenerations(dialect);
      const register = (DBOS: DBOSInstance) => {
        const branch = async (number: number) => {
          const seen: string[] = [];
          for (let turn = 0; turn < TURNS; turn += 1) {
            seen.push((await DBOS.runStep(() => Promise.resolve(text(number, turn)), { name: 's' })).slice(0, 3));
          }
          return seen;
        };
        return DBOS.registerWorkflow(
          async () => {
            const branches = Array.from({ length: BRANCHES }, (_, number) => () => branch(number));
            const seen = await DBOS.parallel(branches);
            const failing = () => Promise.reject(new Error('failed'));
            const failure = await failureOf(DBOS.runStep(failing, { name: 'failing' }));
            await DBOS.setEvent('replayed', true);
            return { seen, message: (failure as Error).message, said: await DBOS.recv('go', 3600) };
          },
          { name: 'branches' },
        );
      };
      const workflow = register(first);
      register(second);
      await first.launch();
      await first.startWorkflow(workflow, { workflowID: 'w' })();
      expect(await first.getEvent('w', 'replayed', 60)).toBe(true);
      await first.shutdown();
      return second;
    }

    test('is replayed in pages, by branches side by side too', async () => {
      const second = await setupBranches();
      const lengths = noteReads();

      await second.launch();
      await second.send('w', 'on', 'go');

      const turns = Array.from({ length: TURNS }, (_, turn) => turn);
      const seen = Array.from({ length: BRANCHES }, (_, number) => turns.map((turn) => `${number}.${turn}`));
      const result = await second.retrieveWorkflow('w').getResult();
      expect(result).toEqual({ seen, message: 'failed', said: 'on' });
      expect(Math.max(...lengths)).toBeLessThanOrEqual(PAGE_BYTES);
      expect(lengths.filter((length) => length > 0).length).toBeGreaterThan(BRANCHES);
    });
  });

  test('a long replay leaves other work its turns, and operations their order', async () => {
    const { DBOS } = await createEngine(dialect);
    let turns = 0;
    const work = DBOS.registerWorkflow(
      async () => {
        turns = 0;
        let isOver = false;
        const count = (): void => {
          turns += 1;
          if (!isOver) setImmediate(count);
        };
        count();
        const winners = new Set<string>();
        for (let n = 0; n < 1500; n += 1) {
          const steps = ['first', 'second'].map((name) => DBOS.runStep(async () => name, { name }));
          winners.add(await Promise.race(steps));
          await Promise.all(steps);
        }
        isOver = true;
        return [...winners];
      },
      { name: 'work' },
    );
    await DBOS.launch();
    await DBOS.withNextWorkflowID('w', () => work());

    const fork = await DBOS.forkWorkflow('w', 3000);

    expect(await fork.getResult()).toEqual(['first']);
    expect(turns).toBeGreaterThanOrEqual(6);
  });
});
