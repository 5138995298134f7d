// A process that keeps a full history is killed at each of its commits in turn. At the moment of the kill, and after another
// has finished its work, the stored events and the tables agree: an event is there if and only if its effect is.
import { expect, test } from 'vitest';
import { checkHistory } from '../../src/features/history/history-check.sql.js';
import { forEachDialect, type TestDialect } from '../rig/dialects.js';
import { raw } from '../database/migrations/catalog.js';
import type { KillPoint } from './kill-points.js';
import { crashAndFinish, finishAll, killAtEach, play, type Played } from './kill-scenarios.js';
import { type Scene, setScene } from './setup.js';
import type { Command } from './worker-process.js';

const FULL = { history: 'full' } as const;

const SCENARIO: readonly Command[] = [
  { do: 'launch' },
  { do: 'start', name: 'everything', workflowIDs: ['everything'] },
  { do: 'finish' },
  { do: 'shutdown' },
];

async function expectAgreement(scene: Scene): Promise<void> {
  const { workflows } = await scene.tables();
  await scene.withDatabase(async (database) => {
    for (const workflowID of workflows.keys()) {
      expect(await checkHistory(database, workflowID), workflowID).toEqual([]);
    }
  });
}

async function crashAndCheck(dialect: TestDialect, killPoint: KillPoint): Promise<Played> {
  const scene = await setScene(dialect);
  const played = await play(scene, killPoint, SCENARIO, FULL);
  await expectAgreement(scene);

  await crashAndFinish(scene, () => finishAll(scene, 'everything', FULL));

  await expectAgreement(scene);
  return played;
}

forEachDialect((dialect) => {
  test('events and tables agree after a kill at any commit', async () => {
    const moment = dialect.name === 'postgres' ? 'sent' : 'after';
    const { commits } = await play(await setScene(dialect), { number: 0, moment }, SCENARIO, FULL);

    await killAtEach(commits, moment, (killPoint) => crashAndCheck(dialect, killPoint));
  });

  test('the check finds an event without its effect, and an effect without its event', async () => {
    const scene = await setScene(dialect);
    await play(scene, { number: 0, moment: 'after' }, SCENARIO, FULL);
    const prefix = dialect.name === 'postgres' ? 'dbos.' : '';

    await scene.withDatabase(async (database) => {
      await database.run(
        raw(`DELETE FROM ${prefix}operation_outputs WHERE workflow_uuid = 'everything' AND function_id = 0`),
      );
      await database.run(
        raw(`INSERT INTO ${prefix}operation_outputs (workflow_uuid, function_id, function_name, completed_at_epoch_ms)
          VALUES ('everything', 9999, 'forged', 5)`),
      );

      expect(await checkHistory(database, 'everything')).toEqual([
        'Step 9999 (forged) has no event.',
        'An event describes step 0, which is not recorded.',
      ]);
    });
  });
});
