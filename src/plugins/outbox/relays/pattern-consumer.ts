// Consumes all topics whose names match a pattern. It looks which there are, and has a consumer for each.
import type { Deadline } from '../../../kernel/base/time-limit.js';
import { DueLoop } from '../../../kernel/base/due-loop.js';
import { indexedBy, type Sql, sql } from '../../../kernel/sql/sql.js';
import { bigint, tableToken } from '../tokens.js';
import type { OutboxTable } from '../schema/tables.js';
import { type Consumer, type ConsumerHost, reported } from '../consume/consumer.js';

export interface PatternOptions {
  /** With `*` for any text. */
  readonly pattern: string;
  /** Whether a topic is left to another consumer. */
  readonly isServed: (topicName: string) => boolean;
  readonly consumerOf: (topicName: string) => Consumer;
}

/** How many topics a pattern may match, and how many there may be. */
const TOPICS_MAX = 1000;
const QUEUES_MAX = 10_000;

export function isPattern(topicName: string): boolean {
  return topicName.includes('*');
}

export class PatternConsumer implements Consumer {
  readonly queue: string;
  readonly #host: ConsumerHost;
  readonly #options: PatternOptions;
  readonly #pattern: RegExp;
  readonly #loop: DueLoop;
  readonly #consumers = new Map<string, Consumer>();
  #isStopping = false;

  constructor(host: ConsumerHost, options: PatternOptions) {
    this.#host = host;
    this.#options = options;
    this.queue = options.pattern;
    const parts = options.pattern.split('*').map((part) => part.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`));
    this.#pattern = new RegExp(`^${parts.join('.*')}$`, 's');
    const { clock, logger, pollMs } = host;
    this.#loop = new DueLoop({
      clock,
      logger,
      subject: `topics of "${options.pattern}"`,
      maxMs: pollMs,
      sweep: reported(host, options.pattern, () => this.#look()),
    });
  }

  serves(queue: string): boolean {
    return this.#pattern.test(queue) && !this.#options.isServed(queue);
  }

  start(): void {
    this.#isStopping = false;
    this.#loop.start();
  }

  wake(queue?: string): void {
    const known = queue === undefined ? undefined : this.#consumers.get(queue);
    if (known) return known.wake();
    for (const consumer of this.#consumers.values()) consumer.wake();
    this.#loop.wake();
  }

  async stop(deadline: Deadline): Promise<void> {
    this.#isStopping = true;
    const stopping = [...this.#consumers.values()].map((consumer) => consumer.stop(deadline));
    await Promise.all([...stopping, deadline.settles(this.#loop.stop())]);
    this.#consumers.clear();
  }

  async #look(): Promise<undefined> {
    const { database, table, logger } = this.#host;
    const rows = await database.transact((tx) => tx.run(findQueues(table)), { readOnly: true });
    // It may have hung while the others stopped.
    if (this.#isStopping) return undefined;
    for (const row of rows) {
      const queue = String(row['queue']);
      if (this.#consumers.has(queue) || !this.serves(queue)) continue;
      if (this.#consumers.size >= TOPICS_MAX) {
        logger.warn(`More than ${TOPICS_MAX} topics match "${this.queue}". "${queue}" is not served.`);
        break;
      }
      const consumer = this.#options.consumerOf(queue);
      this.#consumers.set(queue, consumer);
      consumer.start();
    }
    return undefined;
  }
}

/** Walks the indexes from queue to queue: those with pending rows, and those with leased ones, whose lease may be stale. */
function findQueues(table: OutboxTable): Sql {
  const outbox = tableToken(table);
  const pending = indexedBy(`${table.tableName}_pending_idx`);
  const leased = indexedBy(`${table.tableName}_lease_idx`);
  return sql`
    WITH RECURSIVE pending(queue, n) AS (
      SELECT MIN(o.queue), 1
      FROM ${outbox} AS o ${pending}
      WHERE o.acquired_token IS NULL
      UNION ALL
      SELECT (
        SELECT MIN(o.queue)
        FROM ${outbox} AS o ${pending}
        WHERE o.acquired_token IS NULL AND o.queue > w.queue), w.n + 1
      FROM pending AS w
      WHERE w.queue IS NOT NULL AND w.n < ${bigint(QUEUES_MAX)}),
    leased(queue, n) AS (
      SELECT MIN(o.queue), 1
      FROM ${outbox} AS o ${leased}
      WHERE o.acquired_token IS NOT NULL
      UNION ALL
      SELECT (
        SELECT MIN(o.queue)
        FROM ${outbox} AS o ${leased}
        WHERE o.acquired_token IS NOT NULL AND o.queue > w.queue), w.n + 1
      FROM leased AS w
      WHERE w.queue IS NOT NULL AND w.n < ${bigint(QUEUES_MAX)})
    SELECT p.queue FROM pending AS p WHERE p.queue IS NOT NULL
    UNION
    SELECT l.queue FROM leased AS l WHERE l.queue IS NOT NULL`;
}
