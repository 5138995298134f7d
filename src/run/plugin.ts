// The only part of the engine that plugins may import.

// For data sources.
export { type ProtocolConnection, StatementBatch, statementName } from '../database/postgres/statement-batch.js';
export { currentClient, defaultRegistry, inClient } from './ambient.js';
export type { MethodDecorator } from './registration/function-owner.js';
export type { FunctionName, Registry, UserFunction } from './registration/registry.js';
export { decorateTransaction, registerTransactionFunction } from '../plugins/transaction/transaction-functions.run.js';
export type { Durability, KeptOutcome, StepOutcome } from './perform.js';
export type { TransactionStep } from '../plugins/transaction/transaction-step.run.js';
export {
  addDataSource,
  assertStillOwnsWorkflow,
  callTransaction,
  type StepTransactionHandler,
} from '../plugins/transaction/call-transaction.run.js';
export type { DataSourceTransactionHandler, RecordedWorkflow } from '../plugins/transaction/data-source-handler.run.js';

// For tracing.
export type { OtelAttributeFormat } from './config/config.js';
export type { DBOSSpan, DBOSTracer, SpanAttributes } from './tracing.js';

// For receivers.
export {
  type EventDispatchState,
  hasArguments,
  type HttpInstance,
  nowOf,
  type PreparedWorkflow,
  Receiving,
  type ReceivingHost,
  receivingHost,
  type ServedFunction,
  serveQueue,
  type StartedWorkflow,
  valueWithin,
  workflowNameOf,
} from '../plugins/receiver/receiving.run.js';

// For the outbox.
export {
  RECEIVED_LETTERS,
  type ReceivedChangeFilter,
  type ReceivedChangeOptions,
  type ReceivedFilter,
  type ReceivedGroup,
  type ReceivedLetter,
  type ReceivedLetters,
  type ReceivedPage,
} from '../features/dead-letter/received-letters.js';
export { notePublished } from '../plugins/transaction/call-transaction.run.js';
export { Handoff, type NewMessage, type Started } from '../plugins/outbox/handoff.run.js';
export { validate } from './registration/input-schema.js';
export type { InputSchema } from './registration/registry.js';
