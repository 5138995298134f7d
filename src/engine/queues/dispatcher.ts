// Takes workflows from the queues that this engine serves and runs them. It claims when work is announced, when a slot
// becomes free, when a rate limit lets go, and now and then in case an announcement was lost.
import { type Clock, sleep } from '../../base/clock.js';
import type { DLogger } from '../../base/log.js';
import { Service } from '../../base/service.js';
import type { Share } from '../../store/queues/claim-limits.js';
import { Line } from './line.js';
import { SCAN_MAX } from './partition-line.js';
import type { Queue } from './queues.js';
import type { ClaimResult } from './claim.js';

export interface DispatcherOptions {
  readonly clock: Clock;
  readonly logger: DLogger;
  /** Reads the queues to serve, and tells in which of them workflows wait. */
  look(): Promise<{ readonly queues: readonly Queue[]; readonly waiting: readonly string[] }>;
  /** How many more workflows this engine may run. */
  capacity(): number;
  /** How many workflows of the queue, or of one of its partitions, run here. */
  running(queueName: string, partitionKey?: string): number;
  /** How many engines share the queue, with this one. */
  engines(queueName: string): number;
  /** Claims at most `limit` workflows of the queue and begins to run them. */
  claim(queue: Queue, limit: number, share: Share | undefined): Promise<ClaimResult>;
  /** Claims from several partitions of the queue and begins to run what it gets. */
  claimPartitions(
    queue: Queue,
    partitions: readonly { readonly key: string; readonly limit: number }[],
  ): Promise<readonly ClaimResult[]>;
  /** Partitions of the queue with waiting workflows, after a key. */
  findPartitions(queueName: string, after: string, limit: number): Promise<string[]>;
  /** Lets other engines know that they may find work in the queue. */
  tellOthers(queueName: string, partitionKey?: string): void;
  /** How often to look without being asked. */
  pollMs(): number;
  /** Claims that may be under way at once. */
  readonly claimsMax: number;
}

/** Workflows claimed by one statement at most; more are claimed right after. */
const CLAIM_MAX = 300;
/** Partitions claimed from in one commit. */
const PARTITIONS_MAX = 64;
/** Queues of others that are remembered. */
const STRANGERS_MAX = 1000;
/** How long to wait after a claim that failed. */
const FAILURE_PAUSE_MS = 500;

export class Dispatcher {
  readonly #options: DispatcherOptions;
  readonly #service: Service;
  readonly #lines = new Map<string, Line>();
  /** The queues that may have work, in the order in which they are to be served. */
  readonly #announced = new Set<Line>();
  readonly #claims = new Set<Promise<void>>();
  /** Room that claims under way may fill. */
  #reserved = 0;
  #isRunning = false;
  #wakeUp: (() => void) | undefined;
  #isToLook = false;
  /** Queues that were announced and are not served here, as far as the last look has told. */
  readonly #strangers = new Set<string>();

  constructor(options: DispatcherOptions) {
    this.#options = options;
    this.#service = new Service(
      (signal) => this.#poll(signal),
      (error) => options.logger.error(error),
    );
  }

  start(): void {
    this.#isRunning = true;
    this.#service.start();
  }

  /** Claims nothing more; resolves when what was claimed has begun to run. */
  async stop(): Promise<void> {
    this.#isRunning = false;
    await this.#service.stop();
    for (const line of this.#lines.values()) line.stop();
    await Promise.all(this.#claims);
    this.#lines.clear();
    this.#announced.clear();
  }

  /** Resolves when the claims that are under way now have ended. */
  async settle(): Promise<void> {
    await Promise.all(this.#claims);
  }

  /** There may be work in this queue, or in this partition of it. */
  wake(queueName: string, partitionKey?: string | null): void {
    const line = this.#lines.get(queueName);
    if (!this.#isRunning) return;
    if (!line) return this.#meet(queueName);
    if (line.isPartitioned) {
      if (partitionKey == null) line.partitions.wantScan();
      else line.partitions.add(partitionKey);
    }
    this.#announce(line);
  }

  /** A queue that was just registered may be announced before it is known here. */
  #meet(queueName: string): void {
    if (this.#strangers.has(queueName)) return;
    if (this.#strangers.size >= STRANGERS_MAX) this.#strangers.clear();
    this.#strangers.add(queueName);
    this.lookAround();
  }

  /** There may be work anywhere, or other queues to serve. */
  lookAround(): void {
    this.#isToLook = true;
    this.#wakeUp?.();
  }

  /** A workflow of the queue has ended, or was stopped: what had to wait for room can be claimed. */
  freed(queueName: string, partitionKey: string | null): void {
    const line = this.#lines.get(queueName);
    if (!this.#isRunning || !line) this.#options.tellOthers(queueName, partitionKey ?? undefined);
    else {
      if (line.isPartitioned && partitionKey !== null) line.partitions.freed(partitionKey);
      const hasWork = line.isPartitioned ? !line.partitions.isEmpty : line.hasBacklog;
      // A claim that is under way may have counted the place as taken; it goes on when it knows whether work is left.
      if (hasWork || line.isClaiming) line.hasFreed = true;
      if (hasWork && !line.isClaiming) this.#announced.add(line);
      // What is full for all that is known here may have room by now, and others may wait for the place in the queue.
      if (!hasWork && line.isPartitioned && line.partitions.hasBlocked) this.#options.tellOthers(queueName);
    }
    this.#pump();
  }

  /** There may be room for what had to wait for it. */
  proceed(): void {
    this.#pump();
  }

  #announce(line: Line): void {
    this.#announced.add(line);
    this.#pump();
  }

  /** Begins as many claims as may be under way. */
  #pump(): void {
    for (const line of [...this.#announced]) {
      if (!this.#isRunning || this.#claims.size >= this.#options.claimsMax) return;
      if (line.isClaiming) continue;
      const room = line.isStopped ? 0 : Math.min(this.#options.capacity() - this.#reserved, CLAIM_MAX);
      const limit = Math.min(room, this.#workerRoom(line));
      if (room > 0 || line.isStopped) this.#announced.delete(line);
      if (limit > 0) this.#begin(line, limit);
      else {
        // At a limit of this process. When one of its runs ends, it is announced again.
        line.hasBacklog = true;
        this.#leaveToOthers(line);
      }
    }
  }

  #leaveToOthers(line: Line): void {
    if (line.hasFreed) this.#options.tellOthers(line.queue.name);
    line.hasFreed = false;
  }

  #workerRoom({ queue }: Line): number {
    const { workerConcurrency } = queue.limits.whole;
    return workerConcurrency === null ? Infinity : workerConcurrency - this.#options.running(queue.name);
  }

  #begin(line: Line, limit: number): void {
    line.isClaiming = true;
    this.#reserved += limit;
    const claim = this.#claim(line, limit)
      .catch((error: unknown) => {
        const reason = (error as Error).message;
        this.#options.logger.warn(`Queue "${line.queue.name}" cannot be served at the moment: ${reason}`);
        if (this.#isRunning) line.tryAfter(FAILURE_PAUSE_MS);
      })
      .finally(() => {
        line.isClaiming = false;
        // The queue was deleted meanwhile, or the dispatcher was stopped: nothing may go on by itself.
        if (line.isStopped) line.stop();
        this.#reserved -= limit;
        this.#claims.delete(claim);
        this.#pump();
      });
    this.#claims.add(claim);
  }

  async #claim(line: Line, limit: number): Promise<void> {
    const engines = this.#options.engines(line.queue.name);
    const isSharing = engines > 1 && line.isSharing;
    if (line.isPartitioned) return this.#claimPartitions(line, limit, isSharing ? engines : 1);
    const { queue } = line;
    const { hasFreed } = line;
    line.hasFreed = false;
    const share = isSharing ? { engines, running: this.#options.running(queue.name) } : undefined;
    const { taken, left } = await this.#options.claim(queue, limit, share);
    line.settle(taken, isSharing, left);
    if (!left.isWaiting || !this.#isRunning) return;
    if (taken >= limit || line.hasFreed) this.#announced.add(line);
    else if (left.waitMs !== null) line.tryAfter(left.waitMs);
    else if (left.hasRoom) {
      // What is left is the share of others, or of versions or functions that are not here.
      if (hasFreed) this.#options.tellOthers(queue.name);
      // Or a place has become free elsewhere after the rows were picked.
      const isDoubtful = line.doubt(taken);
      if (isSharing) line.yield();
      else if (isDoubtful) this.#announced.add(line);
      else line.tryLater();
    }
  }

  async #claimPartitions(line: Line, limit: number, engines: number): Promise<void> {
    const { queue, partitions, hasFreed } = line;
    line.hasFreed = false;
    if (engines > 1) limit = Math.min(limit, this.#shareOf(queue, engines));
    if (limit <= 0) {
      if (hasFreed) this.#options.tellOthers(queue.name);
      return line.yield();
    }
    await this.#scan(line);
    const count = Math.min(PARTITIONS_MAX, limit, Math.ceil(partitions.readyCount / engines));
    const chosen = this.#choose(line, partitions.take(count), { limit, hasFreed });
    if (chosen.length === 0) {
      if (!partitions.isEmpty) this.#announced.add(line);
      return;
    }
    let results: readonly ClaimResult[];
    try {
      results = await this.#options.claimPartitions(queue, chosen);
    } catch (error) {
      partitions.putBack(chosen.map(({ key }) => key));
      throw error;
    }
    // Whoever got nothing only because the queue is full keeps its place before those that got something.
    const isPassedOver = ({ taken, left }: ClaimResult): boolean =>
      taken === 0 && left.isWaiting && !left.hasRoom && left.hasPartitionRoom;
    const passedOver = chosen.filter((_, index) => results[index] && isPassedOver(results[index]));
    partitions.putBack(passedOver.map(({ key }) => key));
    chosen.forEach(({ key, limit: allowed }, index) => {
      const result = results[index];
      if (!result || isPassedOver(result)) return;
      partitions.settle(key, { taken: result.taken, allowed }, result.left);
      const isLeft = result.left.isWaiting && result.left.hasRoom && result.left.hasPartitionRoom;
      if (isLeft && hasFreed && result.taken < allowed) this.#options.tellOthers(queue.name, key);
    });
    const taken = results.reduce((sum, result) => sum + result.taken, 0);
    line.settle(taken, engines > 1, { isWaiting: !partitions.isEmpty, hasRoom: results.at(-1)?.left.hasRoom ?? true });
    if (partitions.isEmpty || !this.#isRunning) return;
    const last = results.at(-1)?.left;
    if (line.hasFreed) this.#announced.add(line);
    else if (last && last.waitMs !== null) line.tryAfter(last.waitMs);
    // Full as a whole: when a run of any partition ends, the line is announced again.
    else if (last?.hasRoom === false) line.hasBacklog = true;
    else if (engines > 1 && taken > 0) line.yield();
    else this.#announced.add(line);
  }

  /** How many more may begin here if each engine takes an even part of what may run at once. */
  #shareOf({ name, limits }: Queue, engines: number): number {
    const { concurrency } = limits.whole;
    return concurrency === null ? Infinity : Math.ceil(concurrency / engines) - this.#options.running(name);
  }

  async #scan({ queue, partitions }: Line): Promise<void> {
    const after = partitions.scanAfter;
    if (after !== undefined) {
      partitions.addScanned(await this.#options.findPartitions(queue.name, after, SCAN_MAX));
    }
  }

  /** How many of each partition to claim: an even part of the room, within the limit of this process. */
  #choose(
    { queue, partitions }: Line,
    keys: readonly string[],
    { limit, hasFreed }: { readonly limit: number; readonly hasFreed: boolean },
  ): { key: string; limit: number }[] {
    const { workerConcurrency = null } = queue.limits.partition ?? {};
    const part = Math.max(1, Math.floor(limit / Math.max(keys.length, 1)));
    return keys.flatMap((key) => {
      const room = workerConcurrency === null ? part : workerConcurrency - this.#options.running(queue.name, key);
      if (room > 0) return [{ key, limit: Math.min(part, room) }];
      partitions.block(key);
      if (hasFreed) this.#options.tellOthers(queue.name, key);
      return [];
    });
  }

  async #poll(signal: AbortSignal): Promise<void> {
    const { clock, logger } = this.#options;
    while (!signal.aborted) {
      this.#isToLook = false;
      let restMs = this.#options.pollMs() * (0.75 + Math.random() / 2);
      try {
        await this.#look();
      } catch (error) {
        logger.debug(`The queues could not be looked up: ${(error as Error).message}`);
        restMs = FAILURE_PAUSE_MS;
      }
      if (this.#isToLook) continue;
      const woken = new AbortController();
      this.#wakeUp = () => woken.abort();
      await sleep(clock, restMs, AbortSignal.any([signal, woken.signal])).catch(() => {
        // Woken early, or stopped; the loop's condition tells which.
      });
      this.#wakeUp = undefined;
    }
  }

  async #look(): Promise<void> {
    const { queues, waiting } = await this.#options.look();
    this.serve(queues);
    for (const name of waiting) this.wake(name);
  }

  /** Serves these queues from now on, as they are. */
  serve(queues: readonly Queue[]): void {
    if (!this.#isRunning) return;
    const served = new Map(queues.map((queue) => [queue.name, queue]));
    for (const [name, line] of this.#lines) {
      if (served.has(name)) continue;
      line.stop();
      this.#lines.delete(name);
      this.#announced.delete(line);
    }
    for (const queue of queues) {
      const line = this.#lines.get(queue.name);
      if (line) line.queue = queue;
      else this.#lines.set(queue.name, new Line(queue, this.#options.clock, (due) => this.#announce(due)));
      this.#strangers.delete(queue.name);
    }
  }
}
