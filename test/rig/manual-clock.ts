// A clock that stands still until a test moves it. Waiting for a condition is done in turns of the event loop, never by
// letting real time pass.
import type { Clock, Timer } from '../../src/kernel/base/clock.js';
import type { TestSettings } from '../../src/faces/library/dbos.js';

interface ArmedTimer {
  readonly dueAt: number;
  readonly delayMs: number;
  readonly run: () => void;
}

export class ManualClock implements Clock {
  readonly #timers = new Set<ArmedTimer>();
  #now: number;
  #setBy = 0;

  constructor(now = 1_800_000_000_000) {
    this.#now = now;
  }

  /** Both clocks of an engine, moved together. */
  get settings(): TestSettings {
    return { clock: this, databaseNow: () => this.#now };
  }

  now(): number {
    return this.#now + this.#setBy;
  }

  /** Sets the wall clock of the machine, by itself. */
  set(byMs: number): void {
    this.#setBy += byMs;
  }

  monotonic(): number {
    return this.#now;
  }

  after(delayMs: number, run: () => void): Timer {
    const timer: ArmedTimer = { dueAt: this.#now + delayMs, delayMs, run };
    this.#timers.add(timer);
    return { cancel: () => this.#timers.delete(timer) };
  }

  /** Moves the clock in one leap and calls what has come due, in the order in which it was due. */
  advance(byMs: number): void {
    this.#now += byMs;
    const due = [...this.#timers].filter((timer) => timer.dueAt <= this.#now).sort((a, b) => a.dueAt - b.dueAt);
    for (const timer of due) if (this.#timers.delete(timer)) timer.run();
  }

  /** True while a timer is set that was asked for with this delay. */
  isArmed(delayMs: number): boolean {
    return this.count(delayMs) > 0;
  }

  /** How many timers are set that were asked for with this delay. */
  count(delayMs: number): number {
    return [...this.#timers].filter((timer) => timer.delayMs === delayMs).length;
  }

  /** Resolves when somebody waits for so long. */
  untilArmed(delayMs: number): Promise<void> {
    return until(() => this.isArmed(delayMs));
  }
}

/** Turns without a rest: what needs no database is done by then. */
const BUSY_TURNS = 50;

/** Resolves when the condition holds; it is asked once a turn of the event loop. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  for (let turn = 0; !(await condition()); turn += 1) {
    // Whoever waits for a server leaves it the processor.
    await new Promise((resolve) => (turn < BUSY_TURNS ? setImmediate(resolve) : setTimeout(resolve, 1)));
  }
}
