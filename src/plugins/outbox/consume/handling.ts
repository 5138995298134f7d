// Runs the handler on a leased message and decides what becomes of the message. Whether it is written is up to the caller.
import type { DLogger } from '../../../kernel/base/log.js';
import { OutboxLeaseLostError } from '../../../kernel/errors/errors.js';
import type { Topic } from '../topic.js';
import type { ConsumerHost } from './consumer.js';
import type { Lease } from './leases.js';
import type { CircuitBreaker } from './limits.js';
import { bodyOf, type FetchedRow, infoOf, type Message } from './message.js';
import type { HandlerSettings } from './options.js';
import { hasCode, type Outcome, type RetryAfter, type Unroutable } from './outcomes.js';
import { deleteHeld } from './settling.js';
import type { RetryStrategy } from './strategies.js';

export type Handler<T> = (body: T, message: Message) => unknown;

export interface HandlingOptions {
  readonly topic: Topic;
  readonly handler: Handler<unknown>;
  readonly settings: HandlerSettings;
  /** The handler gets the payload as bytes, and no schema is asked. Default: false. */
  readonly isRaw?: boolean;
}

export class Handling {
  readonly #host: ConsumerHost;
  readonly #options: HandlingOptions;
  readonly #breaker: CircuitBreaker;
  /** Whether the handlers were told to end: then a failure says nothing about the message. */
  isAborted = false;

  constructor(host: ConsumerHost, options: HandlingOptions, breaker: CircuitBreaker) {
    this.#host = host;
    this.#options = options;
    this.#breaker = breaker;
  }

  /** The outcome to write; undefined if it is written already. */
  async handle(lease: Lease, startedAt: number): Promise<Outcome | undefined> {
    const { topic, handler, settings, isRaw = false } = this.#options;
    let body: unknown;
    try {
      body = isRaw ? lease.row.payload : await bodyOf(lease.row, topic);
    } catch (error) {
      return { kind: 'dead', reason: 'rejected', error };
    }
    const message = messageOf(lease, topic.name);
    try {
      if (settings.isTransactional) await this.#inTransaction(lease, () => handler(body, message));
      else await handler(body, message);
      this.#breaker.onContact();
      return settings.isTransactional ? undefined : { kind: 'done' };
    } catch (error) {
      return this.#judge(lease, error, startedAt);
    }
  }

  /** Deletes the message first: that locks its row, and shows whether the lease still holds. */
  #inTransaction(lease: Lease, body: () => unknown): Promise<unknown> {
    const { database, table } = this.#host;
    return database.inTransaction(async (tx) => {
      const deleted = await tx.run(deleteHeld(table, [{ id: lease.row.id, token: lease.token }], { isWaiting: true }));
      if (deleted.length === 0) throw new OutboxLeaseLostError('The lease was lost before the handler began.');
      return body();
    });
  }

  #judge({ row, isLost }: Lease, error: unknown, startedAt: number): Outcome | undefined {
    if (isLost || error instanceof OutboxLeaseLostError) return undefined;
    if (this.isAborted) return { kind: 'release', delayMs: 0 };
    if (hasCode(error, 'OUTBOX_UNAVAILABLE')) {
      this.#breaker.onOutage();
      return { kind: 'release', delayMs: 0 };
    }
    this.#breaker.onContact();
    const { retry } = this.#options.settings;
    return outcomeOf(row, { error, startedAt, retry, logger: this.#host.logger });
  }
}

/** Most handlers never look at the signal, and making one takes longer than the rest of the message. */
function messageOf(lease: Lease, topicName: string): Message {
  return {
    ...infoOf(lease.row, topicName),
    get signal() {
      return lease.signal;
    },
  };
}

interface Failed {
  readonly error: unknown;
  readonly startedAt: number;
  readonly retry: RetryStrategy;
  readonly logger: DLogger;
}

function outcomeOf(row: FetchedRow, failed: Failed): Outcome {
  const { error } = failed;
  if (hasCode(error, 'OUTBOX_REJECT')) {
    return { kind: 'dead', reason: (error as Partial<Unroutable>).reason ?? 'rejected', error };
  }
  if (hasCode(error, 'OUTBOX_RETRY_AFTER')) return { kind: 'retry', delayMs: (error as RetryAfter).delayMs };
  const delayMs = delayAfter(row, failed);
  return delayMs === undefined ? { kind: 'dead', reason: 'retry_terminal', error } : { kind: 'retry', delayMs };
}

function delayAfter(
  { attempts, firstAttemptAt, messageID, queue }: FetchedRow,
  { error, startedAt, retry, logger }: Failed,
): number | undefined {
  const failed = { attempts: attempts + 1, firstAttemptAt: firstAttemptAt ?? startedAt, lastAttemptAt: startedAt };
  try {
    return retry({ ...failed, error });
  } catch (strategyError) {
    logger.error(
      `The retry strategy failed for message "${messageID}" of "${queue}", so it becomes a dead letter: ${String(strategyError)}`,
    );
    return undefined;
  }
}
