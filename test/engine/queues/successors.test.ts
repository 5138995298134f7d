// A workflow that was claimed before there is a slot for it, and that starts when a run of its engine ends.
import { describe, expect, test } from 'vitest';
import { deferred } from '../../../src/base/deferred.js';
import { DatabaseStatementError, DatabaseUnavailableError } from '../../../src/model/errors/errors.js';
import type { QueueParameters } from '../../../src/model/queues.js';
import { render, sql, table } from '../../../src/sql/sql.js';
import type { Database } from '../../../src/store/database.js';
import { findOwnedBy } from '../../../src/store/runs/lifecycle.js';
import { findWorkflows } from '../../../src/store/runs/workflows.js';
import { forEachDialect, type TestDialect } from '../../rig/dialects.js';
import { createEngine, engineOf } from '../../rig/engines.js';
import { ManualClock, until } from '../../rig/manual-clock.js';

/** Runs from the beginning to the end, so that the others have one slot. */
const OTHER = 'other';
const IDS = ['w-0', 'w-1', 'w-2', 'w-3', 'w-4'];
/** How long one is held at most. */
const HOLD_MAX_MS = 100;
/** How often a pause looks whether any is held. */
const LOOK_AGAIN_MS = 5;
/** From which a run is not short. */
const LONG_MS = 200;
/** When a workflow without a run here counts as an orphan. */
const ORPHANED_MS = 20_000;
/** How soon an engine looks at its queues without being told, at the earliest. */
const POLL_MS = 10_000;

const TWO = { globalConcurrency: 2 };

interface SetupOptions {
  readonly firstTakesMs?: number;
  readonly isSerial?: boolean;
  readonly historyOf?: string;
  readonly limits?: QueueParameters;
}

/**
 * An engine with a queue that has one slot left. The first workflow has ended, the second one runs until it is let go, and the
 * rest are successors unless the first one has taken long.
 */
async function setup(
  dialect: TestDialect,
  { firstTakesMs = 0, isSerial = false, historyOf = '', limits = TWO }: SetupOptions = {},
) {
  const clock = new ManualClock();
  const { DBOS, url } = await createEngine(dialect, {}, clock.settings);
  const gates = new Map([OTHER, ...IDS].map((id) => [id, deferred<void>()]));
  const started: string[] = [];
  const workflow = DBOS.registerWorkflow(
    async (id: string) => {
      if (id !== OTHER) started.push(id);
      await gates.get(id)?.promise;
    },
    { name: 'gated' },
  );
  await DBOS.launch();
  await DBOS.registerQueue('q', isSerial ? { globalConcurrency: 1 } : limits);
  await DBOS.startWorkflows(
    workflow,
    [...(isSerial ? [] : [OTHER]), ...IDS].map((id) => ({ args: [id] as [string], workflowID: id })),
    { queueName: 'q' },
  );
  const release = (...ids: string[]) => ids.forEach((id) => gates.get(id)?.resolve());
  const row = (id: string) => DBOS.getWorkflowStatus(id);
  const untilStatus = (id: string, status: string) => until(async () => (await row(id))?.status === status);
  await until(() => started.length === 1);
  if (historyOf) await addHistory(engineOf(DBOS).runtime.database, historyOf);
  clock.advance(firstTakesMs);
  release('w-0');
  await until(() => started.length === 2);
  await untilStatus('w-0', 'SUCCESS');
  return { clock, DBOS, release, row, started, untilStatus, url, workflow };
}

/** As if an earlier run had recorded an operation that the workflow does not get to. */
async function addHistory(database: Database, workflowID: string): Promise<void> {
  await database.run(sql`
    INSERT INTO ${table('operation_outputs')} (workflow_uuid, function_id, function_name) VALUES (${workflowID}, 0, 'step')`);
}

describe('a successor', () => {
  forEachDialect((dialect) => {
    test('starts when a run ends, before the outcome of that is durable', async () => {
      const { DBOS, release, row, started } = await setup(dialect);
      expect(await row('w-2')).toMatchObject({ status: 'PENDING', dequeuedAt: undefined });
      const { database } = engineOf(DBOS).runtime;
      const commit = database.commit.bind(database);
      const mayCommit = deferred<void>();
      database.commit = async (...args) => {
        await mayCommit.promise;
        return commit(...args);
      };

      release('w-1');
      await until(() => started.includes('w-2'));
      expect((await row('w-1'))?.status).toBe('PENDING');
      mayCommit.resolve();

      await until(async () => (await row('w-2'))?.dequeuedAt !== undefined);
      expect((await row('w-1'))?.status).toBe('SUCCESS');
      release(...IDS);
      await until(async () => (await row('w-4'))?.status === 'SUCCESS');
      expect(started).toEqual(IDS);
    });

    test('is handed back if it does not get to start', async () => {
      const { clock, release, row, started, untilStatus } = await setup(dialect);

      clock.advance(HOLD_MAX_MS);
      await untilStatus('w-2', 'ENQUEUED');

      expect(await row('w-2')).toMatchObject({ recoveryAttempts: 0 });
      release(...IDS);
      await untilStatus('w-4', 'SUCCESS');
      expect(started).toEqual(IDS);
    });

    test('is not claimed while runs take long', async () => {
      const { row } = await setup(dialect, { firstTakesMs: LONG_MS });

      expect((await row('w-2'))?.status).toBe('ENQUEUED');
    });

    test('is not claimed where workflows run one after the other, in order', async () => {
      const { row } = await setup(dialect, { isSerial: true });

      expect((await row('w-2'))?.status).toBe('ENQUEUED');
    });

    test('does not start once the queue is paused', async () => {
      const { DBOS, release, row, started, untilStatus } = await setup(dialect);

      await DBOS.pauseQueue('q');
      expect((await row('w-2'))?.status).toBe('ENQUEUED');
      release(...IDS);
      await untilStatus('w-1', 'SUCCESS');
      expect(started).toEqual(['w-0', 'w-1']);

      await DBOS.resumeQueue('q');
      await untilStatus('w-4', 'SUCCESS');
      expect(started).toEqual(IDS);
    });

    test('does not start once the queue is paused by another process', async () => {
      const { clock, release, row, started, untilStatus, url } = await setup(dialect);
      const config = { systemDatabaseUrl: url, listenQueues: ['none'] };
      const other = await createEngine(dialect, config, clock.settings);
      await other.DBOS.launch();

      let isPaused = false;
      void other.DBOS.pauseQueue('q').then(() => (isPaused = true));
      await until(() => {
        // On SQLite no other process hears of the pause, and the successor is held to the end.
        if (clock.isArmed(LOOK_AGAIN_MS)) clock.advance(LOOK_AGAIN_MS);
        return isPaused;
      });

      expect((await row('w-2'))?.status).toBe('ENQUEUED');
      release(...IDS);
      await untilStatus('w-1', 'SUCCESS');
      expect(started).toEqual(['w-0', 'w-1']);
    });

    test('does not start once it is cancelled', async () => {
      const { DBOS, release, started, untilStatus } = await setup(dialect);

      await DBOS.cancelWorkflow('w-2');
      release(...IDS);
      await untilStatus('w-4', 'SUCCESS');

      expect(started).toEqual(['w-0', 'w-1', 'w-3', 'w-4']);
    });

    test('keeps its place if the run before it has lost its workflow', async () => {
      const { DBOS, release, started, untilStatus } = await setup(dialect);

      await DBOS.cancelWorkflow('w-1');
      await until(() => started.length === 3);
      release(...IDS);
      await untilStatus('w-4', 'SUCCESS');

      expect(started).toEqual(IDS);
    });

    test('goes back to the queue at the beginning of a shutdown', async () => {
      const { DBOS, release, row, url } = await setup(dialect);
      const database = await dialect.open(url);
      const statusOf = async (id: string) => (await findWorkflows(database, [id]))[0]?.status;
      expect((await row('w-2'))?.status).toBe('PENDING');

      const isDown = DBOS.shutdown({ workflowCompletionTimeoutMS: 60_000 });
      await until(async () => (await statusOf('w-2')) === 'ENQUEUED');
      expect(await statusOf('w-1')).toBe('PENDING');
      release('w-1', OTHER);
      await isDown;

      expect(await statusOf('w-1')).toBe('SUCCESS');
    });

    test('goes back to the queue at once if its history cannot be loaded', async () => {
      const { DBOS, release, started } = await setup(dialect, { historyOf: 'w-2' });
      const { database } = engineOf(DBOS).runtime;
      const read = database.read.bind(database);
      let failures = 0;
      database.read = async (...args) => {
        if (render(args[0], database.dialect).text.includes('operation_outputs') && failures++ === 0) {
          throw new DatabaseStatementError('no such thing', { sqlState: 'XX000' });
        }
        return read(...args);
      };

      release('w-1');
      await until(() => started.includes('w-2'));

      expect(failures).toBeGreaterThan(1);
    });

    test('goes back to the queue although the first attempt to put it there fails', async () => {
      const { clock, DBOS, row } = await setup(dialect);
      const { database } = engineOf(DBOS).runtime;
      const commit = database.commit.bind(database);
      let failures = 0;
      database.commit = async (...args) => {
        const isHandBack = args[0].some((one) => render(one, database.dialect).text.includes('recovery_attempts - 1'));
        if (isHandBack && failures++ === 0) throw new DatabaseUnavailableError('gone for a moment');
        return commit(...args);
      };

      clock.advance(HOLD_MAX_MS);
      let waitedMs = 0;
      await until(async () => {
        clock.advance(1);
        waitedMs += 1;
        return (await row('w-2'))?.status === 'ENQUEUED';
      });

      expect(waitedMs).toBeLessThan(ORPHANED_MS);
    });

    test('counts as running here while its history is loaded', async () => {
      const { DBOS, release, started, untilStatus, workflow } = await setup(dialect, {
        limits: { workerConcurrency: 2 },
        historyOf: 'w-2',
      });
      const { database } = engineOf(DBOS).runtime;
      const read = database.read.bind(database);
      const mayRead = deferred<void>();
      database.read = async (...args) => {
        if (render(args[0], database.dialect).text.includes('operation_outputs')) await mayRead.promise;
        return read(...args);
      };
      release('w-1');
      await untilStatus('w-1', 'SUCCESS');

      await DBOS.startWorkflow(workflow, { queueName: 'q', workflowID: 'late' })('late');
      mayRead.resolve();
      await until(() => started.includes('w-2'));
      // No claim is in flight after that.
      await engineOf(DBOS).queues.reload();

      expect(started).toEqual(['w-0', 'w-1', 'w-2']);
      release(...IDS, 'late');
    });

    test('is followed by none if the run before it had lost its workflow, and maybe its slot', async () => {
      const { DBOS, release, started, untilStatus } = await setup(dialect);
      const { database } = engineOf(DBOS).runtime;
      // As a program does that Everstep does not hear of.
      await database.run(sql`UPDATE ${table('workflow_status')} SET owner_xid = 'x' WHERE workflow_uuid = 'w-1'`);
      release('w-1');
      await until(() => started.includes('w-2'));
      await until(() => !engineOf(DBOS).runs.has('w-1'));

      // The database counts three: w-1, which may run elsewhere, is one of them.
      release('w-2');
      await untilStatus('w-2', 'SUCCESS');
      await untilStatus('w-3', 'ENQUEUED');

      expect(started).toEqual(['w-0', 'w-1', 'w-2']);
    });

    test('leaves its slot to the next if it is cancelled before the outcome that made room for it is durable', async () => {
      const { clock, DBOS, release, started } = await setup(dialect);
      const { database } = engineOf(DBOS).runtime;
      const commit = database.commit.bind(database);
      const mayCommit = deferred<void>();
      let claims = 0;
      database.commit = async (...args) => {
        const text = args[0].map((one) => render(one, database.dialect).text).join();
        if (text.includes('SET status = r.status')) await mayCommit.promise;
        const results = await commit(...args);
        if (text.includes('unversioned AS')) claims += 1;
        return results;
      };
      release('w-1');
      await until(() => started.includes('w-2'));
      await DBOS.cancelWorkflow('w-2');
      release('w-2');
      await until(() => !engineOf(DBOS).runs.has('w-2') && claims > 0);
      mayCommit.resolve();

      let waitedMs = 0;
      await until(() => {
        clock.advance(1);
        waitedMs += 1;
        return started.length > 3;
      });
      expect(waitedMs).toBeLessThan(POLL_MS);
      release(...IDS);
    });

    test('is no orphan of its claim', async () => {
      const { DBOS, row } = await setup(dialect);
      const { database, incarnationID } = engineOf(DBOS).runtime;
      const owned = await findOwnedBy(database, incarnationID, 0);
      expect(owned.map(({ workflowID }) => workflowID).toSorted()).toEqual([OTHER, 'w-1', 'w-2', 'w-3', 'w-4']);

      await engineOf(DBOS).ownership.requeue(owned);

      expect((await row('w-2'))?.status).toBe('PENDING');
    });
  });
});
