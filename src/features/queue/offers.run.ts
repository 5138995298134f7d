// Work announced by other processes, where many engines serve its queue. If each claimed at once, all but one would find
// nothing. So each waits for a random time first, and drops what an engine of the same ability has claimed by then.
import type { Clock, Timer } from '../../kernel/base/clock.js';
import type { Announcement, Claimed, QueueKey } from '../../database/notify/topics.js';
import { INTERNAL_QUEUE } from './queue.js';

export interface OffersOptions {
  readonly clock: Clock;
  /** The incarnations of peers that serve the queue. */
  readonly peers: (queueName: string) => readonly string[];
  /** Stands for the functions and the version of this engine. */
  readonly ability: () => string;
  /** The work may still be there. */
  readonly onDue: (announced: Announcement) => void;
  /** Work was claimed here of which others may have heard. */
  readonly onClaimed: (claimed: Claimed) => void;
}

/** With fewer peers, all engines claim at once. */
const PEERS_MIN = 4;
/** As long as it takes to claim and to be heard by the others. */
const PAUSE_MS = 8;
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

  constructor(options: OffersOptions) {
    this.#options = options;
  }

  /** Work was announced by another process. */
  add(announced: Announcement): void {
    const key = keyOf(announced);
    const offer = this.#offers.get(key);
    if (offer) return void offer.names.add(offer.names.size < NAMES_MAX ? announced.name : undefined);
    const delayMs = this.#offers.size < OFFERS_MAX ? this.#delayOf(announced) : 0;
    if (delayMs === 0) return this.#options.onDue(announced);
    const timer = this.#options.clock.after(delayMs, () => this.#expire(key, announced));
    this.#offers.set(key, { timer, names: new Set([announced.name]) });
  }

  /** On average, one engine does not wait at all, two wait for one pause, four for two, and so on. */
  #delayOf({ queueName }: Announcement): number {
    const peers = this.#options.peers(queueName ?? INTERNAL_QUEUE).length;
    return peers < PEERS_MIN ? 0 : Math.floor(Math.log2(Math.random() * (peers + 1) + 1)) * PAUSE_MS;
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
    const { ability, peers, onClaimed } = this.#options;
    if (names.length === 0 || peers(key.queueName ?? INTERNAL_QUEUE).length < PEERS_MIN) return;
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
