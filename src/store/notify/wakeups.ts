// Wake-ups from other processes. A wake-up is a hint to look, never the data itself: it can be lost or doubled,
// so whoever waits also looks by itself now and then.
import type { Sql } from '../../sql/sql.js';

export type Wakeup =
  /** Something was said on a channel: on Postgres a notification with its payload. */
  | { readonly kind: 'message'; readonly channel: string; readonly payload: string }
  /** Anything may have changed: another process has committed, or notifications may have been missed. */
  | { readonly kind: 'anything' };

/** Something to say on a channel. */
export interface Hint {
  readonly channel: string;
  readonly payload: string;
}

export type WakeupHandler = (wakeup: Wakeup) => void;

export interface Listener {
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Calls the handler at each wake-up until the returned function is called. */
  subscribe(handler: WakeupHandler): () => void;
  /** Tells other processes. Sent soon after, many at a time; nothing is sent where commits are seen anyway. */
  notify(channel: string, payload: string): void;
  /**
   * Commits, and tells other processes of what was committed. Where there is little to tell, `commit` is given a
   * statement that says it, to be run right behind the commit and apart from it.
   */
  telling<T>(hints: readonly Hint[], commit: (behind?: Sql) => Promise<T>): Promise<T>;
}

/** The channels of the shared schema, and those that only Everstep uses. */
export const CHANNELS = {
  /** Somebody waits for the outcome of this workflow and runs elsewhere. */
  interest: 'everstep_interest',
  /** This workflow has ended; said only of those that somebody waits for. */
  outcomes: 'everstep_outcomes',
  /** This workflow was cancelled, or its owner has changed. */
  changes: 'everstep_changes',
  /** An engine was launched. */
  executors: 'everstep_executors',
  /** There is work in a queue: its name, and the partition if there is one, as a JSON array. */
  queues: 'everstep_queues',
  /** The queues of the database have changed. */
  queueChanges: 'everstep_queue_changes',
  /** A workflow was delayed, or its delay was changed. */
  delays: 'everstep_delays',
  /** A schedule has changed: its name, or nothing for several. */
  schedules: 'everstep_schedules',
  notifications: 'dbos_notifications_channel',
  events: 'dbos_workflow_events_channel',
  streams: 'dbos_streams_channel',
} as const;

/** The handlers of one listener. A handler that throws does not keep the others from being called. */
export class WakeupHandlers {
  readonly #handlers = new Set<WakeupHandler>();

  constructor(readonly onFailure: (error: unknown) => void) {}

  subscribe(handler: WakeupHandler): () => void {
    this.#handlers.add(handler);
    return () => this.#handlers.delete(handler);
  }

  call(wakeup: Wakeup): void {
    for (const handler of this.#handlers) {
      try {
        handler(wakeup);
      } catch (error) {
        this.onFailure(error);
      }
    }
  }
}
