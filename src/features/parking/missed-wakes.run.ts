// Wakes parked workflows for which something has come although no trigger has woken them: it was inserted with triggers
// disabled, in a transaction that began before the workflow was parked and does not see it, or by an import of a workflow
// that others wait for. One engine of an application looks at all waits now and then, slowly.
import { sleep } from '../../kernel/base/clock.js';
import { topics } from '../../database/notify/topics.js';
import { findMissed, listParkedWaits, type ParkedWait, wakeParked } from './waits.sql.js';
import { isFirstOfApplication } from '../liveness/first-engine.run.js';
import { Periodic } from '../../run/periodic.js';
import type { Runtime } from '../../run/runtime.js';

/** On average. */
const INTERVAL_MS = 45_000;
/** Waits that are looked at in one query. */
const PAGE = 500;
/** The pause after a page, in times of what the page took: many waits must not load the database. */
const PAUSE_RATIO = 20;

export class MissedWakes extends Periodic {
  constructor(runtime: Runtime) {
    super(runtime, { firstMs: INTERVAL_MS, everyMs: INTERVAL_MS, hasJitter: true });
  }

  protected override reportFailure(error: unknown): void {
    this.runtime.logger.debug(`Cannot look for missed wake-ups: ${String(error)}`);
  }

  protected override async look(signal: AbortSignal): Promise<void> {
    const { clock, database } = this.runtime;
    let last: ParkedWait | undefined;
    for (;;) {
      const begunAt = clock.monotonic();
      const waits = await listParkedWaits(database, last, PAGE);
      if (waits.length === 0 || (!last && !(await isFirstOfApplication(this.runtime)))) return;
      last = waits.at(-1);
      await this.#wake(await findMissed(database, waits));
      if (waits.length < PAGE) return;
      await sleep(clock, Math.max((clock.monotonic() - begunAt) * PAUSE_RATIO, 1), signal);
    }
  }

  async #wake(missed: readonly ParkedWait[]): Promise<void> {
    if (missed.length === 0) return;
    const { bus, database, logger } = this.runtime;
    const woken = await wakeParked(database, missed);
    if (woken.length === 0) return;
    logger.debug(`${woken.length} workflow(s) were parked although what they wait for was there.`);
    bus.publishAll(topics.work, woken);
  }
}
