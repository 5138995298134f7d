// Work announced by other processes, where many engines serve its queue. If each claimed at once, all but one would find
// nothing. Instead each waits for a random moment, and drops what an engine of the same ability has claimed by then.
import type { Clock, Timer } from '../../base/clock.js';
import type { Announcement, Claimed, QueueKey } from '../../store/notify/topics.js';
import { INTERNAL_QUEUE } from '../../store/runs/lifecycle.js';

export interface OffersOptions {
  readonly clock: Clock;
  /** How many engines serve the queue, this one included. */
  readonly engines: (queueName: string) => number;
  /** Stands for the functions and the version of this engine. */
  readonly ability: () => string;
  /** The work may still be there. */
  readonly onDue: (announced: Announcement) => void;
  /** Work was claimed here of which others may have heard. */
  readonly onClaimed: (claimed: Claimed) => void;
}

/** Up to this many engines all claim at once. */
const CROWD_MIN = 4;
/** The first of a crowd claims after about this time, and the others each as much later: as long as a claim takes. */
const PACE_MIN_MS = 4;
const PACE_MAX_MS = 25;
/** Queues and partitions to remember. Work in more is claimed at once. */
const OFFERS_MAX = 1000;
/** Names to remember for each. */
const NAMES_MAX = 100;

interface Offer {
  readonly timer: Timer;
  /** The names of what was announced. Undefined for what has none, so cannot be known to be claimed. */
  readonly names: Set<string | undefined>;
}

export class Offers {
  readonly #options: OffersOptions;
  readonly #offers = new Map<string, Offer>();
  #paceMs = PACE_MIN_MS;

  constructor(options: OffersOptions) {
    this.#options = options;
  }

  /** A claim took this long. */
  noteDuration(ms: number): void {
    this.#paceMs = Math.min(Math.max(ms, PACE_MIN_MS), PACE_MAX_MS);
  }

  /** Work was announced by another process. */
  add(announced: Announcement): void {
    const { clock, engines, onDue } = this.#options;
    const crowd = engines(announced.queueName ?? INTERNAL_QUEUE);
    const key = keyOf(announced);
    const offer = this.#offers.get(key);
    if (offer) offer.names.add(offer.names.size < NAMES_MAX ? announced.name : undefined);
    else if (crowd <= CROWD_MIN || this.#offers.size >= OFFERS_MAX) onDue(announced);
    else {
      const timer = clock.after(Math.random() * crowd * this.#paceMs, () => this.#expire(key, announced));
      this.#offers.set(key, { timer, names: new Set([announced.name]) });
    }
  }

  #expire(key: string, announced: Announcement): void {
    const names = this.#offers.get(key)?.names ?? [];
    this.#offers.delete(key);
    for (const name of names) this.#options.onDue({ ...announced, name });
  }

  /** An engine has claimed what was announced under these names. */
  withdraw(claimed: Claimed): void {
    const key = keyOf(claimed);
    const offer = this.#offers.get(key);
    if (!offer || claimed.ability !== this.#options.ability()) return;
    for (const name of claimed.names) offer.names.delete(name);
    if (offer.names.size > 0) return;
    offer.timer.cancel();
    this.#offers.delete(key);
  }

  /** This engine has claimed what was announced under these names. */
  report(key: QueueKey, names: readonly string[]): void {
    const { ability, engines, onClaimed } = this.#options;
    if (names.length === 0 || engines(key.queueName ?? INTERNAL_QUEUE) <= CROWD_MIN) return;
    onClaimed({ ...key, names, ability: ability() });
  }

  stop(): void {
    for (const { timer } of this.#offers.values()) timer.cancel();
    this.#offers.clear();
  }
}

function keyOf({ queueName, partitionKey }: QueueKey): string {
  return JSON.stringify([queueName ?? INTERNAL_QUEUE, partitionKey ?? null]);
}
