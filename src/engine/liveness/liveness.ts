// High availability without a control plane: each engine keeps a lease in the database and watches one neighbour. Whoever
// finds an engine dead puts its workflows back into their queues, where any engine of the right version takes them.
import { type Clock, sleep } from '../../base/clock.js';
import type { DLogger } from '../../base/log.js';
import { Service } from '../../base/service.js';
import type { Database } from '../../store/database.js';
import {
  doesServe,
  type Incarnation,
  insertIncarnation,
  listPeers,
  type Peer,
  removeIncarnation,
  renewLease,
} from '../../store/liveness/executors.js';
import { type Changed, recoverIncarnation, recoverUnlisted } from '../../store/runs/lifecycle.js';
import type { Presence } from '../../store/liveness/presence.js';

export interface LivenessOptions {
  readonly database: Database;
  readonly presence: Presence;
  readonly clock: Clock;
  readonly logger: DLogger;
  readonly incarnation: Incarnation;
  readonly leaseMs: number;
  /** Workflows of a dead engine were put back into their queues. */
  onRecovered(changed: readonly Changed[]): void;
  /** This engine was taken for dead: what it runs may belong to others by now. */
  onLeaseLost(): void;
}

const BEATS_A_LOOK = 3;
/** How long to wait after a suspicion that came to nothing. */
const SUSPICION_PAUSE_MS = 1000;

function idsOf(peers: readonly Peer[]): string {
  return peers.map((peer) => peer.incarnationID).join();
}

export class Liveness {
  readonly #options: LivenessOptions;
  readonly #heartbeat: Service;
  readonly #watch: Service;
  #peers: readonly Peer[] = [];
  #peersChanged = new AbortController();
  /** Until then no lease is taken for over: the database was away, and nobody could prolong any. */
  #judgesFrom = 0;

  constructor(options: LivenessOptions) {
    this.#options = options;
    const onFailure = (error: unknown): void => options.logger.error(error);
    this.#heartbeat = new Service((signal) => this.#beat(signal), onFailure);
    this.#watch = new Service((signal) => this.#watchNeighbour(signal), onFailure);
  }

  /** Enters the list and takes over from those that are gone already. */
  async start(): Promise<void> {
    const { database, incarnation, leaseMs } = this.#options;
    await insertIncarnation(database, incarnation, leaseMs);
    this.#peers = await listPeers(database, incarnation.incarnationID);
    for (const peer of this.#peers) await this.#takeOverIfDead(peer);
    await this.#takeOverUnlisted();
    this.#heartbeat.start();
    this.#watch.start();
  }

  /** Leaves the list. */
  async stop(): Promise<void> {
    await Promise.all([this.#heartbeat.stop(), this.#watch.stop()]);
    await removeIncarnation(this.#options.database, this.#options.incarnation.incarnationID);
  }

  /** How many other engines take workflows of this version of the application from the queue. */
  countTwins(queueName: string): number {
    const { applicationName, applicationVersion } = this.#options.incarnation;
    return this.#peers.filter(
      (peer) =>
        peer.applicationName === applicationName &&
        peer.applicationVersion === applicationVersion &&
        !peer.isLeaseOver &&
        doesServe(peer, queueName, true),
    ).length;
  }

  /** Reads the list of engines again and takes over from those whose lease has ended. */
  async lookAround(): Promise<void> {
    const { clock, database, incarnation } = this.#options;
    const known = idsOf(this.#peers);
    this.#peers = await listPeers(database, incarnation.incarnationID);
    if (idsOf(this.#peers) !== known) this.#peersChanged.abort();
    // After an outage of the database all leases have ended; those who live get the time to prolong theirs.
    if (clock.now() < this.#judgesFrom) return;
    for (const peer of this.#peers) if (peer.isLeaseOver) await this.#takeOver(peer, { ifLeaseOver: true });
  }

  /** Takes over from a peer; one whose lease was over when the list was read may have prolonged it since. */
  async #takeOver(peer: Peer, guard: { readonly ifLeaseOver: boolean }): Promise<void> {
    const { database, logger } = this.#options;
    const changed = await recoverIncarnation(database, peer.incarnationID, guard);
    await removeIncarnation(database, peer.incarnationID, guard);
    this.#peers = this.#peers.filter((other) => other !== peer);
    if (changed.length > 0) {
      logger.info(
        `Recovering ${changed.length} workflow(s) of executor "${peer.executorID}" (process ${peer.pid} on ${peer.host}), which is gone.`,
      );
    }
    this.#options.onRecovered(changed);
  }

  async #takeOverUnlisted(): Promise<void> {
    const changed = await recoverUnlisted(this.#options.database);
    if (changed.length === 0) return;
    this.#options.logger.info(`Recovering ${changed.length} workflow(s) of executors that are not on the list.`);
    this.#options.onRecovered(changed);
  }

  async #takeOverIfDead(peer: Peer): Promise<void> {
    if (await this.#options.presence.isGone(peer)) await this.#takeOver(peer, { ifLeaseOver: false });
    else if (peer.isLeaseOver) await this.#takeOver(peer, { ifLeaseOver: true });
  }

  async #beat(signal: AbortSignal): Promise<void> {
    const { clock, database, incarnation, leaseMs, logger } = this.#options;
    for (let beats = 1; !signal.aborted; beats += 1) {
      await sleep(clock, (leaseMs / 3) * (0.9 + Math.random() / 5), signal);
      try {
        if (!(await renewLease(database, incarnation.incarnationID, leaseMs))) {
          logger.warn(
            'This process was taken for dead and its workflows were given to others. It goes on with new ones.',
          );
          await insertIncarnation(database, incarnation, leaseMs);
          this.#options.onLeaseLost();
        }
        // Launches are announced; looking without being asked only covers a lost announcement and ended leases.
        if (beats % BEATS_A_LOOK === 0) {
          await this.lookAround();
          await this.#takeOverUnlisted();
        }
      } catch (error) {
        this.#judgesFrom = clock.now() + leaseMs;
        logger.debug(`The heartbeat could not be sent: ${(error as Error).message}`);
      }
    }
  }

  /** Each engine watches the next one in the order of their IDs, so that every death has one witness at least. */
  async #watchNeighbour(signal: AbortSignal): Promise<void> {
    const { clock, leaseMs, presence } = this.#options;
    while (!signal.aborted) {
      this.#peersChanged = new AbortController();
      const neighbour = this.#neighbour();
      const until = AbortSignal.any([signal, this.#peersChanged.signal]);
      try {
        if (!neighbour) await sleep(clock, leaseMs, until);
        else {
          await presence.untilSuspected(neighbour, until);
          await this.#takeOverIfDead(neighbour);
          await this.lookAround();
          if (idsOf(this.#peers).includes(neighbour.incarnationID)) await sleep(clock, SUSPICION_PAUSE_MS, until);
        }
      } catch {
        // Woken because the list has changed, or the connection broke; look again in a moment.
        if (!signal.aborted && !this.#peersChanged.signal.aborted) await sleep(clock, SUSPICION_PAUSE_MS, signal);
      }
    }
  }

  #neighbour(): Peer | undefined {
    const { incarnationID } = this.#options.incarnation;
    return this.#peers.find((peer) => peer.incarnationID > incarnationID) ?? this.#peers[0];
  }
}
