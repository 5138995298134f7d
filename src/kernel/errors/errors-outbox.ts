// Errors of the outbox.
import { DBOSError } from './errors-base.js';

/** A message was published outside of a transaction, or in one of another data source. */
export class OutboxTransactionRequiredError extends DBOSError {
  static override readonly code = 'OUTBOX_TRANSACTION_REQUIRED';
  override readonly name = 'OutboxTransactionRequiredError';
  override readonly code = OutboxTransactionRequiredError.code;

  constructor(message: string, options?: ErrorOptions) {
    super(message, 1, options);
  }
}

/** An outbox, a table of it or a subscription is set up in a way that cannot work. */
export class InvalidOutboxError extends DBOSError {
  static override readonly code = 'INVALID_OUTBOX';
  override readonly name = 'InvalidOutboxError';
  override readonly code = InvalidOutboxError.code;

  constructor(message: string, options?: ErrorOptions) {
    super(message, 1, options);
  }
}

/** The tables of an outbox differ from their declaration. `findings` lists how, and how to fix it. */
export class OutboxSchemaDriftError<Finding = unknown> extends DBOSError {
  static override readonly code = 'OUTBOX_SCHEMA_DRIFT';
  override readonly name = 'OutboxSchemaDriftError';
  override readonly code = OutboxSchemaDriftError.code;

  constructor(
    message: string,
    readonly findings: readonly Finding[] = [],
  ) {
    super(message);
  }
}

/** The lease on a message expired and another consumer may have it. The reason of the handler's abort signal. */
export class OutboxLeaseLostError extends DBOSError {
  static override readonly code = 'OUTBOX_LEASE_LOST';
  override readonly name = 'OutboxLeaseLostError';
  override readonly code = OutboxLeaseLostError.code;

  constructor(message: string, options?: ErrorOptions) {
    super(message, 1, options);
  }
}

/** The target of a relay did not take a message, or did not answer in time. Dead letters hold its message. */
export class OutboxRelayError extends DBOSError {
  static override readonly code = 'OUTBOX_RELAY';
  override readonly name = 'OutboxRelayError';
  override readonly code = OutboxRelayError.code;

  constructor(message: string, options?: ErrorOptions) {
    super(message, 1, options);
  }
}
