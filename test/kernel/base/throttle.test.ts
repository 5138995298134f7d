import { expect, test } from 'vitest';
import type { Clock } from '../../../src/kernel/base/clock.js';
import { Throttle } from '../../../src/kernel/base/throttle.js';

function setup() {
  let fire: (() => void) | undefined;
  const clock: Clock = {
    now: () => 0,
    monotonic: () => 0,
    after(_, run) {
      fire = run;
      return { cancel: () => (fire = undefined) };
    },
  };
  const state = { runs: 0 };
  const throttle = new Throttle(clock, 100, () => (state.runs += 1));
  return { throttle, state, passInterval: () => fire?.() };
}

test('the first call runs at once, those in the interval together at its end', () => {
  const { throttle, state, passInterval } = setup();

  throttle.call();
  throttle.call();
  throttle.call();
  expect(state.runs).toBe(1);
  passInterval();

  expect(state.runs).toBe(2);
  passInterval();
  expect(state.runs).toBe(2);
  throttle.call();
  expect(state.runs).toBe(3);
});

test('a stopped throttle runs nothing any more', () => {
  const { throttle, state, passInterval } = setup();
  throttle.call();
  throttle.call();

  throttle.stop();
  passInterval();
  throttle.call();

  expect(state.runs).toBe(1);
});
