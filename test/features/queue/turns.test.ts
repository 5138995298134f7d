// Whose turn it is to start workflows of a queue that other programs serve as well.
import { describe, expect, test } from 'vitest';
import { Turns } from '../../../src/features/queue/turns.run.js';
import { ManualClock } from '../../rig/manual-clock.js';

const POLL_MS = 1000;
/** How long a slot is left to them at first. */
const LEAVE_MS = 1500;

function setup() {
  const clock = new ManualClock();
  const turns = new Turns(clock);
  /** A claim that left work. `spare` is that of before the claim; none if no work of theirs waits. */
  const claim = (taken: number, spare?: number | null, hasRoom = true) =>
    turns.noteClaim(
      taken,
      {
        isWaiting: true,
        hasRoom,
        waitMs: null,
        hasPartitionRoom: true,
        partitionWaitMs: null,
        others: spare === undefined ? undefined : { spare },
      },
      POLL_MS,
    );
  /** Leaves them a slot, which they do not take. */
  const leaveInVain = () => {
    clock.advance(claim(0, 0) ?? 0);
    return claim(0, 0);
  };
  return { clock, turns, claim, leaveInVain };
}

describe('a slot', () => {
  test('is taken at once while no other program waits', () => {
    const { turns, claim } = setup();

    expect(claim(1)).toBeUndefined();
    expect([turns.isSharing, turns.isLeaving, turns.isInsisting]).toEqual([false, false, false]);
  });

  test('is taken at once while engines have spare starts', () => {
    const { turns, claim } = setup();

    expect(claim(1, 2)).toBeUndefined();
    expect([turns.isSharing, turns.isLeaving]).toEqual([true, false]);
  });

  test('is left to the others for a poll and a half when it is their turn', () => {
    const { clock, turns, claim } = setup();

    expect(claim(2, 2)).toBe(LEAVE_MS);
    expect(turns.isLeaving).toBe(true);
    clock.advance(500);
    expect(claim(0, 0)).toBe(LEAVE_MS - 500);
    clock.advance(LEAVE_MS - 500);

    expect(claim(0, 0)).toBe(0);
    expect([turns.isLeaving, turns.isInsisting]).toEqual([false, true]);
  });

  test('is left anew after a peer has taken it', () => {
    const { clock, claim } = setup();
    claim(0, 0);
    clock.advance(LEAVE_MS);

    expect(claim(0, 0, false)).toBeUndefined();
    expect(claim(0, 0)).toBe(LEAVE_MS);
  });

  test('is taken whosever turn it is once the others have left theirs, for some workflows', () => {
    const { turns, claim, leaveInVain } = setup();

    expect(leaveInVain()).toBe(0);
    expect(claim(1, 0)).toBeUndefined();
    expect(turns.isInsisting).toBe(true);
    expect(claim(1, 0)).toBe(2 * LEAVE_MS);

    expect(turns.isInsisting).toBe(false);
  });

  test('is taken whosever turn it is once the others have left theirs, for some time', () => {
    const { clock, turns, leaveInVain } = setup();

    leaveInVain();
    clock.advance(1999);
    expect(turns.isInsisting).toBe(true);
    clock.advance(1);

    expect(turns.isInsisting).toBe(false);
  });

  test('is left less and less often, and passed on without a look in the end', () => {
    const { clock, turns, leaveInVain } = setup();

    const shared: boolean[] = [];
    for (let times = 0; times < 7; times += 1) {
      clock.advance(60_000);
      leaveInVain();
      shared.push(turns.isSharing);
    }

    expect(shared).toEqual([true, true, true, true, true, true, false]);
    expect([turns.isInsisting, turns.isSharing]).toEqual([true, false]);
    clock.advance(60_000);
    expect([turns.isInsisting, turns.isSharing]).toEqual([false, true]);
  });

  test('is left as often as before once they have started something', () => {
    const { clock, turns, claim, leaveInVain } = setup();
    for (let times = 0; times < 4; times += 1) {
      leaveInVain();
      clock.advance(60_000);
    }

    claim(1, 1, false);
    expect(turns.isInsisting).toBe(false);

    expect(claim(0, 0)).toBe(LEAVE_MS);
  });

  test('is not left for want of anything to start', () => {
    const { turns } = setup();
    const left = { isWaiting: false, hasRoom: true, waitMs: null, hasPartitionRoom: true, partitionWaitMs: null };

    expect(turns.noteClaim(1, { ...left, others: { spare: 1 } }, POLL_MS)).toBeUndefined();
  });

  test('of a queue that polls often is left for long enough that a slow poll finds it', () => {
    const { turns } = setup();
    const left = { isWaiting: true, hasRoom: true, waitMs: null, hasPartitionRoom: true, partitionWaitMs: null };

    expect(turns.noteClaim(0, { ...left, others: { spare: 0 } }, 10)).toBe(150);
  });
});

test('a look is due once in an interval', () => {
  const { clock, turns, claim } = setup();

  expect([turns.shouldLook(1000), turns.shouldLook(1000)]).toEqual([true, false]);
  clock.advance(1000);
  expect(turns.shouldLook(1000)).toBe(true);
  clock.advance(999);
  claim(1);
  clock.advance(999);

  expect(turns.shouldLook(1000)).toBe(false);
});
