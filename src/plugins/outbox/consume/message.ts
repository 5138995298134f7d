// A message as it is read from the table, and as handlers see it.
import type { Row } from '../../transaction/driver.js';
import { validate } from '../../../run/plugin.js';
import { sql, type Sql } from '../../../kernel/sql/sql.js';
import { CONTENT_TYPE, decodeBody } from '../publish/body.js';
import { asText, milliseconds } from '../tokens.js';
import type { Topic } from '../topic.js';

/** What handlers and workflows get beside the body. */
export interface MessageInfo {
  /** The ID of the row. */
  readonly id: string;
  /** The same for all deliveries, and for copies to several subscribers. */
  readonly messageID: string;
  readonly topic: string;
  readonly key?: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Handler runs before this one. */
  readonly attempts: number;
  /** Deliveries including this one. */
  readonly deliveries: number;
  /** Epoch milliseconds. */
  readonly createdAt: number;
  readonly dueAt: number;
  /** The trace context of the publisher. */
  readonly traceparent?: string;
}

/** A message in the hands of a handler. */
export interface Message extends MessageInfo {
  /** Aborts when the lease is lost, and when a shutdown has waited long enough. */
  readonly signal: AbortSignal;
}

/** A row that was fetched. */
export interface FetchedRow {
  readonly id: string;
  readonly queue: string;
  readonly payload: Uint8Array;
  readonly headers: Readonly<Record<string, string>>;
  readonly attempts: number;
  readonly deliveries: number;
  readonly createdAt: number;
  readonly dueAt: number;
  readonly firstAttemptAt: number | undefined;
  readonly messageID: string;
  readonly key: string | undefined;
  readonly timerID: string | undefined;
  readonly priority: number;
  readonly replays: number;
  readonly traceparent: string | undefined;
  readonly isExpired: boolean;
}

/** The columns of a fetched row, for RETURNING. */
export const FETCHED: Sql = sql`id, queue, payload, ${asText('headers')} AS headers, attempts_count, deliveries_count,
      ${milliseconds('created_at')} AS created_ms, ${milliseconds('next_attempt_at')} AS due_ms,
      ${milliseconds('first_attempt_at')} AS first_ms, ${asText('message_id')} AS message_id, ordering_key, timer_id,
      priority, replay_count, traceparent`;

/** As text, which is how the statements read them. */
export function headersOf(value: unknown): Record<string, string> {
  return typeof value === 'string' ? (JSON.parse(value) as Record<string, string>) : {};
}

export function toFetched(row: Row): FetchedRow {
  const optional = (column: string): string | undefined => (row[column] as string | null) ?? undefined;
  return {
    id: String(row['id']),
    queue: String(row['queue']),
    payload: row['payload'] as Uint8Array,
    headers: headersOf(row['headers']),
    attempts: Number(row['attempts_count']),
    deliveries: Number(row['deliveries_count']),
    createdAt: Math.floor(Number(row['created_ms'])),
    dueAt: Math.floor(Number(row['due_ms'])),
    firstAttemptAt: row['first_ms'] == null ? undefined : Number(row['first_ms']),
    messageID: String(row['message_id']),
    key: optional('ordering_key'),
    timerID: optional('timer_id'),
    priority: Number(row['priority']),
    replays: Number(row['replay_count']),
    traceparent: optional('traceparent'),
    isExpired: row['is_expired'] === true || row['is_expired'] === 1,
  };
}

/** In the order in which they were inserted. */
export function byID(a: FetchedRow, b: FetchedRow): number {
  return BigInt(a.id) < BigInt(b.id) ? -1 : 1;
}

export function infoOf(row: FetchedRow, topic: string): MessageInfo {
  const { id, messageID, key, headers, attempts, deliveries, createdAt, dueAt, traceparent } = row;
  return {
    id,
    messageID,
    topic,
    ...(key !== undefined && { key }),
    headers,
    attempts,
    deliveries,
    createdAt,
    dueAt,
    ...(traceparent !== undefined && { traceparent }),
  };
}

/** Decodes the body, and checks it against the topic's schema. */
export async function bodyOf<T>(row: FetchedRow, topic: Topic<T>): Promise<T> {
  const body = decodeBody(row.payload, row.headers[CONTENT_TYPE]);
  const { schema } = topic.options;
  return (schema ? await validate(schema, body, `The body of message "${row.messageID}" is`) : body) as T;
}
