// The options of subscriptions.
import { type Duration, durationMs } from '../../../kernel/base/duration.js';
import { InvalidOutboxError } from '../../../kernel/errors/errors.js';
import {
  duration,
  func,
  oneOf,
  optional,
  positiveInteger,
  record,
  objectWith,
} from '../../../kernel/check/validation.js';
import type { OutboxDataSource } from '../database.js';
import { topicName } from '../topic.js';
import type { BreakerOptions } from './limits.js';
import type { MessageInfo } from './message.js';
import { defaultStrategy, type RetryStrategy } from './strategies.js';

/** Options of all subscriptions. */
export interface SubscriptionOptions {
  /** Names the subscription. With a name, each subscription of the topic gets every message. */
  readonly subscription?: string;
  /** `key`: messages with the same key are handled one at a time, in the order in which they were published. */
  readonly order?: 'key';
}

export interface HandlerOptions extends SubscriptionOptions {
  /** Handlers at a time. Default: 1. */
  readonly workers?: number;
  /** The most messages per fetch. Default: 10. */
  readonly batch?: number;
  /** How long a message is held. It is renewed while the handler runs. Default: 60s. */
  readonly lease?: Duration;
  /** When to try again after an error. Default: exponential, 10 attempts. */
  readonly retry?: RetryStrategy;
  /** Deliveries, including those that ended with the process, before it becomes a dead letter. Default: no limit. */
  readonly maxDeliveries?: number;
  /** The outbox's data source: the handler runs in a transaction of it, and the message is gone when that commits. */
  readonly transactional?: OutboxDataSource;
  /** The most messages in a period, in this process. */
  readonly rateLimit?: { readonly max: number; readonly per: Duration };
  /** When to leave the topic alone because of `Unavailable`. */
  readonly breaker?: { readonly threshold?: number; readonly max?: Duration };
  /** How long a shutdown waits for handlers. Default: 15s. */
  readonly drain?: Duration;
  /** The longest time between two looks at the table. Default: 10s, and 1s if notifications cannot be had. */
  readonly pollInterval?: Duration;
}

export interface WorkflowOptions<T> extends SubscriptionOptions {
  /** The workflow ID. Default: made from the name of the function and the message ID. */
  readonly id?: (body: T, message: MessageInfo) => string;
  /** The queue of the workflows. Default: a queue of the function's own. */
  readonly queueName?: string;
  /** The most messages per commit. Default: 500. */
  readonly batch?: number;
}

/** Handler options with their defaults. */
export interface HandlerSettings {
  readonly workers: number;
  readonly batch: number;
  readonly leaseMs: number;
  readonly retry: RetryStrategy;
  readonly maxDeliveries: number;
  readonly isTransactional: boolean;
  readonly isOrdered: boolean;
  readonly rateLimit: { readonly max: number; readonly perMs: number } | undefined;
  readonly breaker: BreakerOptions | undefined;
  readonly drainMs: number;
  readonly pollMs: number | undefined;
}

export const LEASE_MS = 60_000;
const SHORTEST_MS = 100;

const COMMON = { subscription: optional(topicName), order: optional(oneOf(['key'])) };
const HANDLER_OPTIONS = record({
  ...COMMON,
  workers: optional(positiveInteger),
  batch: optional(positiveInteger),
  lease: optional(duration),
  retry: optional(func),
  maxDeliveries: optional(positiveInteger),
  transactional: optional(objectWith('runTransaction')),
  rateLimit: optional(record({ max: positiveInteger, per: duration })),
  breaker: optional(record({ threshold: optional(positiveInteger), max: optional(duration) })),
  drain: optional(duration),
  pollInterval: optional(duration),
});
export const WORKFLOW_OPTIONS = record({
  ...COMMON,
  id: optional(func),
  queueName: optional(topicName),
  batch: optional(positiveInteger),
});

export function handlerSettings(options: HandlerOptions, source: OutboxDataSource): HandlerSettings {
  HANDLER_OPTIONS.read(options, 'options');
  const { lease = LEASE_MS, transactional, rateLimit, breaker, drain = 15_000, pollInterval } = options;
  if (transactional !== undefined && transactional !== source) {
    throw new InvalidOutboxError(
      `The handler can only be transactional in the data source of the outbox, "${source.name}".`,
    );
  }
  const leaseMs = durationMs(lease);
  if (leaseMs < SHORTEST_MS) {
    throw new InvalidOutboxError(`A lease of ${leaseMs} ms cannot be renewed in time. Use at least ${SHORTEST_MS} ms.`);
  }
  return {
    workers: options.workers ?? 1,
    batch: options.batch ?? 10,
    leaseMs,
    retry: options.retry ?? defaultStrategy,
    maxDeliveries: options.maxDeliveries ?? Infinity,
    isTransactional: transactional !== undefined,
    isOrdered: options.order === 'key',
    rateLimit: rateLimit && { max: rateLimit.max, perMs: durationMs(rateLimit.per) },
    breaker: breaker && {
      ...(breaker.threshold !== undefined && { threshold: breaker.threshold }),
      ...(breaker.max !== undefined && { maxMs: durationMs(breaker.max) }),
    },
    drainMs: durationMs(drain),
    pollMs: pollInterval === undefined ? undefined : durationMs(pollInterval),
  };
}
