// Webhooks that are signed as https://www.standardwebhooks.com says: HMAC-SHA256 over the ID, the time and the body.
import { createHmac, timingSafeEqual } from 'node:crypto';
import { WebhookVerificationError } from '../../model/errors/errors.js';

/** A request with the headers of a webhook. */
export interface SignedWebhook {
  /** `webhook-id`. */
  readonly id: string | undefined;
  /** `webhook-timestamp`, in seconds. */
  readonly timestamp: string | undefined;
  /** `webhook-signature`: one or more, with spaces between. */
  readonly signature: string | undefined;
  /** As it was sent, byte for byte. */
  readonly body: Uint8Array | string;
}

export interface WebhookOptions {
  /** One secret, or several while they are being changed: `whsec_` and base64. */
  readonly secrets: string | readonly string[];
  /** How far the time of the webhook may be from ours; five minutes unless given. */
  readonly toleranceSeconds?: number;
}

const PREFIX = 'whsec_';
const VERSION = 'v1';
const TOLERANCE_SECONDS = 300;
const ID_LENGTH_MAX = 255;
/** Fewer bytes can be guessed. */
const SECRET_BYTES_MIN = 16;

/** Gives the ID of a webhook that is genuine and recent; throws `WebhookVerificationError` if it is not. */
export function verifyWebhook(webhook: SignedWebhook, options: WebhookOptions, nowMs: number): string {
  const { id, timestamp, signature, body } = webhook;
  if (!id || !timestamp || !signature) throw new WebhookVerificationError('The webhook is not signed.');
  if (id.length > ID_LENGTH_MAX) throw new WebhookVerificationError('The ID of the webhook is too long.');
  if (!/^\d{1,12}$/.test(timestamp)) throw new WebhookVerificationError('The timestamp of the webhook is malformed.');
  const { secrets, toleranceSeconds = TOLERANCE_SECONDS } = options;
  if (Math.abs(nowMs / 1000 - Number(timestamp)) > toleranceSeconds) {
    throw new WebhookVerificationError('The timestamp of the webhook is too old, or in the future.');
  }
  const given = signature.split(' ').flatMap((one) => {
    const [version, text] = one.split(',', 2);
    return version === VERSION && text ? [Buffer.from(text, 'base64')] : [];
  });
  const expected = [secrets].flat().map((secret) => digest({ id, timestamp, body, secret }));
  // All are compared, however early one fits.
  const fits = expected.flatMap((one) =>
    given.map((other) => one.length === other.length && timingSafeEqual(one, other)),
  );
  if (!fits.includes(true)) throw new WebhookVerificationError('No signature of the webhook matches.');
  return id;
}

/** The `webhook-signature` of a webhook, for senders and tests. */
export function signWebhook(webhook: {
  readonly id: string;
  readonly timestamp: string;
  readonly body: Uint8Array | string;
  readonly secret: string;
}): string {
  return `${VERSION},${digest(webhook).toString('base64')}`;
}

function digest({ id, timestamp, body, secret }: Parameters<typeof signWebhook>[0]): Buffer {
  return createHmac('sha256', keyOf(secret)).update(`${id}.${timestamp}.`).update(body).digest();
}

/** Throws if a secret is too short to be one, or is no base64. */
export function keyOf(secret: string): Buffer {
  const text = secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : secret;
  const key = Buffer.from(text, 'base64');
  if (key.length >= SECRET_BYTES_MIN && /^[A-Za-z0-9+/]+=*$/.test(text)) return key;
  throw new WebhookVerificationError(
    `A secret must be "${PREFIX}" followed by at least ${SECRET_BYTES_MIN} bytes in base64.`,
  );
}
