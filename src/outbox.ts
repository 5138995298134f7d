// `everstep/outbox`: publish messages in your own transactions; handle, relay or dead-letter them later.
export type { HealthOptions, OutboxHealth } from './plugins/outbox/health.js';
export type { Handler } from './plugins/outbox/consume/handling.js';
export type { Message, MessageInfo } from './plugins/outbox/consume/message.js';
export type { HandlerOptions, SubscriptionOptions, WorkflowOptions } from './plugins/outbox/consume/options.js';
export { type FailureReason, Reject, RetryAfter, Unavailable } from './plugins/outbox/consume/outcomes.js';
export type { QueueStatistics } from './plugins/outbox/consume/statistics.js';
export {
  constant,
  exponential,
  type FailedAttempt,
  linear,
  noRetry,
  type RetryLimits,
  type RetryStrategy,
} from './plugins/outbox/consume/strategies.js';
export type { OutboxDataSource } from './plugins/outbox/database.js';
export type {
  DeadLetterGroup,
  DeadLetterPage,
  DeadLetters,
  RequeueOptions,
} from './plugins/outbox/dead-letters/dead-letters.js';
export type { ChangeFilter, DeadLetterFilter } from './plugins/outbox/dead-letters/filter.js';
export type { DeadLetter } from './plugins/outbox/dead-letters/letter.js';
export type { ErrorRenderer } from './plugins/outbox/dead-letters/failure.js';
export type { Duration } from './kernel/base/duration.js';
export { OutboxBroker } from './plugins/outbox/outbox-broker.js';
export type { OutboxOptions } from './plugins/outbox/outbox-options.js';
export type { CloudEvents, Envelope } from './plugins/outbox/relays/envelope.js';
export type { RelayOptions } from './plugins/outbox/relays/relay.js';
export type { PerMessage, RelayMessage, RelayResult, RelayTarget } from './plugins/outbox/relays/target.js';
export type { Converted } from './plugins/outbox/retention/conversion.js';
export type { Keep, RetentionOptions } from './plugins/outbox/retention/options.js';
export type {
  PlannedPartition,
  Retention,
  RetentionPlan,
  RetentionReport,
} from './plugins/outbox/retention/retention.js';
export type { StartOptions } from './plugins/outbox/publish/forwarding.js';
export type { Deduplication, DeduplicationOptions, PublishOptions } from './plugins/outbox/publish/options.js';
export type { BatchMessage, Published, Publisher } from './plugins/outbox/publish/publisher.js';
export {
  type DlqTable,
  makeDlqTable,
  makeOutboxTable,
  makeStateTable,
  type OutboxTable,
  type StateTable,
  type TableOptions,
} from './plugins/outbox/schema/tables.js';
export { topic, type Topic, type TopicOptions } from './plugins/outbox/topic.js';
export type { Finding } from './plugins/outbox/validate/finding.js';
export type { CheckOptions, SchemaReport } from './plugins/outbox/validate/validation.js';
