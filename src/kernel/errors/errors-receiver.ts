// Errors of event receivers and of HTTP handlers.
import { DBOSError } from './errors-base.js';

/** The broker, or what a receiver reads there, cannot be reached. */
export class ReceiverUnavailableError extends DBOSError {
  static override readonly code = 'RECEIVER_UNAVAILABLE';
  override readonly name = 'ReceiverUnavailableError';
  override readonly code = ReceiverUnavailableError.code;

  constructor(message: string, options?: ErrorOptions) {
    super(message, 1, options);
  }
}

/** A receiver is set up in a way that cannot work. */
export class InvalidReceiverError extends DBOSError {
  static override readonly code = 'INVALID_RECEIVER';
  override readonly name = 'InvalidReceiverError';
  override readonly code = InvalidReceiverError.code;

  constructor(message: string, options?: ErrorOptions) {
    super(message, 1, options);
  }
}

/** A message cannot become a workflow, however often it is delivered. */
export class UndecodableMessageError extends DBOSError {
  static override readonly code = 'UNDECODABLE_MESSAGE';
  override readonly name = 'UndecodableMessageError';
  override readonly code = UndecodableMessageError.code;

  constructor(message: string, options?: ErrorOptions) {
    super(message, 1, options);
  }
}

/** A webhook is not signed by who should have sent it, or too old. */
export class WebhookVerificationError extends DBOSError {
  static override readonly code = 'WEBHOOK_VERIFICATION';
  override readonly name = 'WebhookVerificationError';
  override readonly code = WebhookVerificationError.code;

  constructor(message: string, options?: ErrorOptions) {
    super(message, 1, options);
  }
}
