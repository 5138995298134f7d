// What happens to workflows and queues, as it happens, for all who watch. While somebody does, one bounded query looks for
// changes: when a wake-up comes, at most four times a second, and once a second in any case. While nobody watches, nothing
// runs.
//
// A row becomes visible a moment after the time that is written in it. So each look goes back a little further than the
// last one, and what was told already is not told again.
import type { Timer } from '../../base/clock.js';
import { internals } from '../../base/internals.js';
import { Throttle } from '../../base/throttle.js';
import { DatabaseClosedError } from '../../model/errors/errors.js';
import { type ChangedWorkflow, findChangedWorkflows } from '../../store/listing/changes.js';
import { findPausedQueues, listQueues } from '../../store/queues/queues.js';
import { readNow } from '../../store/schedules/schedules.js';
import { topics } from '../../store/notify/topics.js';
import type { AdminSource, StoreOperator } from '../source.js';
import { type QueueView, viewQueue } from '../views/queue-view.js';

export type Change =
  | { readonly kind: 'workflow'; readonly workflow: ChangedWorkflow }
  | { readonly kind: 'workflow-deleted'; readonly workflowID: string }
  | { readonly kind: 'queue'; readonly queue: QueueView }
  | { readonly kind: 'queue-deleted'; readonly name: string }
  /** There were too many changes to tell each: list anew what you show. */
  | { readonly kind: 'refresh' };

/** The changes of one look, and the moment up to which they go. */
export interface Changes {
  readonly at: number;
  readonly changes: readonly Change[];
}

export interface Watcher {
  tell(changes: Changes): void;
  /** Nothing will be told any more. */
  end(): void;
}

export interface FeedOptions {
  readonly lookMs?: number;
  readonly pollMs?: number;
  readonly max?: number;
}

const LOOK_MS = 250;
const POLL_MS = 1000;
/** Changes that one look tells. */
const CHANGES_MAX = 500;
const OVERLAP_MS = 2000;
const HEARD_MAX = 1000;

export class ChangeFeed {
  readonly #source: AdminSource;
  readonly #options: FeedOptions;
  readonly #watchers = new Set<Watcher>();
  #session: Session | undefined;

  constructor(source: AdminSource, options: FeedOptions = {}) {
    this.#source = source;
    this.#options = options;
  }

  get watcherCount(): number {
    return this.#watchers.size;
  }

  /** Tells the watcher of changes, from a moment in the past on if one is given, until the returned function is called. */
  async watch(watcher: Watcher, since?: number): Promise<() => void> {
    const { operator } = this.#source[internals];
    const { now } = await readNow(operator.database);
    this.#watchers.add(watcher);
    this.#session ??= new Session(operator, now, this.#options, {
      tell: (changes) => this.#watchers.forEach((one) => one.tell(changes)),
      end: () => this.end(),
    });
    // What happens meanwhile is told twice rather than not at all.
    if (since !== undefined) watcher.tell(await this.#changesSince(operator, since, now));
    return () => this.#leave(watcher);
  }

  async #changesSince(operator: StoreOperator, since: number, at: number): Promise<Changes> {
    const { max = CHANGES_MAX } = this.#options;
    const query = { since: since - OVERLAP_MS, workflowIDs: [], max };
    const found = await findChangedWorkflows(operator.database, query);
    return { at, changes: found.length > max ? [{ kind: 'refresh' }] : ownOf(operator, found).map(toChange) };
  }

  /** Looks for changes at once, if there is a watcher. */
  refresh(): void {
    this.#session?.hear([]);
  }

  /** Ends all watching. */
  end(): void {
    for (const watcher of [...this.#watchers]) {
      this.#leave(watcher);
      watcher.end();
    }
  }

  #leave(watcher: Watcher): void {
    this.#watchers.delete(watcher);
    if (this.#watchers.size > 0) return;
    this.#session?.stop();
    this.#session = undefined;
  }
}

/** The time in which somebody watches. */
class Session {
  readonly #operator: StoreOperator;
  readonly #out: Watcher;
  readonly #max: number;
  readonly #pollMs: number;
  readonly #throttle: Throttle;
  readonly #unsubscribes: readonly (() => void)[];
  readonly #heard = new Set<string>();
  /** What was told of the workflows that the next look will find again. */
  #told = new Map<string, string>();
  #queues: Map<string, string> | undefined;
  #since: number;
  #poll: Timer | undefined;
  #isLooking = false;
  #isWanted = false;
  #isStopped = false;

  constructor(operator: StoreOperator, since: number, options: FeedOptions, out: Watcher) {
    const { lookMs = LOOK_MS, pollMs = POLL_MS, max = CHANGES_MAX } = options;
    this.#operator = operator;
    this.#since = since;
    this.#out = out;
    this.#max = max;
    this.#pollMs = pollMs;
    this.#throttle = new Throttle(operator.clock, lookMs, () => void this.#look());
    const { bus } = operator;
    const refresh = (): void => this.hear([]);
    this.#unsubscribes = [
      bus.subscribe(topics.changes, (workflowIDs) => this.hear(workflowIDs)),
      // Those of this process are many, and found by the time of their end.
      bus.subscribe(topics.outcomes, (workflowIDs, origin) => this.hear(origin === 'here' ? [] : workflowIDs)),
      bus.subscribe(topics.work, refresh),
      bus.subscribe(topics.delays, refresh),
      bus.subscribe(topics.queueChanges, refresh),
      bus.onAnything(refresh),
    ];
    // A client begins to listen only now. Without notifications the feed polls.
    void bus.listen().catch((error: unknown) => operator.logger.debug(`Not listening for changes: ${String(error)}`));
    this.#throttle.call();
  }

  stop(): void {
    this.#isStopped = true;
    for (const unsubscribe of this.#unsubscribes) unsubscribe();
    this.#throttle.stop();
    this.#poll?.cancel();
  }

  hear(workflowIDs: readonly string[]): void {
    for (const workflowID of workflowIDs) if (this.#heard.size < HEARD_MAX) this.#heard.add(workflowID);
    this.#throttle.call();
  }

  async #look(): Promise<void> {
    this.#isWanted = this.#isLooking;
    if (this.#isLooking || this.#isStopped) return;
    this.#isLooking = true;
    this.#poll?.cancel();
    try {
      const changes = await this.#find();
      if (!this.#isStopped && changes.changes.length > 0) this.#out.tell(changes);
    } catch (error) {
      if (error instanceof DatabaseClosedError) this.#out.end();
      else this.#operator.logger.debug(`Cannot look for changes: ${String(error)}`);
    } finally {
      this.#isLooking = false;
    }
    if (this.#isStopped) return;
    this.#poll = this.#operator.clock.after(this.#pollMs, () => this.#throttle.call());
    if (this.#isWanted) this.#throttle.call();
  }

  async #find(): Promise<Changes> {
    const { database } = this.#operator;
    const heard = [...this.#heard];
    this.#heard.clear();
    const { now: at } = await readNow(database);
    const query = { since: this.#since - OVERLAP_MS, workflowIDs: heard, max: this.#max };
    const found = await findChangedWorkflows(database, query);
    this.#since = at;
    return { at, changes: [...this.#workflowChanges(found, heard), ...(await this.#queueChanges())] };
  }

  #workflowChanges(found: readonly ChangedWorkflow[], heard: readonly string[]): Change[] {
    const before = this.#told;
    this.#told = new Map(found.map((workflow) => [workflow.workflowID, JSON.stringify(workflow)]));
    const fresh = found.filter(({ workflowID }) => before.get(workflowID) !== this.#told.get(workflowID));
    if (found.length > this.#max) return fresh.length > 0 ? [{ kind: 'refresh' }] : [];
    const gone = heard.filter((workflowID) => !this.#told.has(workflowID));
    return [
      ...ownOf(this.#operator, fresh).map(toChange),
      ...gone.map((workflowID) => ({ kind: 'workflow-deleted', workflowID }) as const),
    ];
  }

  /** The queues are few; they are compared with those of the last look. */
  async #queueChanges(): Promise<Change[]> {
    const { database, applicationName } = this.#operator;
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

/** Those of the operator's application, and those that nobody owns. */
function ownOf({ applicationName: own }: StoreOperator, found: readonly ChangedWorkflow[]): ChangedWorkflow[] {
  return found.filter(({ applicationName }) => own === null || applicationName === null || applicationName === own);
}
