// How the services of a process hear of what happens, here and in other processes. Publishing delivers here at once, and
// elsewhere through the listener.
import type { Clock } from '../../kernel/base/clock.js';
import type { DLogger } from '../../kernel/base/log.js';
import { Throttle } from '../../kernel/base/throttle.js';
import { type Sql, sql } from '../../kernel/sql/sql.js';
import type { Executor } from '../database.js';
import type { Listener, Notification, Wakeup } from './listener.js';
import { type Topic, topics } from './topics.js';

/** Where a fact was published: in this process, or in another one. */
export type Origin = 'here' | 'elsewhere';

/** Facts come in batches. A promise is awaited by `publishAndWait`; otherwise its failure is logged. */
export type Subscriber<Payload> = (payloads: readonly Payload[], origin: Origin) => void | Promise<void>;

export interface BusOptions {
  readonly clock: Clock;
  readonly logger: DLogger;
  readonly listener: Listener;
}

/** Postgres refuses payloads of 8000 bytes and more. */
export const PAYLOAD_MAX_BYTES = 7999;

export class Bus {
  readonly #options: BusOptions;
  readonly #subscribers = new Map<string, Set<Subscriber<unknown>>>();
  readonly #filters = new Map<string, (payload: unknown) => boolean>();
  readonly #anything = new Set<() => void>();
  readonly #unsubscribe: () => void;

  constructor(options: BusOptions) {
    this.#options = options;
    this.#unsubscribe = options.listener.subscribe((wakeup) => this.#onWakeup(wakeup));
  }

  /** Whether facts reach other processes as notifications, not only as commits that they notice. */
  get isNotifying(): boolean {
    return this.#options.listener.channels.length > 0;
  }

  close(): void {
    this.#unsubscribe();
  }

  /** Begins to listen to other processes, if the store was opened without. */
  async listen(): Promise<void> {
    await this.#options.listener.start();
  }

  /** Calls the subscriber for every fact of the topic until the returned function is called. */
  subscribe<Payload>(topic: Topic<Payload>, subscriber: Subscriber<Payload>): () => void {
    const added = subscriber as Subscriber<unknown>;
    let subscribers = this.#subscribers.get(topic.channel);
    if (!subscribers) this.#subscribers.set(topic.channel, (subscribers = new Set()));
    subscribers.add(added);
    return () => subscribers.delete(added);
  }

  /** Calls the handler when anything may have changed, with a minimum of time between two calls if one is given. */
  onAnything(handler: () => void, minIntervalMs = 0): () => void {
    const throttle = minIntervalMs > 0 ? new Throttle(this.#options.clock, minIntervalMs, handler) : undefined;
    const call = throttle ? () => throttle.call() : handler;
    this.#anything.add(call);
    return () => {
      this.#anything.delete(call);
      throttle?.stop();
    };
  }

  /** Sends facts of the topic to other processes only if the filter says so. */
  filterOutgoing<Payload>(topic: Topic<Payload>, isWanted: (payload: Payload) => boolean): void {
    this.#filters.set(topic.channel, isWanted as (payload: unknown) => boolean);
  }

  publish<Payload>(topic: Topic<Payload>, payload: Payload): void {
    const named = topic.name?.(payload) ?? payload;
    this.publishHere(topic, named);
    this.publishElsewhere(topic, named);
  }

  publishAll<Payload>(topic: Topic<Payload>, payloads: readonly Payload[]): void {
    const distinct = distinctOf(topic, payloads);
    for (const pending of this.#deliver(topic, distinct, 'here')) this.#logFailure(topic, pending);
    for (const payload of distinct) this.publishElsewhere(topic, payload);
  }

  /** The same. Resolves when the subscribers of this process have acted on it, and rejects if one fails. */
  async publishAndWait<Payload>(topic: Topic<Payload>, payloads: readonly Payload[]): Promise<void> {
    const distinct = distinctOf(topic, payloads);
    const pending = this.#deliver(topic, distinct, 'here');
    for (const payload of distinct) this.publishElsewhere(topic, payload);
    await Promise.all(pending);
  }

  publishHere<Payload>(topic: Topic<Payload>, payload: Payload): void {
    for (const pending of this.#deliver(topic, [payload], 'here')) this.#logFailure(topic, pending);
  }

  publishElsewhere<Payload>(topic: Topic<Payload>, payload: Payload): void {
    if (!this.isNotifying) return;
    if (this.#filters.get(topic.channel)?.(payload) === false) return;
    const named = topic.name?.(payload) ?? payload;
    this.#options.listener.notify(topic.channel, topic.encode(named), topic.subject?.(payload));
  }

  /** Publishes with the commit of a caller's transaction: Postgres delivers then, and on SQLite commits are noticed. */
  async publishIn<Payload>(tx: Executor, topic: Topic<Payload>, payload: Payload): Promise<void> {
    if (tx.dialect.name !== 'postgres' || !this.isNotifying) return;
    const text = topic.encode(topic.name?.(payload) ?? payload);
    // The server would refuse a longer one, and with it the transaction. Processes also look without being told.
    if (Buffer.byteLength(text) > PAYLOAD_MAX_BYTES) return;
    await tx.run(sql`SELECT pg_notify(${topic.channel}, ${text})`);
  }

  /** Commits, and notifies other processes behind the commit. `publishHere` is left to the caller. */
  afterCommit<T>(notifications: readonly Notification[], commit: (notification?: Sql) => Promise<T>): Promise<T> {
    return this.#options.listener.afterCommit(notifications, commit);
  }

  #onWakeup(wakeup: Wakeup): void {
    if (wakeup.kind === 'anything') return this.#onAnything();
    const topic = TOPICS.get(wakeup.channel);
    if (topic?.isOpen && wakeup.payload === '') return this.#onAnything();
    if (!topic || !this.#subscribers.has(wakeup.channel)) return;
    let payload: unknown;
    try {
      payload = topic.decode(wakeup.payload);
    } catch (error) {
      // Any role that may connect can notify.
      this.#options.logger.debug(`Ignoring a malformed notification on ${wakeup.channel}: ${String(error)}`);
      return;
    }
    for (const pending of this.#deliver(topic, [payload], 'elsewhere')) this.#logFailure(topic, pending);
  }

  /** Has all services look for themselves: something may have changed without a notification. */
  wakeAll(): void {
    this.#onAnything();
  }

  #onAnything(): void {
    for (const call of this.#anything) {
      try {
        call();
      } catch (error) {
        this.#options.logger.error(error);
      }
    }
  }

  #deliver<Payload>(topic: Topic<Payload>, payloads: readonly Payload[], origin: Origin): Promise<void>[] {
    const subscribers = this.#subscribers.get(topic.channel);
    if (!subscribers || payloads.length === 0) return [];
    const pending: Promise<void>[] = [];
    for (const subscriber of subscribers) {
      try {
        const acting = subscriber(payloads, origin);
        if (acting) pending.push(acting);
      } catch (error) {
        pending.push(Promise.reject(error instanceof Error ? error : new Error(String(error))));
      }
    }
    return pending;
  }

  #logFailure({ channel }: { readonly channel: string }, pending: Promise<void>): void {
    pending.catch((error: unknown) => {
      this.#options.logger.debug(`A subscriber of ${channel} failed: ${String(error)}`);
    });
  }
}

const TOPICS: ReadonlyMap<string, Topic<unknown>> = new Map(
  Object.values(topics).map((topic) => [topic.channel, topic as Topic<unknown>]),
);

export function notificationOf<Payload>(topic: Topic<Payload>, payload: Payload): Notification {
  return { channel: topic.channel, payload: topic.encode(payload) };
}

function distinctOf<Payload>(topic: Topic<Payload>, payloads: readonly Payload[]): readonly Payload[] {
  const named = (payload: Payload): Payload => topic.name?.(payload) ?? payload;
  if (payloads.length < 2) return payloads.map(named);
  return [...new Map(payloads.map((payload) => [topic.encode(payload), payload])).values()].map(named);
}
