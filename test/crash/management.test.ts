// Forks and garbage collections whose process is killed, and a garbage collection beside a load.
import { expect, test } from 'vitest';
import { newID } from '../../src/kernel/base/ids.js';
import { sql, table } from '../../src/kernel/sql/sql.js';
import type { Database } from '../../src/database/database.js';
import { insertCheckpoints } from '../../src/run/rows/steps.js';
import { insertWorkflows } from '../../src/run/rows/workflows.js';
import { forEachDialect } from '../rig/dialects.js';
import { newWorkflow, step } from '../rig/records.js';
import { countByStatus } from './invariants.js';
import { TRANSACTION } from './kill-points.js';
import { crashAndFinish, finishAll, play } from './kill-scenarios.js';
import { idsOf, launchHere, setScene } from './setup.js';

const ENDED = 100;
const WAITING = 10;

/** Workflows of a name that nobody serves: most have ended, some wait. Each has a step and an input kept apart. */
async function addOld(database: Database): Promise<void> {
  const owner = newID();
  const workflows = [...idsOf('ended', ENDED), ...idsOf('waiting', WAITING)].map((workflowID) =>
    newWorkflow({ workflowID, owner, name: 'unknown', queueName: 'unserved', applicationName: 'crash' }),
  );
  await database.commit([
    insertWorkflows(workflows),
    insertCheckpoints(workflows.map(({ workflowID }) => ({ owner, step: step(workflowID, 0) }))),
    sql`
      INSERT INTO ${table('workflow_input')} (workflow_uuid, inputs)
      SELECT w.workflow_uuid, '[]' FROM ${table('workflow_status')} AS w WHERE w.workflow_uuid LIKE 'ended-%'`,
    sql`
      UPDATE ${table('workflow_status')}
      SET owner_xid = NULL, status = CASE WHEN workflow_uuid LIKE 'ended-%' THEN 'SUCCESS' ELSE 'ENQUEUED' END`,
  ]);
}

/** Rows of inputs and steps whose workflow is gone. */
async function countOrphans(database: Database): Promise<number> {
  let count = 0;
  for (const name of ['workflow_input', 'operation_outputs']) {
    const rows = await database.read(sql`
      SELECT p.workflow_uuid
      FROM ${table(name)} AS p
      WHERE NOT EXISTS (SELECT 1 FROM ${table('workflow_status')} AS w WHERE w.workflow_uuid = p.workflow_uuid)`);
    count += rows.length;
  }
  return count;
}

forEachDialect((dialect) => {
  test.each(['before', 'sent', 'after'] as const)(
    'a workflow whose process is killed at its fork has one fork in the end: %s',
    async (moment) => {
      const scene = await setScene(dialect);
      const { wasKilled } = await play(scene, { label: TRANSACTION, number: 1, moment }, [
        { do: 'launch' },
        { do: 'start', name: 'forker', workflowIDs: ['forker'] },
        { do: 'finish' },
      ]);
      const forked = (await scene.tables()).workflows.has('forker-3');

      const { workflows } = await crashAndFinish(scene, () => finishAll(scene, 'forker'));

      expect(wasKilled).toBe(true);
      expect(forked).toBe(moment === 'after');
      expect([...workflows.keys()].sort()).toEqual(['forker', 'forker-1', 'forker-3']);
    },
  );

  test.each(dialect.name === 'postgres' ? (['sent', 'after'] as const) : (['before', 'after'] as const))(
    'a garbage collection whose process is killed is finished by the next one: %s',
    async (moment) => {
      const scene = await setScene(dialect);
      await scene.withDatabase(addOld);

      const { wasKilled } = await play(scene, { label: TRANSACTION, number: 4, moment }, [
        { do: 'launch' },
        { do: 'collect', batchSize: 20 },
      ]);
      const then = await scene.withDatabase(countByStatus);
      const orphans = await scene.withDatabase(countOrphans);
      const { DBOS } = await launchHere(scene);
      const collected = await DBOS.garbageCollect({ cutoffEpochTimestampMs: Date.now() + 60_000 });

      expect(wasKilled).toBe(true);
      expect(orphans).toBe(0);
      const left = then.get('SUCCESS') ?? 0;
      expect(left).toBeLessThan(ENDED);
      expect(left).toBeGreaterThan(0);
      expect(collected.workflows).toBe(left);
      expect(await scene.withDatabase(countByStatus)).toEqual(new Map([['ENQUEUED', WAITING]]));
      expect(await scene.withDatabase(countOrphans)).toBe(0);
    },
  );

  test('garbage collections beside a load take nothing that is under way', async () => {
    const scene = await setScene(dialect);
    await scene.withDatabase(addOld);
    const { DBOS, workflows } = await launchHere(scene);
    let isOver = false;
    // What has just ended is garbage for it, too.
    const collect = async (): Promise<number> => {
      let count = 0;
      while (!isOver) {
        const cutoffEpochTimestampMs = Date.now() + 60_000;
        count += (await DBOS.garbageCollect({ cutoffEpochTimestampMs, batchSize: 30 })).workflows;
      }
      return count;
    };

    const collected = Promise.all([collect(), collect()]);
    const handles = await Promise.all(idsOf('five', 60).map(() => DBOS.startWorkflow(workflows.five)()));
    const families = await Promise.all(idsOf('family', 20).map(() => DBOS.startWorkflow(workflows.family)()));
    const results = await Promise.all([...handles, ...families].map((handle) => handle.getResult()));
    isOver = true;
    await collected;
    await DBOS.garbageCollect({ cutoffEpochTimestampMs: Date.now() + 60_000 });

    expect(results.map((tokens) => tokens.length)).toEqual([
      ...idsOf('five', 60).map(() => 5),
      ...idsOf('family', 20).map(() => 6),
    ]);
    expect(await scene.withDatabase(countByStatus)).toEqual(new Map([['ENQUEUED', WAITING]]));
    expect(await scene.withDatabase(countOrphans)).toBe(0);
  });
});
