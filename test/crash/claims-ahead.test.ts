// A claim is sent before the workflows of the one before it run. What it got may be cancelled or taken over until its own
// turn comes, when no run is there to hear of it.
import { expect, onTestFinished, test, vi } from 'vitest';
import { systemClock } from '../../src/kernel/base/clock.js';
import { type Sql, sql, table } from '../../src/kernel/sql/sql.js';
import type { Row } from '../../src/database/database.js';
import { PostgresDatabase } from '../../src/database/postgres/postgres-database.js';
import { SqliteDatabase } from '../../src/database/sqlite/sqlite-database.js';
import { type Halt, newHalt } from '../run/succession.js';
import { forEachDialect, type TestDialect } from '../rig/dialects.js';
import { createEngine, engineOf } from '../rig/engines.js';
import { until } from '../rig/manual-clock.js';

/** As many as a claim takes. */
const CLAIMED = 300;

const DATABASES = { postgres: PostgresDatabase, sqlite: SqliteDatabase } as const;

/** Halts reads that return rows of such columns, each kind until it is released. */
function haltReads(dialect: TestDialect, kinds: readonly string[]): readonly Halt[] {
  const halts = kinds.map(() => newHalt());
  onTestFinished(() => halts.forEach((halt) => halt.release()));
  const database = DATABASES[dialect.name];
  // eslint-disable-next-line @typescript-eslint/unbound-method -- Given its object when it is called.
  const original: (this: unknown, statement: Sql) => Promise<Row[]> = database.prototype.read;
  const spy = vi.spyOn(database.prototype as { read(statement: Sql): Promise<Row[]> }, 'read');
  spy.mockImplementation(async function (this: unknown, statement) {
    const rows = await original.call(this, statement);
    await halts[kinds.indexOf(Object.keys(rows[0] ?? {}).join())]?.here();
    return rows;
  });
  onTestFinished(() => spy.mockRestore());
  return halts;
}

/** Inputs that are stored in a table of their own, as DBOS stores them. */
const SEPARATE_INPUTS = 'workflow_uuid,inputs';
/** Workflows that were lost. */
const LOST = 'ordinal';

/** Halts the answer of the next commit that claims the workflow. */
function haltClaimOf(dialect: TestDialect, workflowID: string) {
  const halt = newHalt();
  onTestFinished(() => halt.release());
  const database = DATABASES[dialect.name];
  type Commit = (this: unknown, ...args: unknown[]) => Promise<Row[][]>;
  // eslint-disable-next-line @typescript-eslint/unbound-method -- Given its object when it is called.
  const original = database.prototype.commit as Commit;
  const spy = vi.spyOn(database.prototype as { commit: Commit }, 'commit');
  spy.mockImplementation(async function (this: unknown, ...args) {
    const results = await original.apply(this, args);
    const isClaim = results.flat().some((row) => row['workflow_uuid'] === workflowID && 'has_steps' in row);
    if (isClaim) await halt.here();
    return results;
  });
  onTestFinished(() => spy.mockRestore());
  return halt;
}

/** Later, a run would ask the database anyway. */
const stillClock = { ...systemClock, monotonic: () => 0 };

forEachDialect((dialect) => {
  /** Two claims are made, and the workflows of the first are halted while they begin. */
  async function setup(...kinds: string[]) {
    const { DBOS } = await createEngine(dialect, {}, { clock: stillClock });
    const done: string[] = [];
    const gated = { id: '', ...newHalt() };
    onTestFinished(() => gated.release());
    const workflow = DBOS.registerWorkflow(
      async (id: string) => {
        await DBOS.runStep(async () => done.push(id), { name: 'step' });
        if (id === gated.id) await gated.here();
        return id;
      },
      { name: 'workflow' },
    );
    await DBOS.launch();
    await DBOS.registerQueue('q');
    await DBOS.registerQueue('other');
    await DBOS.pauseQueue('q');
    const ids = Array.from({ length: 2 * CLAIMED }, (_, n) => `w${String(n).padStart(3, '0')}`);
    await DBOS.startWorkflows(
      workflow,
      ids.map((id) => ({ args: [id], workflowID: id })),
      { queueName: 'q' },
    );
    const { runtime, runs } = engineOf(DBOS);
    const { database } = runtime;
    const workflows = table('workflow_status');
    const inputs = sql`SELECT w.workflow_uuid, w.inputs, 0 FROM ${workflows} AS w WHERE w.workflow_uuid = ${ids[0] ?? ''}`;
    await database.run(
      sql`INSERT INTO ${table('workflow_input')} (workflow_uuid, inputs, retention_timestamp) ${inputs}`,
    );
    await database.run(sql`UPDATE ${workflows} SET inputs = NULL WHERE workflow_uuid = ${ids[0] ?? ''}`);
    const [halt = newHalt(), ...others] = haltReads(dialect, [SEPARATE_INPUTS, ...kinds]);
    await DBOS.resumeQueue('q');
    await halt.reached;
    await until(async () => (await DBOS.listWorkflows({ status: 'PENDING' })).length === ids.length);
    return { DBOS, done, gated, ids, halt, others, runs, changed: ids.at(-1) ?? '' };
  }

  test('a workflow that is cancelled after it was claimed does not begin', async () => {
    const { DBOS, done, ids, halt, runs, changed } = await setup();

    await DBOS.cancelWorkflow(changed);
    halt.release();
    await until(() => done.length === ids.length - 1 && runs.all.length === 0);

    expect(done).not.toContain(changed);
    expect((await DBOS.getWorkflowStatus(changed))?.status).toBe('CANCELLED');
  });

  test('a workflow that was claimed and goes to another queue begins there, once', async () => {
    const { DBOS, done, ids, halt, runs, changed } = await setup();

    await DBOS.cancelWorkflow(changed);
    await DBOS.resumeWorkflow(changed, { queueName: 'other' });
    await until(() => done.includes(changed));
    halt.release();
    await until(() => done.length === ids.length && runs.all.length === 0);

    expect(done.toSorted()).toEqual(ids);
    expect((await DBOS.getWorkflowStatus(changed))?.status).toBe('SUCCESS');
  });

  // On SQLite nobody is told of changes, and a run trusts its claim for a shorter time.
  test.runIf(dialect.name === 'postgres')(
    'a cancellation of which only is known that something changed counts',
    async () => {
      const { DBOS, done, ids, halt, runs, changed } = await setup();
      const { bus, database } = engineOf(DBOS).runtime;

      // Our sessions do not notify themselves.
      await database.run(
        sql`UPDATE ${table('workflow_status')} SET status = 'CANCELLED' WHERE workflow_uuid = ${changed}`,
      );
      bus.wakeAll();
      halt.release();
      await until(() => done.length === ids.length - 1 && runs.all.length === 0);

      expect(done).not.toContain(changed);
    },
  );

  test('a workflow that was claimed and is deleted does not begin', async () => {
    const { DBOS, done, ids, halt, runs, changed } = await setup();

    await DBOS.deleteWorkflow(changed);
    halt.release();
    await until(() => done.length === ids.length - 1 && runs.all.length === 0);

    expect(done).not.toContain(changed);
  });

  test('a workflow that goes to another queue while another one is looked up begins there, once', async () => {
    const { DBOS, done, gated, ids, halt, others, runs, changed } = await setup(LOST);
    const [lookUp = newHalt()] = others;
    gated.id = changed;
    const cancelled = ids.at(-2) ?? '';
    await DBOS.cancelWorkflow(cancelled);
    halt.release();
    await lookUp.reached;

    await DBOS.cancelWorkflow(changed);
    await DBOS.resumeWorkflow(changed, { queueName: 'other' });
    await gated.reached;
    lookUp.release();
    await until(() => done.length === ids.length - 1);
    gated.release();
    await until(() => runs.all.length === 0);

    expect(done.toSorted()).toEqual(ids.filter((id) => id !== cancelled));
    expect((await DBOS.getWorkflowStatus(changed))?.status).toBe('SUCCESS');
  });

  test('a workflow that is cancelled before the commit that claims it is answered does not begin', async () => {
    const { DBOS } = await createEngine(dialect, {}, { clock: stillClock });
    const started: string[] = [];
    const gate = newHalt();
    onTestFinished(() => gate.release());
    const workflow = DBOS.registerWorkflow(
      async (id: string) => {
        started.push(id);
        if (id === 'first') await gate.here();
      },
      { name: 'workflow' },
    );
    await DBOS.launch();
    await DBOS.registerQueue('q', { concurrency: 1 });
    const ids = ['first', 'second', 'third'];
    await DBOS.startWorkflows(
      workflow,
      ids.map((id) => ({ args: [id], workflowID: id })),
      { queueName: 'q' },
    );
    await gate.reached;
    const claim = haltClaimOf(dialect, 'second');
    gate.release();
    await claim.reached;

    await DBOS.cancelWorkflow('second');
    claim.release();
    await until(() => started.includes('third'));

    expect(started).toEqual(['first', 'third']);
  });
});
