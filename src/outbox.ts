// `everstep/outbox`: publish messages in your own transactions; handle, relay or dead-letter them later.
export type { HealthOptions, OutboxHealth } from './outbox/health.js';
export type { Handler } from './outbox/consume/leased-consumer.js';
export type { Message, MessageInfo } from './outbox/consume/message.js';
export type { HandlerOptions, SubscriptionOptions, WorkflowOptions } from './outbox/consume/options.js';
export { type FailureReason, Reject, RetryAfter, Unavailable } from './outbox/consume/outcomes.js';
export type { QueueStatistics } from './outbox/consume/statistics.js';
export {
  constant,
  exponential,
  type FailedAttempt,
  linear,
  noRetry,
  type RetryLimits,
  type RetryStrategy,
} from './outbox/consume/strategies.js';
export type { OutboxDataSource } from './outbox/database.js';
export type {
  DeadLetterGroup,
  DeadLetterPage,
  DeadLetters,
  RequeueOptions,
} from './outbox/dead-letters/dead-letters.js';
export type { ChangeFilter, DeadLetterFilter } from './outbox/dead-letters/filter.js';
export type { DeadLetter } from './outbox/dead-letters/letter.js';
export type { ErrorRenderer } from './outbox/dead-letters/failure.js';
export type { Duration } from './base/duration.js';
export { OutboxBroker } from './outbox/outbox-broker.js';
export type { OutboxOptions } from './outbox/outbox-options.js';
export type { CloudEvents, Envelope } from './outbox/relays/envelope.js';
export type { RelayOptions } from './outbox/relays/relay.js';
export type { PerMessage, RelayMessage, RelayResult, RelayTarget } from './outbox/relays/target.js';
export type { Converted } from './outbox/retention/conversion.js';
export type { Keep, RetentionOptions } from './outbox/retention/options.js';
export type { PlannedPartition, Retention, RetentionPlan, RetentionReport } from './outbox/retention/retention.js';
export type { StartOptions } from './outbox/publish/forwarding.js';
export type { Deduplication, DeduplicationOptions, PublishOptions } from './outbox/publish/options.js';
export type { BatchMessage, Published, Publisher } from './outbox/publish/publisher.js';
export {
  type DlqTable,
  makeDlqTable,
  makeOutboxTable,
  makeStateTable,
  type OutboxTable,
  type StateTable,
  type TableOptions,
} from './outbox/schema/tables.js';
export { topic, type Topic, type TopicOptions } from './outbox/topic.js';
export type { Finding } from './outbox/validate/finding.js';
export type { CheckOptions, SchemaReport } from './outbox/validate/validation.js';
