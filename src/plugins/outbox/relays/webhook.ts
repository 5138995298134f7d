// Sends webhooks as https://www.standardwebhooks.com describes them: a message has arrived when the answer is 2xx.
import type { Duration } from '../../../kernel/base/duration.js';
import { systemClock } from '../../../kernel/base/clock.js';
import { Semaphore } from '../../../kernel/base/mutex.js';
import { InvalidOutboxError, OutboxRelayError } from '../../../kernel/errors/errors.js';
import { optional, positiveInteger } from '../../../kernel/check/validation.js';
import { keyOf, signWebhook } from '../../receiver/http/webhook.js';
import {
  OK,
  type RelayMessage,
  type RelayResult,
  type RelayTarget,
  targetOptions,
  timeoutMsOf,
  uncarriable,
  unavailable,
} from './target.js';

export interface WebhookTargetOptions {
  readonly url: string;
  /** `whsec_` and base64. Several sign with each, during a rotation. */
  readonly secret: string | readonly string[];
  /** Further headers. */
  readonly headers?: Readonly<Record<string, string>>;
  /** How long a request may take. Default: 10s. */
  readonly timeout?: Duration;
  /** Requests at a time. Default: 10. */
  readonly concurrency?: number;
}

const OPTIONS = targetOptions('url', 'secret', 'headers', 'concurrency');

const CONCURRENCY = 10;
/** A receiver cannot put a message off for longer than a day. */
const RETRY_AFTER_MAX_MS = 86_400_000;
const COUNT = optional(positiveInteger);
const CLOUD_EVENTS_PREFIX = 'ce-';
const UNPRINTABLE = /[^\x21\x23\x24\x26-\x7e]+/gu;

interface Built {
  readonly id: string;
  readonly body: Buffer<ArrayBuffer>;
  readonly headers: Headers;
}

export function webhook(options: WebhookTargetOptions): RelayTarget<unknown> {
  const { concurrency = CONCURRENCY } = options;
  COUNT.read(concurrency, 'options.concurrency');
  const secrets = [options.secret].flat();
  for (const secret of secrets) keyOf(secret);
  const url = urlOf(options.url);
  const configured = configuredHeaders(options);
  const timeoutMs = timeoutMsOf(options, OPTIONS);
  const requests = new Semaphore(concurrency);
  /** The endpoint has said that it wants no more. */
  let isGone = false;
  const send = async (message: Built, signal: AbortSignal): Promise<RelayResult> => {
    if (isGone) return { kind: 'reject', error: new OutboxRelayError('The endpoint answered 410 before.') };
    const limit = new AbortController();
    const abort = (): void => limit.abort(signal.reason);
    const timer = systemClock.after(timeoutMs, () =>
      limit.abort(new OutboxRelayError(`No answer within ${timeoutMs} ms.`)),
    );
    signal.addEventListener('abort', abort, { once: true });
    try {
      const response = await fetch(url, { ...requestOf(message, secrets), signal: limit.signal });
      // The connection is free only after its body was read.
      await response.body?.cancel();
      if (response.status === 410) isGone = true;
      return resultOf(response);
    } catch (error) {
      return unavailable(error);
    } finally {
      timer.cancel();
      signal.removeEventListener('abort', abort);
    }
  };
  const target: RelayTarget<Built> = {
    name: `the webhook of ${url.host}`,
    cloudEventsPrefix: CLOUD_EVENTS_PREFIX,
    build: (message) => ({
      id: message.messageID,
      body: Buffer.from(message.payload),
      headers: headersOf(message, configured),
    }),
    // Each has a request of its own, and waits for no other.
    placeOf: ({ id }) => id,
    publish: (messages, signal) => Promise.all(messages.map((message) => requests.run(() => send(message, signal)))),
  };
  return target;
}

function urlOf(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url && /^https?:$/.test(url.protocol)) return url;
  throw new InvalidOutboxError('A webhook needs a URL that begins with https:// or http://.');
}

/** Signed anew for each attempt, because receivers refuse old timestamps. */
function requestOf({ id, body, headers }: Built, secrets: readonly string[]): RequestInit {
  const timestamp = String(Math.floor(systemClock.now() / 1000));
  const signed = new Headers(headers);
  signed.set('webhook-timestamp', timestamp);
  signed.set('webhook-signature', secrets.map((secret) => signWebhook({ id, timestamp, body, secret })).join(' '));
  // A redirect could send the message to a server that is not configured.
  return { method: 'POST', redirect: 'manual', body, headers: signed };
}

function headersOf(message: RelayMessage, configured: Headers): Headers {
  const { messageID, contentType = 'application/octet-stream', traceparent } = message;
  const headers = new Headers(configured);
  try {
    for (const [name, value] of Object.entries(cloudEventHeaders(message))) headers.set(name, value);
    headers.set('content-type', contentType);
    headers.set('webhook-id', messageID);
    if (traceparent !== undefined) headers.set('traceparent', traceparent);
  } catch (cause) {
    throw uncarriable('A webhook', (cause as Error).message, { cause });
  }
  return headers;
}

function configuredHeaders({ headers }: WebhookTargetOptions): Headers {
  try {
    return new Headers(headers);
  } catch (cause) {
    throw new InvalidOutboxError(`The headers of a webhook are wrong: ${(cause as Error).message}`, { cause });
  }
}

/** Percent-encoded, as the HTTP binding of CloudEvents wants it. Other headers of the message are not sent. */
function cloudEventHeaders({ headers }: RelayMessage): Record<string, string> {
  const own = Object.entries(headers).filter(([name]) => name.startsWith(CLOUD_EVENTS_PREFIX));
  return Object.fromEntries(own.map(([name, value]) => [name, value.replaceAll(UNPRINTABLE, encodeURIComponent)]));
}

function resultOf({ ok, status, headers }: Response): RelayResult {
  if (ok) return OK;
  const error = new OutboxRelayError(`It answered ${status}.`);
  if (status === 410) return { kind: 'reject', error };
  const after = retryAfterMs(headers.get('retry-after'));
  return { kind: 'retry', error, ...(after !== undefined && { after }) };
}

/** Seconds, or a date. */
function retryAfterMs(value: string | null): number | undefined {
  if (value === null) return undefined;
  const ms = /^\d+$/.test(value.trim()) ? Number(value) * 1000 : Date.parse(value) - systemClock.now();
  return Number.isFinite(ms) ? Math.min(Math.max(ms, 0), RETRY_AFTER_MAX_MS) : undefined;
}
