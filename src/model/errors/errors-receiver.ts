// Errors of event receivers and of HTTP handlers.
import { DBOSError } from './errors-base.js';

/** The broker, or what a receiver reads there, cannot be reached. */
export class ReceiverUnavailableError extends DBOSError {
  override readonly name = 'ReceiverUnavailableError';
  override readonly code = 'RECEIVER_UNAVAILABLE';

  constructor(message: string, options?: ErrorOptions) {
    super(message, 1, options);
  }
}

/** A receiver is set up in a way that cannot work. */
export class InvalidReceiverError extends DBOSError {
  override readonly name = 'InvalidReceiverError';
  override readonly code = 'INVALID_RECEIVER';

  constructor(message: string, options?: ErrorOptions) {
    super(message, 1, options);
  }
}

/** A message cannot become a workflow, however often it is delivered. */
export class UndecodableMessageError extends DBOSError {
  override readonly name = 'UndecodableMessageError';
  override readonly code = 'UNDECODABLE_MESSAGE';

  constructor(message: string, options?: ErrorOptions) {
    super(message, 1, options);
  }
}

/** A webhook is not signed by who should have sent it, or too old. */
export class WebhookVerificationError extends DBOSError {
  override readonly name = 'WebhookVerificationError';
  override readonly code = 'WEBHOOK_VERIFICATION';

  constructor(message: string, options?: ErrorOptions) {
    super(message, 1, options);
  }
}
