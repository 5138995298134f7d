// Delivers changes of workflows and queues to subscribers. While there are any, one bounded query polls for changes: on
// each notification, at most twice a second, and at least once a second. Without subscribers nothing runs.
//
// A row becomes visible after the timestamp it carries, when its transaction commits. So each poll overlaps the previous
// one, and changes already delivered are filtered out.
import type { Timer } from '../../../kernel/base/clock.js';
import { internals } from '../../../kernel/base/internals.js';
import { Throttle } from '../../../kernel/base/throttle.js';
import { DatabaseClosedError } from '../../../kernel/errors/errors.js';
import { type ChangedWorkflow, findChangedWorkflows } from '../../../features/listing/changes.sql.js';
import { findPausedQueues, listQueues } from '../../../features/queue/queues.sql.js';
import { readNow } from '../../../database/now.js';
import { topics } from '../../../database/notify/topics.js';
import type { AdminSource, StoreOperator } from '../source.js';
import { type QueueView, viewQueue } from '../../../features/queue/queue-view.http.js';

export type Change =
  | { readonly kind: 'workflow'; readonly workflow: ChangedWorkflow }
  | { readonly kind: 'workflow-deleted'; readonly workflowID: string }
  | { readonly kind: 'queue'; readonly queue: QueueView }
  | { readonly kind: 'queue-deleted'; readonly name: string }
  /** Too many changes to deliver one by one, or some that cannot be found any more: list again what you show. */
  | { readonly kind: 'refresh' };

/** The changes found by one poll, up to `at`. */
export interface Changes {
  readonly at: number;
  readonly changes: readonly Change[];
}

export interface Subscriber {
  /** First with the time of the subscription, and what has changed since the given one. */
  deliver(changes: Changes): void;
  /** No more changes follow. */
  end(): void;
}

export interface FeedOptions {
  readonly throttleMs?: number;
  readonly pollMs?: number;
  readonly max?: number;
}

const THROTTLE_MS = 500;
const POLL_MS = 1000;
/** How often to compare queues of which no notification has come. */
const QUEUES_MS = 5000;
/** Changes delivered by one poll. */
const CHANGES_MAX = 500;
const OVERLAP_MS = 2000;
const CHANGED_IDS_MAX = 1000;

export class ChangeFeed {
  readonly #source: AdminSource;
  readonly #options: FeedOptions;
  readonly #subscribers = new Set<Subscriber>();
  #poller: ChangePoller | undefined;

  constructor(source: AdminSource, options: FeedOptions = {}) {
    this.#source = source;
    this.#options = options;
  }

  get subscriberCount(): number {
    return this.#subscribers.size;
  }

  /** Delivers changes, starting at `since` if given, until the returned function is called. */
  async subscribe(subscriber: Subscriber, since?: number): Promise<() => void> {
    const { operator } = this.#source[internals];
    const { now } = await readNow(operator.database);
    this.#subscribers.add(subscriber);
    this.#poller ??= new ChangePoller(operator, now, this.#options, {
      deliver: (changes) => this.#subscribers.forEach((one) => one.deliver(changes)),
      end: () => this.end(),
    });
    // Changes in between may be delivered twice, but are not lost.
    subscriber.deliver(since === undefined ? { at: now, changes: [] } : await this.#changesSince(operator, since, now));
    return () => this.#unsubscribe(subscriber);
  }

  async #changesSince(operator: StoreOperator, since: number, at: number): Promise<Changes> {
    const { max = CHANGES_MAX } = this.#options;
    const query = { since: since - OVERLAP_MS, workflowIDs: [], max };
    const { workflows: found } = await findChangedWorkflows(operator.database, query);
    const changes = found.length > max ? [] : visibleTo(operator, found).map(toChange);
    // What was deleted, or changed without starting or ending, has left no trace.
    return { at, changes: [...changes, { kind: 'refresh' }] };
  }

  /** Polls at once, if there is a subscriber. */
  refresh(): void {
    this.#poller?.notifyOfQueues();
  }

  /** Ends all subscriptions. */
  end(): void {
    for (const subscriber of [...this.#subscribers]) {
      this.#unsubscribe(subscriber);
      subscriber.end();
    }
  }

  #unsubscribe(subscriber: Subscriber): void {
    this.#subscribers.delete(subscriber);
    if (this.#subscribers.size > 0) return;
    this.#poller?.stop();
    this.#poller = undefined;
  }
}

/** Polls while there are subscribers. */
class ChangePoller {
  readonly #operator: StoreOperator;
  readonly #subscriber: Subscriber;
  readonly #max: number;
  readonly #pollMs: number;
  readonly #throttle: Throttle;
  readonly #unsubscribes: readonly (() => void)[];
  readonly #changedIDs = new Set<string>();
  /** The delivered state of workflows that the next, overlapping poll finds again. */
  #delivered = new Map<string, string>();
  #queues: Map<string, string> | undefined;
  /** When to compare the queues, by the monotonic clock. */
  #queuesDueAt = 0;
  #since: number;
  #pollTimer: Timer | undefined;
  #isPolling = false;
  #isPollPending = false;
  #isStopped = false;

  constructor(operator: StoreOperator, since: number, options: FeedOptions, subscriber: Subscriber) {
    const { throttleMs = THROTTLE_MS, pollMs = POLL_MS, max = CHANGES_MAX } = options;
    this.#operator = operator;
    this.#since = since;
    this.#subscriber = subscriber;
    this.#max = max;
    this.#pollMs = pollMs;
    this.#throttle = new Throttle(operator.clock, throttleMs, () => void this.#poll());
    const { bus } = operator;
    const refresh = (): void => this.notify([]);
    this.#unsubscribes = [
      bus.subscribe(topics.changes, (workflowIDs) => this.notify(workflowIDs)),
      // Local outcomes are many; the poll finds them by their completion time.
      bus.subscribe(topics.outcomes, (workflowIDs, origin) => this.notify(origin === 'here' ? [] : workflowIDs)),
      bus.subscribe(topics.work, refresh),
      bus.subscribe(topics.delays, refresh),
      bus.subscribe(topics.queueChanges, () => this.notifyOfQueues()),
      bus.onAnything(refresh),
    ];
    // A client starts listening only now. Without notifications the feed still polls.
    void bus.listen().catch((error: unknown) => operator.logger.debug(`Not listening for changes: ${String(error)}`));
    this.#throttle.call();
  }

  stop(): void {
    this.#isStopped = true;
    for (const unsubscribe of this.#unsubscribes) unsubscribe();
    this.#throttle.stop();
    this.#pollTimer?.cancel();
  }

  notify(workflowIDs: readonly string[]): void {
    for (const workflowID of workflowIDs) if (this.#changedIDs.size < CHANGED_IDS_MAX) this.#changedIDs.add(workflowID);
    this.#throttle.call();
  }

  notifyOfQueues(): void {
    this.#queuesDueAt = 0;
    this.#throttle.call();
  }

  async #poll(): Promise<void> {
    this.#isPollPending = this.#isPolling;
    if (this.#isPolling || this.#isStopped) return;
    this.#isPolling = true;
    this.#pollTimer?.cancel();
    try {
      const changes = await this.#findChanges();
      if (!this.#isStopped && changes.changes.length > 0) this.#subscriber.deliver(changes);
    } catch (error) {
      if (error instanceof DatabaseClosedError) this.#subscriber.end();
      else this.#operator.logger.debug(`Could not poll for changes: ${String(error)}`);
    } finally {
      this.#isPolling = false;
    }
    if (this.#isStopped) return;
    this.#pollTimer = this.#operator.clock.after(this.#pollMs, () => this.#throttle.call());
    if (this.#isPollPending) this.#throttle.call();
  }

  async #findChanges(): Promise<Changes> {
    const { database } = this.#operator;
    const changedIDs = [...this.#changedIDs];
    this.#changedIDs.clear();
    const query = { since: this.#since - OVERLAP_MS, workflowIDs: changedIDs, max: this.#max };
    const { now: at, workflows } = await findChangedWorkflows(database, query);
    this.#since = at;
    return { at, changes: [...this.#workflowChanges(workflows, changedIDs), ...(await this.#queueChanges())] };
  }

  #workflowChanges(found: readonly ChangedWorkflow[], changedIDs: readonly string[]): Change[] {
    const before = this.#delivered;
    this.#delivered = new Map(found.map((workflow) => [workflow.workflowID, JSON.stringify(workflow)]));
    const fresh = found.filter(({ workflowID }) => before.get(workflowID) !== this.#delivered.get(workflowID));
    if (found.length > this.#max) return fresh.length > 0 ? [{ kind: 'refresh' }] : [];
    const gone = changedIDs.filter((workflowID) => !this.#delivered.has(workflowID));
    return [
      ...visibleTo(this.#operator, fresh).map(toChange),
      ...gone.map((workflowID) => ({ kind: 'workflow-deleted', workflowID }) as const),
    ];
  }

  /** Queues are few, so compare them all with the previous reading. */
  async #queueChanges(): Promise<Change[]> {
    const { database, applicationName, clock } = this.#operator;
    if (clock.monotonic() < this.#queuesDueAt) return [];
    // Before reading: a notification that comes meanwhile makes them due again.
    this.#queuesDueAt = clock.monotonic() + QUEUES_MS;
    const records = await listQueues(database, applicationName === null ? undefined : [applicationName]);
    const paused = await findPausedQueues(database);
    const views = records.map((record) => viewQueue(record, paused));
    const before = this.#queues;
    this.#queues = new Map(views.map((queue) => [queue.name, JSON.stringify(queue)]));
    if (!before) return [];
    const changed = views.filter(({ name }) => before.get(name) !== this.#queues?.get(name));
    const gone = [...before.keys()].filter((name) => !this.#queues?.has(name));
    return [
      ...changed.map((queue) => ({ kind: 'queue', queue }) as const),
      ...gone.map((name) => ({ kind: 'queue-deleted', name }) as const),
    ];
  }
}

function toChange(workflow: ChangedWorkflow): Change {
  return { kind: 'workflow', workflow };
}

/** Workflows of the operator's application, and those without an application. */
function visibleTo({ applicationName: own }: StoreOperator, found: readonly ChangedWorkflow[]): ChangedWorkflow[] {
  return found.filter(({ applicationName }) => own === null || applicationName === null || applicationName === own);
}
