// A dead letter as it is read.
import type { Row } from '../../transaction/driver.js';
import { sql, type Sql } from '../../../kernel/sql/sql.js';
import { countOf, headersOf, payloadOf, textOf, timeOf } from '../consume/message.js';
import { CONTENT_TYPE, decodeBody } from '../publish/body.js';
import { asText, milliseconds } from '../tokens.js';

export interface DeadLetter {
  readonly id: string;
  /** The ID that the message had in the outbox. */
  readonly originalID: string;
  readonly messageID: string | undefined;
  readonly topic: string;
  readonly key: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  /** Bytes, if it cannot be decoded. */
  readonly body: unknown;
  readonly reason: string;
  readonly error: string | undefined;
  readonly errorName: string | undefined;
  readonly fingerprint: string | undefined;
  readonly attempts: number;
  readonly deliveries: number;
  /** How often it came back from the dead letters. */
  readonly replays: number;
  readonly timerId: string | undefined;
  readonly traceparent: string | undefined;
  /** Epoch milliseconds. */
  readonly createdAt: number;
  readonly failedAt: number;
  readonly archivedAt: number | undefined;
}

/** The columns of rows `d`. `position` is where the list continues after the row. */
export const LETTER: Sql = sql`d.id, d.original_id, d.queue, d.payload, ${asText('d.headers')} AS headers,
      ${asText('d.deliveries_count')} AS deliveries_count, ${milliseconds('d.created_at')} AS created_ms,
      ${milliseconds('d.failed_at')} AS failed_ms, d.failure_reason, d.last_exception, d.timer_id,
      ${asText('d.message_id')} AS message_id, ${asText('d.attempts_count')} AS attempts_count, d.ordering_key,
      d.error_name, d.error_fingerprint, ${asText('d.replay_count')} AS replay_count, d.traceparent,
      ${milliseconds('d.archived_at')} AS archived_ms, ${asText('d.failed_at')} AS position`;

export function toLetter(row: Row): DeadLetter {
  const optional = (column: string): string | undefined => textOf(row[column]);
  const headers = headersOf(row['headers']) ?? {};
  const payload = payloadOf(row['payload']) ?? Buffer.from(String(row['payload']));
  return {
    id: String(row['id']),
    originalID: String(row['original_id']),
    messageID: optional('message_id'),
    topic: String(row['queue']),
    key: optional('ordering_key'),
    headers,
    body: decoded(payload, headers[CONTENT_TYPE]),
    reason: String(row['failure_reason']),
    error: optional('last_exception'),
    errorName: optional('error_name'),
    fingerprint: optional('error_fingerprint'),
    attempts: countOf(row['attempts_count']),
    deliveries: countOf(row['deliveries_count']),
    replays: countOf(row['replay_count']),
    timerId: optional('timer_id'),
    traceparent: optional('traceparent'),
    createdAt: timeOf(row['created_ms']),
    failedAt: timeOf(row['failed_ms']),
    archivedAt: row['archived_ms'] == null ? undefined : timeOf(row['archived_ms']),
  };
}

/** It may be a dead letter because it cannot be decoded. */
function decoded(payload: Uint8Array, contentType: string | undefined): unknown {
  try {
    return decodeBody(payload, contentType);
  } catch {
    return Buffer.from(payload);
  }
}
