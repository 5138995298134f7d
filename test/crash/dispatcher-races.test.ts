// The dispatcher under orders of events that a real run meets seldom: each claim waits until the test answers it, and
// nothing else happens in between.
import { expect, test } from 'vitest';
import { silentLogger } from '../../src/kernel/base/log.js';
import type { ClaimResult } from '../../src/features/queue/claims.run.js';
import { Dispatcher } from '../../src/features/queue/dispatcher.run.js';
import type { Queue } from '../../src/features/queue/known-queues.run.js';
import { type Limits, UNLIMITED } from '../../src/features/queue/queue.js';
import { Slots } from '../../src/run/slots.js';
import { ManualClock } from '../rig/manual-clock.js';
import { occupy } from '../rig/slots.js';

const POLL_MS = 1_000_000;
const SLOTS = 1000;
const WAITING = {
  isWaiting: true,
  hasRoom: true,
  waitMs: null,
  hasPartitionRoom: true,
  partitionWaitMs: null,
} as const;
const FULL = { ...WAITING, hasRoom: false } as const;
const PARTITION_FULL = { ...WAITING, hasPartitionRoom: false } as const;
const EMPTY = { ...WAITING, isWaiting: false } as const;

function queueOf(name: string, whole: Partial<Limits> = {}, partition: Partial<Limits> | null = null): Queue {
  const limits = {
    whole: { ...UNLIMITED, ...whole },
    partition: partition && { ...UNLIMITED, ...partition },
  };
  return { name, limits, pollMs: POLL_MS };
}

interface PendingClaim {
  readonly queue: Queue;
  /** The partitions, for a queue that has them. */
  readonly keys: readonly string[];
  answer(...results: ClaimResult[]): Promise<void>;
  fail(error: Error): Promise<void>;
}

async function settled(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

/** A dispatcher that serves the queues and has made its first look. */
async function setup(...served: Queue[]) {
  const clock = new ManualClock();
  const claims: PendingClaim[] = [];
  const told: string[] = [];
  const slots = new Slots(SLOTS);
  const state = {
    queues: served,
    waiting: [] as string[],
    partitions: [] as string[],
    runningAnywhere: 0,
    engines: 1,
  };
  const pend = (queue: Queue, keys: readonly string[]): Promise<ClaimResult[]> =>
    new Promise((resolve, reject) => {
      claims.push({
        queue,
        keys,
        answer: (...results) => {
          resolve(results);
          return settled();
        },
        fail: (error) => {
          reject(error);
          return settled();
        },
      });
    });
  const dispatcher = new Dispatcher({
    clock,
    logger: silentLogger,
    slots,
    countEngines: () => state.engines,
    claimsMax: 3,
    source: {
      findWork: async () => ({ queues: state.queues, waiting: state.waiting }),
      pollMs: () => POLL_MS,
      claim: async (queue) => ({ ...((await pend(queue, []))[0] as ClaimResult), begin: async () => {} }),
      claimPartitions: (queue, partitions) =>
        pend(
          queue,
          partitions.map(({ key }) => key),
        ),
      findPartitions: async () => state.partitions,
      countRunning: async () => state.runningAnywhere,
    },
    reportClaimed: () => {},
    notifyPeers: (queueName, partitionKey) => told.push([queueName, partitionKey].join(' ').trim()),
  });
  void dispatcher.start();
  await settled();
  /** The one claim that has been made since the last call. */
  const nextClaim = async (): Promise<PendingClaim> => {
    await settled();
    expect(claims.length, 'claims that are under way').toBe(1);
    return claims.shift() as PendingClaim;
  };
  return { dispatcher, clock, claims, told, state, slots, nextClaim };
}

test('a place that becomes free while a claim finds the queue full is claimed', async () => {
  const { dispatcher, nextClaim } = await setup(queueOf('q', { concurrency: 1 }));
  dispatcher.wake('q');
  await (await nextClaim()).answer({ taken: 1, left: EMPTY });
  dispatcher.wake('q');
  const claim = await nextClaim();

  dispatcher.slotFreed('q', null);
  await claim.answer({ taken: 0, left: FULL });

  await (await nextClaim()).answer({ taken: 1, left: EMPTY });
  await dispatcher.stop();
});

test('a place that becomes free while a claim finds nothing waiting costs no further claim', async () => {
  const { dispatcher, claims, nextClaim } = await setup(queueOf('q', { concurrency: 1 }));
  dispatcher.wake('q');
  await (await nextClaim()).answer({ taken: 1, left: EMPTY });
  dispatcher.wake('q');
  const claim = await nextClaim();

  dispatcher.slotFreed('q', null);
  await claim.answer({ taken: 0, left: EMPTY });

  expect(claims).toEqual([]);
  await dispatcher.stop();
});

test('a place that becomes free while a claim finds its partition full is claimed', async () => {
  const { dispatcher, nextClaim } = await setup(queueOf('q', {}, { concurrency: 1 }));
  dispatcher.wake('q', 'a');
  const claim = await nextClaim();

  dispatcher.slotFreed('q', 'a');
  await claim.answer({ taken: 0, left: PARTITION_FULL });

  const next = await nextClaim();
  expect(next.keys).toEqual(['a']);
  await next.answer({ taken: 1, left: EMPTY });
  await dispatcher.stop();
});

test('a place that becomes free in another process is claimed, in a partition that was full too', async () => {
  const { dispatcher, claims, nextClaim } = await setup(queueOf('q', {}, { concurrency: 1 }));
  dispatcher.wake('q', 'a');
  await (await nextClaim()).answer({ taken: 0, left: PARTITION_FULL });
  expect(claims).toEqual([]);

  // What the other one says when it cannot use the place itself.
  dispatcher.wake('q', 'a');
  await settled();

  const claim = await nextClaim();
  expect(claim.keys).toEqual(['a']);
  await claim.answer({ taken: 1, left: EMPTY });
  await dispatcher.stop();
});

test('a place that becomes free in another process between a claim and its look at what is left is claimed', async () => {
  const { dispatcher, nextClaim } = await setup(queueOf('q', { concurrency: 1 }));
  dispatcher.wake('q');

  // Either what waits is for others, or the claim still found the queue full.
  await (await nextClaim()).answer({ taken: 0, left: WAITING });

  await (await nextClaim()).answer({ taken: 1, left: EMPTY });
  await dispatcher.stop();
});

test('a place that becomes free in a partition between a claim and its look at what is left is claimed', async () => {
  const { dispatcher, claims, nextClaim } = await setup(queueOf('q', {}, { concurrency: 1 }));
  dispatcher.wake('q', 'a');

  await (await nextClaim()).answer({ taken: 0, left: WAITING });
  const second = await nextClaim();
  await second.answer({ taken: 0, left: WAITING });
  await settled();

  expect(second.keys).toEqual(['a']);
  expect(claims).toEqual([]);
  await dispatcher.stop();
});

test('others learn of a place in a queue whose waiting partitions are full, as far as this process knows', async () => {
  const { dispatcher, claims, told, nextClaim } = await setup(queueOf('q', { concurrency: 2 }, { concurrency: 1 }));
  dispatcher.wake('q', 'a');
  await (await nextClaim()).answer({ taken: 0, left: PARTITION_FULL });

  dispatcher.slotFreed('q', 'b');
  await settled();

  expect(claims).toEqual([]);
  expect(told).toEqual(['q']);
  await dispatcher.stop();
});

test('others learn of a place that cannot be used here, because this process is at its own limit', async () => {
  const { dispatcher, claims, told, slots, nextClaim } = await setup(
    queueOf('q', { concurrency: 2, workerConcurrency: 1 }),
  );
  dispatcher.wake('q');
  const claim = await nextClaim();
  occupy(slots, 1, { queueName: 'q', partitionKey: 'a' });
  await claim.answer({ taken: 1, left: FULL });

  // A workflow was cancelled: its place in the queue is free, but its code still runs.
  dispatcher.slotFreed('q', null);
  await settled();

  expect(claims).toEqual([]);
  expect(told).toEqual(['q']);
  await dispatcher.stop();
});

test('others learn of a place in each queue that this process has no room for', async () => {
  const names = ['a', 'b', 'c'];
  const { dispatcher, claims, told, slots } = await setup(...names.map((name) => queueOf(name, { concurrency: 1 })));
  for (const name of names) dispatcher.wake(name);
  for (const claim of claims.splice(0)) await claim.answer({ taken: 1, left: FULL });
  expect(claims).toEqual([]);
  occupy(slots, SLOTS);

  for (const name of names) dispatcher.slotFreed(name, null);
  await settled();

  expect(claims).toEqual([]);
  expect([...new Set(told)].sort()).toEqual(names);
  await dispatcher.stop();
});

test('others learn of a place in a partition that cannot be used here', async () => {
  const { dispatcher, claims, told, slots, nextClaim } = await setup(
    queueOf('q', {}, { concurrency: 2, workerConcurrency: 1 }),
  );
  dispatcher.wake('q', 'a');
  const claim = await nextClaim();
  occupy(slots, 1, { queueName: 'q', partitionKey: 'a' });
  await claim.answer({ taken: 1, left: PARTITION_FULL });

  dispatcher.slotFreed('q', 'a');
  await settled();

  expect(claims).toEqual([]);
  expect(told).toEqual(['q a']);
  await dispatcher.stop();
});

test('a process that has more than its share leaves the partitions that become free to its peers, for a moment', async () => {
  const { dispatcher, clock, claims, told, slots, state, nextClaim } = await setup(
    queueOf('q', {}, { concurrency: 1 }),
  );
  dispatcher.wake('q', 'a');
  await (await nextClaim()).answer({ taken: 1, left: PARTITION_FULL });
  Object.assign(state, { engines: 4, runningAnywhere: 9 });
  occupy(slots, 9, { queueName: 'q' });

  dispatcher.slotFreed('q', 'a');
  await settled();

  expect(claims).toEqual([]);
  expect(told).toEqual(['q a']);
  clock.advance(100);
  expect((await nextClaim()).keys).toEqual(['a']);
  void dispatcher.stop();
});

test('a process whose peers run as much claims from a partition at once', async () => {
  const { dispatcher, slots, state, nextClaim } = await setup(queueOf('q', {}, { concurrency: 1 }));
  Object.assign(state, { engines: 4, runningAnywhere: 36 });
  occupy(slots, 9, { queueName: 'q' });

  dispatcher.wake('q', 'a');

  expect((await nextClaim()).keys).toEqual(['a']);
  void dispatcher.stop();
});

test.each([
  ['and more could be taken', { taken: 300, left: WAITING }, 0],
  ['and its rate limit lets go', { taken: 1, left: { ...FULL, waitMs: 50 } }, 60],
  ['and others have had their time', { taken: 1, left: WAITING }, 60],
])('a queue that is deleted during a claim is not claimed from again: %s', async (_, result, waitMs) => {
  const { dispatcher, clock, claims, state, nextClaim } = await setup(queueOf('q', { concurrency: 5 }));
  state.engines = 2;
  dispatcher.wake('q');
  const claim = await nextClaim();

  state.queues = [];
  dispatcher.refresh();
  await settled();
  await claim.answer(result);
  clock.advance(waitMs);
  await settled();

  expect(claims.map(({ queue }) => queue.limits.whole)).toEqual([]);
  await dispatcher.stop();
});

test('a queue that is deleted and registered again is served by its new limits only', async () => {
  const { dispatcher, clock, claims, state, nextClaim } = await setup(queueOf('q', { concurrency: 50 }));
  dispatcher.wake('q');
  const claim = await nextClaim();
  state.queues = [];
  dispatcher.refresh();
  await settled();

  state.queues = [queueOf('q', { concurrency: 1 })];
  state.waiting = ['q'];
  dispatcher.refresh();
  await settled();
  await claim.answer({ taken: 300, left: WAITING });
  clock.advance(100);
  await settled();

  expect(claims.map(({ queue }) => queue.limits.whole.concurrency)).toEqual([1]);
  await claims[0]?.answer({ taken: 1, left: EMPTY });
  await dispatcher.stop();
});

test('a dispatcher that is stopped during a claim leaves no timer behind', async () => {
  const { dispatcher, clock, nextClaim } = await setup(queueOf('q', {}, { rate: { max: 1, periodMs: 50 } }));
  dispatcher.wake('q', 'a');
  const claim = await nextClaim();

  const stopped = dispatcher.stop();
  await settled();
  await claim.answer({ taken: 1, left: { ...PARTITION_FULL, partitionWaitMs: 50 } });
  await stopped;

  expect(clock.isArmed(50)).toBe(false);
});

test('room that was reserved for a claim that failed is free again', async () => {
  const { dispatcher, clock, slots, nextClaim } = await setup(queueOf('q'), queueOf('other'));
  occupy(slots, SLOTS - 1);
  dispatcher.wake('q');

  await (await nextClaim()).fail(new Error('away'));
  dispatcher.wake('other');

  await (await nextClaim()).answer({ taken: 0, left: EMPTY });
  clock.advance(1000);
  await settled();
  expect((await nextClaim()).queue.name).toBe('q');
  void dispatcher.stop();
});

test('partitions of a claim that failed are tried again, and no others are lost', async () => {
  const { dispatcher, clock, nextClaim } = await setup(queueOf('q', {}, { concurrency: 1 }));
  dispatcher.wake('q', 'a');
  const claim = await nextClaim();
  dispatcher.wake('q', 'b');

  await claim.fail(new Error('away'));
  // What has become ready meanwhile does not wait for the pause.
  await settled();
  clock.advance(1000);
  await settled();

  expect((await nextClaim()).keys).toEqual(['a', 'b']);
  void dispatcher.stop();
});

test('a claim that gets only what others are meant to run is repeated a few times, ever later, and then no more', async () => {
  const { dispatcher, clock, claims, state, nextClaim } = await setup(queueOf('q'));
  state.engines = 2;
  dispatcher.wake('q');

  await (await nextClaim()).answer({ taken: 0, left: WAITING });
  clock.advance(100);
  await settled();
  await (await nextClaim()).answer({ taken: 0, left: WAITING });
  let repeats = 0;
  for (let seconds = 0; seconds < 60; seconds += 1) {
    clock.advance(1000);
    await settled();
    if (claims.length === 0) continue;
    repeats += 1;
    await (await nextClaim()).answer({ taken: 0, left: WAITING });
  }

  expect(repeats).toBeGreaterThan(0);
  expect(repeats).toBeLessThanOrEqual(12);
  expect(claims).toEqual([]);
  await dispatcher.stop();
});

test('a full partition in front does not keep the others from their turn', async () => {
  const { dispatcher, slots, nextClaim } = await setup(queueOf('q', {}, { concurrency: 1 }));
  // Room for one, so that one partition is asked at a time.
  occupy(slots, SLOTS - 1);
  for (const key of ['a', 'b']) dispatcher.wake('q', key);

  const first = await nextClaim();
  await first.answer({ taken: 0, left: PARTITION_FULL });
  const second = await nextClaim();

  expect([...first.keys, ...second.keys]).toEqual(['a', 'b']);
  await second.answer({ taken: 1, left: EMPTY });
  await dispatcher.stop();
});

test('partitions that found the queue full keep their positions, however often a slot is freed meanwhile', async () => {
  const { dispatcher, nextClaim } = await setup(queueOf('q', { concurrency: 1 }, { concurrency: 1 }));
  for (const key of ['a', 'b', 'c']) dispatcher.wake('q', key);
  const missed = { taken: 0, left: WAITING, hadRoom: false };

  // The slot goes to another process each time.
  for (let race = 0; race < 3; race += 1) {
    const claim = await nextClaim();
    expect(claim.keys).toEqual(['a', 'b', 'c']);
    await claim.answer({ ...missed, left: FULL }, missed, missed);
  }
  const claim = await nextClaim();
  await claim.answer({ taken: 1, left: { ...PARTITION_FULL, hasRoom: false } }, missed, { ...missed, left: FULL });
  dispatcher.slotFreed('q', 'a');

  expect((await nextClaim()).keys).toEqual(['b', 'c', 'a']);
  void dispatcher.stop();
});
