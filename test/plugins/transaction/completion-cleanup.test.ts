import { expect, test } from 'vitest';
import { silentLogger } from '../../../src/kernel/base/log.js';
import { CompletionCleanup } from '../../../src/plugins/transaction/completion-cleanup.run.js';
import type { DataSourceTransactionHandler } from '../../../src/plugins/transaction/data-source-handler.run.js';
import { sql, table } from '../../../src/kernel/sql/sql.js';
import { insertWorkflows } from '../../../src/run/rows/workflows.js';
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
  const addEnded = async (...workflowIDs: string[]): Promise<void> => {
    await database.run(insertWorkflows(workflowIDs.map((workflowID) => newWorkflow({ workflowID }))));
    await database.run(sql`UPDATE ${table('workflow_status')} SET status = 'SUCCESS'`);
  };
  return { clock, database, deleted, handler, cleanup, addEnded };
}

test('records are deleted soon, those with rivals after a minute at least', async () => {
  const { clock, deleted, handler, cleanup, addEnded } = await setup();
  await addEnded('alone', 'with rivals', 'later');

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

test('records are kept if the row shows another owner, or is gone, whatever the run believed', async () => {
  const { clock, database, deleted, handler, cleanup, addEnded } = await setup();
  await addEnded('alone', 'recovered');
  await database.run(sql`
    UPDATE ${table('workflow_status')}
    SET started_at_epoch_ms = started_at_epoch_ms + 1, recovery_attempts = 2
    WHERE workflow_uuid = 'recovered'`);

  for (const workflowID of ['alone', 'gone', 'recovered']) cleanup.add(handler, workflowID, false);
  await cleanup.flush();
  expect(deleted).toEqual([['alone']]);

  clock.advance(60_000);
  clock.advance(60_000);
  await cleanup.flush();
  expect(deleted).toEqual([['alone'], ['gone', 'recovered']]);
});

test('what is to be kept stays when the engine is shut down', async () => {
  const { clock, deleted, handler, cleanup, addEnded } = await setup();
  await addEnded('alone');
  cleanup.add(handler, 'alone', false);
  cleanup.add(handler, 'with rivals', true);

  await cleanup.stop();
  clock.advance(200_000);

  expect(deleted).toEqual([['alone']]);
});

test('what processes left behind is found again and again, and deleted if its workflow has ended or was deleted', async () => {
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
  const recorded = [
    ...[...statuses.keys()].map((workflowID) => ({ workflowID, systemID: 'here' })),
    { workflowID: 'gone', systemID: 'here' },
    { workflowID: 'of another system', systemID: 'elsewhere' },
    { workflowID: 'unknown', systemID: undefined },
  ].sort((a, b) => (a.workflowID < b.workflowID ? -1 : 1));
  const listRecorded = async (afterID: string) => recorded.filter(({ workflowID }) => workflowID > afterID);
  const sweep = async (afterMs: number): Promise<void> => {
    await clock.untilArmed(afterMs);
    clock.advance(afterMs);
    await clock.untilArmed(60_000);
    clock.advance(60_000);
    clock.advance(60_000);
    await cleanup.flush();
  };

  cleanup.start([{ ...handler, listRecorded }], 'here');
  await sweep(10_000);
  expect(deleted).toEqual([['ended', 'gone']]);

  await database.run(sql`DELETE FROM ${table('workflow_status')} WHERE workflow_uuid = 'cancelled'`);
  await sweep(600_000);
  expect(deleted.at(-1)).toEqual(['cancelled', 'ended', 'gone']);
  await cleanup.stop();
});
