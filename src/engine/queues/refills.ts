// Refills: where a queue has work left, the slot of a run that ends goes to the next workflow at once. If the engine holds a
// successor, that starts; otherwise the commit that records the outcome of the run also claims.
import type { Clock } from '../../base/clock.js';
import { deferred } from '../../base/deferred.js';
import type { Claimed } from '../../store/queues/claims.js';
import type { Refill, RefillTerms } from '../../store/queues/refills.js';
import type { Standing } from '../liveness/lease.js';
import type { Run } from '../runs/run.js';
import { addTo, type ExpectedRun, type Runs } from '../runs/runs.js';
import type { LaunchOptions, RefillClaim } from './claims.js';
import type { Queue } from './known-queues.js';
import type { Successor, Successors } from './successors.js';

/** A queue of which a run that ends may be followed by the next workflow here, and how many slots it has here. */
export interface Refillable {
  readonly queue: Queue;
  readonly slots: number;
  /** Whether its workflows run one after the other, in order. */
  readonly isSerial: boolean;
}

/** What the dispatcher does not know of a queue. */
export interface Unslotted {
  /** Runs that are counted, but have given their slots away. */
  readonly slotless: number;
  /** Successors that are held. */
  readonly successors: number;
}

export interface RefillsOptions {
  readonly clock: Clock;
  readonly successors: Successors;
  readonly runs: Pick<Runs, 'expect' | 'unexpect' | 'isCounted'>;
  findQueue(queueName: string, unslotted: Unslotted): Refillable | undefined;
  newTerms(queue: Queue): RefillClaim;
  /** Runs claimed workflows, and returns how many run. If that fails, hands them back. */
  launch(claimed: readonly Claimed[], standing: Standing, options: LaunchOptions): Promise<number>;
  /** Hands back what was claimed with a token. */
  handBack(owner: string): Promise<void>;
  /** Slots of the queue are free although they were filled. */
  onLost(queueName: string): void;
}

interface RefillOptions extends RefillClaim {
  readonly successor: Successor | undefined;
  readonly wanted: number;
  readonly looksForForeign: boolean;
}

/** How often to look for DBOS workers. One that has just connected waits as long. */
const FOREIGN_LOOK_MS = 1000;

/**
 *   offered ──► in a commit ──► ended: filled or not
 *   offered ──► withdrawn
 */
class QueueRefill implements Refill {
  readonly terms: RefillTerms;
  readonly successor: Successor | undefined;
  readonly wanted: number;
  readonly looksForForeign: boolean;
  readonly #claim: RefillClaim;
  readonly #refills: Refills;
  readonly #over = deferred<void>();
  #state: 'offered' | 'begun' | 'withdrawn' | 'ended' = 'offered';
  #isFilled: boolean;
  /** Whether the run that ends is still counted. */
  hasRun = true;

  constructor(refills: Refills, { successor, wanted, looksForForeign, ...claim }: RefillOptions) {
    this.#refills = refills;
    this.terms = claim.terms;
    this.successor = successor;
    this.wanted = wanted;
    this.looksForForeign = looksForForeign;
    this.#claim = claim;
    this.#isFilled = successor !== undefined;
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
    this.#state = 'ended';
    if (isFilled && this.hasRun) this.#refills.countSlotless(this.terms.queueName, 1);
    this.#isFilled ||= isFilled;
    this.#refills.answer(this);
    this.#over.resolve();
  }

  launch(claimed: readonly Claimed[]): void {
    this.#refills.launch(claimed, this.#claim);
  }

  hold(claimed: readonly Claimed[]): void {
    this.#refills.hold(claimed, this.#claim);
  }

  noteForeign(areConnected: boolean): void {
    this.#refills.areForeignConnected = areConnected;
  }

  handBack(): void {
    this.#refills.handBack(this.terms);
  }

  /** The successor does not run. The slot is free when the run before it has ended. */
  lose(): void {
    const { queueName } = this.terms;
    if (!this.hasRun) return this.#refills.onLost(queueName);
    this.#isFilled = false;
    this.#refills.countSlotless(queueName, -1);
  }

  /** Resolves when no commit can claim under these terms any more. */
  async withdraw(): Promise<void> {
    if (this.#state === 'offered') {
      this.#state = 'withdrawn';
      this.#refills.answer(this);
    }
    if (this.#state === 'begun') await this.#over.promise;
  }
}

export class Refills {
  readonly #options: RefillsOptions;
  /** Undefined for a run whose slot is given up. */
  readonly #offered = new Map<Run, QueueRefill | undefined>();
  /** Runs whose slots are taken, and which are about to be removed, by queue. */
  readonly #slotless = new Map<string, number>();
  /** Slots that successors hold although the runs before them had lost theirs, by queue. */
  readonly #excess = new Map<string, number>();
  /** What has been claimed and is about to run. */
  readonly #launches = new Set<Promise<void>>();

  /** As of the last look. */
  areForeignConnected = false;
  #lookedAt = -Infinity;

  constructor(options: RefillsOptions) {
    this.#options = options;
  }

  /** For a run whose outcome is about to be recorded. */
  offer(run: Run): Refill | undefined {
    const { queueName } = run;
    if (queueName === null || this.#offered.has(run)) return this.#offered.get(run);
    if (this.#excess.has(queueName)) {
      addTo(this.#excess, queueName, -1);
      this.#offered.set(run, undefined);
      return undefined;
    }
    const { clock, successors } = this.#options;
    const slotless = this.#slotless.get(queueName) ?? 0;
    const looksForForeign = clock.monotonic() - this.#lookedAt >= FOREIGN_LOOK_MS;
    if (this.areForeignConnected && !looksForForeign) return undefined;
    const found = this.#options.findQueue(queueName, { slotless, successors: successors.count(queueName) });
    if (!found) return undefined;
    const successor = successors.take(queueName);
    // If the slot of a serial queue is lost, what comes next must be on the queue.
    const slots = found.isSerial ? 0 : found.slots;
    const wanted = successors.ask(queueName, slots, clock.monotonic() - run.begunAt);
    const terms = this.#options.newTerms(found.queue);
    const refill = new QueueRefill(this, { ...terms, successor, wanted, looksForForeign });
    if (looksForForeign) this.#lookedAt = clock.monotonic();
    this.#offered.set(run, refill);
    if (successor) this.#startSuccessor(refill, successor);
    return refill;
  }

  #startSuccessor(refill: QueueRefill, successor: Successor): void {
    const { claimed, owner, standing } = successor;
    this.countSlotless(refill.terms.queueName, 1);
    // What is held is not handed back.
    const letGo = (): void => this.#options.successors.started(successor);
    const started = this.#launch([claimed], standing, { owner, onFailure: letGo }).then(
      (running) => {
        letGo();
        if (running === 0) refill.lose();
      },
      () => refill.lose(),
    );
    this.#track(started);
  }

  /** The run has ended. True if its slot is taken. */
  settle(run: Run, isRecorded: boolean): boolean {
    const refill = this.#offered.get(run);
    this.#offered.delete(run);
    if (!refill) return false;
    refill.hasRun = false;
    void refill.withdraw();
    // It may have lost its workflow, and a peer may have got its slot: another run that ends here makes up for it.
    if (!isRecorded && refill.successor) addTo(this.#excess, refill.terms.queueName, 1);
    if (!refill.isFilled) return false;
    this.countSlotless(refill.terms.queueName, -1);
    // A successor that was cancelled before this commit has left a slot that seemed taken when a claim counted.
    return !refill.successor || this.#options.runs.isCounted(refill.successor);
  }

  countSlotless(queueName: string, change: 1 | -1): void {
    addTo(this.#slotless, queueName, change);
  }

  onLost(queueName: string): void {
    this.#options.onLost(queueName);
  }

  answer({ terms, wanted }: Refill): void {
    this.#options.successors.answer(terms.queueName, wanted);
  }

  /**
   * Resolves when those offered so far claim nothing any more, what they have claimed runs, and no successor that was claimed
   * before is held.
   */
  async withdrawAll(): Promise<void> {
    await Promise.all([...this.#offered.values()].flatMap((refill) => refill?.withdraw() ?? []));
    await Promise.all([...this.#launches, this.#options.successors.releaseAll()]);
  }

  launch(claimed: readonly Claimed[], { terms, standing, hasChanged }: RefillClaim): void {
    const { owner, queueName } = terms;
    const launching = this.#launch(claimed, standing, { owner, isDoubtful: hasChanged() }).then((running) => {
      if (running < claimed.length) this.#options.onLost(queueName);
    });
    this.#track(launching);
  }

  async #launch(...args: Parameters<RefillsOptions['launch']>): Promise<number> {
    const { runs } = this.#options;
    const [claimed] = args;
    const expected = claimed.map(({ workflow }) => expectedOf(workflow));
    for (const one of expected) runs.expect(one);
    try {
      return await this.#options.launch(...args);
    } finally {
      for (const one of expected) runs.unexpect(one);
    }
  }

  /** They go back if one of them may have been changed before it is held, and hears of changes. */
  hold(claimed: readonly Claimed[], { terms: { queueName }, standing, hasChanged }: RefillClaim): void {
    const { successors } = this.#options;
    successors.hold(queueName, claimed, standing);
    if (hasChanged()) this.#track(successors.release(queueName));
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

function expectedOf({ workflowID, owner, queueName, queuePartitionKey }: Claimed['workflow']): ExpectedRun {
  return { workflowID, owner: owner ?? '', queueName, partitionKey: queuePartitionKey };
}
