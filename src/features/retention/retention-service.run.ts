// Applies the configured retention at intervals, in one engine of the application that has it, and keeps partitions in advance
// where tables have them. It does no harm if two engines do it at once, because one was just launched.
import { durationMs } from '../../kernel/base/duration.js';
import { servicesOf } from '../liveness/executors.sql.js';
import { findPartitionFaults, keepPartitions } from './partitioned-tables.sql.js';
import { applyRetention } from './retention-policy.js';
import { isFirstOfApplication } from '../liveness/first-engine.run.js';
import { Periodic } from '../../run/periodic.js';
import type { Runtime } from '../../run/runtime.js';

const EVERY_MS = 3_600_000;
/** After a launch, which is busy enough. */
const FIRST_MS = 60_000;

export class RetentionService extends Periodic {
  readonly #everyMs: number;

  constructor(runtime: Runtime) {
    const everyMs = Math.max(durationMs(runtime.config.retention?.every ?? EVERY_MS), 1);
    super(runtime, { firstMs: Math.min(FIRST_MS, everyMs), everyMs });
    this.#everyMs = everyMs;
  }

  override start(): void {
    if (this.runtime.config.retention || this.runtime.database.dialect.name === 'postgres') super.start();
  }

  protected override reportFailure(error: unknown): void {
    const seconds = this.#everyMs / 1000;
    this.runtime.logger.warn(`Retention stopped before its end, and begins again in ${seconds} s: ${String(error)}`);
  }

  protected override async look(signal: AbortSignal): Promise<void> {
    if (await isFirstOfApplication(this.runtime)) await this.#keepPartitions();
    if (!this.runtime.config.retention) return;
    if (!(await isFirstOfApplication(this.runtime, (engine) => servicesOf(engine)?.retention === true))) return;
    const { workflows, archived, events = 0 } = await applyRetention(this.runtime, undefined, { signal });
    if (events > 0) this.runtime.logger.info(`Retention deleted ${events} stored event(s) of workflows that are kept.`);
    if (workflows === 0) return;
    const how = archived > 0 ? ', after it had archived them' : '';
    this.runtime.logger.info(`Retention deleted ${workflows} workflow(s)${how}.`);
  }

  /** Without it, rows go to a default partition, so its failure can wait. */
  async #keepPartitions(): Promise<void> {
    const { database, logger } = this.runtime;
    try {
      const created = await keepPartitions(database);
      if (created.length > 0) logger.info(`Created ${created.length} partition(s), up to ${created.at(-1)}.`);
    } catch (error) {
      // A role that does not own the tables fails each time. That matters when a partition is missing.
      const faults = await findPartitionFaults(database).catch(() => [String(error)]);
      for (const fault of faults) logger.warn(`${fault} It failed here: ${String(error)}`);
    }
  }
}
