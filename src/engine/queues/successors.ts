// The successors that this engine holds: workflows that it has claimed, and that start when its runs of the same queue end.
// Only for queues whose runs are short. A successor that does not get to start soon is handed back.
import type { Clock, Timer } from '../../base/clock.js';
import type { Claimed } from '../../store/queues/claims.js';
import type { Owned } from '../../store/runs/lifecycle.js';
import type { Standing } from '../liveness/lease.js';

export interface Successor extends Owned {
  readonly claimed: Claimed;
  readonly standing: Standing;
}

export interface SuccessorsOptions {
  readonly clock: Clock;
  /** Puts successors back on their queue. */
  handBack(successors: readonly Owned[], queueName: string): Promise<void>;
}

interface HeldQueue {
  readonly successors: { readonly successor: Successor; readonly until: number }[];
  /** Successors that commits in flight are to claim. */
  asked: number;
  /** Of the last runs, the latest counting most. */
  averageMs: number;
}

/** A run that takes longer wastes little of its slot while the next workflow is claimed. */
const SHORT_MS = 25;
/** At most. More are claimed when there is less than one for each slot. */
const HELD_PER_SLOT = 2;
/** How long a successor is held. A peer may have a slot for it. */
const HOLD_MAX_MS = 100;
/** How much of the average is the last run's. */
const WEIGHT = 0.2;

export class Successors {
  readonly #options: SuccessorsOptions;
  readonly #queues = new Map<string, HeldQueue>();
  /** The owner tokens of those held and of those about to start, by workflow. */
  readonly #owners = new Map<string, string>();
  #timer: Timer | undefined;
  #isStopped = false;

  constructor(options: SuccessorsOptions) {
    this.#options = options;
  }

  holds({ workflowID, owner }: Owned): boolean {
    return this.#owners.get(workflowID) === owner;
  }

  count(queueName: string): number {
    return this.#queues.get(queueName)?.successors.length ?? 0;
  }

  /** A run has taken this long. Returns how many successors to claim for the slots that the queue has here. */
  ask(queueName: string, slots: number, durationMs: number): number {
    const queue = this.#queueOf(queueName);
    queue.averageMs += (durationMs - queue.averageMs) * WEIGHT;
    if (queue.averageMs > SHORT_MS) return 0;
    const held = queue.successors.length + queue.asked;
    if (held >= slots) return 0;
    // Several at a time: a claim costs as much as a few workflows.
    const wanted = HELD_PER_SLOT * slots - held;
    queue.asked += wanted;
    return wanted;
  }

  /** The commit that was to claim them is over, or there will be none. */
  answer(queueName: string, wanted: number): void {
    this.#queueOf(queueName).asked -= wanted;
  }

  hold(queueName: string, claimed: readonly Claimed[], standing: Standing): void {
    const { clock } = this.#options;
    const { successors } = this.#queueOf(queueName);
    const until = clock.monotonic() + HOLD_MAX_MS;
    for (const one of claimed) {
      const { workflowID, owner } = one.workflow;
      const successor = { workflowID, owner: owner ?? '', claimed: one, standing };
      this.#owners.set(workflowID, successor.owner);
      successors.push({ successor, until });
    }
    if (this.#isStopped) void this.releaseAll();
    else this.#timer ??= clock.after(HOLD_MAX_MS, () => this.#sweep());
  }

  /** The next one to start. It is held until `started` is called. */
  take(queueName: string): Successor | undefined {
    return this.#queues.get(queueName)?.successors.shift()?.successor;
  }

  /** It runs, or was given up. */
  started({ workflowID, owner }: Owned): void {
    if (this.#owners.get(workflowID) === owner) this.#owners.delete(workflowID);
  }

  /** The workflow was changed from outside: it does not start here. */
  drop(workflowID: string): void {
    if (this.#owners.has(workflowID)) void this.#release((successor) => successor.workflowID === workflowID);
  }

  /** Resolves when none of those held so far for the queue is here any more. */
  release(queueName: string): Promise<void> {
    return this.#release(({ claimed }) => claimed.workflow.queueName === queueName);
  }

  /** The same for all queues. */
  releaseAll(): Promise<void> {
    return this.#release(() => true);
  }

  /** Holds none from now on. Resolves when all are handed back. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.releaseAll();
  }

  #queueOf(queueName: string): HeldQueue {
    const queue = this.#queues.get(queueName) ?? { successors: [], asked: 0, averageMs: SHORT_MS };
    this.#queues.set(queueName, queue);
    return queue;
  }

  #sweep(): void {
    this.#timer = undefined;
    const now = this.#options.clock.monotonic();
    void this.#release((_, until) => until <= now);
    const next = Math.min(...[...this.#queues.values()].flatMap(({ successors }) => successors[0]?.until ?? []));
    if (next < Infinity) this.#timer = this.#options.clock.after(next - now, () => this.#sweep());
  }

  async #release(isReleased: (successor: Successor, until: number) => boolean): Promise<void> {
    const handBacks: Promise<void>[] = [];
    for (const [queueName, { successors }] of this.#queues) {
      const released: Successor[] = [];
      for (const held of successors.splice(0)) {
        if (isReleased(held.successor, held.until)) released.push(held.successor);
        else successors.push(held);
      }
      for (const successor of released) this.started(successor);
      if (released.length > 0) handBacks.push(this.#options.handBack(released, queueName));
    }
    if ([...this.#queues.values()].every(({ successors }) => successors.length === 0)) this.#stopTimer();
    await Promise.all(handBacks);
  }

  #stopTimer(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }
}
