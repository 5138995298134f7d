// High availability without a control plane. Each engine holds a lease in the database and watches one peer. An engine
// that finds a peer dead recovers its workflows: it puts them back on their queues, where any engine of the right
// version claims them.
//
// Three loops: `beat` renews the lease and does nothing that takes long, `watch` waits for the death of one peer, and
// `patrol` rereads the list of peers and looks for expired leases and for workflows of engines that are not registered.
import { hostname } from 'node:os';
import { sleep } from '../../kernel/base/clock.js';
import { DueLoop } from '../../kernel/base/due-loop.js';
import { Service } from '../../kernel/base/service.js';
import {
  doesServe,
  type Incarnation,
  insertIncarnation,
  listPeers,
  type Peer,
  removeIncarnation,
  renewLease,
  surveyEngines,
} from './executors.sql.js';
import { describePresence, type Presence, presenceOn } from './presence.sql.js';
import { notificationOf } from '../../database/notify/bus.js';
import { topics } from '../../database/notify/topics.js';
import type { Ownership } from '../../run/ownership.js';
import type { Runtime } from '../../run/runtime.js';
import { Recovery } from './recovery.run.js';

/** On SQLite a busy peer wakes us many times a second; its commits are also the only sign of a new engine. */
const REFRESH_INTERVAL_MS = 250;
/** How long to wait after a false suspicion. */
const SUSPICION_PAUSE_MS = 1000;
/** The first look for late statements of a peer, after its workflows were recovered. The others follow at longer intervals. */
const LATE_FIRST_MS = 1000;
/** How long after the end of a lease to look whether it was renewed. */
const LEASE_GRACE_MS = 500;

/** This engine's row in `executors`. */
function incarnationOf(runtime: Runtime) {
  const { applicationName, applicationVersion, codec, config, database, incarnationID, registry } = runtime;
  const hasLock = runtime.hasPush && database.features?.hasAdvisoryLocks !== false;
  return {
    incarnationID,
    executorID: config.executorID,
    applicationName,
    applicationVersion,
    host: hostname(),
    pid: process.pid,
    metadata: describePresence(hasLock, {
      listenQueues: config.listenQueues ? [...config.listenQueues, ...registry.alwaysServed] : null,
      memoryQueues: [...registry.queues.keys()],
      functions: registry.workflowKeys,
      instances: registry.instanceKeys,
      formats: codec.formats,
      retention: config.retention !== undefined,
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
  readonly #recovery: Recovery;
  readonly #heartbeat: Service;
  readonly #watch: Service;
  readonly #patrol: DueLoop;
  #peers: readonly Peer[] = [];
  #peersChanged = new AbortController();
  /**
   * Since then engines can renew their leases, by the monotonic clock. Before, this one could not renew its own in time: the
   * database was down, its clock was set, or the machine was suspended. So the leases of others may be over although they are
   * alive, and each gets the length of its lease to renew it.
   */
  #graceSince = -Infinity;
  #lastTakeOverAt = -Infinity;
  #lastLookAt = Number.MIN_SAFE_INTEGER;
  /** When the first lease of a peer ends, as far as this engine has heard. */
  #peersEndAt = Infinity;
  #reloading: Promise<void> | undefined;
  /** Requested again while a read was in flight, which may have been too early. */
  #isReloadWanted = false;
  /** Incarnations that own workflows but are not registered; undefined unless the next read looks for them. */
  #unlisted: readonly string[] | undefined;
  #unsubscribes: readonly (() => void)[] = [];

  constructor(runtime: Runtime, ownership: Ownership) {
    const { clock, database, logger } = runtime;
    this.#runtime = runtime;
    this.#ownership = ownership;
    this.#incarnation = incarnationOf(runtime);
    this.#leaseMs = runtime.config.leaseSeconds * 1000;
    this.#presence = presenceOn(database, {
      clock,
      renewalMs: this.#leaseMs / 3,
      lockSession: () => (runtime.hasPush ? runtime.store.listener.session : 1),
    });
    this.#recovery = new Recovery(runtime);
    runtime.lease.renew = () => this.#renew();
    const onFailure = (error: unknown): void => logger.error(error);
    this.#heartbeat = new Service((signal) => this.#beat(signal), onFailure);
    this.#watch = new Service((signal) => this.#watchNeighbour(signal), onFailure);
    const sweep = (): Promise<number> => this.#lookAround();
    this.#patrol = new DueLoop({ clock, logger, subject: 'Dead executors', sweep, maxMs: this.#leaseMs });
  }

  /** Registers this engine and recovers the workflows of peers that are already dead. */
  async start(): Promise<void> {
    const { bus, config, lease } = this.#runtime;
    const { incarnationID } = this.#incarnation;
    this.#unsubscribes = [
      bus.subscribe(topics.executors, ([launchedID]) => {
        if (launchedID !== incarnationID) void this.#refreshPeers();
      }),
      bus.onAnything(() => void this.#refreshPeers(), REFRESH_INTERVAL_MS),
    ];
    const asked = lease.now();
    await this.#register();
    lease.renewedSince(asked);
    await this.#reloadPeers();
    for (const peer of await this.#presence.findGone(this.#peers)) await this.#takeOver(peer, { byLease: false });
    // An outage may have ended just now: others are not over it yet if they are there although their leases are over.
    if (this.#peers.some((peer) => peer.isLeaseOver && this.#presence.isVisible(peer))) this.#beginGrace();
    await this.#takeOverExpired();
    await this.#recovery.takeOverUnlisted();
    this.#heartbeat.start();
    this.#watch.start();
    this.#patrol.start();
    if (config.isExecutorIDExplicit) await this.recoverExecutor(config.executorID);
  }

  /** Removes this engine's lease. */
  async stop(): Promise<void> {
    for (const unsubscribe of this.#unsubscribes) unsubscribe();
    await Promise.all([this.#heartbeat.stop(), this.#watch.stop(), this.#patrol.stop()]);
    await removeIncarnation(this.#runtime.database, this.#incarnation.incarnationID);
  }

  /** The incarnations of peers that claim workflows of this application version from the queue. */
  peersServing(queueName: string): string[] {
    const { applicationName, applicationVersion } = this.#incarnation;
    const serving = this.#peers.filter(
      (peer) =>
        peer.applicationName === applicationName &&
        peer.applicationVersion === applicationVersion &&
        !peer.isLeaseOver &&
        doesServe(peer, queueName, true),
    );
    return serving.map(({ incarnationID }) => incarnationID);
  }

  /** Puts the running workflows of an executor ID back on their queues. The caller knows that its process is dead. */
  recoverExecutor(executorID: string): Promise<string[]> {
    return this.#recovery.recoverExecutor(executorID);
  }

  /** Peers hear of this engine right behind the commit, before it owns anything: from then on one of them watches it. */
  async #register(): Promise<void> {
    const { bus, database } = this.#runtime;
    const notification = notificationOf(topics.executors, this.#incarnation.incarnationID);
    await bus.afterCommit([notification], (afterCommit) =>
      insertIncarnation(database, this.#incarnation, { leaseMs: this.#leaseMs, afterCommit }),
    );
  }

  async #refreshPeers(): Promise<void> {
    try {
      await this.#reloadPeers();
      await this.#takeOverExpired();
    } catch (error) {
      this.#runtime.logger.debug(`Cannot read the list of executors: ${String(error)}`);
    }
  }

  /**
   * Resolves when the list was read after the call. One read at a time, or an older list could replace a newer one, and an
   * engine that is missing in it would have no witness of its death.
   */
  async #reloadPeers(): Promise<void> {
    this.#isReloadWanted = true;
    this.#reloading ??= this.#reloadWhileWanted().finally(() => (this.#reloading = undefined));
    await this.#reloading;
  }

  async #reloadWhileWanted(): Promise<void> {
    while (this.#isReloadWanted) {
      this.#isReloadWanted = false;
      const known = idsOf(this.#peers);
      this.#peers = await this.#readPeers();
      this.#hearOfLeases(Math.min(...this.#peers.map(({ leaseLeftMs }) => leaseLeftMs)));
      if (idsOf(this.#peers) !== known) this.#peersChanged.abort();
    }
  }

  /** In one statement with the unlisted engines, if those are wanted too: an idle engine sends few. */
  async #readPeers(): Promise<readonly Peer[]> {
    const { database, incarnationID } = this.#runtime;
    let peers: readonly Peer[];
    if (this.#unlisted) ({ peers, unlisted: this.#unlisted } = await surveyEngines(database));
    else peers = await listPeers(database);
    const own = peers.find((peer) => peer.incarnationID === incarnationID);
    if (!own || own.isLate) this.#beginGrace();
    return peers.filter((peer) => peer !== own);
  }

  async #takeOverExpired(): Promise<void> {
    const waitedMs = this.#runtime.clock.monotonic() - this.#graceSince;
    for (const peer of this.#peers) {
      if (peer.isLeaseOver && waitedMs >= peer.leaseMs) await this.#takeOver(peer, { byLease: true });
    }
  }

  async #takeOver(peer: Peer, how: { readonly byLease: boolean }): Promise<void> {
    if (!(await this.#recovery.takeOver(peer, how))) return;
    this.#peers = this.#peers.filter((other) => other !== peer);
    this.#lastTakeOverAt = this.#runtime.clock.monotonic();
    this.#patrol.wake();
  }

  #beginGrace(): void {
    this.#graceSince = this.#runtime.clock.monotonic();
  }

  /** Covers lost notifications, expired leases and late statements. Returns when to look again. */
  async #lookAround(): Promise<number> {
    const { clock } = this.#runtime;
    const leftMs = this.#lookDueAt - clock.monotonic();
    if (leftMs > 0) return leftMs;
    this.#unlisted = [];
    await this.#reloadPeers();
    await this.#takeOverExpired();
    await this.#recovery.takeOverUnlisted(this.#unlisted);
    this.#unlisted = undefined;
    this.#lastLookAt = clock.monotonic();
    return this.#lookDueAt - clock.monotonic();
  }

  /**
   * Soon after a takeover and then at longer intervals, and when a lease could have ended: renewals of this engine's own
   * lease tell that those of its peers were renewed.
   */
  get #lookDueAt(): number {
    const lookAt = this.#lastLookAt;
    const takeOverAt = this.#lastTakeOverAt;
    const pauseMs = Math.min(this.#leaseMs, Math.max(LATE_FIRST_MS, lookAt - takeOverAt));
    const expired = this.#peers.filter(({ isLeaseOver }) => isLeaseOver);
    const graceUntil = this.#graceSince + Math.max(0, ...expired.map(({ leaseMs }) => leaseMs));
    const leaseDueAt = Math.max(this.#peersEndAt, graceUntil, lookAt) + LEASE_GRACE_MS;
    return Math.min(Math.max(lookAt, takeOverAt) + pauseMs, leaseDueAt);
  }

  #hearOfLeases(leftMs: number): void {
    this.#peersEndAt = this.#runtime.clock.monotonic() + leftMs;
    this.#patrol.wakeFor(leftMs + LEASE_GRACE_MS);
  }

  async #beat(signal: AbortSignal): Promise<void> {
    const { clock, logger, store } = this.#runtime;
    const leaseMs = this.#leaseMs;
    let [progress, progressAt] = [store.writer.progress, clock.monotonic()];
    while (!signal.aborted) {
      await sleep(clock, (leaseMs / 3) * (0.9 + Math.random() / 5), signal);
      if (store.writer.progress === undefined || store.writer.progress !== progress) {
        [progress, progressAt] = [store.writer.progress, clock.monotonic()];
      }
      // Without its writer an engine is as good as dead: peers take over what it cannot finish.
      if (clock.monotonic() - progressAt >= leaseMs) {
        logger.warn('Nothing could be written for the length of the lease, so it is not renewed.');
        continue;
      }
      try {
        await this.#renew();
      } catch (error) {
        logger.debug(`Cannot renew the lease: ${(error as Error).message}`);
      }
    }
  }

  /** Renews the lease, or registers this engine again if it was declared dead. */
  async #renew(): Promise<void> {
    const { database, databaseClock, lease, logger } = this.#runtime;
    const asked = lease.now();
    const neighbour = this.#neighbour();
    const terms = { leaseMs: this.#leaseMs, lockKey: neighbour && this.#presence.lockBeside?.(neighbour) };
    const { isRenewed, wasLate, isLockFree, peersLeftMs } = await databaseClock.learn(() =>
      renewLease(database, this.#incarnation.incarnationID, terms),
    );
    if (neighbour && terms.lockKey !== undefined) this.#presence.noteLock?.(neighbour, isLockFree === true);
    if (peersLeftMs !== undefined) this.#hearOfLeases(peersLeftMs);
    if (!isRenewed || wasLate) this.#beginGrace();
    if (!isRenewed) {
      logger.warn('This process was declared dead and its workflows went to peers. It continues with new ones.');
      await this.#register();
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
          if (await this.#presence.isGone(neighbour)) await this.#takeOver(neighbour, { byLease: false });
          await this.#refreshPeers();
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
