// Refills: where a queue has work left, the commit that records the outcome of one of its runs also claims the next workflow.
import { deferred } from '../../base/deferred.js';
import type { Claimed } from '../../store/queues/claims.js';
import type { Refill, RefillTerms } from '../../store/queues/refills.js';
import type { Standing } from '../liveness/lease.js';
import type { Run } from '../runs/run.js';
import type { Queue } from './known-queues.js';

export interface RefillsOptions {
  /** The queue, if a run of it that ends may be followed by the next workflow here. Some of its runs have no slot any more. */
  findQueue(queueName: string, slotless: number): Queue | undefined;
  newTerms(queue: Queue): { readonly terms: RefillTerms; readonly standing: Standing };
  /** Runs claimed workflows, hands them back if that fails, and returns how many run. */
  launch(claimed: readonly Claimed[], standing: Standing, owner: string): Promise<number>;
  /** Hands back what was claimed with a token. */
  handBack(owner: string): Promise<void>;
  /** Slots of the queue are free although they were filled. */
  onLost(queueName: string): void;
}

/**
 *   offered ──► in a commit ──► ended: filled or not
 *   offered ──► withdrawn
 */
class QueueRefill implements Refill {
  readonly terms: RefillTerms;
  readonly #standing: Standing;
  readonly #refills: Refills;
  readonly #over = deferred<void>();
  #state: 'offered' | 'begun' | 'withdrawn' = 'offered';
  #isFilled = false;
  /** Whether the run that ends is still counted. */
  hasRun = true;

  constructor(refills: Refills, { terms, standing }: ReturnType<RefillsOptions['newTerms']>) {
    this.#refills = refills;
    this.terms = terms;
    this.#standing = standing;
  }

  begin(): boolean {
    if (this.#state !== 'offered') return false;
    this.#state = 'begun';
    return true;
  }

  get isFilled(): boolean {
    return this.#isFilled;
  }

  end(isFilled: boolean): void {
    this.#isFilled = isFilled;
    if (isFilled && this.hasRun) this.#refills.countSlotless(this.terms.queueName, 1);
    this.#over.resolve();
  }

  launch(claimed: readonly Claimed[]): void {
    this.#refills.launch(claimed, this.terms, this.#standing);
  }

  handBack(): void {
    this.#refills.handBack(this.terms);
  }

  /** Resolves when no commit can claim under these terms any more. */
  async withdraw(): Promise<void> {
    if (this.#state === 'offered') this.#state = 'withdrawn';
    if (this.#state === 'begun') await this.#over.promise;
  }
}

export class Refills {
  readonly #options: RefillsOptions;
  readonly #offered = new Map<Run, QueueRefill>();
  /** Runs whose slots are taken, and which are about to be removed, by queue. */
  readonly #slotless = new Map<string, number>();
  /** What has been claimed and is about to run. */
  readonly #launches = new Set<Promise<void>>();

  constructor(options: RefillsOptions) {
    this.#options = options;
  }

  /** For a run whose outcome is about to be recorded. */
  offer(run: Run): Refill | undefined {
    const { queueName } = run;
    if (queueName === null) return undefined;
    const queue = this.#options.findQueue(queueName, this.#slotless.get(queueName) ?? 0);
    if (!queue) return undefined;
    const refill = new QueueRefill(this, this.#options.newTerms(queue));
    this.#offered.set(run, refill);
    return refill;
  }

  /** The run has ended. True if its slot is taken. */
  settle(run: Run): boolean {
    const refill = this.#offered.get(run);
    this.#offered.delete(run);
    if (refill) refill.hasRun = false;
    if (!refill?.isFilled) return false;
    this.countSlotless(refill.terms.queueName, -1);
    return true;
  }

  countSlotless(queueName: string, change: 1 | -1): void {
    const count = (this.#slotless.get(queueName) ?? 0) + change;
    if (count === 0) this.#slotless.delete(queueName);
    else this.#slotless.set(queueName, count);
  }

  /** Resolves when those offered so far claim nothing any more, and what they have claimed runs. */
  async withdrawAll(): Promise<void> {
    await Promise.all([...this.#offered.values()].map((refill) => refill.withdraw()));
    await Promise.all(this.#launches);
  }

  launch(claimed: readonly Claimed[], { owner, queueName }: RefillTerms, standing: Standing): void {
    const launching = this.#options.launch(claimed, standing, owner).then((running) => {
      if (running < claimed.length) this.#options.onLost(queueName);
    });
    this.#track(launching);
  }

  handBack({ owner }: RefillTerms): void {
    this.#track(this.#options.handBack(owner));
  }

  #track(launch: Promise<void>): void {
    const tracked = launch
      .catch(() => {
        // The database is away or closed. What is owned here without a run is found later, here or by a peer.
      })
      .finally(() => this.#launches.delete(tracked));
    this.#launches.add(tracked);
  }
}
