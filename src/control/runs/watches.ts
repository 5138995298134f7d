// What operators wait for in their database, one watch a kind of row.
import type { Clock } from '../../base/clock.js';
import type { DLogger } from '../../base/log.js';
import { type EventKey, eventKey, findEvents, type StoredEvent } from '../../store/messaging/events.js';
import { findOldestMessages, type MessageKey, messageKey, type StoredMessage } from '../../store/messaging/messages.js';
import type { Store } from '../../store/store.js';
import { readStreams, type StreamPart, type StreamPosition } from '../../store/messaging/streams.js';
import { CHANNELS, type Wakeup } from '../../store/notify/wakeups.js';
import { findFinished, type FinishedWorkflow } from '../../store/runs/workflows.js';
import { checkSoughtID } from './storable.js';
import { Watch } from './watch.js';

export interface WatchesOptions {
  readonly clock: Clock;
  readonly logger: DLogger;
  readonly store: Store;
  /** Whether wake-ups come from other processes. */
  readonly hasPush: boolean;
  retrying<T>(look: () => Promise<T>): Promise<T>;
  whileWaiting<T>(promise: Promise<T>): Promise<T>;
  /** Whether the workflow has a run in this process. */
  isRunning(workflowID: string): boolean;
}

/** How often to look for what a lost wake-up would have told. */
const POLL_MS = 2_000;
const POLL_WITHOUT_PUSH_MS = 500;

export class Watches {
  /** The ends of workflows, wherever they run. */
  readonly outcomes: Watch<string, FinishedWorkflow>;

  /** The oldest message of a topic that was not received yet. */
  readonly messages: Watch<MessageKey, StoredMessage>;

  readonly events: Watch<EventKey, StoredEvent>;
  /** Values of streams from an offset on, and the ends of streams. */
  readonly streams: Watch<StreamPosition, StreamPart>;

  readonly #options: WatchesOptions;

  constructor(options: WatchesOptions) {
    this.#options = options;
    const { store, hasPush, ...shared } = options;
    const { database, listener } = store;
    const common = { ...shared, pollMs: hasPush ? POLL_MS : POLL_WITHOUT_PUSH_MS };
    this.outcomes = new Watch({
      ...common,
      look: async (workflowIDs) => {
        const finished = new Map((await findFinished(database, workflowIDs)).map((one) => [one.workflowID, one]));
        return workflowIDs.map((workflowID) => finished.get(workflowID));
      },
      check: checkSoughtID,
      keysOf: (workflowID) => [workflowID],
      announce: (workflowID) => listener.notify(CHANNELS.interest, workflowID),
    });
    this.messages = new Watch({
      ...common,
      look: (keys) => findOldestMessages(database, keys),
      keysOf: (key) => [messageKey(key)],
    });
    this.events = new Watch({
      ...common,
      look: (keys) => findEvents(database, keys),
      keysOf: (key) => [eventKey(key)],
    });
    this.streams = new Watch({
      ...common,
      look: (positions) => readStreams(database, positions),
      // A stream also ends with its workflow.
      keysOf: (position) => [eventKey(position), position.workflowID],
      announce: ({ workflowID }) => listener.notify(CHANNELS.interest, workflowID),
    });
  }

  /** A workflow has ended, here or elsewhere. */
  onEnded(workflowID: string): void {
    this.outcomes.wake(workflowID);
    this.streams.wake(workflowID);
  }

  /** Only a workflow's own run can receive its messages: if that is here, nobody else has to be told of one. */
  isForOthers({ workflowID }: MessageKey): boolean {
    return !this.#options.isRunning(workflowID);
  }

  /** A message was written here. `isTold` says that other processes know. */
  onSent(key: MessageKey, { isTold = false } = {}): void {
    this.messages.wake(messageKey(key));
    // Also if the run has gone elsewhere since the message was on its way.
    if (!isTold && this.isForOthers(key)) {
      this.#options.store.listener.notify(CHANNELS.notifications, messageKey(key));
    }
  }

  /** An event was set here; the writer has told others. */
  onEventSet(event: EventKey): void {
    this.events.wake(eventKey(event));
  }

  /** A stream has grown here. */
  onAppended(stream: EventKey): void {
    this.streams.wake(eventKey(stream));
    this.#options.store.listener.notify(CHANNELS.streams, eventKey(stream));
  }

  onWakeup(wakeup: Wakeup): void {
    if (wakeup.kind === 'anything') for (const watch of this.#all) watch.wake();
    else if (wakeup.channel === CHANNELS.outcomes) this.onEnded(wakeup.payload);
    else if (wakeup.channel === CHANNELS.notifications) this.messages.wake(wakeup.payload);
    else if (wakeup.channel === CHANNELS.events) this.events.wake(wakeup.payload);
    else if (wakeup.channel === CHANNELS.streams) this.streams.wake(wakeup.payload);
  }

  async stop(reason: Error): Promise<void> {
    for (const watch of this.#all) await watch.stop(reason);
  }

  get #all(): readonly Pick<Watch<never, never>, 'wake' | 'stop'>[] {
    return [this.outcomes, this.messages, this.events, this.streams];
  }
}
