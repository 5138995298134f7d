// The rows that operators wait for, with one watcher per kind of row.
import type { Clock } from '../kernel/base/clock.js';
import type { RemoteClock } from '../kernel/base/remote-clock.js';
import type { DLogger } from '../kernel/base/log.js';
import { type EventKey, eventKey, findEvents, type StoredEvent } from '../features/message/events.sql.js';
import {
  findOldestMessages,
  type MessageKey,
  messageKey,
  type StoredMessage,
} from '../features/message/messages.sql.js';
import type { Database } from '../database/database.js';
import { readStreams, type StreamPart, type StreamPosition } from '../features/message/streams.sql.js';
import type { Bus } from '../database/notify/bus.js';
import { topics } from '../database/notify/topics.js';
import { type RecentRows, recentRowsOf } from '../features/message/recent-rows.sql.js';
import { type EndedWorkflow, findEnded } from '../run/rows/workflows.js';
import { Interest } from './interest.js';
import { checkLookupID } from './storable.js';
import { RowWatcher, type Wait } from './row-watcher.js';

export interface RowWatchersOptions {
  readonly clock: Clock;
  readonly databaseClock: RemoteClock;
  readonly logger: DLogger;
  readonly database: Database;
  readonly bus: Bus;
  /** Whether other processes' notifications arrive here. */
  readonly hasPush: boolean;
  retrying<T>(find: () => Promise<T>): Promise<T>;
  whileWaiting<T>(begin: (suspended?: AbortSignal) => Promise<T>, wait?: Wait): Promise<T>;
  /** Whether the workflow has a run in this process. */
  isRunning(workflowID: string): boolean;
}

/** The workflow whose end is waited for. */
export interface OutcomeLookup {
  readonly workflowID: string;
  /** Whether the workflow is known to have existed. If it does not any more, it was deleted, which is an end. */
  hasExisted?: boolean;
}

/** Covers lost notifications. */
const POLL_MS = 2_000;
const POLL_WITHOUT_PUSH_MS = 500;
/** So few waiters look for themselves when anything may have changed. */
const FEW = 200;

export class RowWatchers {
  /** The ends of workflows, wherever they run. */
  readonly outcomes: RowWatcher<OutcomeLookup, EndedWorkflow>;

  /** The oldest unreceived message of a topic. */
  readonly messages: RowWatcher<MessageKey, StoredMessage>;

  readonly events: RowWatcher<EventKey, StoredEvent>;
  /** Stream values from an offset on, and the end of streams. */
  readonly streams: RowWatcher<StreamPosition, StreamPart>;

  readonly #options: RowWatchersOptions;
  readonly #unsubscribes: readonly (() => void)[];
  readonly #recent: RecentRows | undefined;
  #isLooking = false;
  /** Something has changed while a look was in flight, which may have been too early. */
  #isLookWanted = false;

  constructor(options: RowWatchersOptions) {
    this.#options = options;
    const { database, bus, hasPush, ...shared } = options;
    this.#recent = recentRowsOf(database);
    const interest = new Interest(bus);
    const common = { ...shared, pollMs: hasPush ? POLL_MS : POLL_WITHOUT_PUSH_MS };
    this.outcomes = new RowWatcher({
      ...common,
      find: (lookups) => findEnds(database, lookups),
      check: ({ workflowID }) => checkLookupID(workflowID),
      keysOf: ({ workflowID }) => [workflowID],
      awaited: ({ workflowID }) => ({ kind: 'outcome', workflowID }),
      announce: ({ workflowID }) => interest.announce(workflowID),
    });
    this.messages = new RowWatcher({
      ...common,
      find: (keys) => findOldestMessages(database, keys),
      keysOf: (key) => [messageKey(key)],
      awaited: (key) => ({ kind: 'message', ...key }),
    });
    this.events = new RowWatcher({
      ...common,
      find: (keys) => findEvents(database, keys),
      keysOf: (key) => [eventKey(key)],
      awaited: (key) => ({ kind: 'event', ...key }),
    });
    this.streams = new RowWatcher({
      ...common,
      find: (positions) => readStreams(database, positions),
      // A stream also ends with its workflow.
      keysOf: (position) => [eventKey(position), position.workflowID],
      announce: ({ workflowID }) => interest.announce(workflowID),
    });
    this.#unsubscribes = [
      bus.subscribe(topics.outcomes, (workflowIDs) => workflowIDs.forEach((workflowID) => this.#onEnded(workflowID))),
      bus.subscribe(topics.messages, (keys) => keys.forEach((key) => this.messages.wake(key))),
      bus.subscribe(topics.events, (keys) => keys.forEach((key) => this.events.wake(key))),
      bus.subscribe(topics.streams, (keys) => keys.forEach((key) => this.streams.wake(key))),
      bus.onAnything(() => this.#onAnything()),
    ];
  }

  /** On SQLite, a busy neighbour wakes us many times a second. Many waiters would keep this process busy with lookups. */
  #onAnything(): void {
    const count = this.#all.reduce((sum, { waiterCount }) => sum + waiterCount, 0);
    if (this.#recent && count > FEW) void this.#look(this.#recent);
    else this.#wakeAll();
  }

  #wakeAll(): void {
    for (const watcher of this.#all) watcher.wake();
  }

  /** Wakes those whose rows have changed. */
  async #look({ messages, events, streams, ended }: RecentRows): Promise<void> {
    this.#isLookWanted = true;
    if (this.#isLooking) return;
    this.#isLooking = true;
    try {
      while (this.#isLookWanted) {
        this.#isLookWanted = false;
        wakeKeys(this.messages, await messages());
        wakeKeys(this.events, await events());
        const streamKeys = await streams();
        const workflowIDs = await ended();
        wakeKeys(this.outcomes, workflowIDs);
        // Together, so that they share a query.
        for (const keys of [streamKeys, workflowIDs]) wakeKeys(this.streams, keys);
      }
    } catch (error) {
      this.#options.logger.debug(`Cannot look for changes of other processes: ${(error as Error).message}`);
      this.#wakeAll();
    } finally {
      this.#isLooking = false;
    }
  }

  #onEnded(workflowID: string): void {
    this.outcomes.wake(workflowID);
    this.streams.wake(workflowID);
  }

  /** Only a workflow's own run receives its messages, so if that is in this process, no other needs a notification. */
  isForOthers({ workflowID }: MessageKey): boolean {
    return !this.#options.isRunning(workflowID);
  }

  /** A message was written here. `isAnnounced`: other processes have been notified. */
  onSent(key: MessageKey, { isAnnounced = false } = {}): void {
    const { bus } = this.#options;
    bus.publishHere(topics.messages, messageKey(key));
    // The run may have moved to another process while the message was being written.
    if (!isAnnounced && this.isForOthers(key)) bus.publishElsewhere(topics.messages, messageKey(key));
  }

  /** An event was set here; the writer has notified other processes. */
  onEventSet(event: EventKey): void {
    this.#options.bus.publishHere(topics.events, eventKey(event));
  }

  /** A value was appended to a stream here. */
  onAppended(stream: EventKey): void {
    this.#options.bus.publish(topics.streams, eventKey(stream));
  }

  /** Whether code waits for a row. */
  get hasWaiters(): boolean {
    return this.#all.some((watcher) => watcher.hasWaiters);
  }

  async stop(reason: Error): Promise<void> {
    for (const unsubscribe of this.#unsubscribes) unsubscribe();
    for (const watcher of this.#all) await watcher.stop(reason);
  }

  get #all(): readonly Pick<RowWatcher<never, never>, 'wake' | 'stop' | 'hasWaiters' | 'waiterCount'>[] {
    return [this.outcomes, this.messages, this.events, this.streams];
  }
}

async function findEnds(
  database: Database,
  lookups: readonly OutcomeLookup[],
): Promise<readonly (EndedWorkflow | undefined)[]> {
  const workflowIDs = lookups.map(({ workflowID }) => workflowID);
  const found = new Map((await findEnded(database, workflowIDs)).map((one) => [one.workflowID, one]));
  return lookups.map((lookup) => {
    const ended = found.get(lookup.workflowID);
    if (!ended) lookup.hasExisted = true;
    // One that does not exist may be yet to be started.
    return ended?.status === null && !lookup.hasExisted ? undefined : ended;
  });
}

/** Without keys, all may have changed. */
function wakeKeys(watcher: Pick<RowWatcher<never, never>, 'wake'>, keys: readonly string[] | undefined): void {
  if (keys) for (const key of new Set(keys)) watcher.wake(key);
  else watcher.wake();
}
