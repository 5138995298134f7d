// Work announced by other processes, where many engines serve its queue. If each claimed at once, all but one would find
// nothing. Instead one claims at once, two more a moment later, then four, and so on; each drops what an engine of the same
// ability has claimed by then. Which one is first depends on the name of the announcement: all of them rank each other by it.
import type { Clock, Timer } from '../../base/clock.js';
import type { Announcement, Claimed, QueueKey } from '../../store/notify/topics.js';
import { INTERNAL_QUEUE } from '../../store/runs/lifecycle.js';

export interface OffersOptions {
  readonly clock: Clock;
  readonly incarnationID: string;
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
/** Between two waves of a crowd: as long as a claim takes until its peers have heard of it. */
const PACE_MIN_MS = 8;
const PACE_MAX_MS = 50;
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
    // The notification takes about as long.
    this.#paceMs = Math.min(Math.max(2 * ms, PACE_MIN_MS), PACE_MAX_MS);
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

  #delayOf({ queueName, name }: Announcement): number {
    const { incarnationID, peers } = this.#options;
    const crowd = peers(queueName ?? INTERNAL_QUEUE);
    if (crowd.length < PEERS_MIN) return 0;
    const rank =
      name === undefined ? Math.floor(Math.random() * (crowd.length + 1)) : rankOf(incarnationID, crowd, name);
    return Math.floor(Math.log2(rank + 1)) * this.#paceMs;
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

/** How many of the peers come before the engine, by their hashes with the name. */
function rankOf(incarnationID: string, peers: readonly string[], name: string): number {
  const own = hashOf(name, incarnationID);
  return peers.reduce((rank, peer) => (hashOf(name, peer) < own ? rank + 1 : rank), 0);
}

/** FNV-1a with a last mix, without which similar names rank engines alike. */
function hashOf(name: string, incarnationID: string): number {
  let hash = 0x811c9dc5;
  for (const text of [name, incarnationID]) {
    for (let index = 0; index < text.length; index += 1) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  return (hash ^ (hash >>> 13)) >>> 0;
}

function keyOf({ queueName, partitionKey }: QueueKey): string {
  return JSON.stringify([queueName ?? INTERNAL_QUEUE, partitionKey ?? null]);
}
