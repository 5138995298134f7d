// How an outbox is doing, by queue. One statement counts what waits and what is in flight; it reads the whole table, so it
// is for gauges that are read every few seconds, and not for hot paths.
import { sql } from '../../../kernel/sql/sql.js';
import type { OutboxDatabase } from '../database.js';
import type { DlqTable, OutboxTable } from '../schema/tables.js';
import { milliseconds, statementNow, statementNowMinus, tableToken } from '../tokens.js';
import { LEASE_MS } from './options.js';

export interface QueueStatistics {
  /** The topic; with `#` and its name for a subscription. */
  readonly queue: string;
  /** All messages. */
  readonly depth: number;
  /** Due, and not leased. */
  readonly due: number;
  /** Leased. */
  readonly inFlight: number;
  /** Leased for longer than the default lease, so probably by a process that has ended. */
  readonly stale: number;
  /** Failed at least once. */
  readonly retrying: number;
  /** How long the oldest message has been due, in milliseconds. */
  readonly lagMs: number;
  /** Dead letters that are not archived. */
  readonly deadLetters: number;
}

export async function statisticsOf(
  database: OutboxDatabase,
  { outbox, dlq }: { readonly outbox: OutboxTable; readonly dlq: DlqTable | undefined },
): Promise<QueueStatistics[]> {
  const counts = sql`
    SELECT o.queue, COUNT(*) AS depth,
      SUM(CASE WHEN o.acquired_token IS NULL AND o.next_attempt_at <= ${statementNow} THEN 1 ELSE 0 END) AS due,
      SUM(CASE WHEN o.acquired_token IS NOT NULL THEN 1 ELSE 0 END) AS in_flight,
      SUM(CASE WHEN o.acquired_at < ${statementNowMinus(LEASE_MS)} THEN 1 ELSE 0 END) AS stale,
      SUM(CASE WHEN o.attempts_count > 0 THEN 1 ELSE 0 END) AS retrying,
      ${milliseconds('MIN(o.next_attempt_at)')} AS oldest_ms, ${milliseconds(`MAX(n.now)`)} AS now_ms
    FROM ${tableToken(outbox)} AS o
    CROSS JOIN (SELECT ${statementNow} AS now) AS n
    GROUP BY o.queue`;
  const { queues, letters } = await database.connected(() =>
    database.transact(
      async (tx) => ({
        queues: await tx.run(counts),
        letters: dlq
          ? await tx.run(sql`
    SELECT d.queue, COUNT(*) AS count
    FROM ${tableToken(dlq)} AS d
    WHERE d.archived_at IS NULL
    GROUP BY d.queue`)
          : [],
      }),
      { readOnly: true },
    ),
  );
  const live = new Map(queues.map((row) => [String(row['queue']), row]));
  const dead = new Map(letters.map((row) => [String(row['queue']), Number(row['count'])]));
  return [...new Set([...live.keys(), ...dead.keys()])].toSorted().map((queue) => {
    const row = live.get(queue);
    const count = (column: string): number => Number(row?.[column] ?? 0);
    return {
      queue,
      depth: count('depth'),
      due: count('due'),
      inFlight: count('in_flight'),
      stale: count('stale'),
      retrying: count('retrying'),
      lagMs: Math.max(count('now_ms') - count('oldest_ms'), 0),
      deadLetters: dead.get(queue) ?? 0,
    };
  });
}
