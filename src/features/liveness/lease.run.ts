// How sure this engine is of its workflows. Peers may recover them when its lease is over or its advisory lock is free.
// The lease ends by the database's clock; here its age is counted from before the renewal was sent, so that it is over
// here first.
import { type Clock, elapsedSince, type Moment, momentOf } from '../../kernel/base/clock.js';

/** When the database was asked for a workflow, and in which epoch. */
export interface Standing {
  readonly epoch: number;
  /** On the monotonic clock. */
  readonly askedAt: number;
}

export interface LeaseOptions {
  readonly clock: Clock;
  readonly leaseMs: number;
  /** Whether the advisory lock is held. */
  isLockHeld(): boolean;
  /** Identifies the session that holds it; changes when it is lost. */
  lockSession(): number;
}

export class Lease {
  readonly #options: LeaseOptions;
  #renewedAt: Moment | undefined;
  #renewal: Promise<void> | undefined;
  #epoch = 0;
  #lockSession = 0;
  /** Renews it in the database, and calls `renewedSince`. */
  renew: () => Promise<void> = () => Promise.resolve();

  constructor(options: LeaseOptions) {
    this.#options = options;
  }

  /** False if peers may have recovered the workflows of this engine, or may be about to. */
  get isCertain(): boolean {
    return !this.isOver && this.#options.isLockHeld();
  }

  /**
   * Changes whenever the lease was over or the lock was lost, and may be in order again. What began in an earlier epoch may
   * have been recovered in between.
   */
  get epoch(): number {
    const lockSession = this.#options.lockSession();
    if (lockSession !== this.#lockSession) this.#epoch += 1;
    this.#lockSession = lockSession;
    return this.#epoch;
  }

  /** To be noted before a workflow is created or claimed. */
  get standing(): Standing {
    return { epoch: this.epoch, askedAt: this.#options.clock.monotonic() };
  }

  get isOver(): boolean {
    const { clock, leaseMs } = this.#options;
    return !this.#renewedAt || elapsedSince(clock, this.#renewedAt) >= leaseMs;
  }

  /** To be called before a renewal is sent. */
  now(): Moment {
    return momentOf(this.#options.clock);
  }

  renewedSince(asked: Moment): void {
    if (this.isOver) this.#epoch += 1;
    this.#renewedAt = asked;
  }

  /** Renews it at once if it is over. Callers share the renewal. */
  async ensure(): Promise<void> {
    if (!this.isOver) return;
    this.#renewal ??= this.renew().finally(() => (this.#renewal = undefined));
    await this.#renewal;
  }
}
