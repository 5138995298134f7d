// What a handler can throw to decide what becomes of the message. Any other error means: retry by the strategy.
import { type Duration, durationMs } from '../../../kernel/base/duration.js';
import { duration } from '../../../kernel/check/validation.js';

/** The message can never be handled: it becomes a dead letter at once. */
export class Reject extends Error {
  override readonly name = 'Reject';
  readonly code = 'OUTBOX_REJECT';
}

/** There is no place to deliver it to. */
export class Unroutable extends Reject {
  readonly reason = 'unroutable';
}

/** Try again after this long, whatever the strategy says. It counts as an attempt. */
export class RetryAfter extends Error {
  override readonly name = 'RetryAfter';
  readonly code = 'OUTBOX_RETRY_AFTER';
  readonly delayMs: number;

  constructor(delay: Duration, message = 'The handler asked for a retry.', options?: ErrorOptions) {
    super(message, options);
    this.delayMs = durationMs(duration.read(delay, 'delay'));
  }
}

/** What the handler needs is down. It counts no attempt; after several in a row the topic is left alone for a while. */
export class Unavailable extends Error {
  override readonly name = 'Unavailable';
  readonly code = 'OUTBOX_UNAVAILABLE';
}

/** Why a message became a dead letter. The first three are those of faststream-outbox. */
export type FailureReason = 'max_deliveries' | 'retry_terminal' | 'rejected' | 'expired' | 'unroutable';

/** What becomes of a message. */
export type Outcome =
  | { readonly kind: 'done' }
  | { readonly kind: 'retry'; readonly delayMs: number }
  /** Give it back without counting an attempt. */
  | { readonly kind: 'release'; readonly delayMs: number }
  | { readonly kind: 'dead'; readonly reason: FailureReason; readonly error: unknown };

/** By code: the class may come from another copy of the package. */
export function hasCode(error: unknown, code: string): boolean {
  return typeof error === 'object' && error !== null && (error as { code?: unknown }).code === code;
}
