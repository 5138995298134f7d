// The only part of the engine that plugins may import.

// For data sources.
export { type ProtocolConnection, StatementBatch, statementName } from '../store/postgres/statement-batch.js';
export { currentClient, defaultRegistry, inClient } from './runs/ambient.js';
export type { MethodDecorator } from './registration/function-owner.js';
export type { FunctionName, Registry, UserFunction } from './registration/registry.js';
export { decorateTransaction, registerTransactionFunction } from './transactions/transaction-functions.js';
export type { Durability, KeptOutcome, StepOutcome } from './runs/perform.js';
export type { TransactionStep } from './transactions/transaction-step.js';
export {
  addDataSource,
  assertStillOwnsWorkflow,
  callTransaction,
  type StepTransactionHandler,
} from './transactions/call-transaction.js';
export type { DataSourceTransactionHandler, RecordedWorkflow } from './transactions/data-source-handler.js';

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
} from './receiving/receiving.js';

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
} from '../control/receiving/received-letters.js';
export { notePublished } from './transactions/call-transaction.js';
export { Handoff, type NewMessage, type Started } from './outbox/handoff.js';
export { validate } from './registration/input-schema.js';
export type { InputSchema } from './registration/registry.js';
