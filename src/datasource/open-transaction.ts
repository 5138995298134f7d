// An open transaction: its client and its age.
import type { Clock } from '../base/clock.js';

export class OpenTransaction<Client> {
  readonly #clock: Clock;
  readonly #begunAt: number;

  constructor(
    readonly client: Client,
    clock: Clock,
  ) {
    this.#clock = clock;
    this.#begunAt = clock.now();
  }

  get ageMs(): number {
    return this.#clock.now() - this.#begunAt;
  }
}
