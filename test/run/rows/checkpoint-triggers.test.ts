// What takes the place of a foreign key from checkpoints to workflows on Postgres, for programs other than Everstep.
import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { insertWorkflows } from '../../../src/run/rows/workflows.js';
import { deferred } from '../../../src/kernel/base/deferred.js';
import { onlyOn, type TestDialect } from '../../rig/dialects.js';
import { until } from '../../rig/manual-clock.js';
import { newWorkflow } from '../../rig/records.js';
import { sql } from '../../../src/kernel/sql/sql.js';

/** A workflow with two checkpoints, and the session of another program. */
async function setup(dialect: TestDialect) {
  const url = await dialect.createURL();
  const database = await dialect.open(url);
  await database.run(insertWorkflows([newWorkflow({ workflowID: 'w' })]));
  const other = new pg.Client({ connectionString: url });
  await other.connect();
  onTestFinished(() => other.end());
  await other.query(`INSERT INTO dbos.operation_outputs (workflow_uuid, function_id) VALUES ('w', 0), ('w', 1)`);
  const idsOf = async () => {
    const { rows } = await other.query<{ id: string }>('SELECT workflow_uuid AS id FROM dbos.operation_outputs');
    return rows.map(({ id }) => id);
  };
  return { database, other, idsOf };
}

describe('checkpoints', () => {
  onlyOn('postgres', (dialect) => {
    test('cannot be written by another program without a workflow', async () => {
      const { other, idsOf } = await setup(dialect);

      const written = other.query(`INSERT INTO dbos.operation_outputs (workflow_uuid, function_id) VALUES ('none', 0)`);

      await expect(written).rejects.toMatchObject({
        code: '23503',
        constraint: 'operation_outputs_workflow_uuid_fkey',
      });
      expect(await idsOf()).toEqual(['w', 'w']);
    });

    test('may be written in the transaction that creates the workflow', async () => {
      const { other, idsOf } = await setup(dialect);

      await other.query(`
        BEGIN;
        INSERT INTO dbos.workflow_status (workflow_uuid, status, name) VALUES ('new', 'SUCCESS', 'n');
        INSERT INTO dbos.operation_outputs (workflow_uuid, function_id) VALUES ('new', 0);
        COMMIT`);

      expect((await idsOf()).toSorted()).toEqual(['new', 'w', 'w']);
    });

    test('are deleted with their workflow, and follow a change of its ID', async () => {
      const { other, idsOf } = await setup(dialect);

      await other.query(`UPDATE dbos.workflow_status SET workflow_uuid = 'renamed' WHERE workflow_uuid = 'w'`);
      expect(await idsOf()).toEqual(['renamed', 'renamed']);
      await other.query(`DELETE FROM dbos.workflow_status WHERE workflow_uuid = 'renamed'`);
      expect(await idsOf()).toEqual([]);
    });

    test('are deleted when all workflows are truncated', async () => {
      const { other, idsOf } = await setup(dialect);

      await other.query('TRUNCATE dbos.workflow_status CASCADE');

      expect(await idsOf()).toEqual([]);
    });

    test('that another program is writing keep a deletion waiting, and go with it', async () => {
      const { database, other, idsOf } = await setup(dialect);
      const isDeleted = deferred<void>();
      await other.query('BEGIN');
      await other.query(`INSERT INTO dbos.operation_outputs (workflow_uuid, function_id) VALUES ('w', 2)`);

      void database
        .run(sql`DELETE FROM dbos.workflow_status WHERE workflow_uuid = 'w'`)
        .then(() => isDeleted.resolve());
      await until(async () => {
        const waiting = await database.read(sql`
          SELECT 1 FROM pg_catalog.pg_stat_activity AS a
          WHERE a.datname = current_database() AND a.wait_event_type = 'Lock'`);
        return waiting.length > 0;
      });
      await other.query('COMMIT');
      await isDeleted.promise;

      expect(await idsOf()).toEqual([]);
    });
  });
});
