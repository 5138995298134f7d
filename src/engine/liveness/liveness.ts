// High availability without a control plane. Each engine holds a lease in the database and watches one peer. An engine
// that finds a peer dead recovers its workflows: it puts them back on their queues, where any engine of the right
// version claims them.
import { hostname } from 'node:os';
import { sleep } from '../../base/clock.js';
import { Service } from '../../base/service.js';
import {
  doesServe,
  type Incarnation,
  insertIncarnation,
  listPeers,
  type Peer,
  removeIncarnation,
  renewLease,
} from '../../store/liveness/executors.js';
import { describePresence, type Presence, presenceOn } from '../../store/liveness/presence.js';
import { topics } from '../../store/notify/topics.js';
import { type Changed, recoverExecutor, recoverIncarnation, recoverUnlisted } from '../../store/runs/lifecycle.js';
import type { Ownership } from '../runs/ownership.js';
import type { Runtime } from '../runtime.js';

const BEATS_PER_REFRESH = 3;
/** On SQLite a busy peer wakes us many times a second; its commits are also the only sign of a new engine. */
const REFRESH_INTERVAL_MS = 250;
/** How many workflows without a function here are named in the log. */
const UNKNOWN_MAX = 10;
/** How long to wait after a false suspicion. */
const SUSPICION_PAUSE_MS = 1000;

/** This engine's row in `executors`. */
function incarnationOf({ applicationName, applicationVersion, config, hasPush, incarnationID, registry }: Runtime) {
  return {
    incarnationID,
    executorID: config.executorID,
    applicationName,
    applicationVersion,
    host: hostname(),
    pid: process.pid,
    metadata: describePresence(hasPush, {
      listenQueues: config.listenQueues ? [...config.listenQueues, ...registry.alwaysServed] : null,
      memoryQueues: [...registry.queues.keys()],
      functions: registry.workflowKeys,
      instances: registry.instanceKeys,
    }),
  };
}

function idsOf(peers: readonly Peer[]): string {
  return peers.map((peer) => peer.incarnationID).join();
}

export class Liveness {
  readonly #runtime: Runtime;
  readonly #ownership: Ownership;
  readonly #incarnation: Incarnation;
  readonly #leaseMs: number;
  readonly #presence: Presence;
  readonly #heartbeat: Service;
  readonly #watch: Service;
  #peers: readonly Peer[] = [];
  #peersChanged = new AbortController();
  /** Until then no lease counts as expired: the database was down, and no engine could renew its lease. */
  #graceUntil = 0;
  #isRefreshing = false;
  #unsubscribes: readonly (() => void)[] = [];

  constructor(runtime: Runtime, ownership: Ownership) {
    this.#runtime = runtime;
    this.#ownership = ownership;
    this.#incarnation = incarnationOf(runtime);
    this.#leaseMs = runtime.config.leaseSeconds * 1000;
    this.#presence = presenceOn(runtime.database, runtime.clock);
    runtime.lease.renew = () => this.#renew();
    const onFailure = (error: unknown): void => runtime.logger.error(error);
    this.#heartbeat = new Service((signal) => this.#beat(signal), onFailure);
    this.#watch = new Service((signal) => this.#watchNeighbour(signal), onFailure);
  }

  /** Registers this engine and recovers the workflows of peers that are already dead. */
  async start(): Promise<void> {
    const { bus, config, database, lease } = this.#runtime;
    const { incarnationID } = this.#incarnation;
    this.#unsubscribes = [
      bus.subscribe(topics.executors, ([launchedID]) => {
        if (launchedID !== incarnationID) void this.#refreshPeers();
      }),
      bus.onAnything(() => void this.#refreshPeers(), REFRESH_INTERVAL_MS),
    ];
    const asked = lease.now();
    await insertIncarnation(database, this.#incarnation, this.#leaseMs);
    lease.renewedSince(asked);
    this.#peers = await listPeers(database, incarnationID);
    for (const peer of this.#peers) await this.#takeOverIfDead(peer);
    await this.#takeOverUnlisted();
    this.#heartbeat.start();
    this.#watch.start();
    if (config.isExecutorIDExplicit) await this.recoverExecutor(config.executorID);
    bus.publishElsewhere(topics.executors, incarnationID);
  }

  /** Removes this engine's lease. */
  async stop(): Promise<void> {
    for (const unsubscribe of this.#unsubscribes) unsubscribe();
    await Promise.all([this.#heartbeat.stop(), this.#watch.stop()]);
    await removeIncarnation(this.#runtime.database, this.#incarnation.incarnationID);
  }

  /** How many peers claim workflows of this application version from the queue. */
  countPeersServing(queueName: string): number {
    const { applicationName, applicationVersion } = this.#incarnation;
    return this.#peers.filter(
      (peer) =>
        peer.applicationName === applicationName &&
        peer.applicationVersion === applicationVersion &&
        !peer.isLeaseOver &&
        doesServe(peer, queueName, true),
    ).length;
  }

  /** Puts the running workflows of an executor ID back on their queues. The caller knows that its process is dead. */
  async recoverExecutor(executorID: string): Promise<string[]> {
    const { applicationVersion, bus, database, incarnationID } = this.#runtime;
    const changed = await recoverExecutor(database, { executorID, applicationVersion, keptPrefix: incarnationID });
    this.#logUnregistered(changed);
    bus.publishAll(topics.work, changed);
    return changed.map(({ workflowID }) => workflowID);
  }

  async #refreshPeers(): Promise<void> {
    if (this.#isRefreshing) return;
    this.#isRefreshing = true;
    await this.#takeOverExpired().catch((error: unknown) => {
      this.#runtime.logger.debug(`Cannot read the list of executors: ${String(error)}`);
    });
    this.#isRefreshing = false;
  }

  /** Reloads the list of peers and takes over from those whose lease has expired. */
  async #takeOverExpired(): Promise<void> {
    const { clock, database } = this.#runtime;
    const known = idsOf(this.#peers);
    this.#peers = await listPeers(database, this.#incarnation.incarnationID);
    if (idsOf(this.#peers) !== known) this.#peersChanged.abort();
    // After a database outage all leases have expired. Give live engines time to renew theirs.
    if (clock.now() < this.#graceUntil) return;
    for (const peer of this.#peers) if (peer.isLeaseOver) await this.#takeOver(peer, { ifLeaseOver: true });
  }

  /** Recovers a peer's workflows and removes its lease; with `ifLeaseOver` not if the peer has just renewed it. */
  async #takeOver(peer: Peer, guard: { readonly ifLeaseOver: boolean }): Promise<void> {
    const { database, logger } = this.#runtime;
    const changed = await recoverIncarnation(database, peer.incarnationID, guard);
    await removeIncarnation(database, peer.incarnationID, guard);
    this.#peers = this.#peers.filter((other) => other !== peer);
    if (changed.length > 0) {
      logger.info(
        `Recovering ${changed.length} workflow(s) of executor "${peer.executorID}" (process ${peer.pid} on ${peer.host}), which is dead.`,
      );
    }
    this.#announceRecovered(changed);
  }

  async #takeOverUnlisted(): Promise<void> {
    const changed = await recoverUnlisted(this.#runtime.database);
    if (changed.length === 0) return;
    this.#runtime.logger.info(`Recovering ${changed.length} workflow(s) whose executor has no lease.`);
    this.#announceRecovered(changed);
  }

  #announceRecovered(changed: readonly Changed[]): void {
    const { bus } = this.#runtime;
    this.#logUnregistered(changed);
    bus.publishAll(topics.work, changed);
    // If the answer to a recovery is lost, its retry finds nothing left to announce. And an engine that died just after
    // it finished a workflow has not announced the free slot.
    bus.publish(topics.queueChanges, '');
    bus.publish(topics.delays, '');
  }

  /** Log workflows that we can't run, or they would wait silently. */
  #logUnregistered(changed: readonly Changed[]): void {
    const { logger, registry } = this.#runtime;
    const unknown = changed.filter(({ className, name }) => !registry.findWorkflow(className, name));
    for (const { workflowID, className, name } of unknown.slice(0, UNKNOWN_MAX)) {
      const fullName = className === null ? name : `${className}.${name}`;
      logger.warn(
        `Workflow "${workflowID}" was recovered, but "${fullName}" is not registered here. It waits for an executor that has it.`,
      );
    }
  }

  async #takeOverIfDead(peer: Peer): Promise<void> {
    if (await this.#presence.isGone(peer)) await this.#takeOver(peer, { ifLeaseOver: false });
    else if (peer.isLeaseOver) await this.#takeOver(peer, { ifLeaseOver: true });
  }

  async #beat(signal: AbortSignal): Promise<void> {
    const { clock, logger } = this.#runtime;
    const leaseMs = this.#leaseMs;
    for (let beats = 1; !signal.aborted; beats += 1) {
      await sleep(clock, (leaseMs / 3) * (0.9 + Math.random() / 5), signal);
      try {
        await this.#renew();
        // Launches are announced. This covers lost notifications and expired leases.
        if (beats % BEATS_PER_REFRESH === 0) {
          await this.#takeOverExpired();
          await this.#takeOverUnlisted();
        }
      } catch (error) {
        this.#graceUntil = clock.now() + leaseMs;
        logger.debug(`Cannot renew the lease: ${(error as Error).message}`);
      }
    }
  }

  /** Renews the lease, or registers this engine again if it was declared dead. */
  async #renew(): Promise<void> {
    const { database, databaseClock, lease, logger } = this.#runtime;
    const asked = lease.now();
    const { isRenewed } = await databaseClock.learn(() =>
      renewLease(database, this.#incarnation.incarnationID, this.#leaseMs),
    );
    if (!isRenewed) {
      logger.warn('This process was declared dead and its workflows went to peers. It continues with new ones.');
      await insertIncarnation(database, this.#incarnation, this.#leaseMs);
      void this.#ownership.verify();
    }
    lease.renewedSince(asked);
  }

  /** Each engine watches the next one by ID, in a ring, so that every death has at least one witness. */
  async #watchNeighbour(signal: AbortSignal): Promise<void> {
    const { clock } = this.#runtime;
    while (!signal.aborted) {
      this.#peersChanged = new AbortController();
      const neighbour = this.#neighbour();
      const until = AbortSignal.any([signal, this.#peersChanged.signal]);
      try {
        if (!neighbour) await sleep(clock, this.#leaseMs, until);
        else {
          await this.#presence.untilSuspected(neighbour, until);
          await this.#takeOverIfDead(neighbour);
          await this.#takeOverExpired();
          if (idsOf(this.#peers).includes(neighbour.incarnationID)) await sleep(clock, SUSPICION_PAUSE_MS, until);
        }
      } catch {
        // The list has changed, or the connection broke: retry.
        if (!signal.aborted && !this.#peersChanged.signal.aborted) await sleep(clock, SUSPICION_PAUSE_MS, signal);
      }
    }
  }

  #neighbour(): Peer | undefined {
    const { incarnationID } = this.#incarnation;
    return this.#peers.find((peer) => peer.incarnationID > incarnationID) ?? this.#peers[0];
  }
}
