// Errors of event receivers and of HTTP handlers.
import { errorOf } from './errors-base.js';

/** The broker, or what a receiver reads there, cannot be reached. */
export class ReceiverUnavailableError extends errorOf('ReceiverUnavailableError', 'RECEIVER_UNAVAILABLE') {}

/** A receiver is set up in a way that cannot work. */
export class InvalidReceiverError extends errorOf('InvalidReceiverError', 'INVALID_RECEIVER') {}

/** A message cannot become a workflow, however often it is delivered. */
export class UndecodableMessageError extends errorOf('UndecodableMessageError', 'UNDECODABLE_MESSAGE') {}

/** A webhook is not signed by who should have sent it, or too old. */
export class WebhookVerificationError extends errorOf('WebhookVerificationError', 'WEBHOOK_VERIFICATION') {}
