import { describe, expect, test } from 'vitest';
import { newID } from '../../../src/kernel/base/ids.js';
import { DBOSNonExistentWorkflowError } from '../../../src/kernel/errors/errors.js';
import type { WorkflowStatusString } from '../../../src/kernel/workflow/status.js';
import { StatusString, TRANSITIONS } from '../../../src/kernel/workflow/status.js';
import { sql, table } from '../../../src/kernel/sql/sql.js';
import type { Database } from '../../../src/database/database.js';
import {
  cancelOverdue,
  cancelWorkflows,
  findOwnedBy,
  deadLetterFatal,
  deadLetterIfOwned,
  handBack,
  msToNextDeadline,
  recoverExecutor,
  recoverIncarnation,
  resumeWorkflows,
} from '../../../src/run/rows/lifecycle.js';
import { INTERNAL_QUEUE } from '../../../src/features/queue/queue.js';
import { findWorkflows, insertWorkflows, type NewWorkflow } from '../../../src/run/rows/workflows.js';
import { forEachDialect } from '../../rig/dialects.js';
import { newWorkflow } from '../../rig/records.js';

const STATUSES = Object.keys(StatusString) as WorkflowStatusString[];

async function add(database: Database, ...workflows: NewWorkflow[]): Promise<void> {
  await database.run(insertWorkflows(workflows));
}

async function find(database: Database, workflowID: string) {
  const [workflow] = await findWorkflows(database, [workflowID]);
  if (!workflow) throw new Error(`there is no workflow ${workflowID}`);
  return workflow;
}

describe('lifecycle', () => {
  forEachDialect((dialect) => {
    test.each(STATUSES)(
      'a workflow that is %s is cancelled and resumed as the table of transitions says',
      async (status) => {
        const database = await dialect.create();
        const [toCancel, toResume] = [
          newWorkflow({ status }),
          newWorkflow({ status, recoveryAttempts: 7, deadlineAt: 5 }),
        ];
        await add(database, toCancel, toResume);
        const allowed = (from: readonly string[]): boolean => from.includes(status);

        const cancelled = await cancelWorkflows(database, [toCancel.workflowID]);
        const resumed = await resumeWorkflows(database, [toResume.workflowID]);

        const isCancelled = allowed(TRANSITIONS.cancel.from) && status !== 'CANCELLED';
        expect(cancelled).toEqual(isCancelled ? [toCancel.workflowID] : []);
        expect(resumed).toHaveLength(allowed(TRANSITIONS.resume.from) ? 1 : 0);
        const after = await find(database, toResume.workflowID);
        if (resumed.length > 0) {
          expect(after).toMatchObject({
            status: 'ENQUEUED',
            queueName: INTERNAL_QUEUE,
            recoveryAttempts: 0,
            deadlineAt: null,
            owner: null,
          });
        } else {
          expect(after).toMatchObject({ status, recoveryAttempts: 7 });
        }
      },
    );

    test('a cancelled workflow leaves its queue and frees its deduplication ID', async () => {
      const database = await dialect.create();
      const queued = newWorkflow({ status: 'ENQUEUED', queueName: 'q', deduplicationID: 'd', owner: null });
      await add(database, queued);

      await cancelWorkflows(database, [queued.workflowID, 'unknown']);

      expect(await find(database, queued.workflowID)).toMatchObject({
        status: 'CANCELLED',
        queueName: null,
        deduplicationID: null,
        completedAt: expect.any(Number),
      });
    });

    test('with children the whole tree is cancelled, without them only the workflow', async () => {
      const database = await dialect.create();
      const root = newWorkflow();
      const child = newWorkflow({ parentWorkflowID: root.workflowID });
      const done = newWorkflow({ parentWorkflowID: root.workflowID, status: 'SUCCESS' });
      const grandchildren = [child, done].map((parent) => newWorkflow({ parentWorkflowID: parent.workflowID }));
      const stranger = newWorkflow();
      await add(database, root, child, done, ...grandchildren, stranger);

      const cancelled = await cancelWorkflows(database, [root.workflowID], { children: true });

      const expected = [root, child, ...grandchildren].map((workflow) => workflow.workflowID);
      expect(cancelled.sort()).toEqual(expected.sort());
    });

    test('when one of the workflows to resume does not exist, none is resumed', async () => {
      const database = await dialect.create();
      const cancelled = newWorkflow({ status: 'CANCELLED' });
      await add(database, cancelled);

      await expect(resumeWorkflows(database, [cancelled.workflowID, 'unknown'])).rejects.toThrow(
        DBOSNonExistentWorkflowError,
      );

      expect((await find(database, cancelled.workflowID)).status).toBe('CANCELLED');
    });

    test('overdue workflows are cancelled, and the next deadline is known', async () => {
      const database = await dialect.create();
      const past = Date.now() - 60_000;
      const overdue = (['PENDING', 'ENQUEUED', 'DELAYED'] as const).map((status) =>
        newWorkflow({ status, deadlineAt: past }),
      );
      const finished = newWorkflow({ status: 'SUCCESS', deadlineAt: past });
      const later = newWorkflow({ deadlineAt: Date.now() + 3_600_000 });
      await add(database, ...overdue, finished, later);

      const first = await cancelOverdue(database, 2);
      const second = await cancelOverdue(database, 2);

      expect([...first, ...second].sort()).toEqual(overdue.map((workflow) => workflow.workflowID).sort());
      expect([first.length, second.length]).toEqual([2, 1]);
      const nextMs = await msToNextDeadline(database);
      expect(nextMs).toBeGreaterThan(3_500_000);
      expect(nextMs).toBeLessThanOrEqual(3_700_000);
    });

    test('only the workflows of the dead engine are recovered, into the queues they came from', async () => {
      const database = await dialect.create();
      const mine = newWorkflow({ owner: 'dead.1' });
      const queued = newWorkflow({ owner: 'dead.zz', queueName: 'mail' });
      const others = ['deadline.1', 'dea.1', 'dead', 'e.1'].map((owner) => newWorkflow({ owner }));
      const finished = newWorkflow({ owner: 'dead.3', status: 'SUCCESS' });
      await add(database, mine, queued, ...others, finished);

      const recovered = await recoverIncarnation(database, 'dead');

      expect(recovered).toHaveLength(2);
      expect(await find(database, mine.workflowID)).toMatchObject({
        status: 'ENQUEUED',
        queueName: INTERNAL_QUEUE,
        owner: null,
        recoveryAttempts: 1,
      });
      expect(await find(database, queued.workflowID)).toMatchObject({ status: 'ENQUEUED', queueName: 'mail' });
      for (const { workflowID } of others) expect((await find(database, workflowID)).status).toBe('PENDING');
    });

    test('an executor ID is recovered for its version only, and not what its new engine owns', async () => {
      const database = await dialect.create();
      const left = newWorkflow({ executorID: 'vm-1', owner: 'old.1' });
      const fresh = newWorkflow({ executorID: 'vm-1', owner: 'new.1' });
      const otherVersion = newWorkflow({ executorID: 'vm-1', owner: 'old.2', applicationVersion: 'v0' });
      const otherExecutor = newWorkflow({ executorID: 'vm-2', owner: 'old.3' });
      await add(database, left, fresh, otherVersion, otherExecutor);

      const recovered = await recoverExecutor(database, {
        executorID: 'vm-1',
        applicationVersion: 'v1',
        keptPrefix: 'new',
      });

      expect(recovered.map((changed) => changed.workflowID)).toEqual([left.workflowID]);
    });

    test('what is handed back counts no attempt, and what is given up becomes a dead letter, if it is owned', async () => {
      const database = await dialect.create();
      const [given, dead, lost] = [
        newWorkflow({ owner: 'me.1' }),
        newWorkflow({ owner: 'me.2' }),
        newWorkflow({ owner: 'other.1' }),
      ];
      await add(database, given, dead, lost);
      const owned = (workflow: NewWorkflow, owner: string) => ({ workflowID: workflow.workflowID, owner });

      await handBack(database, [owned(given, 'me.1'), owned(lost, 'me.3')]);
      await deadLetterIfOwned(database, [owned(dead, 'me.2'), owned(lost, 'me.3')]);

      expect(await find(database, given.workflowID)).toMatchObject({
        status: 'ENQUEUED',
        recoveryAttempts: 0,
        owner: null,
      });
      expect(await find(database, dead.workflowID)).toMatchObject({
        status: 'MAX_RECOVERY_ATTEMPTS_EXCEEDED',
        owner: null,
      });
      expect(await find(database, lost.workflowID)).toMatchObject({ status: 'PENDING', owner: 'other.1' });
    });

    test('a workflow that ends its process becomes a dead letter in a late attempt, if it is owned', async () => {
      const database = await dialect.create();
      const [early, late] = [newWorkflow({ owner: 'me.1' }), newWorkflow({ owner: 'me.2', recoveryAttempts: 3 })];
      await add(database, early, late);
      const isDead = ({ workflowID }: NewWorkflow, owner: string) =>
        deadLetterFatal(database, { workflowID, owner }, 3);

      expect([await isDead(early, 'me.1'), await isDead(late, 'other.1'), await isDead(late, 'me.2')]).toEqual([
        false,
        false,
        true,
      ]);
      expect(await find(database, early.workflowID)).toMatchObject({ status: 'PENDING', owner: 'me.1' });
      expect(await find(database, late.workflowID)).toMatchObject({
        status: 'MAX_RECOVERY_ATTEMPTS_EXCEEDED',
        owner: null,
      });
    });

    test('what an engine owns is found, except what it took a moment ago', async () => {
      const database = await dialect.create();
      const [old, young] = [newWorkflow({ owner: 'me.1' }), newWorkflow({ owner: 'me.2' })];
      await add(database, old, young, newWorkflow({ owner: `${newID()}.1` }));
      await database.run(
        sql`UPDATE ${table('workflow_status')} SET updated_at = 1 WHERE workflow_uuid = ${old.workflowID}`,
      );

      expect(await findOwnedBy(database, 'me', 60_000)).toEqual([{ workflowID: old.workflowID, owner: 'me.1' }]);
      expect(await findOwnedBy(database, 'me', 0)).toHaveLength(2);
    });

    test('what an engine owns is found although the clock of the database was set back', async () => {
      let now = 10_000_000;
      const database = await dialect.create({ now: () => now });
      await add(database, newWorkflow({ owner: 'me.1' }));

      now -= 3_600_000;

      expect(await findOwnedBy(database, 'me', 60_000)).toHaveLength(1);
      expect(await findOwnedBy(database, 'me', 0)).toHaveLength(1);
    });
  });
});
