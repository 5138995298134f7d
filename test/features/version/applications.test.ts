import { describe, expect, test } from 'vitest';
import { renameApplication, type RenameApplicationOptions } from '../../../src/features/version/applications.js';
import { registerQueue } from '../../../src/features/queue/queues.js';
import { sql, table } from '../../../src/kernel/sql/sql.js';
import { insertCheckpoints } from '../../../src/run/rows/steps.js';
import { registerVersion } from '../../../src/features/version/versions.sql.js';
import { insertIncarnation } from '../../../src/features/liveness/executors.sql.js';
import { insertWorkflows } from '../../../src/run/rows/workflows.js';
import { forEachDialect, type TestDialect } from '../../rig/dialects.js';
import { operatorOn } from '../../rig/operators.js';
import { newWorkflow, step } from '../../rig/records.js';

const TABLES = [
  'queues',
  'workflow_schedules',
  'application_versions',
  'executors',
  'workflow_status',
  'operation_outputs',
] as const;

/** For each of the names, and for nobody: a queue, a schedule, a version, an engine, and seven workflows with two steps. */
async function setup(dialect: TestDialect) {
  const database = await dialect.create();
  const operator = operatorOn(database);
  for (const applicationName of ['old', 'other', null]) {
    const key = applicationName ?? 'nobody';
    const names = { onConflict: 'always_update', applicationName, applicationVersion: null } as const;
    await registerQueue(operator, { name: `queue of ${key}`, parameters: {}, ...names });
    await registerVersion(database, `v of ${key}`, key);
    const incarnation = {
      incarnationID: key,
      executorID: 'e',
      applicationVersion: 'v',
      host: 'h',
      pid: 1,
      metadata: null,
    };
    await insertIncarnation(database, { ...incarnation, applicationName: key }, { leaseMs: 1 });
    const workflows = (['PENDING', 'ENQUEUED', 'DELAYED', 'SUCCESS', 'ERROR', 'CANCELLED', 'SUCCESS'] as const).map(
      (status, index) => newWorkflow({ workflowID: `${key} ${index}`, applicationName, status: 'PENDING', owner: key }),
    );
    await database.commit([
      insertWorkflows(workflows),
      insertCheckpoints(
        workflows.flatMap(({ workflowID }) =>
          [0, 1].map((stepID) => ({ owner: key, step: step(workflowID, stepID, { applicationName }) })),
        ),
      ),
      sql`
        UPDATE ${table('workflow_status')} SET status = 'SUCCESS'
        WHERE workflow_uuid >= ${`${key} 3`} AND workflow_uuid <= ${`${key} 9`}`,
      sql`
        INSERT INTO ${table('workflow_schedules')} (schedule_id, schedule_name, workflow_name, schedule, context, application_name)
        VALUES (${key}, ${key}, 'w', '* * * * *', '{}', ${applicationName})`,
    ]);
  }
  await database.commit(
    ['application_versions', 'executors'].map(
      (name) => sql`UPDATE ${table(name)} SET application_name = NULL WHERE application_name = 'nobody'`,
    ),
  );
  /** How many rows of each table have the name. */
  const countOf = async (applicationName: string | null) => {
    const counts: number[] = [];
    for (const name of TABLES) {
      const rows = await database.read(sql`SELECT t.application_name AS name FROM ${table(name)} AS t`);
      counts.push(rows.filter((row) => row['name'] === applicationName).length);
    }
    return counts;
  };
  const rename = (oldName: string | undefined, newName: string, options?: RenameApplicationOptions) =>
    renameApplication(operator, { oldName, newName }, options);
  return { rename, countOf };
}

const ALL = [1, 1, 1, 1, 7, 14];
const NONE = [0, 0, 0, 0, 0, 0];
const COUNTS = { queues: 1, schedules: 1, versions: 1, workflows: 7, steps: 14 };

describe('renameApplication', () => {
  forEachDialect((dialect) => {
    test.each([3, 10_000, null])('moves all rows of one name, %s at a time', async (batchSize) => {
      const { rename, countOf } = await setup(dialect);

      expect(await rename('old', 'new', { batchSize })).toEqual(COUNTS);

      expect(await countOf('new')).toEqual(ALL);
      expect(await countOf('old')).toEqual(NONE);
      expect(await countOf('other')).toEqual(ALL);
      expect(await countOf(null)).toEqual(ALL);
      expect(await rename('old', 'new', { batchSize })).toMatchObject({ workflows: 0, steps: 0 });
    });

    test('moves what belongs to nobody, alone or besides', async () => {
      const { rename, countOf } = await setup(dialect);

      expect(await rename(undefined, 'new', { adoptUnclaimedRows: true, batchSize: 5 })).toEqual(COUNTS);
      expect(await countOf(null)).toEqual(NONE);
      expect(await countOf('old')).toEqual(ALL);
      expect(await rename('old', 'new', { adoptUnclaimedRows: true })).toEqual(COUNTS);

      expect(await countOf('new')).toEqual(ALL.map((count) => 2 * count));
    });
  });

  test.each([
    ['', 'new', {}, 'oldName must not be empty'],
    ['old', ' ', {}, 'newName must not be empty'],
    [undefined, 'new', {}, 'Nothing to move'],
    ['same', 'same', {}, 'already'],
    ['old', 'new', { batchSize: 0 }, 'batchSize'],
    ['old', 'new', { batchSize: 1.5 }, 'batchSize'],
  ])('of %j to %j with %j is refused', async (oldName, newName, options, message) => {
    const renamed = renameApplication(operatorOn(undefined as never), { oldName, newName }, options);

    await expect(renamed).rejects.toMatchObject({
      name: 'DBOSInvalidArgumentError',
      message: expect.stringContaining(message),
    });
  });
});
