// Decides when to claim from which queue: when work is announced, when a slot becomes free, when a rate limit allows,
// and at intervals in case a notification was lost.
import { deferred } from '../../kernel/base/deferred.js';
import { type Clock, sleep } from '../../kernel/base/clock.js';
import type { DLogger } from '../../kernel/base/log.js';
import { Service } from '../../kernel/base/service.js';
import { isUnlimited } from './queue.js';
import type { Slots } from '../../run/slots.js';
import type { Queue } from './known-queues.run.js';
import { type ClaimFlight, type ClaimSource, QueueClaims } from './queue-claims.run.js';
import { QueueState } from './queue-state.run.js';
import type { Refillable } from './refills.run.js';

/** What there is to claim, and how to claim it. */
export interface WorkSource extends ClaimSource {
  /** Reads the queues to serve, and the names of those on which workflows wait. */
  findWork(): Promise<{ readonly queues: readonly Queue[]; readonly waiting: readonly string[] }>;
  /** How often to poll without being woken. */
  pollMs(): number;
}

export interface DispatcherOptions {
  readonly clock: Clock;
  readonly logger: DLogger;
  readonly source: WorkSource;
  readonly slots: Slots;
  /** How many engines serve the queue, this one included. */
  readonly countEngines: (queueName: string) => number;
  /** Claims that may be in flight at once. */
  readonly claimsMax: number;
  /** Notifies peers that there may be work on the queue. */
  readonly notifyPeers: (queueName: string, partitionKey?: string) => void;
  /** Spares peers a look: what was announced under these names is claimed, and nothing is left. */
  readonly reportClaimed: (queueName: string, names: readonly string[], partitionKey?: string) => void;
}

/** Workflows claimed by one statement at most. More are claimed right after. */
const CLAIM_MAX = 300;
/** Names of unserved queues to remember. */
const UNSERVED_MAX = 1000;
/** How long to leave a queue alone after a claim that failed. */
const FAILURE_PAUSE_MS = 500;

export class Dispatcher {
  readonly #options: DispatcherOptions;
  readonly #service: Service;
  readonly #queueClaims: QueueClaims;
  readonly #queues = new Map<string, QueueState>();
  /** The queues that may have work, in the order to serve them. */
  readonly #announced = new Set<QueueState>();
  /** Claims whose workflows have not all begun to run. */
  readonly #claims = new Set<Promise<void>>();
  #claimsInFlight = 0;
  #isRunning = false;
  #wakeUp: (() => void) | undefined;
  #isRefreshWanted = false;
  #firstLook = deferred<void>();
  /** Queues that were announced but are not served here, as of the last refresh. */
  readonly #unservedQueues = new Set<string>();

  constructor(options: DispatcherOptions) {
    this.#options = options;
    this.#queueClaims = new QueueClaims(options);
    this.#service = new Service(
      (signal) => this.#poll(signal),
      (error) => options.logger.error(error),
    );
  }

  /** Resolves when the queues have been looked at once, or the attempt has failed and is repeated in the background. */
  async start(): Promise<void> {
    this.#isRunning = true;
    this.#firstLook = deferred<void>();
    this.#service.start();
    await this.#firstLook.promise;
  }

  /** Stops claiming. Resolves when all claimed workflows have begun to run. */
  async stop(): Promise<void> {
    this.#isRunning = false;
    await this.#service.stop();
    this.#firstLook.resolve();
    for (const state of this.#queues.values()) state.stop();
    await Promise.all(this.#claims);
    this.#queues.clear();
    this.#announced.clear();
  }

  /** Resolves when the claims in flight have ended. */
  async settle(): Promise<void> {
    await Promise.all(this.#claims);
  }

  /** There may be work on this queue, or in this partition of it. */
  wake(queueName: string, partitionKey?: string | null, name?: string): void {
    const state = this.#queues.get(queueName);
    if (!this.#isRunning) return;
    if (!state) return this.#discoverQueue(queueName);
    state.noteName(partitionKey, name);
    if (state.isPartitioned) {
      if (partitionKey == null) state.partitions.requestScan();
      else state.partitions.add(partitionKey);
    }
    // Work that waits behind a slot which is left to others does not change whose turn it is. They give no name.
    if (name !== undefined && state.turns.isLeaving) state.hasBacklog = true;
    else this.#announce(state);
  }

  /** A notification may arrive before the queue, just registered, is known here. */
  #discoverQueue(queueName: string): void {
    if (this.#unservedQueues.has(queueName)) return;
    if (this.#unservedQueues.size >= UNSERVED_MAX) this.#unservedQueues.clear();
    this.#unservedQueues.add(queueName);
    this.refresh();
  }

  /** Any queue may have work, or the queues to serve may have changed. */
  refresh(): void {
    this.#isRefreshWanted = true;
    this.#wakeUp?.();
  }

  /** A run of the queue has ended or was stopped: its slot is free. */
  slotFreed(queueName: string, partitionKey: string | null): void {
    const { notifyPeers } = this.#options;
    const state = this.#queues.get(queueName);
    if (!this.#isRunning || !state) notifyPeers(queueName, partitionKey ?? undefined);
    else {
      const isLeft = state.isPartitioned && partitionKey !== null && state.partitions.slotFreed(partitionKey);
      const hasWork = state.isPartitioned ? !state.partitions.isEmpty : state.hasBacklog;
      // A claim in flight may have counted the slot as taken. It claims again if work is left.
      if (hasWork || state.isClaiming) state.hasFreed = true;
      if (hasWork && !state.isClaiming && !state.turns.isLeaving) this.#announced.add(state);
      // A partition that was full may have slots by now, and peers may be waiting for this one.
      if (!hasWork && !isLeft && state.isPartitioned && state.partitions.hasBlocked) notifyPeers(queueName);
    }
    this.#pump();
  }

  /**
   * Reserves slots for workflows of the queue that are created running. Undefined if the queue is not served here or has
   * limits, or if there are not enough slots. The returned function ends the reservation.
   */
  reserve(queueName: string, count: number): (() => void) | undefined {
    const state = this.#queues.get(queueName);
    if (!this.#isRunning || !state || state.isPartitioned || !isUnlimited(state.queue.limits.whole)) return undefined;
    if (this.#options.slots.free < count) return undefined;
    const giveBack = this.#options.slots.reserve(count);
    return () => {
      giveBack();
      this.#pump();
    };
  }

  /**
   * The queue, if the slot of a run that ends may go to the next workflow in the same commit. It may if work is left, and if
   * peers do not lack it.
   */
  findRefillable(queueName: string): Refillable | undefined {
    const state = this.#queues.get(queueName);
    if (!this.#isRunning || !state?.hasBacklog || state.isPartitioned) return undefined;
    const { slots, countEngines } = this.#options;
    const { concurrency, workerConcurrency, rate } = state.queue.limits.whole;
    if (rate !== null || (concurrency === null && workerConcurrency === null)) return undefined;
    const engines = state.isSharing ? countEngines(queueName) : 1;
    const share = concurrency === null ? Infinity : shareOf(concurrency, engines);
    const runningMax = Math.min(share, workerConcurrency ?? Infinity);
    return slots.count(queueName) <= runningMax && slots.free >= 0 ? state : undefined;
  }

  /** This process may have capacity for more workflows. */
  capacityFreed(): void {
    this.#pump();
  }

  #announce(state: QueueState): void {
    this.#announced.add(state);
    this.#pump();
  }

  /** Starts as many claims as may be in flight. */
  #pump(): void {
    const { claimsMax, slots } = this.#options;
    for (const state of [...this.#announced]) {
      if (!this.#isRunning || this.#claimsInFlight >= claimsMax) return;
      if (state.isClaiming || state.isPaused) continue;
      const capacity = state.isStopped ? 0 : Math.min(slots.free, CLAIM_MAX);
      const limit = Math.min(capacity, this.#workerHeadroom(state));
      if (capacity > 0 || state.isStopped) this.#announced.delete(state);
      if (limit > 0) this.#startClaim(state, limit);
      else {
        // This process is at a limit. The queue is announced again when one of its runs ends.
        state.hasBacklog = true;
        this.#leaveToPeers(state);
      }
    }
  }

  #leaveToPeers(state: QueueState): void {
    if (state.hasFreed) this.#options.notifyPeers(state.queue.name);
    state.hasFreed = false;
  }

  #workerHeadroom({ queue }: QueueState): number {
    const { workerConcurrency } = queue.limits.whole;
    return workerConcurrency === null ? Infinity : workerConcurrency - this.#options.slots.count(queue.name);
  }

  #startClaim(state: QueueState, limit: number): void {
    state.isClaiming = true;
    const giveBack = this.#options.slots.reserve(limit);
    this.#claimsInFlight += 1;
    let isInFlight = true;
    const land = (): void => {
      if (!isInFlight) return;
      isInFlight = false;
      this.#claimsInFlight -= 1;
      state.isClaiming = false;
    };
    const goOn = (): void => {
      land();
      state.beginning = claim;
      if (this.#isRunning) this.#announce(state);
    };
    const claim = this.#claim(state, limit, { onAnswer: giveBack, goOn }).finally(() => {
      land();
      // The queue was deleted or the dispatcher stopped meanwhile: cancel timers that the claim may have set.
      if (state.isStopped) state.stop();
      giveBack();
      this.#claims.delete(claim);
      this.#pump();
    });
    this.#claims.add(claim);
  }

  async #claim(state: QueueState, limit: number, flight: ClaimFlight): Promise<void> {
    try {
      const shouldRepeat = await this.#queueClaims.claim(state, limit, flight);
      if (shouldRepeat && this.#isRunning) this.#announced.add(state);
    } catch (error) {
      const reason = (error as Error).message;
      this.#options.logger.warn(`Cannot claim from queue "${state.queue.name}", will retry: ${reason}`);
      if (this.#isRunning) state.pauseFor(FAILURE_PAUSE_MS);
    }
  }

  async #poll(signal: AbortSignal): Promise<void> {
    const { clock, logger, source } = this.#options;
    while (!signal.aborted) {
      this.#isRefreshWanted = false;
      let delayMs = source.pollMs() * (0.75 + Math.random() / 2);
      try {
        await this.#refreshQueues();
      } catch (error) {
        logger.debug(`Cannot read the queues: ${(error as Error).message}`);
        delayMs = FAILURE_PAUSE_MS;
      }
      this.#firstLook.resolve();
      if (this.#isRefreshWanted) continue;
      const woken = new AbortController();
      this.#wakeUp = () => woken.abort();
      await sleep(clock, delayMs, AbortSignal.any([signal, woken.signal])).catch(() => {
        // Woken early, or stopped. The loop condition knows which.
      });
      this.#wakeUp = undefined;
    }
  }

  async #refreshQueues(): Promise<void> {
    const { queues, waiting } = await this.#options.source.findWork();
    this.serve(queues);
    for (const name of waiting) this.wake(name);
  }

  /** From now on, serves exactly these queues, with these limits. */
  serve(queues: readonly Queue[]): void {
    if (!this.#isRunning) return;
    const served = new Map(queues.map((queue) => [queue.name, queue]));
    for (const [name, state] of this.#queues) {
      if (served.has(name)) continue;
      state.stop();
      this.#queues.delete(name);
      this.#announced.delete(state);
    }
    for (const queue of queues) {
      const state = this.#queues.get(queue.name);
      if (state) state.queue = queue;
      else this.#queues.set(queue.name, new QueueState(queue, this.#options.clock, (due) => this.#announce(due)));
      this.#unservedQueues.delete(queue.name);
    }
  }
}

/** How many slots an engine may keep so that each of the others can have one at least. */
function shareOf(concurrency: number, engines: number): number {
  const share = Math.ceil(concurrency / engines);
  return share * (engines - 1) < concurrency ? share : Math.floor(concurrency / engines);
}
