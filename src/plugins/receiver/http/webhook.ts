// Signs and verifies webhooks by https://www.standardwebhooks.com: HMAC-SHA256 over the ID, the timestamp and the body.
import { createHmac, timingSafeEqual } from 'node:crypto';
import { type DurationText, inSeconds } from '../../../kernel/base/duration.js';
import { WebhookVerificationError } from '../../../kernel/errors/errors.js';
import { finiteNumber } from '../../../kernel/check/validation.js';
import { toleranceSeconds as toleranceCheck } from './http-options.js';

/** The headers and the body of a webhook. */
export interface SignedWebhook {
  /** `webhook-id`. */
  readonly id: string | undefined;
  /** `webhook-timestamp`, in seconds. */
  readonly timestamp: string | undefined;
  /** `webhook-signature`: one or more, separated by spaces. */
  readonly signature: string | undefined;
  /** The raw bytes, as sent. */
  readonly body: Uint8Array | string;
}

export interface WebhookOptions {
  /** One secret, or several during a rotation: `whsec_` and base64. */
  readonly secrets: string | readonly string[];
  /** How far the webhook's timestamp may be from our clock. Default: 300. */
  readonly toleranceSeconds?: number | DurationText;
}

const PREFIX = 'whsec_';
const VERSION = 'v1';
const TOLERANCE_SECONDS = 300;
const ID_LENGTH_MAX = 255;
/** Shorter secrets could be guessed. */
const SECRET_BYTES_MIN = 16;

/** Returns the webhook's ID. Throws `WebhookVerificationError` if it is not genuine or not recent. */
export function verifyWebhook(webhook: SignedWebhook, options: WebhookOptions, nowMs: number): string {
  const { id, timestamp, signature, body } = webhook;
  const { secrets, toleranceSeconds: tolerance = TOLERANCE_SECONDS } = options;
  toleranceCheck.read(tolerance, 'options.toleranceSeconds');
  finiteNumber.read(nowMs, 'nowMs');
  if (!id || !timestamp || !signature) throw new WebhookVerificationError('The webhook is not signed.');
  if (id.length > ID_LENGTH_MAX) throw new WebhookVerificationError('The ID of the webhook is too long.');
  if (!/^\d{1,12}$/.test(timestamp)) throw new WebhookVerificationError('The timestamp of the webhook is malformed.');
  if (Math.abs(nowMs / 1000 - Number(timestamp)) > inSeconds(tolerance)) {
    throw new WebhookVerificationError('The timestamp of the webhook is too old, or in the future.');
  }
  const given = signature.split(' ').flatMap((one) => {
    const [version, text] = one.split(',', 2);
    return version === VERSION && text ? [Buffer.from(text, 'base64')] : [];
  });
  const expected = [secrets].flat().map((secret) => digest({ id, timestamp, body, secret }));
  // Compare all, even after a match, so that timing reveals nothing.
  const fits = expected.flatMap((one) =>
    given.map((other) => one.length === other.length && timingSafeEqual(one, other)),
  );
  if (!fits.includes(true)) throw new WebhookVerificationError('No signature of the webhook matches.');
  return id;
}

/** Computes the `webhook-signature`, for senders and tests. */
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

/** Throws if the secret is too short, or not base64. */
export function keyOf(secret: string): Buffer {
  const text = secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : secret;
  const key = Buffer.from(text, 'base64');
  if (key.length >= SECRET_BYTES_MIN && /^[A-Za-z0-9+/]+=*$/.test(text)) return key;
  throw new WebhookVerificationError(
    `A secret must be "${PREFIX}" followed by at least ${SECRET_BYTES_MIN} bytes in base64.`,
  );
}
