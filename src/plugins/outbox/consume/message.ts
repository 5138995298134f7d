// A message as it is read from the table, and as handlers see it.
import type { Row } from '../../transaction/driver.js';
import { validate } from '../../../run/plugin.js';
import { InvalidOutboxError } from '../../../kernel/errors/errors.js';
import { isRecord } from '../../../kernel/check/validation.js';
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
  /** Why nobody can handle it: another program has stored what is no message. */
  readonly fault: Error | undefined;
}

/** The columns of a fetched row, for RETURNING. Counts as text: some drivers of SQLite fail on integers above 2^53. */
export const FETCHED: Sql = sql`id, queue, payload, ${asText('headers')} AS headers,
      ${asText('attempts_count')} AS attempts_count, ${asText('deliveries_count')} AS deliveries_count,
      ${milliseconds('created_at')} AS created_ms, ${milliseconds('next_attempt_at')} AS due_ms,
      ${milliseconds('first_attempt_at')} AS first_ms, ${asText('message_id')} AS message_id, ordering_key, timer_id,
      ${asText('priority')} AS priority, ${asText('replay_count')} AS replay_count, traceparent`;

/** From text, which is how the statements read them. Undefined if it is something else that another program has stored. */
export function headersOf(value: unknown): Record<string, string> | undefined {
  if (typeof value !== 'string') return {};
  try {
    const headers: unknown = JSON.parse(value);
    return isRecord(headers) ? (headers as Record<string, string>) : undefined;
  } catch {
    return undefined;
  }
}

/** SQLite stores any type in any column, and a program may write text. Undefined if it is neither that nor bytes. */
export function payloadOf(value: unknown): Uint8Array | undefined {
  if (value instanceof Uint8Array) return value;
  return typeof value === 'string' ? Buffer.from(value) : undefined;
}

/** SQLite may have numbers and blobs where text should be. */
export function textOf(value: unknown): string | undefined {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('utf8');
  return typeof value === 'string' ? value : typeof value === 'number' ? String(value) : undefined;
}

/** Of a count that is out of range or no number, what is closest to it. */
export function countOf(value: unknown): number {
  const count = Math.trunc(Number(value)) || 0;
  return Math.min(Math.max(count, -Number.MAX_SAFE_INTEGER), Number.MAX_SAFE_INTEGER);
}

/** Epoch milliseconds; 0 for a time that is infinite or none. */
export function timeOf(value: unknown): number {
  const time = Math.floor(Number(value));
  return Number.isFinite(time) ? time : 0;
}

/** Reads what any program may have stored, so it does not throw: one row must not be in the way of the others. */
export function toFetched(row: Row): FetchedRow {
  const optional = (column: string): string | undefined => textOf(row[column]);
  const [headers, payload] = [headersOf(row['headers']), payloadOf(row['payload'])];
  const unreadable = [...(headers ? [] : ['headers']), ...(payload ? [] : ['payload'])];
  return {
    id: String(row['id']),
    queue: String(row['queue']),
    payload: payload ?? Buffer.from(String(row['payload'])),
    headers: headers ?? {},
    attempts: countOf(row['attempts_count']),
    deliveries: countOf(row['deliveries_count']),
    createdAt: timeOf(row['created_ms']),
    dueAt: timeOf(row['due_ms']),
    firstAttemptAt: row['first_ms'] == null ? undefined : timeOf(row['first_ms']),
    messageID: String(row['message_id']),
    key: optional('ordering_key'),
    timerID: optional('timer_id'),
    priority: countOf(row['priority']),
    replays: countOf(row['replay_count']),
    traceparent: optional('traceparent'),
    isExpired: row['is_expired'] === true || row['is_expired'] === 1,
    fault: unreadable.length === 0 ? undefined : unreadableRow(row, unreadable),
  };
}

function unreadableRow(row: Row, columns: readonly string[]): Error {
  const stored = columns.map((column) => `${column} ${String(row[column]).slice(0, 1000)}`).join(' and ');
  return new InvalidOutboxError(`Another program has stored what is no message: ${stored}`);
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
