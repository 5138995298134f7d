// `everstep/outbox`: publish messages in your own transactions; handle, relay or dead-letter them later.
export type { OutboxDataSource } from './outbox/database.js';
export type { Duration } from './outbox/duration.js';
export { OutboxBroker, type OutboxOptions } from './outbox/outbox-broker.js';
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
