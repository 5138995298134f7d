import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { type Clock, systemClock } from '../../../src/kernel/base/clock.js';
import { RemoteClock } from '../../../src/kernel/base/remote-clock.js';

/** Clocks of this machine, set by hand, and the clock of another. */
function setup() {
  const times = { wall: 1_000_000, monotonic: 0, remote: 5_000_000 };
  const timers: { delayMs: number; run: () => void }[] = [];
  const clock: Clock = {
    now: () => times.wall,
    monotonic: () => times.monotonic,
    after(delayMs, run) {
      const timer = { delayMs, run };
      timers.push(timer);
      return { cancel: () => void timers.splice(timers.indexOf(timer), 1) };
    },
  };
  const pass = (ms: number): void => {
    times.wall += ms;
    times.monotonic += ms;
    times.remote += ms;
  };
  let syncs = 0;
  const remote: RemoteClock = new RemoteClock(clock, () => {
    syncs += 1;
    return learn();
  });
  /** Asks the other clock, which is read after `before` and answers after `after`. */
  const learn = (before = 0, after = 0) =>
    remote.learn(async () => {
      pass(before);
      const answer = { now: times.remote };
      pass(after);
      return answer;
    });
  return { times, timers, remote, pass, learn, syncs: () => syncs };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

describe('a remote clock', () => {
  test('is the own clock before anything is known', () => {
    const { remote, times } = setup();

    expect([remote.earliest(), remote.now(), remote.latest()]).toEqual([times.wall, times.wall, times.wall]);
  });

  test('is within its bounds, whenever the other clock was read', async () => {
    for (const [before, after] of [
      [0, 0],
      [200, 0],
      [0, 200],
      [70, 130],
    ] as const) {
      const { remote, times, learn } = setup();

      await learn(before, after);

      expect(remote.earliest()).toBeLessThanOrEqual(times.remote);
      expect(remote.latest()).toBeGreaterThanOrEqual(times.remote);
      expect(remote.latest() - remote.earliest()).toBe(before + after);
    }
  });

  test('keeps a good estimate when a slow answer comes', async () => {
    const { remote, learn } = setup();
    await learn();

    await learn(500, 500);

    expect(remote.latest() - remote.earliest()).toBeLessThan(1);
  });

  test('follows the other clock when that is set', async () => {
    const { remote, times, learn } = setup();
    await learn();
    times.remote += 60_000;

    await learn();

    expect(remote.now()).toBe(times.remote);
  });

  test('does not reach a time because the own clock was set forward', async () => {
    const { remote, times, timers, learn, pass, syncs } = setup();
    await learn();
    let isReached = false;
    void remote.reached(times.remote + 10_000).then(() => (isReached = true));
    await turn();
    times.wall += 3_600_000;
    pass(5_000);

    timers.pop()?.run();
    await turn();

    expect({ isReached, syncs: syncs() }).toEqual({ isReached: false, syncs: 1 });
    expect(timers).toMatchObject([{ delayMs: 5_000 }]);
  });

  test('reaches a time that passed while the machine was suspended', async () => {
    const { remote, times, timers, learn } = setup();
    await learn();
    let isReached = false;
    void remote.reached(times.remote + 10_000).then(() => (isReached = true));
    await turn();
    times.wall += 3_600_000;
    times.remote += 3_600_000;

    timers.pop()?.run();
    await turn();

    expect(isReached).toBe(true);
  });
});

describe('a timer by the wall clock', () => {
  function setup() {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    let isFired = false;
    systemClock.after(3_600_000, () => (isFired = true), { byWallClock: true });
    return { isFired: () => isFired };
  }

  test('fires within seconds when the machine was suspended past its time', () => {
    const { isFired } = setup();
    vi.advanceTimersByTime(1_000);
    vi.setSystemTime(Date.now() + 7_200_000);

    vi.advanceTimersByTime(5_000);

    expect(isFired()).toBe(true);
  });

  test('fires on time otherwise', () => {
    const { isFired } = setup();

    vi.advanceTimersByTime(3_599_999);
    expect(isFired()).toBe(false);
    vi.advanceTimersByTime(1);

    expect(isFired()).toBe(true);
  });
});
