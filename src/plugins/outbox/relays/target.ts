// What a relay publishes to: another broker, or a web server. A target is given a batch and answers for each message.
import { type Duration, durationMs } from '../../../kernel/base/duration.js';
import { OutboxRelayError } from '../../../kernel/errors/errors.js';
import { systemClock } from '../../../kernel/base/clock.js';
import { deferred } from '../../../kernel/base/deferred.js';
import { withTimeLimit } from '../../../kernel/base/time-limit.js';
import { anything, type Check, duration, optional, record, shown } from '../../../kernel/check/validation.js';
import { Reject } from '../consume/outcomes.js';

/** A message on its way out. */
export interface RelayMessage {
  /** The same for all deliveries: what a target deduplicates by. */
  readonly messageID: string;
  readonly topic: string;
  readonly key: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly contentType: string | undefined;
  readonly payload: Uint8Array;
  /** Epoch milliseconds. */
  readonly createdAt: number;
  /** The trace context of the publisher. */
  readonly traceparent?: string | undefined;
}

/** What became of a message. */
export type RelayResult =
  | { readonly kind: 'ok' }
  /** The target got it and did not take it. Counts as an attempt. */
  | { readonly kind: 'retry'; readonly after?: Duration; readonly error?: unknown }
  /** It will never take it: the message becomes a dead letter. */
  | { readonly kind: 'reject'; readonly reason?: 'rejected' | 'unroutable'; readonly error: unknown }
  /**
   * There is no answer about it: the target is down, or another message of the batch is at fault. Counts no attempt, unless
   * the message gets no answer alone either while others do. After several in a row the topic is left alone for a while.
   */
  | { readonly kind: 'unavailable'; readonly error: unknown };

/** `Built` is what the target makes of a message before it is sent. */
export interface RelayTarget<Built = RelayMessage> {
  /** For logs. */
  readonly name: string;
  /** What the headers of a CloudEvent in binary mode begin with, such as `ce-`. Without it there is no binary mode. */
  readonly cloudEventsPrefix?: string;
  /**
   * Makes what is sent of a message. What it throws concerns that message alone: `Reject` makes it a dead letter, anything
   * else counts as an attempt. Without it, `publish` gets the message itself.
   */
  build?(message: RelayMessage): Built;
  /** Where a message goes. Only messages to one place share a batch. Default: all go to one place. */
  placeOf?(built: Built): string;
  /** Publishes the messages, in order, and returns a result for each. If it throws, none has an answer. */
  publish(messages: readonly Built[], signal: AbortSignal): Promise<readonly RelayResult[]>;
  /** Called at shutdown: closes the connections that the target has opened. */
  close?(): Promise<void>;
}

export const OK: RelayResult = { kind: 'ok' };

export function unavailable(error: unknown): RelayResult {
  return { kind: 'unavailable', error };
}

/** A setting of a target: a value, or one for each message. */
export type PerMessage<T> = T | ((message: RelayMessage) => T);

/** The value of a setting for the message. A client given anything but a string fails in ways of its own. */
export function settingOf(name: string, setting: PerMessage<string>, message: RelayMessage): string {
  const value: unknown = typeof setting === 'function' ? setting(message) : setting;
  if (typeof value === 'string') return value;
  throw new TypeError(`The option ${name} of the target returned ${shown(value)} instead of a string.`);
}

/** Why a message can never be sent to this target. */
export function uncarriable(target: string, reason: string, options?: ErrorOptions): Reject {
  return new Reject(`${target} cannot carry the message: ${reason}`, options);
}

/** The bytes without a copy. */
export function bufferOf({ payload }: Pick<RelayMessage, 'payload'>): Buffer {
  return Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength);
}

const TIMEOUT_MS = 10_000;

/** The names of a target's options, with the check of its timeout. Targets check the other values. */
export function targetOptions(...names: readonly string[]): Check<object> {
  const fields = names.map((name) => [name, optional(anything)] as const);
  return record({ ...Object.fromEntries(fields), timeout: optional(duration) });
}

/** The time that a target gives a call. Refuses unknown options. */
export function timeoutMsOf(
  options: { readonly timeout?: Duration },
  check: Check<object>,
  defaultMs = TIMEOUT_MS,
): number {
  check.read(options, 'options');
  return options.timeout === undefined ? defaultMs : durationMs(options.timeout);
}

/** Rejects when the signal aborts, or after the time. The work itself may go on. */
export async function within<T>(work: Promise<T>, timeoutMs: number, signal: AbortSignal): Promise<T> {
  const aborted = deferred<never>();
  // Nothing else waits for it if the work ends first.
  aborted.promise.catch(() => {});
  const onAbort = (): void => aborted.reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  if (signal.aborted) onAbort();
  try {
    return await withTimeLimit(systemClock, timeoutMs, Promise.race([work, aborted.promise]), () => {
      throw new OutboxRelayError(`It did not answer within ${timeoutMs} ms.`);
    });
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
