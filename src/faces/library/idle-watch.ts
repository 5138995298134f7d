// Notices that a launched process has nothing left to do, so that a script ends without calling `shutdown`.
import { type Clock, sleep } from '../../kernel/base/clock.js';
import { Service } from '../../kernel/base/service.js';
import type { Engine } from '../../run/engine.js';

/** How often it looks within the period. */
const LOOKS = 4;

export class IdleWatch {
  readonly #service: Service;
  #idleSince: number;

  /** `onIdle` is called once nothing has run, and nothing was waited for, for this long. */
  constructor({ runs, runtime }: Engine, idleMs: number, onIdle: () => void) {
    const { clock, watchers, logger } = runtime;
    this.#idleSince = clock.monotonic();
    // A run may begin and end between two looks.
    runs.observe({ onEnded: () => (this.#idleSince = clock.monotonic()) });
    const isBusy = (): boolean => runs.all.length > 0 || watchers.hasWaiters;
    this.#service = new Service(
      async (signal) => {
        await this.#untilIdle(clock, idleMs, { isBusy, signal });
        onIdle();
      },
      (error) => logger.error(error),
    );
    this.#service.start();
  }

  async #untilIdle(
    clock: Clock,
    idleMs: number,
    { isBusy, signal }: { readonly isBusy: () => boolean; readonly signal: AbortSignal },
  ): Promise<void> {
    for (;;) {
      await sleep(clock, idleMs / LOOKS, signal);
      if (isBusy()) this.#idleSince = clock.monotonic();
      else if (clock.monotonic() - this.#idleSince >= idleMs) return;
    }
  }

  async stop(): Promise<void> {
    await this.#service.stop();
  }
}
