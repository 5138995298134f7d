import { describe, expect, onTestFinished, test } from 'vitest';
import {
  type ForkFromFailureOptions,
  forkFromFailure,
  type ForkSettings,
  forkWorkflows,
} from '../../../src/features/lifecycle/forks.js';
import { getAllEvents, getAllNotifications, getAllStreamEntries } from '../../../src/features/listing/inspection.js';
import { registerQueue } from '../../../src/features/queue/queues.js';
import { lock, sql, table } from '../../../src/kernel/sql/sql.js';
import { upsertEventHistory, upsertEvents } from '../../../src/features/message/events.sql.js';
import { loadSteps } from '../../../src/run/rows/steps.js';
import type { SqliteDatabase } from '../../../src/database/sqlite/sqlite-database.js';
import { findSqliteLibrary } from '../../../src/database/sqlite/sqlite-handle.js';
import { findWorkflows, insertWorkflows } from '../../../src/run/rows/workflows.js';
import { forEachDialect, onlyOn, type TestDialect } from '../../rig/dialects.js';
import { until } from '../../rig/manual-clock.js';
import { operatorOn } from '../../rig/operators.js';
import { newWorkflow } from '../../rig/records.js';
import { addWithHistory, CHILD, countRows, STEPS } from './histories.js';

async function setup(dialect: TestDialect) {
  const database = await dialect.create();
  const operator = operatorOn(database);
  const fork = async (workflowID: string, startStep: number, settings: ForkSettings = {}) => {
    const [forkID = ''] = await forkWorkflows(operator, [{ workflowID, startStep }], settings);
    return forkID;
  };
  const find = async (workflowID: string) => (await findWorkflows(database, [workflowID]))[0];
  const count = async () => {
    const [row] = await database.read(sql`SELECT COUNT(*) AS n FROM ${table('workflow_status')} AS w`);
    return row?.['n'];
  };
  return { database, operator, fork, find, count };
}

describe('a fork', () => {
  forEachDialect((dialect) => {
    test('has what its original had before the step, and nothing after it', async () => {
      const { database, operator, fork } = await setup(dialect);
      const workflowID = await addWithHistory(database);
      const before = await countRows(database, workflowID);

      const forkID = await fork(workflowID, 3);

      const steps = await loadSteps(database, [forkID]);
      const copied = (await loadSteps(database, [workflowID])).slice(0, 3);
      expect(steps).toEqual(copied.map((step) => ({ ...step, workflowID: forkID })));
      expect(await getAllEvents(operator, forkID)).toEqual({ state: 'after 1' });
      expect(await getAllStreamEntries(operator, forkID)).toEqual({ log: ['of 0', 'of 1'] });
      const [last] = await database.read(
        sql`SELECT MAX(s."offset") AS n FROM ${table('streams')} AS s WHERE s.workflow_uuid = ${forkID}`,
      );
      expect(last).toEqual({ n: 1 });
      expect(await getAllNotifications(operator, forkID)).toEqual([]);
      expect(await countRows(database, forkID)).toMatchObject({ workflow_events_history: 2, operation_outputs: 3 });
      expect(await countRows(database, workflowID)).toEqual(before);
    });

    test('from its beginning has nothing but the input, and beyond the last step it has everything', async () => {
      const { database, operator, fork, find } = await setup(dialect);
      const attributes = '{"tenant":"a"}';
      const workflowID = await addWithHistory(database, { inputs: null, attributes, authenticatedUser: 'u' });

      const [fresh, whole] = [await fork(workflowID, 0), await fork(workflowID, 99)];

      expect(await countRows(database, fresh)).toEqual({ workflow_status: 1 });
      expect(await find(fresh)).toMatchObject({ inputs: '[1]', authenticatedUser: 'u', applicationVersion: 'v1' });
      expect(JSON.parse((await find(fresh))?.attributes ?? '')).toEqual({ tenant: 'a' });
      expect(await loadSteps(database, [whole])).toHaveLength(5);
      expect(await getAllEvents(operator, whole)).toEqual({ state: 'after 3', late: 'yes' });
    });

    test('may have another version, queue, partition, timeout, children and ID', async () => {
      const { database, operator, find } = await setup(dialect);
      const workflowID = await addWithHistory(database);
      const parameters = { partitionQueue: true };
      const names = { onConflict: 'always_update', applicationName: null, applicationVersion: null } as const;
      await registerQueue(operator, { name: 'tenants', parameters, ...names });
      const settings = { applicationVersion: 'v2', timeoutMS: 1500.5, replacementChildren: { [CHILD]: 'other' } };
      const request = { workflowID, startStep: 4, newWorkflowID: 'fork' };

      await expect(forkWorkflows(operator, [request], { ...settings, queueName: 'tenants' })).rejects.toMatchObject({
        code: 'INVALID_QUEUE',
      });
      const place = { queueName: 'tenants', queuePartitionKey: 'a' };
      expect(await forkWorkflows(operator, [request], { ...settings, ...place })).toEqual(['fork']);

      expect(await find('fork')).toMatchObject({
        applicationVersion: 'v2',
        queueName: 'tenants',
        queuePartitionKey: 'a',
        timeoutMs: 1501,
        deadlineAt: null,
      });
      const children = (await loadSteps(database, ['fork'])).map((step) => step.childWorkflowID);
      expect(children).toEqual([null, null, 'other', null]);
    });

    test('is made together with all others or not at all', async () => {
      const { database, operator, find, count } = await setup(dialect);
      const workflowID = await addWithHistory(database);
      const request = { workflowID, startStep: 2 };
      const before = await count();

      const missing = forkWorkflows(operator, [request, { workflowID: 'nobody', startStep: 0 }]);
      await expect(missing).rejects.toMatchObject({ code: 'NON_EXISTENT_WORKFLOW' });
      const taken = forkWorkflows(operator, [request, { ...request, newWorkflowID: workflowID }]);
      await expect(taken).rejects.toMatchObject({ code: 'WORKFLOW_ID_IN_USE', workflowID });

      expect(await count()).toBe(before);
      expect(await find(workflowID)).toMatchObject({ wasForkedFrom: false });
      expect(await forkWorkflows(operator, [])).toEqual([]);
    });

    test('is made once by a call that is repeated, even if it has gone on and the original is gone', async () => {
      const { database, operator, find, count } = await setup(dialect);
      const workflowID = await addWithHistory(database);
      const requests = [2, 3].map((startStep) => ({ workflowID, startStep }));
      const first = await forkWorkflows(operator, requests, { token: 'call' });
      await database.run(sql`DELETE FROM ${table('workflow_status')} WHERE workflow_uuid = ${workflowID}`);
      await database.run(sql`UPDATE ${table('workflow_status')} SET status = 'SUCCESS'`);
      await database.run(sql`DELETE FROM ${table('operation_outputs')}`);

      const second = await forkWorkflows(operator, requests, { token: 'call' });

      expect(first).toEqual(['call-0', 'call-1']);
      expect(second).toEqual(first);
      expect(await count()).toBe(2);
      expect(await find('call-1')).toMatchObject({ status: 'SUCCESS' });
      expect(await loadSteps(database, first)).toEqual([]);
    });

    test('of ten thousand workflows is one commit', async () => {
      const { database, operator } = await setup(dialect);
      const originals = Array.from({ length: 10_000 }, (_, index) => newWorkflow({ workflowID: `o${index}` }));
      await database.run(insertWorkflows(originals));

      const requests = originals.map(({ workflowID }) => ({ workflowID, startStep: 1 }));
      const forkIDs = await forkWorkflows(operator, requests);

      const forks = new Map((await findWorkflows(database, forkIDs)).map((one) => [one.workflowID, one.forkedFrom]));
      expect(forkIDs.map((forkID) => forks.get(forkID))).toEqual(requests.map(({ workflowID }) => workflowID));
    });

    test('from a failure begins where each workflow has failed', async () => {
      const { database, operator } = await setup(dialect);
      const workflowID = await addWithHistory(database);
      const fresh = newWorkflow();
      await database.run(insertWorkflows([fresh]));
      const startSteps = async (options: ForkFromFailureOptions) => {
        const forkIDs = await forkFromFailure(operator, [workflowID, fresh.workflowID], options);
        return Promise.all(forkIDs.map(async (forkID) => (await loadSteps(database, [forkID])).length));
      };

      expect(await startSteps({ fromLastFailure: true })).toEqual([3, 0]);
      expect(await startSteps({ fromLastStep: true })).toEqual([4, 0]);
      expect(await startSteps({ fromStep: 2 })).toEqual([2, 0]);
      expect(await forkFromFailure(operator, [workflowID], { fromStepName: 'step 1' })).toHaveLength(1);

      await expect(startSteps({ fromStepName: 'step 1' })).rejects.toThrow(`has no step named "step 1"`);
      for (const options of [{}, { fromStep: 1, fromLastStep: true }, { fromLastFailure: false }]) {
        await expect(startSteps(options)).rejects.toThrow('exactly one of');
      }
    });
  });
});

onlyOn('postgres', (dialect) => {
  test('a fork of a running workflow does not lock it while it is copied, and is of one moment', async () => {
    const { database, operator, fork, find } = await setup(dialect);
    const workflowID = await addWithHistory(database, { status: 'PENDING', owner: 'o' });
    const free = () =>
      database.run(sql`
        SELECT w.workflow_uuid FROM ${table('workflow_status')} AS w
        WHERE w.workflow_uuid = ${workflowID} ${lock('skip', 'w')}`);

    const { forked } = await database.transaction(async (tx) => {
      await tx.run(sql`LOCK TABLE ${table('streams')} IN SHARE MODE`);
      const waiting = fork(workflowID, 10);
      await until(async () => {
        const blocked = await database.read(sql`
          SELECT pid FROM pg_stat_activity
          WHERE datname = current_database() AND cardinality(pg_blocking_pids(pid)) > 0`);
        return blocked.length > 0;
      });
      expect(await free()).toHaveLength(1);
      const event = { workflowID, owner: 'o', stepID: 7, key: 'meanwhile', text: '1', serialization: 'portable_json' };
      await database.commit([upsertEvents([event]), upsertEventHistory([event])]);
      return { forked: waiting };
    });

    const forkID = await forked;
    expect(await loadSteps(database, [forkID])).toHaveLength(STEPS);
    expect(await getAllEvents(operator, forkID)).not.toHaveProperty('meanwhile');
    expect(await getAllEvents(operator, workflowID)).toHaveProperty('meanwhile');
    expect(await find(workflowID)).toMatchObject({ wasForkedFrom: true });
  });
});

onlyOn('sqlite', (dialect) => {
  test('a fork of many steps never leaves the file locked for other connections in its thread', async () => {
    const { database, fork } = await setup(dialect);
    const workflowID = await addWithHistory(database);
    await database.run(sql`
      INSERT INTO ${table('operation_outputs')} (workflow_uuid, function_id, function_name)
      WITH RECURSIVE g(n) AS (SELECT 10 UNION ALL SELECT n + 1 FROM g WHERE n < 20000)
      SELECT ${workflowID}, g.n, 'step' FROM g`);
    const own = (await findSqliteLibrary()).open((database as SqliteDatabase).path);
    onTestFinished(() => own.close());
    own.exec('PRAGMA busy_timeout = 0');
    own.exec('CREATE TABLE application (n INTEGER)');
    let isForked = false;

    const forked = fork(workflowID, 20_001).finally(() => (isForked = true));
    while (!isForked) {
      await new Promise((resolve) => setImmediate(resolve));
      own.exec('INSERT INTO application VALUES (1)');
    }

    expect(await loadSteps(database, [await forked])).toHaveLength(STEPS + 19_991);
  });
});

describe('what a fork cannot have', () => {
  test.each([
    [{ startStep: -1 }, {}, 'startStep must be'],
    [{ startStep: 0.5 }, {}, 'startStep must be'],
    [{ startStep: Number.NaN }, {}, 'startStep must be'],
    [{ startStep: 2 ** 31 }, {}, 'startStep must be'],
    [{ newWorkflowID: ' ' }, {}, 'must not be empty'],
    [{ newWorkflowID: 'a\0' }, {}, 'NUL'],
    [{}, { timeoutMS: 0 }, 'timeoutMS'],
    [{}, { timeoutMS: Number.POSITIVE_INFINITY }, 'timeoutMS'],
    [{}, { queueName: '' }, 'queueName'],
  ])('%j with %j is refused before the database is asked', async (fields, settings, message) => {
    const operator = operatorOn(undefined as never);

    const forked = forkWorkflows(operator, [{ workflowID: 'w', startStep: 0, ...fields }], settings);

    await expect(forked).rejects.toThrow(message);
  });

  test('is an ID that another fork of the call has', async () => {
    const request = { workflowID: 'w', startStep: 0, newWorkflowID: 'f' };

    await expect(forkWorkflows(operatorOn(undefined as never), [request, request])).rejects.toThrow('both have');
  });
});
