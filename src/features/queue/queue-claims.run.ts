// One claim from a queue, whole or by partition: how much to claim, and what to do next given what was left.
import { isUnlimited } from './queue.js';
import type { Share } from './claim-limits.sql.js';
import type { ClaimResult, NewClaim } from './claims.run.js';
import type { Slots } from '../../run/slots.js';
import type { Queue } from './known-queues.run.js';
import { SCAN_MAX } from './partition-rotation.run.js';
import type { QueueState } from './queue-state.run.js';

export interface ClaimSource {
  /** Claims at most `limit` workflows from the queue. */
  claim(queue: Queue, limit: number, manner: ClaimManner): Promise<NewClaim>;
  /** Claims from several partitions of the queue and starts to run what it gets. */
  claimPartitions(
    queue: Queue,
    partitions: readonly PartitionLimit[],
    manner: ClaimManner,
  ): Promise<readonly ClaimResult[]>;
  /** Partitions with waiting workflows, after a key. */
  findPartitions(queueName: string, after: string, limit: number): Promise<string[]>;
  /** How many workflows of the queue run, in all processes. */
  countRunning(queueName: string): Promise<number>;
}

/** What a claim leaves to peers and to other programs. */
export interface ClaimManner {
  /** Limits the claim to an even share of the queue. */
  readonly share?: Share | undefined;
  /** Takes slots that it is the turn of other programs to take. */
  readonly isInsisting: boolean;
}

export interface PartitionLimit {
  readonly key: string;
  readonly limit: number;
}

export interface QueueClaimsOptions {
  readonly source: ClaimSource;
  readonly slots: Slots;
  /** How many engines serve the queue, this one included. */
  readonly countEngines: (queueName: string) => number;
  /** Notifies peers that there may be work on the queue. */
  readonly notifyPeers: (queueName: string, partitionKey?: string) => void;
  /** Spares peers a look: what was announced under these names is claimed, and nothing is left. */
  readonly reportClaimed: (queueName: string, names: readonly string[], partitionKey?: string) => void;
}

/** What becomes known while a claim is in flight. */
export interface ClaimFlight {
  /** What it got has taken its slots. */
  onAnswer(): void;
  /** The next claim may be sent, although the workflows of this one have not begun. */
  goOn(): void;
}

/** Partitions claimed from in one commit. */
const PARTITIONS_MAX = 64;
/** Partitions offered to peers one by one. For more, they scan. */
const OFFERED_MAX = 8;

export class QueueClaims {
  readonly #options: QueueClaimsOptions;

  constructor(options: QueueClaimsOptions) {
    this.#options = options;
  }

  /** Claims at most `limit` workflows and starts to run them. True if the next claim should follow at once. */
  async claim(state: QueueState, limit: number, flight: ClaimFlight): Promise<boolean> {
    const engines = this.#options.countEngines(state.queue.name);
    const isSharing = engines > 1 && state.isSharing;
    if (state.isPartitioned) return this.#claimPartitions(state, limit, isSharing ? engines : 1);
    return this.#claimWhole(state, { limit, engines: isSharing ? engines : 1, flight });
  }

  async #claimWhole(
    state: QueueState,
    { limit, engines, flight }: { readonly limit: number; readonly engines: number; readonly flight: ClaimFlight },
  ): Promise<boolean> {
    const { queue, hasFreed } = state;
    const { slots, source, notifyPeers } = this.#options;
    const isSharing = engines > 1;
    state.hasFreed = false;
    const names = state.takeNames();
    const share = isSharing ? { engines, running: slots.count(queue.name) } : undefined;
    const { taken, left, begin } = await source.claim(queue, limit, { share, isInsisting: state.turns.isInsisting });
    flight.onAnswer();
    // In the order of the queue, and no more than two claims in memory.
    await state.beginning;
    // The limits may have changed meanwhile.
    const isUnlimitedNow = !state.isPartitioned && isUnlimited(state.queue.limits.whole);
    const isOverlapping = taken >= limit && left.isWaiting && !isSharing && isUnlimited(queue.limits.whole);
    if (isOverlapping && isUnlimitedNow) {
      state.settle(taken, isSharing, left);
      flight.goOn();
      // By then it is on its way: runs begin at once, and take their time.
      await new Promise((resolve) => setImmediate(resolve));
      await begin();
      return false;
    }
    await begin();
    state.settle(taken, isSharing, left);
    if (taken > 0 && !left.isWaiting) this.#options.reportClaimed(queue.name, names);
    const turnMs = state.turns.noteClaim(taken, left, queue.pollMs);
    if (!left.isWaiting) return false;
    if (turnMs !== undefined) return state.leave(turnMs);
    if (taken >= limit || state.hasFreed) return true;
    if (left.waitMs !== null) state.retryAfter(left.waitMs);
    else if (left.hasRoom) {
      // What is left is the peers' share, or needs a version or function that this engine does not have.
      if (hasFreed) notifyPeers(queue.name);
      // Or a peer freed a slot after the rows were picked: retry once.
      const isWorthRetrying = state.shouldRetryAtOnce(taken);
      if (isSharing) state.yield();
      else if (isWorthRetrying) return true;
      else state.retryWithBackoff();
    }
    return false;
  }

  async #claimPartitions(state: QueueState, given: number, engines: number): Promise<boolean> {
    const { queue, partitions, hasFreed } = state;
    state.hasFreed = false;
    await this.#scan(state);
    if (partitions.readyCount === 0) return !partitions.isEmpty;
    const share = engines > 1 ? await this.#shareOf(state, engines) : Infinity;
    const limit = Math.min(given, share);
    if (limit <= 0) {
      if (hasFreed) this.#offerPartitions(state);
      state.yield();
      return false;
    }
    const count = Math.min(PARTITIONS_MAX, limit, Math.ceil(partitions.readyCount / engines));
    const chosen = this.#choose(state, partitions.take(count, engines), { limit, hasFreed });
    if (chosen.length === 0) return !partitions.isEmpty;
    const names = chosen.map(({ key }) => state.takeNames(key));
    const results = await this.#claimChosen(state, chosen);
    results.forEach(({ taken, left }, index) => {
      if (taken > 0 && !left.isWaiting) this.#options.reportClaimed(queue.name, names[index] ?? [], chosen[index]?.key);
    });
    this.#settlePartitions(state, { chosen, results, hasFreed });
    return this.#continueRotation(state, { results, engines });
  }

  async #claimChosen({ queue, partitions, turns }: QueueState, chosen: readonly PartitionLimit[]) {
    try {
      return await this.#options.source.claimPartitions(queue, chosen, { isInsisting: turns.isInsisting });
    } catch (error) {
      partitions.putBack(chosen.map(({ key }) => key));
      throw error;
    }
  }

  #settlePartitions(
    { queue, partitions }: QueueState,
    claim: {
      readonly chosen: readonly PartitionLimit[];
      readonly results: readonly ClaimResult[];
      readonly hasFreed: boolean;
    },
  ): void {
    const { chosen, results, hasFreed } = claim;
    // A partition that got nothing because the queue was full keeps its position ahead of those that got something.
    const isPassedOver = ({ taken, left, hadRoom = left.hasRoom }: ClaimResult): boolean =>
      taken === 0 && left.isWaiting && !hadRoom && left.hasPartitionRoom;
    const passedOver = chosen.filter((_, index) => results[index] && isPassedOver(results[index]));
    partitions.putBack(passedOver.map(({ key }) => key));
    chosen.forEach(({ key, limit: allowed }, index) => {
      const result = results[index];
      if (!result || isPassedOver(result)) return;
      partitions.settle(key, result.taken, result.left);
      const isLeft = result.left.isWaiting && result.left.hasRoom && result.left.hasPartitionRoom;
      if (isLeft && hasFreed && result.taken < allowed) this.#options.notifyPeers(queue.name, key);
    });
  }

  #continueRotation(
    state: QueueState,
    { results, engines }: { readonly results: readonly ClaimResult[]; readonly engines: number },
  ): boolean {
    const { partitions } = state;
    const last = results.at(-1)?.left;
    const taken = results.reduce((sum, result) => sum + result.taken, 0);
    state.settle(taken, engines > 1, { isWaiting: !partitions.isEmpty, hasRoom: last?.hasRoom ?? true });
    const turnMs = last && state.turns.noteClaim(taken, last, state.queue.pollMs);
    if (partitions.isEmpty) return false;
    if (turnMs !== undefined) return state.leave(turnMs);
    if (state.hasFreed) return true;
    if (last && last.waitMs !== null) state.retryAfter(last.waitMs);
    // The queue as a whole is full: it is announced again when a run of any partition ends.
    else if (last?.hasRoom === false) state.hasBacklog = true;
    else if (engines > 1 && taken > 0) state.yield();
    else return true;
    return false;
  }

  /** How many more may start here if all engines share the concurrency limits evenly. */
  async #shareOf({ queue, partitions }: QueueState, engines: number): Promise<number> {
    const { slots, source } = this.#options;
    const { name, limits } = queue;
    const running = slots.count(name);
    const shareOf = (all: number): number => Math.ceil(all / engines) - running;
    const share = limits.whole.concurrency === null ? Infinity : shareOf(limits.whole.concurrency);
    const each = limits.partition?.concurrency ?? null;
    if (each === null || share <= 0 || shareOf(partitions.count * each) > 0) return share;
    // The engine that runs a partition sees its free slot first, and would keep it. Partitions with nothing waiting are
    // not in the rotation, so what runs is counted in the database.
    return Math.min(share, shareOf((await source.countRunning(name)) + partitions.readyCount * each));
  }

  /** Tells peers of slots that this engine leaves to them. */
  #offerPartitions({ queue, partitions }: QueueState): void {
    const keys = partitions.readyKeys;
    if (keys.length > OFFERED_MAX) this.#options.notifyPeers(queue.name);
    else for (const key of keys) this.#options.notifyPeers(queue.name, key);
  }

  async #scan({ queue, partitions }: QueueState): Promise<void> {
    const after = partitions.scanAfter;
    if (after !== undefined) {
      partitions.addScanned(await this.#options.source.findPartitions(queue.name, after, SCAN_MAX));
    }
  }

  /** How many workflows to claim from each partition: an even share, within the partition's worker limit. */
  #choose(
    { queue, partitions }: QueueState,
    keys: readonly string[],
    { limit, hasFreed }: { readonly limit: number; readonly hasFreed: boolean },
  ): PartitionLimit[] {
    const { slots, notifyPeers } = this.#options;
    const { workerConcurrency = null } = queue.limits.partition ?? {};
    const part = Math.max(1, Math.floor(limit / Math.max(keys.length, 1)));
    return keys.flatMap((key) => {
      const headroom = workerConcurrency === null ? part : workerConcurrency - slots.count(queue.name, key);
      if (headroom > 0) return [{ key, limit: Math.min(part, headroom) }];
      partitions.block(key);
      if (hasFreed) notifyPeers(queue.name, key);
      return [];
    });
  }
}
