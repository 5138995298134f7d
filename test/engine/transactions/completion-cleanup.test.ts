import { expect, test } from 'vitest';
import { silentLogger } from '../../../src/base/log.js';
import { CompletionCleanup } from '../../../src/engine/transactions/completion-cleanup.js';
import type { DataSourceTransactionHandler } from '../../../src/engine/transactions/data-source-handler.js';
import { sql, table } from '../../../src/sql/sql.js';
import { insertWorkflows } from '../../../src/store/runs/workflows.js';
import { sqlite } from '../../rig/dialects.js';
import { ManualClock } from '../../rig/manual-clock.js';
import { newWorkflow } from '../../rig/records.js';

async function setup() {
  const clock = new ManualClock();
  const deleted: string[][] = [];
  const handler = {
    name: 'list',
    deleteCheckpointsOfAll: async (workflowIDs: readonly string[], beforeCommit: () => Promise<void>) => {
      await beforeCommit();
      deleted.push([...workflowIDs]);
    },
  } as unknown as DataSourceTransactionHandler;
  const database = await sqlite.create();
  const cleanup = new CompletionCleanup({ clock, logger: silentLogger, database });
  return { clock, database, deleted, handler, cleanup };
}

test('records are deleted soon, those with rivals after a minute at least', async () => {
  const { clock, deleted, handler, cleanup } = await setup();

  cleanup.add(handler, 'alone', false);
  cleanup.add(handler, 'with rivals', true);
  clock.advance(500);
  await cleanup.flush();
  expect(deleted).toEqual([['alone']]);

  clock.advance(59_000);
  cleanup.add(handler, 'later', true);
  clock.advance(1000);
  await cleanup.flush();
  expect(deleted).toEqual([['alone']]);

  clock.advance(60_000);
  await cleanup.flush();
  expect(deleted).toEqual([['alone'], ['with rivals', 'later']]);
});

test('what is to be kept stays when the engine is shut down', async () => {
  const { clock, deleted, handler, cleanup } = await setup();
  cleanup.add(handler, 'alone', false);
  cleanup.add(handler, 'with rivals', true);

  await cleanup.stop();
  clock.advance(200_000);

  expect(deleted).toEqual([['alone']]);
});

test('what processes that are gone have left is found, and deleted if the workflow has ended', async () => {
  const { clock, database, deleted, handler, cleanup } = await setup();
  const statuses = new Map([
    ['cancelled', 'CANCELLED'],
    ['ended', 'SUCCESS'],
    ['running', 'PENDING'],
  ] as const);
  for (const [workflowID, status] of statuses) {
    await database.run(insertWorkflows([newWorkflow({ workflowID })]));
    await database.run(
      sql`UPDATE ${table('workflow_status')} SET status = ${status} WHERE workflow_uuid = ${workflowID}`,
    );
  }
  const recorded = [...statuses.keys(), 'unknown'];
  const listRecorded = async (afterID: string): Promise<string[]> => recorded.filter((id) => id > afterID);

  cleanup.start([{ ...handler, listRecorded }]);
  await clock.untilArmed(10_000);
  clock.advance(10_000);
  await clock.untilArmed(60_000);
  clock.advance(60_000);
  clock.advance(60_000);
  await cleanup.flush();

  expect(deleted).toEqual([['ended']]);
  await cleanup.stop();
});
