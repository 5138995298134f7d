// Each verb against each state of a workflow, as the table of transitions says. One database has a workflow in every
// state for every verb.
import { describe, expect, test } from 'vitest';
import { renameApplication } from '../../../src/features/version/applications.js';
import { forkWorkflows } from '../../../src/features/lifecycle/forks.js';
import { cancelWorkflows, deleteWorkflows, resumeWorkflows } from '../../../src/features/lifecycle/lifecycle.js';
import type { Operator } from '../../../src/operator/operator.js';
import { garbageCollect, globalTimeout } from '../../../src/features/retention/retention.js';
import { rewindWorkflow } from '../../../src/features/lifecycle/rewind.js';
import { StatusString, TRANSITIONS, type WorkflowStatusString } from '../../../src/kernel/workflow/status.js';
import { sql, table } from '../../../src/kernel/sql/sql.js';
import type { Database } from '../../../src/database/database.js';
import { INTERNAL_QUEUE } from '../../../src/features/queue/queue.js';
import { findWorkflows, insertWorkflows } from '../../../src/run/rows/workflows.js';
import { forEachDialect } from '../../rig/dialects.js';
import { operatorOn } from '../../rig/operators.js';
import { newWorkflow } from '../../rig/records.js';

const STATUSES = Object.keys(StatusString) as WorkflowStatusString[];
const OLD = 1_000;

interface Verb {
  readonly transition: keyof typeof TRANSITIONS;
  /** Whether it says that a state is not the right one. */
  readonly isRefused?: boolean;
  /** Concerns all workflows of the database. */
  readonly isSweeping?: boolean;
  act(operator: Operator, workflowID: string): Promise<unknown>;
}

const VERBS: Readonly<Record<string, Verb>> = {
  cancel: { transition: 'cancel', act: (operator, workflowID) => cancelWorkflows(operator, [workflowID]) },
  resume: { transition: 'resume', act: (operator, workflowID) => resumeWorkflows(operator, [workflowID]) },
  delete: { transition: 'delete', act: (operator, workflowID) => deleteWorkflows(operator, [workflowID]) },
  rewind: {
    transition: 'rewind',
    isRefused: true,
    act: (operator, workflowID) => rewindWorkflow(operator, workflowID),
  },
  'global timeout': { transition: 'timeOut', isSweeping: true, act: (operator) => globalTimeout(operator, OLD) },
  'garbage collection': {
    transition: 'collect',
    isSweeping: true,
    act: (operator) => garbageCollect(operator, { cutoffEpochTimestampMs: OLD + 1 }),
  },
};

const newInState = (status: WorkflowStatusString) =>
  newWorkflow({ status, owner: status === 'PENDING' ? 'engine.1' : null, recoveryAttempts: 7, deadlineAt: 5 });

async function findStatus(database: Database, workflowID: string): Promise<WorkflowStatusString | null> {
  return (await findWorkflows(database, [workflowID]))[0]?.status ?? null;
}

describe('every verb in every state', () => {
  forEachDialect((dialect) => {
    test.each(Object.entries(VERBS))('%s does what the table of transitions says', async (_, verb) => {
      const database = await dialect.create();
      const operator = operatorOn(database);
      const { from, to } = TRANSITIONS[verb.transition];
      const workflows = STATUSES.map(newInState);
      await database.run(insertWorkflows(workflows));
      await database.run(sql`UPDATE ${table('workflow_status')} SET created_at = ${OLD}`);

      if (verb.isSweeping) await verb.act(operator, '');
      for (const { workflowID, status } of workflows) {
        const isAllowed = (from as readonly string[]).includes(status);
        const acted = verb.isSweeping ? Promise.resolve() : verb.act(operator, workflowID);
        if (verb.isRefused && !isAllowed) await expect(acted).rejects.toThrow(`is ${status}`);
        else await acted;
        expect(await findStatus(database, workflowID), status).toBe(isAllowed ? to : status);
      }
    });

    test('a fork leaves its original as it was, whatever state that is in', async () => {
      const database = await dialect.create();
      const originals = STATUSES.map(newInState);
      await database.run(insertWorkflows(originals));
      const before = await findWorkflows(
        database,
        originals.map(({ workflowID }) => workflowID),
      );

      const requests = originals.map(({ workflowID }) => ({ workflowID, startStep: 0 }));
      const forkIDs = await forkWorkflows(operatorOn(database), requests);

      for (const [index, original] of originals.entries()) {
        const [after] = await findWorkflows(database, [original.workflowID]);
        const unforked = before.find(({ workflowID }) => workflowID === original.workflowID);
        expect(after).toEqual({ ...unforked, wasForkedFrom: true });
        expect((await findWorkflows(database, [forkIDs[index] ?? '']))[0]).toMatchObject({
          status: 'ENQUEUED',
          queueName: INTERNAL_QUEUE,
          forkedFrom: original.workflowID,
          inputs: original.inputs,
          recoveryAttempts: 0,
          deadlineAt: null,
          owner: null,
        });
      }
    });

    test('another name of the application changes no state', async () => {
      const database = await dialect.create();
      const workflows = STATUSES.map(newInState);
      await database.run(insertWorkflows(workflows));

      const counts = await renameApplication(operatorOn(database), { oldName: 'test', newName: 'new' });

      expect(counts.workflows).toBe(STATUSES.length);
      for (const { workflowID, status } of workflows) {
        const [after] = await findWorkflows(database, [workflowID]);
        expect(after).toMatchObject({ status, applicationName: 'new' });
      }
    });
  });
});
