// Looks for what programs other than Everstep have changed where nothing notifies of it: on Postgres, if its triggers could
// not be installed or this process cannot listen. While such programs are connected, all services look every second. On
// SQLite the listener notices every commit.
import { findOtherPrograms } from '../database/notify/other-programs.js';
import { Periodic } from './periodic.js';
import type { Runtime } from './runtime.js';

const LOOK_MS = 1000;

export class OtherProgramsWatch extends Periodic {
  constructor(runtime: Runtime) {
    super(runtime, { firstMs: 0, everyMs: LOOK_MS });
  }

  override start(): void {
    if (this.runtime.database.dialect.name === 'postgres') super.start();
  }

  protected override async look(): Promise<boolean> {
    const { bus, database, hasPush } = this.runtime;
    const { hasTriggers, areConnected } = await findOtherPrograms(database);
    if (hasTriggers && hasPush) return false;
    if (areConnected) bus.wakeAll();
    return true;
  }

  protected override reportFailure(error: unknown): void {
    this.runtime.logger.debug(`Cannot look for other programs: ${String(error)}`);
  }
}
