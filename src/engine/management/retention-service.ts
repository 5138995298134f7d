// Applies the configured retention at intervals, in one engine of the application at a time. It deletes nothing twice, so it
// does no harm if two engines do it for a moment, because one was just launched.
import { sleep } from '../../base/clock.js';
import { durationMs } from '../../base/duration.js';
import { Service } from '../../base/service.js';
import { applyRetention } from '../../control/management/retention-policy.js';
import { isFirstOfApplication } from '../liveness/first-engine.js';
import type { Runtime } from '../runtime.js';

const EVERY_MS = 3_600_000;
/** After a launch, which is busy enough. */
const FIRST_MS = 60_000;

export class RetentionService {
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
    if (this.#runtime.config.retention) this.#service.start();
  }

  stop(): Promise<void> {
    return this.#service.stop();
  }

  async #watch(signal: AbortSignal): Promise<void> {
    const { clock, config, logger } = this.#runtime;
    const everyMs = durationMs(config.retention?.every ?? EVERY_MS);
    for (let delayMs = Math.min(FIRST_MS, everyMs); ; delayMs = everyMs) {
      await sleep(clock, Math.max(delayMs, 1), signal);
      try {
        await this.#apply(signal);
      } catch (error) {
        if (signal.aborted) return;
        logger.warn(`Retention stopped before its end, and begins again in ${everyMs / 1000} s: ${String(error)}`);
      }
    }
  }

  async #apply(signal: AbortSignal): Promise<void> {
    if (!(await isFirstOfApplication(this.#runtime))) return;
    const { workflows, archived, events = 0 } = await applyRetention(this.#runtime, undefined, { signal });
    if (events > 0)
      this.#runtime.logger.info(`Retention deleted ${events} stored event(s) of workflows that are kept.`);
    if (workflows === 0) return;
    const how = archived > 0 ? ', after it had archived them' : '';
    this.#runtime.logger.info(`Retention deleted ${workflows} workflow(s)${how}.`);
  }
}
