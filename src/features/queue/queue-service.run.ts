// The queues of an engine: which ones it serves, what wakes the dispatcher, and when delayed workflows are due.
import { createHash } from 'node:crypto';
import { DueLoop } from '../../kernel/base/due-loop.js';
import { announceQueued } from '../../operator/announcements.js';
import { DatabaseClosedError } from '../../kernel/errors/errors.js';
import { type Announcement, topics } from '../../database/notify/topics.js';
import { enqueueDue, msToNextDue } from './delays.sql.js';
import type { NewWorkflow } from '../../run/rows/workflows.js';
import type { Deadlines } from '../../run/deadlines.js';
import type { Ownership } from '../../run/ownership.js';
import type { Runs } from '../../run/runs.js';
import type { Runtime } from '../../run/runtime.js';
import { isUnlimited, INTERNAL_QUEUE } from './queue.js';
import { Claims } from './claims.run.js';
import { type DirectStart, DirectStarts } from './direct-starts.run.js';
import { Dispatcher } from './dispatcher.run.js';
import { KnownQueues, type Queue } from './known-queues.run.js';
import { Offers } from './offers.run.js';
import { Refills } from './refills.run.js';

export interface QueueServiceOptions {
  readonly runtime: Runtime;
  readonly runs: Runs;
  readonly ownership: Ownership;
  readonly deadlines: Deadlines;
  readonly peers: { peersServing(queueName: string): readonly string[] };
}

/** Covers lost notifications. */
const POLL_MS = 15_000;
/** Each poll also finds out when the next delayed workflow is due. */
const DUE_MAX_MS = 600_000;
const DUE_BATCH = 1000;
/** After some were due: many timers a second share statements, instead of having a claim of their own each. */
const DUE_PAUSE_MS = 20;
/** On SQLite a busy peer wakes us many times a second. */
const DELAYS_INTERVAL_MS = 250;

export class QueueService {
  readonly known: KnownQueues;
  readonly #runtime: Runtime;
  readonly #deadlines: Deadlines;
  readonly #claims: Claims;
  readonly #dispatcher: Dispatcher;
  readonly #directStarts: DirectStarts;
  readonly #offers: Offers;
  readonly #refills: Refills;
  readonly #delays: DueLoop;
  readonly #stopping = new AbortController();
  #unsubscribes: readonly (() => void)[] = [];

  constructor(options: QueueServiceOptions) {
    const { runtime, runs, deadlines } = options;
    const { clock, logger } = runtime;
    this.#runtime = runtime;
    this.#deadlines = deadlines;
    this.known = knownQueuesOf(runtime);
    const claims = new Claims({ ...options, stopping: this.#stopping.signal });
    this.#claims = claims;
    this.#dispatcher = this.#createDispatcher(options, claims);
    this.#refills = this.#createRefills(runs, claims);
    this.#directStarts = new DirectStarts({
      ...options,
      reserve: (queueName, count) => this.#dispatcher.reserve(queueName, count),
    });
    this.#offers = this.#createOffers(options);
    this.#delays = new DueLoop({
      clock,
      logger,
      subject: 'Delayed workflows',
      sweep: () => this.#enqueueDue(),
      maxMs: DUE_MAX_MS,
    });
    runs.offerRefill = (run) => this.#refills.offer(run);
    runs.isBeginning = (owned) => claims.isBeginning(owned);
    runs.observe({
      onFreed: (run) => {
        const { queueName, partitionKey } = run;
        const isTaken = this.#refills.settle(run);
        if (queueName !== null && !isTaken) this.#dispatcher.slotFreed(queueName, partitionKey);
      },
      onWaiting: ({ queueName }) => {
        if (queueName !== null) this.#dispatcher.capacityFreed();
      },
    });
  }

  #createRefills(runs: Runs, claims: Claims): Refills {
    return new Refills({
      slots: runs.slots,
      findQueue: (queueName) => this.#dispatcher.findRefillable(queueName),
      newTerms: (queue, isInsisting) => claims.newTerms(queue, isInsisting),
      launch: (claimed, standing, options) => claims.launch(claimed, standing, options),
      handBack: (owner) => claims.handBack(owner),
      onLost: (queueName) => this.#dispatcher.slotFreed(queueName, null),
    });
  }

  #createDispatcher({ runtime, runs, peers }: QueueServiceOptions, claims: Claims): Dispatcher {
    const { bus, clock, config, logger, hasPush } = runtime;
    return new Dispatcher({
      clock,
      logger,
      source: {
        findWork: () => this.#findWork(),
        pollMs: () => (hasPush ? POLL_MS : Math.min(...this.known.served.map((queue) => queue.pollMs))),
        claim: (queue, limit, manner) => claims.claim(queue, limit, manner),
        claimPartitions: (queue, partitions, manner) => claims.claimPartitions(queue, partitions, manner),
        findPartitions: (queueName, after, limit) => claims.findPartitions(queueName, after, limit),
        countRunning: (queueName) => claims.countRunning(queueName),
      },
      slots: runs.slots,
      claimsMax: config.maxConcurrentQueueDispatches,
      countEngines: (queueName) => 1 + peers.peersServing(queueName).length,
      notifyPeers: (queueName, partitionKey) => bus.publishElsewhere(topics.work, { queueName, partitionKey }),
      reportClaimed: (queueName, names, partitionKey) => this.#offers.report({ queueName, partitionKey }, names),
    });
  }

  #createOffers({ runtime, peers }: QueueServiceOptions): Offers {
    const { applicationVersion, bus, clock, registry } = runtime;
    return new Offers({
      clock,
      peers: (queueName) => peers.peersServing(queueName),
      ability: () => abilityOf(applicationVersion, registry),
      onDue: (announced) => this.#wake(announced),
      onClaimed: (claimed) => bus.publishElsewhere(topics.claimed, claimed),
    });
  }

  #wake({ queueName, partitionKey, name }: Announcement): void {
    this.#dispatcher.wake(queueName ?? INTERNAL_QUEUE, partitionKey, name);
  }

  async start(): Promise<void> {
    const { bus } = this.#runtime;
    this.#unsubscribes = [
      bus.subscribe(topics.work, (announced, origin) => {
        const hear = (one: Announcement) => (origin === 'here' ? this.#wake(one) : this.#offers.add(one));
        announced.forEach(hear);
      }),
      bus.subscribe(topics.claimed, (claimed) => {
        for (const one of claimed) this.#offers.withdraw(one);
      }),
      bus.subscribe(topics.delays, () => this.#delays.wake()),
      bus.subscribe(topics.queueChanges, (_, origin) => (origin === 'here' ? this.reload() : this.refresh())),
      bus.subscribe(topics.changes, (changed) => this.#claims.noteChanges(changed)),
      bus.onAnything(() => this.#onAnything()),
      bus.onAnything(() => this.#delays.wake(), DELAYS_INTERVAL_MS),
    ];
    this.#delays.start();
    await this.#dispatcher.start();
  }

  /** Stops claiming. */
  async stop(): Promise<void> {
    this.#stopping.abort(new DatabaseClosedError('Everstep was shut down in this process.'));
    await this.#delays.stop();
    await this.#dispatcher.stop();
    await this.#refills.withdrawAll();
    for (const unsubscribe of this.#unsubscribes) unsubscribe();
    this.#offers.stop();
  }

  /** Announces workflows that this process has enqueued. */
  announce(workflows: readonly NewWorkflow[]): void {
    if (workflows.some(({ deadlineAt }) => deadlineAt !== null)) this.#deadlines.wake();
    announceQueued(this.#runtime.bus, workflows);
  }

  /** Has workflows run here from the commit that creates them. Undefined if they have to be enqueued. */
  startDirectly(workflows: readonly NewWorkflow[]): DirectStart | undefined {
    return this.#directStarts.begin(workflows);
  }

  /** Whether a running workflow may leave the queue: one with limits gives its slot back only if the queue says so. */
  mayLeave(queueName: string): boolean {
    return !this.isLimited(queueName) || this.known.find(queueName)?.releasesParkedSlots === true;
  }

  /** Whether a workflow of the queue needs a slot. */
  isLimited(queueName: string): boolean {
    const limits = this.known.find(queueName)?.limits;
    return !limits || !isUnlimited(limits.whole) || (limits.partition !== null && !isUnlimited(limits.partition));
  }

  /** Any queue may have work, or the queues to serve may have changed. */
  refresh(): void {
    this.#dispatcher.refresh();
  }

  /** A queue was changed. Resolves when no claim of this process uses the old limits any more. */
  async reload(): Promise<void> {
    await this.#runtime.retrying(() => this.known.refresh());
    this.#dispatcher.serve(this.known.served);
    await Promise.all([this.#dispatcher.settle(), this.#refills.withdrawAll()]);
    this.#dispatcher.refresh();
  }

  #onAnything(): void {
    // On SQLite every commit of a neighbour may have changed anything, and runs ask the database sooner.
    if (this.#runtime.bus.isNotifying) this.#claims.noteChanges(['']);
    this.refresh();
  }

  async #findWork(): Promise<{ queues: readonly Queue[]; waiting: readonly string[] }> {
    const { waiting, delayMs, deadlineMs } = await this.known.look();
    if (delayMs !== undefined) this.#delays.wakeFor(delayMs);
    if (deadlineMs !== undefined) this.#deadlines.wakeFor(deadlineMs);
    const { served } = this.known;
    const names = new Set(served.map(({ name }) => name));
    return { queues: served, waiting: waiting.filter((name) => names.has(name)) };
  }

  async #enqueueDue(): Promise<number | undefined> {
    const { applicationName, bus, database } = this.#runtime;
    const nextMs = await msToNextDue(database, applicationName);
    if (nextMs === undefined || nextMs > 0) return nextMs;
    try {
      const ready = await enqueueDue(database, applicationName, DUE_BATCH);
      bus.publishAll(topics.work, ready);
      return ready.length < DUE_BATCH ? DUE_PAUSE_MS : 0;
    } catch (error) {
      // It may have committed although its answer was lost. Then the next sweep finds nothing to announce.
      this.refresh();
      bus.publishElsewhere(topics.queueChanges, '');
      throw error;
    }
  }
}

/** The same for engines that can claim the same work. */
function abilityOf(version: string, { workflowKeys, instanceKeys }: Runtime['registry']): string {
  const parts = [version, workflowKeys.sort(), instanceKeys.sort()];
  return createHash('sha1').update(JSON.stringify(parts)).digest('base64').slice(0, 12);
}

function knownQueuesOf({ applicationName, config, database, logger, registry }: Runtime): KnownQueues {
  return new KnownQueues({
    database,
    logger,
    applicationName,
    listenQueues: config.listenQueues,
    inMemory: () => registry.queues.values(),
    isAlwaysServed: (name) => registry.alwaysServed.has(name),
  });
}
