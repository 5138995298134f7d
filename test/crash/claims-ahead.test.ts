// A claim is sent before the workflows of the one before it run. What it got may be cancelled or taken over until its own
// turn comes, when no run is there to hear of it.
import { expect, onTestFinished, test, vi } from 'vitest';
import { type Sql, sql, table } from '../../src/sql/sql.js';
import type { Row } from '../../src/store/database.js';
import { PostgresDatabase } from '../../src/store/postgres/postgres-database.js';
import { SqliteDatabase } from '../../src/store/sqlite/sqlite-database.js';
import { newHalt } from '../engine/runs/succession.js';
import { forEachDialect, type TestDialect } from '../rig/dialects.js';
import { createEngine, engineOf } from '../rig/engines.js';
import { until } from '../rig/manual-clock.js';

/** As many as a claim takes. */
const CLAIMED = 300;

/** Halts the first read of inputs that are stored in a table of their own, as DBOS stores them. */
function haltReads(dialect: TestDialect) {
  const halt = newHalt();
  onTestFinished(() => halt.release());
  const database = dialect.name === 'postgres' ? PostgresDatabase : SqliteDatabase;
  // eslint-disable-next-line @typescript-eslint/unbound-method -- Given its object when it is called.
  const original: (this: unknown, statement: Sql) => Promise<Row[]> = database.prototype.read;
  const spy = vi.spyOn(database.prototype as { read(statement: Sql): Promise<Row[]> }, 'read');
  spy.mockImplementation(async function (this: unknown, statement) {
    const rows = await original.call(this, statement);
    if (Object.keys(rows[0] ?? {}).join() === 'workflow_uuid,inputs') await halt.here();
    return rows;
  });
  onTestFinished(() => spy.mockRestore());
  return halt;
}

forEachDialect((dialect) => {
  /** Two claims are made, and the workflows of the first are halted while they begin. */
  async function setup() {
    const { DBOS } = await createEngine(dialect);
    const done: string[] = [];
    const workflow = DBOS.registerWorkflow(
      async (id: string) => {
        await DBOS.runStep(async () => done.push(id), { name: 'step' });
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
    const { runtime, runs, ownership } = engineOf(DBOS);
    const { database } = runtime;
    const workflows = table('workflow_status');
    const inputs = sql`SELECT w.workflow_uuid, w.inputs, 0 FROM ${workflows} AS w WHERE w.workflow_uuid = ${ids[0] ?? ''}`;
    await database.run(
      sql`INSERT INTO ${table('workflow_input')} (workflow_uuid, inputs, retention_timestamp) ${inputs}`,
    );
    await database.run(sql`UPDATE ${workflows} SET inputs = NULL WHERE workflow_uuid = ${ids[0] ?? ''}`);
    const halt = haltReads(dialect);
    await DBOS.resumeQueue('q');
    await halt.reached;
    await until(async () => (await DBOS.listWorkflows({ status: 'PENDING' })).length === ids.length);
    return { DBOS, done, ids, halt, runs, ownership, changed: ids.at(-1) ?? '' };
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

  test('a workflow that was claimed and is deleted does not begin', async () => {
    const { DBOS, done, ids, halt, runs, changed } = await setup();

    await DBOS.deleteWorkflow(changed);
    halt.release();
    await until(() => done.length === ids.length - 1 && runs.all.length === 0);

    expect(done).not.toContain(changed);
  });
});
