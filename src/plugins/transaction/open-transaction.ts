// An open transaction: its client and its age.
import type { Clock } from '../../kernel/base/clock.js';

export class OpenTransaction<Client> {
  readonly #clock: Clock;
  readonly #begunAt: number;

  constructor(
    readonly client: Client,
    clock: Clock,
  ) {
    this.#clock = clock;
    this.#begunAt = clock.monotonic();
  }

  get ageMs(): number {
    return this.#clock.monotonic() - this.#begunAt;
  }
}
