// Errors of the outbox.
import { errorOf } from './errors-base.js';

/** A message was published outside of a transaction, or in one of another data source. */
export class OutboxTransactionRequiredError extends errorOf(
  'OutboxTransactionRequiredError',
  'OUTBOX_TRANSACTION_REQUIRED',
) {}

/** An outbox, a table of it or a subscription is set up in a way that cannot work. */
export class InvalidOutboxError extends errorOf('InvalidOutboxError', 'INVALID_OUTBOX') {}

/** The tables of an outbox differ from their declaration. `findings` lists how, and how to fix it. */
export class OutboxSchemaDriftError<Finding = unknown> extends errorOf(
  'OutboxSchemaDriftError',
  'OUTBOX_SCHEMA_DRIFT',
) {
  constructor(
    message: string,
    readonly findings: readonly Finding[] = [],
  ) {
    super(message);
  }
}

/** The lease on a message expired and another consumer may have it. The reason of the handler's abort signal. */
export class OutboxLeaseLostError extends errorOf('OutboxLeaseLostError', 'OUTBOX_LEASE_LOST') {}

/** The target of a relay did not take a message, or did not answer in time. Dead letters hold its message. */
export class OutboxRelayError extends errorOf('OutboxRelayError', 'OUTBOX_RELAY') {}
