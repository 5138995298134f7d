// The transport of notifications between processes. What they mean is up to `topics.ts`, who hears them up to the bus.
import type { Sql } from '../../kernel/sql/sql.js';

export type Wakeup =
  /** On Postgres: a notification with its payload. */
  | { readonly kind: 'message'; readonly channel: string; readonly payload: string }
  /** Anything may have changed: another process has committed, or notifications may have been missed. */
  | { readonly kind: 'anything' };

export interface Notification {
  readonly channel: string;
  readonly payload: string;
}

export type WakeupHandler = (wakeup: Wakeup) => void;

export interface Listener {
  /** What it listens to and sends on; empty where commits are noticed without notifications. */
  readonly channels: readonly string[];
  /** Identifies the connection that receives notifications; 0 while there is none. */
  readonly session: number;
  /** False while the session lock is wanted and not held. */
  readonly isLockHeld: boolean;
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Calls the handler at each wake-up until the returned function is called. */
  subscribe(handler: WakeupHandler): () => void;
  /** Notifies other processes, soon and in batches: once for each subject, which is the payload if none is given. */
  notify(channel: string, payload: string, subject?: string): void;
  /**
   * Commits, and notifies other processes of what was committed. If the notifications fit in the commit's round trip,
   * `commit` gets a statement that sends them, to run right after the commit and apart from it.
   */
  afterCommit<T>(notifications: readonly Notification[], commit: (notification?: Sql) => Promise<T>): Promise<T>;
}

/** The handlers of one listener. One that throws does not keep the others from being called. */
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
