import { describe, expect, test } from 'vitest';
import { deferred } from '../../../src/kernel/base/deferred.js';
import { silentLogger } from '../../../src/kernel/base/log.js';
import { Dispatcher, type DispatcherOptions, type WorkSource } from '../../../src/features/queue/dispatcher.run.js';
import type { NewClaim } from '../../../src/features/queue/claims.run.js';
import type { Queue } from '../../../src/features/queue/known-queues.run.js';
import { type Limits, UNLIMITED } from '../../../src/features/queue/queue.js';
import type { DBOSInstance } from '../../../src/index.js';
import type { Sql } from '../../../src/kernel/sql/sql.js';
import { Slots } from '../../../src/run/slots.js';
import { forEachDialect, hasPush } from '../../rig/dialects.js';
import { createEngine, engineOf } from '../../rig/engines.js';
import { ManualClock, until } from '../../rig/manual-clock.js';
import { occupy } from '../../rig/slots.js';
import { newHalt } from '../../run/succession.js';

const NOTHING_LEFT = {
  isWaiting: false,
  hasRoom: true,
  waitMs: null,
  hasPartitionRoom: true,
  partitionWaitMs: null,
} as const;

function queueOf(name: string, limits: Partial<Limits> = {}): Queue {
  return { name, limits: { whole: { ...UNLIMITED, ...limits }, partition: null }, pollMs: 1000 };
}

const partitioned: Queue = {
  name: 'parts',
  limits: { whole: { ...UNLIMITED, concurrency: 7 }, partition: UNLIMITED },
  pollMs: 1000,
};

describe('a dispatcher', () => {
  /** A dispatcher of these queues. Its claims are noted and end when the test says how. */
  async function setup(
    names: readonly string[],
    {
      slots = new Slots(1000),
      ...fields
    }: Partial<WorkSource & Pick<DispatcherOptions, 'slots' | 'claimsMax' | 'countEngines' | 'notifyPeers'>> = {},
  ) {
    const clock = new ManualClock();
    const claims: { queue: string; limit: number; end(result: Partial<NewClaim>): void; fail(): void }[] = [];
    const underWay = new Set<string>();
    let looks = 0;
    const dispatcher = new Dispatcher({
      clock,
      logger: silentLogger,
      source: {
        findWork: async () => {
          looks += 1;
          return { queues: names.map((name) => queueOf(name)), waiting: [] };
        },
        pollMs: () => 15_000,
        claimPartitions: async () => [],
        findPartitions: async () => [],
        countRunning: async () => 0,
        claim: async ({ name }, limit) => {
          expect(underWay.has(name)).toBe(false);
          underWay.add(name);
          const ended = deferred<NewClaim>();
          claims.push({
            queue: name,
            limit,
            end: (result) => {
              occupy(slots, result.taken ?? 0, { queueName: name });
              ended.resolve({ taken: 0, left: NOTHING_LEFT, begin: async () => {}, ...result });
            },
            fail: () => ended.reject(new Error('The database is away.')),
          });
          return ended.promise.finally(() => underWay.delete(name));
        },
        ...fields,
      },
      slots,
      countEngines: () => 1,
      claimsMax: 2,
      reportClaimed: () => {},
      notifyPeers: () => {},
      ...fields,
    });
    const started = dispatcher.start();
    await until(() => looks === 1 || 'findWork' in fields);
    await turns();
    const queuesOf = () => claims.map(({ queue }) => queue);
    return { clock, dispatcher, started, claims, slots, looks: () => looks, queuesOf };
  }

  /** Lets everything happen that needs no time. */
  async function turns(): Promise<void> {
    for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  }

  test.each(['found', 'failed'])('has started when its first look has %s, not before', async (end) => {
    const look = deferred<{ queues: readonly Queue[]; waiting: readonly string[] }>();
    const { dispatcher, started } = await setup([], { findWork: () => look.promise });
    let isStarted = false;
    void started.then(() => (isStarted = true));
    await turns();
    expect(isStarted).toBe(false);

    if (end === 'found') look.resolve({ queues: [], waiting: [] });
    else look.reject(new Error('The database is away.'));

    await started;
    await dispatcher.stop();
  });

  test('has a limited number of claims under way, and one of each queue', async () => {
    const { dispatcher, claims, queuesOf } = await setup(['a', 'b', 'c']);

    for (const name of ['a', 'b', 'c', 'a', 'b']) dispatcher.wake(name);
    expect(queuesOf()).toEqual(['a', 'b']);
    claims[0]?.end({});
    await turns();
    expect(queuesOf()).toEqual(['a', 'b', 'c']);

    // What was announced meanwhile is looked at once more.
    claims[1]?.end({});
    await turns();
    claims.slice(2).forEach((claim) => claim.end({}));
    await turns();
    claims.forEach((claim) => claim.end({}));
    await dispatcher.stop();
  });

  test('claims again at once as long as it gets all it may take', async () => {
    const { dispatcher, claims } = await setup(['a'], { slots: new Slots(400) });

    dispatcher.wake('a');
    claims[0]?.end({ taken: 300, left: { ...NOTHING_LEFT, isWaiting: true } });
    await turns();

    expect(claims.map(({ limit }) => limit)).toEqual([300, 100]);
    claims[1]?.end({});
    await dispatcher.stop();
  });

  /** A claim that got all it asked for. The test says when its workflows have begun. */
  function fullClaim() {
    const begun = deferred<void>();
    const claim = {
      taken: 300,
      left: { ...NOTHING_LEFT, isWaiting: true },
      hasBegun: false,
      begin: () => {
        claim.hasBegun = true;
        return begun.promise;
      },
      begun,
    };
    return claim;
  }

  test('has the next claim under way while the workflows of a full one begin, and keeps the order', async () => {
    const { dispatcher, claims } = await setup(['a']);
    const [first, second] = [fullClaim(), fullClaim()];
    dispatcher.wake('a');
    claims[0]?.end(first);
    await turns();
    expect([first.hasBegun, claims.length]).toEqual([true, 2]);

    claims[1]?.end(second);
    await turns();
    expect([second.hasBegun, claims.length]).toEqual([false, 2]);

    first.begun.resolve();
    await turns();
    expect([second.hasBegun, claims.length]).toEqual([true, 3]);
    let isStopped = false;
    const stopped = dispatcher.stop().then(() => (isStopped = true));
    claims[2]?.end({});
    await turns();
    expect(isStopped).toBe(false);
    second.begun.resolve();
    await stopped;
  });

  test('leaves slots for what is still to begin', async () => {
    const { dispatcher, claims } = await setup(['a'], { slots: new Slots(700) });
    const claimed = fullClaim();
    dispatcher.wake('a');
    claims[0]?.end(claimed);
    await turns();
    claims[1]?.end(fullClaim());
    await turns();
    expect(claims.map(({ limit }) => limit)).toEqual([300, 300]);

    claimed.begun.resolve();
    await turns();

    expect(claims.map(({ limit }) => limit)).toEqual([300, 300, 100]);
  });

  test('serves another queue while the workflows of a full claim begin', async () => {
    const { dispatcher, claims, queuesOf } = await setup(['a', 'b'], { claimsMax: 1, slots: new Slots(350) });
    dispatcher.wake('a');
    dispatcher.wake('b');
    claims[0]?.end(fullClaim());
    await turns();

    expect(queuesOf()).toEqual(['a', 'b']);
  });

  test('goes on when the workflows of a claim cannot begin', async () => {
    const { clock, dispatcher, claims } = await setup(['a']);
    const [first, second] = [fullClaim(), fullClaim()];
    dispatcher.wake('a');
    claims[0]?.end(first);
    await turns();
    claims[1]?.end({ ...second, left: NOTHING_LEFT });
    first.begun.reject(new Error('The database is away.'));
    await turns();
    expect([second.hasBegun, claims.length]).toEqual([true, 2]);

    second.begun.resolve();
    await turns();
    clock.advance(500);

    expect(claims).toHaveLength(3);
    claims[2]?.end({});
    await dispatcher.stop();
  });

  test.each<[string, Partial<Limits>, number]>([
    ['a queue with a worker limit', { workerConcurrency: 500 }, 1],
    ['a queue with a limit of its own', { concurrency: 500 }, 1],
    ['a queue that it shares', {}, 2],
  ])('counts what has begun before it claims again from %s', async (_, limits, engines) => {
    const { dispatcher, claims } = await setup([], {
      findWork: async () => ({ queues: [queueOf('a', limits)], waiting: [] }),
      countEngines: () => engines,
    });
    const claimed = fullClaim();
    dispatcher.wake('a');
    claims[0]?.end(claimed);
    await turns();
    expect([claimed.hasBegun, claims.length]).toEqual([true, 1]);

    claimed.begun.resolve();
    await turns();

    expect(claims).toHaveLength(2);
    claims[1]?.end({});
    await dispatcher.stop();
  });

  test('counts what has begun before it claims again from a queue that has got a worker limit meanwhile', async () => {
    const { dispatcher, claims } = await setup(['a']);
    dispatcher.wake('a');
    dispatcher.serve([queueOf('a', { workerConcurrency: 500 })]);
    claims[0]?.end(fullClaim());
    await turns();

    expect(claims).toHaveLength(1);
  });

  test('never claims more at a time than is well for one statement', async () => {
    const { dispatcher, claims } = await setup(['a'], { slots: new Slots(100_000) });

    dispatcher.wake('a');

    expect(claims[0]?.limit).toBeLessThanOrEqual(1000);
    claims[0]?.end({});
    await dispatcher.stop();
  });

  test('claims nothing while the process is full, and goes on when a run has ended', async () => {
    const { dispatcher, claims, slots } = await setup(['a'], { slots: new Slots(1) });
    const release = occupy(slots, 1);

    dispatcher.wake('a');
    expect(claims).toEqual([]);
    release();
    dispatcher.slotFreed('a', null);

    expect(claims.map(({ limit }) => limit)).toEqual([1]);
    claims[0]?.end({});
    await dispatcher.stop();
  });

  test('takes its part of a partitioned queue that others serve too, and the rest when nobody wants it', async () => {
    const limits: number[] = [];
    const told: string[] = [];
    const { clock, dispatcher, slots } = await setup([], {
      findWork: async () => ({ queues: [partitioned], waiting: [] }),
      countEngines: () => 3,
      claimPartitions: async (_, partitions) => {
        limits.push(...partitions.map(({ limit }) => limit));
        return partitions.map(() => ({ taken: 1, left: { ...NOTHING_LEFT, isWaiting: limits.length === 1 } }));
      },
      notifyPeers: (name) => void told.push(name),
    });

    dispatcher.wake('parts', 'key');
    await turns();
    expect(limits).toEqual([3]);

    // One more than its part runs; the place of one that ends is left to others for a moment.
    occupy(slots, 3, { queueName: 'parts' });
    dispatcher.slotFreed('parts', 'key');
    await turns();
    expect([limits, told]).toEqual([[3], ['parts']]);

    clock.advance(100);
    await turns();
    expect(limits[1]).toBeGreaterThan(3);
    await dispatcher.stop();
  });

  test('tries again exactly when a rate limit lets go', async () => {
    const { clock, dispatcher, claims } = await setup(['a']);
    dispatcher.wake('a');
    claims[0]?.end({ taken: 1, left: { ...NOTHING_LEFT, isWaiting: true, hasRoom: false, waitMs: 700 } });
    await turns();

    clock.advance(699);
    expect(claims).toHaveLength(1);
    clock.advance(1);

    expect(claims).toHaveLength(2);
    claims[1]?.end({});
    await dispatcher.stop();
  });

  test('leaves a slot to other programs when it is their turn, whatever engines announce meanwhile', async () => {
    const { clock, dispatcher, claims } = await setup([], {
      findWork: async () => ({ queues: [queueOf('a', { concurrency: 1 })], waiting: [] }),
    });
    dispatcher.wake('a');
    claims[0]?.end({ taken: 0, left: { ...NOTHING_LEFT, isWaiting: true, others: { spare: 0 } } });
    await turns();

    dispatcher.wake('a', null, 'enqueued by an engine');
    dispatcher.slotFreed('a', null);
    clock.advance(1499);
    expect(claims).toHaveLength(1);
    clock.advance(1);

    expect(claims).toHaveLength(2);
    claims[1]?.end({});
    await dispatcher.stop();
  });

  test('claims at once when another program says that something has changed, although it is their turn', async () => {
    const { dispatcher, claims } = await setup([], {
      findWork: async () => ({ queues: [queueOf('a', { concurrency: 1 })], waiting: [] }),
    });
    dispatcher.wake('a');
    claims[0]?.end({ taken: 0, left: { ...NOTHING_LEFT, isWaiting: true, others: { spare: 0 } } });
    await turns();

    dispatcher.wake('a');

    expect(claims).toHaveLength(2);
    claims[1]?.end({});
    await dispatcher.stop();
  });

  test('tries again after a moment when a claim has failed', async () => {
    const { clock, dispatcher, claims } = await setup(['a']);
    dispatcher.wake('a');
    claims[0]?.fail();
    await turns();

    expect(claims).toHaveLength(1);
    clock.advance(500);

    expect(claims).toHaveLength(2);
    claims[1]?.end({});
    await dispatcher.stop();
  });

  test('leaves a queue alone after a claim that has failed, whatever is announced meanwhile', async () => {
    const { clock, dispatcher, claims } = await setup(['a']);
    dispatcher.wake('a');
    claims[0]?.fail();
    await turns();

    for (let wakes = 0; wakes < 100; wakes += 1) {
      dispatcher.wake('a');
      dispatcher.refresh();
      dispatcher.slotFreed('a', null);
      dispatcher.capacityFreed();
      await turns();
    }
    expect(claims).toHaveLength(1);
    clock.advance(500);
    await turns();

    expect(claims).toHaveLength(2);
    claims[1]?.end({});
    await dispatcher.stop();
  });

  test('looks once for a queue that it does not know', async () => {
    const { dispatcher, looks } = await setup(['a']);

    dispatcher.wake('new');
    await until(() => looks() === 2);
    dispatcher.wake('new');
    await turns();

    expect(looks()).toBe(2);
    await dispatcher.stop();
  });

  test('that is stopped claims nothing more, waits for its claims, and can be stopped twice', async () => {
    const { dispatcher, claims } = await setup(['a']);
    dispatcher.wake('a');
    let isStopped = false;

    const stopped = dispatcher.stop().then(() => (isStopped = true));
    dispatcher.wake('a');
    await turns();
    expect([isStopped, claims.length]).toEqual([false, 1]);
    claims[0]?.end({ taken: 5, left: { ...NOTHING_LEFT, isWaiting: true } });
    await stopped;
    await dispatcher.stop();

    expect(claims).toHaveLength(1);
  });
});

forEachDialect((dialect) => {
  describe('an engine', () => {
    test('runs no more from all queues together than maxConcurrentWorkflows', async () => {
      const { DBOS } = await createEngine(dialect, { maxConcurrentWorkflows: 3 });
      const halts = Array.from({ length: 6 }, () => newHalt());
      const started: number[] = [];
      const workflow = DBOS.registerWorkflow(
        async (n: number) => {
          started.push(n);
          await halts[n]?.here();
        },
        { name: 'workflow' },
      );
      await DBOS.launch();
      await DBOS.registerQueue('a');
      await DBOS.registerQueue('b');
      const starts = halts.map((_, n) => ({ args: [n] as [number], queueName: n % 2 === 0 ? 'a' : 'b' }));
      const handles = await DBOS.startWorkflows(workflow, starts);
      await until(() => started.length === 3);
      // What was started directly does not count.
      const direct = await DBOS.startWorkflow(workflow)(5);
      await until(() => started.length === 4);
      const stats = await DBOS.getQueueStats();
      expect(stats.reduce((sum, { running }) => sum + running, 0)).toBe(3);

      halts[started[0] ?? 0]?.release();
      await until(() => started.length === 5);
      halts.forEach((halt) => halt.release());

      await DBOS.waitAll([direct, ...handles]);
      expect(started.toSorted()).toEqual([0, 1, 2, 3, 4, 5, 5]);
    });

    test.skipIf(!hasPush)('with 5 queues and nothing to do sends at most 40 statements a minute', async () => {
      const clock = new ManualClock();
      const { DBOS } = await createEngine(dialect, {}, clock.settings);
      await DBOS.launch();
      for (let n = 0; n < 5; n += 1) await DBOS.registerQueue(`q${n}`, { globalConcurrency: 5 });
      const statements = countStatements(DBOS);
      const pass = async (ms: number) => {
        for (let passed = 0; passed < ms; passed += 20) {
          clock.advance(20);
          for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => setImmediate(resolve));
          await until(() => statements.underWay() === 0);
        }
      };
      await pass(30_000);
      const before = statements.count();

      await pass(60_000);

      expect(statements.count() - before).toBeGreaterThan(0);
      expect(statements.count() - before).toBeLessThanOrEqual(40);
    });
  });
});

/** Counts what an engine sends to its database. */
function countStatements(DBOS: DBOSInstance) {
  const { database } = engineOf(DBOS).runtime.store;
  let [count, underWay] = [0, 0];
  const run = database.run.bind(database);
  const read = database.read.bind(database);
  const commit = database.commit.bind(database);
  const exclusive = database.exclusive.bind(database);
  const counted = async <R>(size: number, answer: Promise<R>): Promise<R> => {
    count += size;
    underWay += 1;
    return answer.finally(() => (underWay -= 1));
  };
  Object.assign(database, {
    run: (statement: Sql) => counted(1, run(statement)),
    read: (statement: Sql) => counted(1, read(statement)),
    commit: (statements: readonly Sql[]) => counted(statements.length, commit(statements)),
    // Not one of these is expected of an engine that does nothing.
    exclusive: (body: Parameters<typeof exclusive>[0]) => counted(100, exclusive(body)),
  });
  return { count: () => count, underWay: () => underWay };
}
