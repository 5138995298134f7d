// The slot of a workflow that ends goes to the next one in the same commit.
import pg from 'pg';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { deferred } from '../../../src/kernel/base/deferred.js';
import { silentLogger } from '../../../src/kernel/base/log.js';
import { Dispatcher } from '../../../src/features/queue/dispatcher.run.js';
import type { Queue } from '../../../src/features/queue/known-queues.run.js';
import { Slots } from '../../../src/run/slots.js';
import type { TestSettings } from '../../../src/faces/library/dbos.js';
import { type Limits, type QueueParameters, UNLIMITED } from '../../../src/features/queue/queue.js';
import type { Row } from '../../../src/database/database.js';
import { forEachDialect, onlyOn, type TestDialect } from '../../rig/dialects.js';
import { createEngine, engineOf } from '../../rig/engines.js';
import { ManualClock, until } from '../../rig/manual-clock.js';
import { occupy } from '../../rig/slots.js';

/** How often an engine looks for work of other programs. */
const LOOK_MS = 1000;
const IDS = ['w-0', 'w-1', 'w-2', 'w-3'];

/** An engine with four workflows on a queue. They run until they are let go. */
async function setup(dialect: TestDialect, limits: QueueParameters, settings?: TestSettings) {
  const { DBOS, url } = await createEngine(dialect, {}, settings);
  const gates = new Map(IDS.map((id) => [id, deferred<void>()]));
  const started: string[] = [];
  const workflow = DBOS.registerWorkflow(
    async (id: string) => {
      started.push(id);
      await gates.get(id)?.promise;
    },
    { name: 'gated' },
  );
  await DBOS.launch();
  await DBOS.registerQueue('q', limits);
  const { database } = engineOf(DBOS).runtime;
  const commit = database.commit.bind(database);
  const refilled: unknown[] = [];
  // A claim of its own takes a lock first.
  const isClaim = (results: readonly (readonly Row[])[]) => results[0]?.[0] !== undefined && 'locked' in results[0][0];
  vi.spyOn(database, 'commit').mockImplementation(async (...given) => {
    const results = await commit(...given);
    if (!isClaim(results)) refilled.push(...results.flat().flatMap((row) => claimedID(row) ?? []));
    return results;
  });
  await DBOS.startWorkflows(
    workflow,
    IDS.map((id) => ({ args: [id] as [string], workflowID: id })),
    { queueName: 'q' },
  );
  const release = (...ids: string[]) => ids.forEach((id) => gates.get(id)?.resolve());
  const statusOf = async (id: string) => (await DBOS.getWorkflowStatus(id))?.status;
  return { DBOS, started, refilled, release, statusOf, url };
}

function claimedID(row: Row): unknown {
  return 'has_steps' in row ? row['workflow_uuid'] : undefined;
}

/** A claim settles in the turn in which its runs start. */
async function turn(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

describe('a queue with a backlog', () => {
  forEachDialect((dialect) => {
    test('claims the next workflow in the commit that ends the one before', async () => {
      const { started, refilled, release, statusOf } = await setup(dialect, { globalConcurrency: 1 });
      await until(() => started.length === 1);
      await turn();

      release(...IDS);
      await until(async () => (await statusOf('w-3')) === 'SUCCESS');

      expect(started).toEqual(IDS);
      expect(refilled).toEqual(['w-1', 'w-2', 'w-3']);
    });

    test('leaves nothing running that a shutdown has not stopped', async () => {
      const { DBOS, started, release } = await setup(dialect, { globalConcurrency: 1 });
      await until(() => started.length === 1);

      const isDown = DBOS.shutdown();
      release('w-0');
      await isDown;
      await DBOS.launch();

      // It was not claimed, or was handed back. The new launch claims it.
      await until(async () => (await DBOS.getWorkflowStatus('w-1'))?.status === 'PENDING');
      release(...IDS);
      await until(async () => (await DBOS.getWorkflowStatus('w-3'))?.status === 'SUCCESS');
    });
  });
});

describe('a queue that another program serves as well', () => {
  onlyOn('postgres', (dialect) => {
    test('has its slots freed, and refilled again when none of its work waits any more', async () => {
      const clock = new ManualClock();
      const limits = { globalConcurrency: 1 };
      const { refilled, release, started, statusOf, url } = await setup(dialect, limits, clock.settings);
      const other = new pg.Client({ connectionString: url });
      await other.connect();
      onTestFinished(() => other.end());
      await other.query(`INSERT INTO dbos.application_versions (version_id, version_name) VALUES ('1', 'theirs')`);
      await other.query(`SELECT dbos.enqueue_workflow('w', 'q', workflow_id => 'x', app_version => 'theirs')`);
      await until(() => started.length === 1);
      await turn();

      release('w-0', 'w-1');
      // It does not take the slots that are left to it.
      await until(() => {
        if (started.length < 3) clock.advance(LOOK_MS);
        return started.length === 3;
      });
      expect(refilled).toEqual([]);
      await other.query(`UPDATE dbos.workflow_status SET status = 'CANCELLED' WHERE workflow_uuid = 'x'`);
      clock.advance(LOOK_MS);
      release(...IDS);

      await until(async () => (await statusOf('w-3')) === 'SUCCESS');
      expect(refilled).toEqual(['w-3']);
    });
  });
});

describe('a dispatcher', () => {
  interface Situation {
    readonly limits?: Partial<Limits>;
    readonly engines?: number;
    readonly running?: number;
    readonly isPartitioned?: boolean;
    readonly capacity?: number;
  }

  async function mayRefill({ limits, engines = 1, running = 1, isPartitioned = false, capacity = 10 }: Situation) {
    const whole = { ...UNLIMITED, ...limits };
    const queue: Queue = { name: 'q', limits: { whole, partition: isPartitioned ? UNLIMITED : null }, pollMs: 1000 };
    const slots = new Slots(capacity + running);
    occupy(slots, running, { queueName: 'q' });
    const dispatcher = new Dispatcher({
      clock: new ManualClock(),
      logger: silentLogger,
      source: {
        findWork: async () => ({ queues: [queue], waiting: [] }),
        pollMs: () => 15_000,
        claim: () => Promise.reject(new Error('unexpected')),
        claimPartitions: () => Promise.reject(new Error('unexpected')),
        findPartitions: async () => [],
        countRunning: async () => 0,
      },
      slots,
      countEngines: () => engines,
      claimsMax: 2,
      reportClaimed: () => {},
      notifyPeers: () => {},
    });
    await dispatcher.start();
    const found = dispatcher.findRefillable('q');
    await dispatcher.stop();
    expect(dispatcher.findRefillable('q')).toBeUndefined();
    return found !== undefined;
  }

  test.each<[string, Situation, boolean]>([
    ['the slots of a queue with a limit', { limits: { concurrency: 1 } }, true],
    ['the slots of a queue with a limit for each process', { limits: { workerConcurrency: 1 } }, true],
    ['nothing of a queue without limits, which has slots anyway', {}, false],
    [
      'nothing under a rate limit, which goes by time',
      { limits: { concurrency: 1, rate: { max: 1, periodMs: 1 } } },
      false,
    ],
    [
      'nothing of a queue with partitions, which take turns',
      { limits: { concurrency: 1 }, isPartitioned: true },
      false,
    ],
    [
      'nothing above a limit for each process that was lowered',
      { limits: { workerConcurrency: 1 }, running: 2 },
      false,
    ],
    ['nothing above the capacity of the process', { limits: { concurrency: 1 }, capacity: -1 }, false],
    ['its share of the slots', { limits: { concurrency: 10 }, engines: 4, running: 3 }, true],
    ['no more than its share', { limits: { concurrency: 10 }, engines: 4, running: 4 }, false],
    ['a share that leaves a slot to each peer', { limits: { concurrency: 6 }, engines: 4, running: 1 }, true],
    ['no share that leaves a peer without a slot', { limits: { concurrency: 6 }, engines: 4, running: 2 }, false],
    ['nothing if there are more peers than slots', { limits: { concurrency: 3 }, engines: 4, running: 1 }, false],
  ])('fills again %s', async (_, situation, isFilled) => {
    expect(await mayRefill(situation)).toBe(isFilled);
  });
});
