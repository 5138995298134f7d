// Looks for what programs other than Everstep have changed where nothing notifies of it: on Postgres, if its triggers could
// not be installed or this process cannot listen. While such programs are connected, all services look every second. On
// SQLite the listener notices every commit.
import { sleep } from '../../base/clock.js';
import { Service } from '../../base/service.js';
import { findOtherPrograms } from '../../store/notify/other-programs.js';
import type { Runtime } from '../runtime.js';

const LOOK_MS = 1000;

export class OtherProgramsWatch {
  readonly #runtime: Runtime;
  readonly #service: Service;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
    this.#service = new Service(
      (signal) => this.#watch(signal),
      (error) => runtime.logger.error(error),
    );
  }

  start(): void {
    if (this.#runtime.database.dialect.name === 'postgres') this.#service.start();
  }

  stop(): Promise<void> {
    return this.#service.stop();
  }

  async #watch(signal: AbortSignal): Promise<void> {
    const { bus, clock, database, hasPush, logger } = this.#runtime;
    while (!signal.aborted) {
      try {
        const { hasTriggers, areConnected } = await findOtherPrograms(database);
        if (hasTriggers && hasPush) return;
        if (areConnected) bus.wakeAll();
      } catch (error) {
        logger.debug(`Cannot look for other programs: ${String(error)}`);
      }
      await sleep(clock, LOOK_MS, signal);
    }
  }
}
