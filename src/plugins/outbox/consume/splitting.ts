// Copies due messages of a topic to the queues of its subscriptions. Each copy is handled, retried and dead-lettered by
// itself. Of a key, copies have the order of the messages.
import type { Dialect } from '../../../kernel/sql/sql.js';
import { oneOf, rows, sql, type Sql } from '../../../kernel/sql/sql.js';
import type { Transaction } from '../database.js';
import type { OutboxTable } from '../schema/tables.js';
import { tableToken } from '../tokens.js';
import type { Processed } from './due-rows.js';
import { pickInOrder, type PickOptions } from './picking.js';
import { announced } from '../publish/statements.js';

const QUEUE = [{ name: 'queue', type: 'text' }] as const;

/** Everything but the lease, and the timer ID: the message is no longer pending. */
const COPIED = sql`payload, headers, created_at, next_attempt_at, message_id, ordering_key, priority, expires_at, replay_count,
      traceparent`;
const FROM_ROW = sql`o.payload, o.headers, o.created_at, o.next_attempt_at, o.message_id, o.ordering_key, o.priority,
      o.expires_at, o.replay_count, o.traceparent`;

export interface SplitOptions {
  readonly dialect: Dialect;
  readonly queues: readonly string[];
  /** Wakes the consumers of this process. */
  readonly wake: (queue: string) => void;
}

export async function split(
  tx: Transaction,
  pick: PickOptions,
  { dialect, queues, wake }: SplitOptions,
): Promise<Processed> {
  const { table } = pick;
  const ids = await pickInOrder(tx, pick);
  if (ids.length === 0) return { count: 0 };
  await tx.run(copy(dialect, table, { ids, queues }));
  await tx.run(sql`DELETE FROM ${tableToken(table)} WHERE id ${oneOf(ids, 'bigint')}`);
  return { count: ids.length, committed: () => queues.forEach(wake) };
}

function copy(
  dialect: Dialect,
  table: OutboxTable,
  { ids, queues }: { readonly ids: readonly string[]; readonly queues: readonly string[] },
): Sql {
  const data = queues.map((queue) => [queue]);
  return announced(
    dialect,
    table,
    sql`
    INSERT INTO ${tableToken(table)} (queue, ${COPIED})
    SELECT r.queue, ${FROM_ROW}
    FROM ${tableToken(table)} AS o
    CROSS JOIN ${rows('r', QUEUE, data)}
    WHERE o.id ${oneOf(ids, 'bigint')}
    ORDER BY o.id
    RETURNING id, message_id, queue`,
  );
}
