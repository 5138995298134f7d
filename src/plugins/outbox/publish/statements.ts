// The statements that add messages. On Postgres the notification is part of the statement, so it is sent by the commit;
// the server sends equal ones of a transaction once.
import type { Dialect } from '../../../kernel/sql/sql.js';
import { rows, type Sql, sql, type Token } from '../../../kernel/sql/sql.js';
import type { OutboxTable, StateTable } from '../schema/tables.js';
import { asText, bigint, bytesOf, fromNow, fromNowBy, now, tableToken, text, timeOf, uuid, uuidOf } from '../tokens.js';
import { MESSAGE_COLUMNS, type NewMessage } from './options.js';

/** What happens if the timer ID is pending. */
export type ConflictAction =
  | { readonly kind: 'ignore' }
  | { readonly kind: 'replace' }
  /** The due time is at most this long after the message was created. */
  | { readonly kind: 'debounce'; readonly maxMs: number };

const dueAt = sql`COALESCE(${timeOf('r.due_at')}, ${fromNowBy('r.delay_ms')})`;
const expiresAt = sql`COALESCE(${timeOf('(r.due_at + r.expires_in_ms)')}, ${fromNowBy('(r.delay_ms + r.expires_in_ms)')})`;
const nothing = sql``;

/**
 * A message that replaces one in flight takes its row and its place: the lease goes on under a token of nobody, the message's own
 * ID, so that no handler gets the new message while one has the old. It ends with that handler, or by time.
 */
const isInFlight = sql`(o.acquired_token IS NOT NULL AND o.acquired_token <> o.message_id)`;
/** Nobody handles it. */
const isPending = sql`(acquired_token IS NULL OR acquired_token = message_id)`;

/**
 * Adds messages and returns their IDs. A message whose timer ID is pending adds no row; if it replaces the pending one,
 * the row that is returned has the ID of that. If it replaces one in flight, the row has its own ID.
 */
export function insertMessages(
  dialect: Dialect,
  table: OutboxTable,
  { messages, action }: { readonly messages: readonly NewMessage[]; readonly action: ConflictAction },
): Sql {
  const data = messages.map(({ values }) => values);
  // The clause takes the server a fifth of the time to plan the statement.
  const isDeduplicated = messages.some(({ timerID }) => timerID !== null);
  const insertion = sql`
    INSERT INTO ${tableToken(table)} AS o
      (queue, payload, headers, next_attempt_at, timer_id, message_id, ordering_key, priority, expires_at, traceparent)
    SELECT r.queue, ${bytesOf('r.body', 'r.body_hex')}, r.headers, ${dueAt}, r.timer_id, ${uuidOf('r.message_id')},
      r.ordering_key, r.priority,
      ${expiresAt}, r.traceparent
    FROM ${rows('r', MESSAGE_COLUMNS, data)}
    ${isDeduplicated ? onConflict(action) : nothing}
    RETURNING id, message_id, queue`;
  return announced(dialect, table, insertion);
}

/** Runs the statement, and notifies of the queues it returns. */
export function announced(dialect: Dialect, table: OutboxTable, statement: Sql): Sql {
  if (dialect.name === 'sqlite') return statement;
  return sql`
    WITH changed AS (${statement})
    SELECT c.id, ${asText('c.message_id')} AS message_id, ${asText(`pg_notify(${literalText(table.channel)}, c.queue)`)} AS notified
    FROM changed AS c`;
}

function literalText(value: string): string {
  return `'${value.replaceAll("'", "''")}'`;
}

/** After a SELECT, SQLite needs the WHERE to tell the clause from a join. */
function onConflict(action: ConflictAction): Sql {
  return sql`WHERE TRUE
    ON CONFLICT (queue, timer_id) WHERE timer_id IS NOT NULL ${conflict(action)}`;
}

function conflict(action: ConflictAction): Token {
  if (action.kind === 'ignore') return sql`DO NOTHING`;
  if (action.kind === 'replace') return replacement(sql`excluded.next_attempt_at`);
  return replacement(
    sql`CASE WHEN ${isInFlight} OR excluded.next_attempt_at < ${cap(action)} THEN excluded.next_attempt_at ELSE ${cap(action)} END`,
  );
}

function replacement(next: Sql): Sql {
  return sql`DO UPDATE SET payload = excluded.payload, headers = excluded.headers, next_attempt_at = ${next},
      ordering_key = excluded.ordering_key, priority = excluded.priority, expires_at = excluded.expires_at,
      traceparent = excluded.traceparent,
      message_id = CASE WHEN ${isInFlight} THEN excluded.message_id ELSE o.message_id END,
      created_at = CASE WHEN ${isInFlight} THEN excluded.created_at ELSE o.created_at END,
      attempts_count = CASE WHEN ${isInFlight} THEN 0 ELSE o.attempts_count END,
      deliveries_count = CASE WHEN ${isInFlight} THEN 0 ELSE o.deliveries_count END,
      replay_count = CASE WHEN ${isInFlight} THEN 0 ELSE o.replay_count END,
      first_attempt_at = CASE WHEN ${isInFlight} THEN NULL ELSE o.first_attempt_at END,
      last_attempt_at = CASE WHEN ${isInFlight} THEN NULL ELSE o.last_attempt_at END,
      acquired_token = CASE WHEN ${isInFlight} THEN excluded.message_id ELSE o.acquired_token END`;
}

/** Ends the lease of a message that replaced one in flight. */
export function releaseReplacement(table: OutboxTable, id: string): Sql {
  return sql`
    UPDATE ${tableToken(table)}
    SET acquired_token = NULL, acquired_at = NULL
    WHERE id = ${bigint(id)} AND acquired_token = message_id
    RETURNING id`;
}

/** The latest due time of a debounced message. */
function cap({ maxMs }: { readonly maxMs: number }): Token {
  const fromCreation = {
    shape: 'created-plus;',
    write(out: Parameters<Token['write']>[0]) {
      const isPostgres = out.dialect.name === 'postgres';
      out.text('(o.created_at + ');
      out.placeholder();
      out.text(isPostgres ? `::float8 * INTERVAL '1 millisecond')` : ')');
    },
    collect: (values: Parameters<Token['collect']>[0]) => void values.push(maxMs),
  };
  return fromCreation;
}

/** Remembers the timer IDs that are not remembered already, and returns the messages that may be added. */
export function rememberOnce(table: StateTable, messages: readonly NewMessage[], onceMs: number): Sql {
  const state = tableToken(table);
  const columns = [
    { name: 'queue', type: 'text' },
    { name: 'timer_id', type: 'text' },
    { name: 'message_id', type: 'text' },
  ] as const;
  const data = messages.map(({ queue, timerID, messageID }) => [queue, timerID, messageID]);
  return sql`
    INSERT INTO ${state} AS s (queue, kind, "key", message_id, until)
    SELECT r.queue, 'once', r.timer_id, ${uuidOf('r.message_id')}, ${fromNow(onceMs)}
    FROM ${rows('r', columns, data)}
    WHERE TRUE
    ON CONFLICT (queue, kind, "key") DO UPDATE SET message_id = excluded.message_id, until = excluded.until
    WHERE s.until <= ${now}
    RETURNING ${asText('message_id')} AS message_id`;
}

/** The pending message with a timer ID. */
export function findTimer(table: OutboxTable, queue: string, timerID: string): Sql {
  return sql`
    SELECT o.id, ${asText('o.message_id')} AS message_id
    FROM ${tableToken(table)} AS o
    WHERE o.queue = ${text(queue)} AND o.timer_id = ${text(timerID)}`;
}

export function deleteTimer(table: OutboxTable, queue: string, timerID: string): Sql {
  return sql`
    DELETE FROM ${tableToken(table)}
    WHERE queue = ${text(queue)} AND timer_id = ${text(timerID)} AND ${isPending}
    RETURNING id, ${asText('message_id')} AS message_id`;
}

/** Forgets what `once` remembers of a message that was never handled. */
export function forgetOnce(table: StateTable, { queue, timerID, messageID }: Remembered): Sql {
  return sql`
    DELETE FROM ${tableToken(table)}
    WHERE queue = ${text(queue)} AND kind = 'once' AND "key" = ${text(timerID)} AND message_id = ${uuid(messageID)}`;
}

interface Remembered {
  readonly queue: string;
  readonly timerID: string;
  readonly messageID: string;
}

export function moveTimer(
  dialect: Dialect,
  table: OutboxTable,
  { queue, timerID, dueAt: due }: { readonly queue: string; readonly timerID: string; readonly dueAt: Token },
): Sql {
  return announced(
    dialect,
    table,
    sql`
    UPDATE ${tableToken(table)}
    SET next_attempt_at = ${due}
    WHERE queue = ${text(queue)} AND timer_id = ${text(timerID)} AND ${isPending}
    RETURNING id, message_id, queue`,
  );
}
