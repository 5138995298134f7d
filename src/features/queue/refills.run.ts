// Refills: where a queue has work left, the commit that records the outcome of one of its runs also claims the next workflow.
import { deferred } from '../../kernel/base/deferred.js';
import type { OthersWork } from './claim-limits.sql.js';
import type { Claimed } from './claims.sql.js';
import type { Refill, RefillTerms } from './refills.sql.js';
import type { Standing } from '../liveness/lease.run.js';
import type { Run } from '../../run/run.js';
import type { Slots } from '../../run/slots.js';
import type { LaunchOptions, RefillClaim } from './claims.run.js';
import type { Queue } from './known-queues.run.js';
import type { Turns } from './turns.run.js';

export interface RefillsOptions {
  readonly slots: Slots;
  /** The queue, if a run of it that ends may be followed by the next workflow here. */
  findQueue(queueName: string): Refillable | undefined;
  newTerms(queue: Queue, isInsisting: boolean): RefillClaim;
  /** Runs claimed workflows, and returns how many run. If that fails, hands them back. */
  launch(claimed: readonly Claimed[], standing: Standing, options: LaunchOptions): Promise<number>;
  /** Hands back what was claimed with a token. */
  handBack(owner: string): Promise<void>;
  /** Slots of the queue are free although they were filled. */
  onLost(queueName: string): void;
}

/** A queue of which slots may be passed on, and whose turn it is to take them. */
export interface Refillable {
  readonly queue: Queue;
  readonly turns: Turns;
}

interface RefillOptions extends RefillClaim {
  readonly run: Run;
  readonly turns: Turns;
  readonly looks: boolean;
}

/** How often to look for work of other programs, which waits as long for its first slot. */
const LOOK_MS = 1000;

/**
 *   offered ──► in a commit ──► ended: filled or not
 *   offered ──► withdrawn
 */
class QueueRefill implements Refill {
  readonly terms: RefillTerms;
  readonly looks: boolean;
  readonly #run: Run;
  readonly #turns: Turns;
  readonly #claim: RefillClaim;
  readonly #refills: Refills;
  readonly #over = deferred<void>();
  #state: 'offered' | 'begun' | 'withdrawn' = 'offered';
  #isFilled = false;

  constructor(refills: Refills, { run, turns, looks, ...claim }: RefillOptions) {
    this.#refills = refills;
    this.#run = run;
    this.#turns = turns;
    this.looks = looks;
    this.terms = claim.terms;
    this.#claim = claim;
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
    // Its handles hear later that it has ended.
    if (isFilled) this.#refills.releaseSlot(this.#run);
    this.#over.resolve();
  }

  launch(claimed: readonly Claimed[]): void {
    this.#refills.launch(claimed, this.#claim);
  }

  noteOthers(others: OthersWork | undefined): void {
    this.#turns.note(others);
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
  /** What has been claimed and is about to run. */
  readonly #launches = new Set<Promise<void>>();

  constructor(options: RefillsOptions) {
    this.#options = options;
  }

  /** For a run whose outcome is about to be recorded. */
  offer(run: Run): Refill | undefined {
    const { queueName } = run;
    if (queueName === null || this.#offered.has(run)) return this.#offered.get(run);
    const found = this.#options.findQueue(queueName);
    if (!found) return undefined;
    const { queue, turns } = found;
    const looks = turns.shouldLook(LOOK_MS);
    if (turns.isSharing && !looks) return undefined;
    const refill = new QueueRefill(this, { run, turns, looks, ...this.#options.newTerms(queue, turns.isInsisting) });
    this.#offered.set(run, refill);
    return refill;
  }

  /** The run has ended. True if its slot is taken. */
  settle(run: Run): boolean {
    const refill = this.#offered.get(run);
    this.#offered.delete(run);
    if (!refill) return false;
    void refill.withdraw();
    return refill.isFilled;
  }

  releaseSlot(run: Run): void {
    this.#options.slots.release(run);
  }

  /** Resolves when those offered so far claim nothing any more, and what they have claimed runs. */
  async withdrawAll(): Promise<void> {
    await Promise.all([...this.#offered.values()].map((refill) => refill.withdraw()));
    await Promise.all(this.#launches);
  }

  launch(claimed: readonly Claimed[], { terms, standing, hasChanged }: RefillClaim): void {
    const { owner, queueName } = terms;
    const launching = this.#options.launch(claimed, standing, { owner, isDoubtful: hasChanged() }).then((running) => {
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
