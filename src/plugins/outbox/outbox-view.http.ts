// Outboxes as the API returns them.
import type { OutboxBroker } from './outbox-broker.js';
import type { DeadLetter } from './dead-letters/letter.js';
import { array, boolean, integer, mapOf, nullable, number, oneOf, record } from '../../kernel/check/validation.js';
import { text } from '../../faces/http/shape.js';
import { showValue, shownValue } from '../../faces/http/views/value.js';

/** What the interface uses of an `OutboxBroker`. */
export type AdminOutbox = Pick<OutboxBroker, 'checkSchema' | 'dlq' | 'health' | 'pause' | 'resume' | 'statistics'>;

export const queueStatistics = record({
  queue: text,
  depth: integer(),
  due: integer(),
  inFlight: integer(),
  stale: integer(),
  retrying: integer(),
  lagMs: number(),
  deadLetters: integer(),
}).named('OutboxQueue');

export const healthView = record({
  ok: boolean,
  problems: array(text),
  queues: array(queueStatistics),
  paused: array(text),
}).named('OutboxHealth');

export const findingView = record({
  code: text,
  severity: oneOf(['error', 'warning']),
  object: text,
  expected: text,
  actual: text,
  fixSql: text,
}).named('OutboxFinding');

export const deadLetterView = record({
  id: text,
  originalID: text,
  messageID: nullable(text),
  topic: text,
  key: nullable(text),
  headers: mapOf(text),
  body: shownValue,
  reason: text,
  error: nullable(text),
  errorName: nullable(text),
  fingerprint: nullable(text),
  attempts: integer(),
  deliveries: integer(),
  replays: integer(),
  timerId: nullable(text),
  traceparent: nullable(text),
  createdAt: integer(),
  failedAt: integer(),
  archivedAt: nullable(integer()),
}).named('DeadLetter');

export const groupView = record({
  topic: text,
  reason: text,
  errorName: nullable(text),
  fingerprint: nullable(text),
  count: integer(),
  firstFailedAt: integer(),
  lastFailedAt: integer(),
  sampleID: text,
}).named('DeadLetterGroup');

export function viewDeadLetter(letter: DeadLetter): object {
  return { ...withNulls(letter), body: showValue(letter.body) };
}

/** JSON leaves undefined out. */
export function withNulls(value: object): object {
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, (inner as unknown) ?? null]));
}
