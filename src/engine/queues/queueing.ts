// Everything around the queues of an engine: which it serves, who is woken when work arrives, and when delayed work is due.
import { DueLoop } from '../../base/due-loop.js';
import { type Place, placeText } from '../../control/operator.js';
import { DatabaseClosedError } from '../../model/errors/errors.js';
import { findWaitingPartitions, findWaitingQueues } from '../../store/queues/waiting-work.js';
import { enqueueDue, msToNextDue } from '../../store/queues/delays.js';
import { INTERNAL_QUEUE } from '../../store/runs/lifecycle.js';
import { CHANNELS } from '../../store/notify/wakeups.js';
import { claimAndRun, claimPartitionsAndRun } from './claim.js';
import { Dispatcher } from './dispatcher.js';
import type { Engine } from '../engine.js';
import { Queues } from './queues.js';
import type { Run } from '../runs/run.js';
import type { Runs } from '../runs/runs.js';

export interface QueueingOptions {
  readonly engine: Engine;
  readonly runs: Runs;
  /** Whether other processes can wake this one. */
  readonly hasPush: boolean;
  /** How many engines share the queue, with this one. */
  readonly engines: (queueName: string) => number;
}

/** How often to look for what a lost wake-up would have told. */
const POLL_MS = 15_000;
const DUE_MAX_MS = 30_000;
const DUE_BATCH = 1000;

export class Queueing {
  readonly queues: Queues;
  readonly #engine: Engine;
  readonly #dispatcher: Dispatcher;
  readonly #delays: DueLoop;
  readonly #stopping = new AbortController();

  constructor({ engine, runs, hasPush, engines }: QueueingOptions) {
    this.#engine = engine;
    const { clock, logger, config, store, registry } = engine;
    const { database } = store;
    this.queues = new Queues({
      database,
      logger,
      applicationName: config.name,
      listenQueues: config.listenQueues,
      inMemory: () => registry.queues.values(),
      isAlwaysServed: (name) => registry.alwaysServed.has(name),
    });
    this.#dispatcher = new Dispatcher({
      clock,
      logger,
      look: () => this.#look(),
      capacity: () => config.maxConcurrentWorkflows - runs.queuedCount,
      running: (queueName, partitionKey) => runs.countIn(queueName, partitionKey),
      engines,
      claim: (queue, limit, share) => claimAndRun(engine, queue, limit, share),
      claimPartitions: (queue, partitions) => claimPartitionsAndRun(engine, queue, partitions),
      findPartitions: (queueName, after, limit) => findWaitingPartitions(database, { queueName, after, limit }),
      tellOthers: (queueName, partitionKey) => this.#tellOthers({ queueName, partitionKey }),
      pollMs: () => (hasPush ? POLL_MS : Math.min(...this.queues.served.map((queue) => queue.pollMs))),
      claimsMax: config.maxConcurrentQueueDispatches,
    });
    this.#delays = new DueLoop({
      clock,
      logger,
      subject: 'Delayed workflows',
      sweep: () => this.#enqueueDue(),
      maxMs: hasPush ? DUE_MAX_MS : 1000,
    });
  }

  /** Aborts when nothing more is to be taken from the queues. */
  get stopping(): AbortSignal {
    return this.#stopping.signal;
  }

  start(): void {
    this.#dispatcher.start();
    this.#delays.start();
  }

  /** Takes nothing more from the queues. */
  async stop(): Promise<void> {
    this.#stopping.abort(new DatabaseClosedError('Everstep was shut down in this process.'));
    await this.#delays.stop();
    await this.#dispatcher.stop();
  }

  /** Workflows wait at these places: take them, here or elsewhere. */
  announce(places: Iterable<Place>): void {
    const told = new Set<string>();
    for (const { queueName, partitionKey } of places) {
      const name = queueName ?? INTERNAL_QUEUE;
      const key = JSON.stringify([name, partitionKey]);
      if (told.has(key)) continue;
      told.add(key);
      this.#dispatcher.wake(name, partitionKey);
      this.#tellOthers({ queueName: name, partitionKey });
    }
  }

  /** A workflow was delayed, or its delay was changed. */
  announceDelayed(): void {
    this.#delays.lookAgain();
    this.#engine.store.listener.notify(CHANNELS.delays, '');
  }

  /** The queues of the database have changed. Resolves when this engine knows of it. */
  async announceChange(): Promise<void> {
    this.#engine.store.listener.notify(CHANNELS.queueChanges, '');
    await this.#engine.retrying(() => this.queues.refresh());
    // At once: nothing more is claimed under the limits of before.
    this.#dispatcher.serve(this.queues.served);
    await this.#dispatcher.settle();
    this.#dispatcher.lookAround();
  }

  /** Another process has announced something. */
  onMessage(channel: string, payload: string): void {
    if (channel === CHANNELS.delays) this.#delays.lookAgain();
    else if (channel === CHANNELS.queueChanges) this.#dispatcher.lookAround();
    else if (channel === CHANNELS.queues) {
      const [queueName, partitionKey] = JSON.parse(payload) as [string, string?];
      this.#dispatcher.wake(queueName, partitionKey);
    }
  }

  /** There is room for more runs. */
  proceed(): void {
    this.#dispatcher.proceed();
  }

  /** Anything may have changed. */
  lookAround(): void {
    this.#dispatcher.lookAround();
  }

  /** The same for all engines, and for delayed workflows: somebody could not tell of what it has done. */
  lookEverywhere(): void {
    this.lookAround();
    this.#engine.store.listener.notify(CHANNELS.queueChanges, '');
    this.announceDelayed();
  }

  lookForDelayed(): void {
    this.#delays.lookAgain();
  }

  /** A run has ended, or its workflow is no longer its own: its place in the queue is free. */
  onFreed({ queueName, partitionKey }: Run): void {
    if (queueName !== null) this.#dispatcher.freed(queueName, partitionKey);
  }

  #tellOthers(place: Place): void {
    this.#engine.store.listener.notify(CHANNELS.queues, placeText(place));
  }

  async #look() {
    await this.queues.refresh();
    const names = this.queues.served.map(({ name }) => name);
    const waiting = await findWaitingQueues(this.#engine.store.database, names);
    // Read last: they may have changed meanwhile.
    return { queues: this.queues.served, waiting };
  }

  async #enqueueDue(): Promise<number | undefined> {
    const { config, store } = this.#engine;
    const nextMs = await msToNextDue(store.database, config.name);
    if (nextMs === undefined || nextMs > 0) return nextMs;
    try {
      this.announce(await enqueueDue(store.database, config.name, DUE_BATCH));
    } catch (error) {
      // It may have happened although its answer was lost; then it is not found again.
      this.#dispatcher.lookAround();
      this.#engine.store.listener.notify(CHANNELS.queueChanges, '');
      throw error;
    }
    return 0;
  }
}
