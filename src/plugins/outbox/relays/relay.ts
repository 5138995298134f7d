// A relay: a handler that hands messages on to a target.
import type { DLogger } from '../../../kernel/base/log.js';
import { OutboxRelayError } from '../../../kernel/errors/errors.js';
import { shown } from '../../../kernel/check/validation.js';
import type { Handler } from '../consume/handling.js';
import type { Message } from '../consume/message.js';
import type { HandlerOptions } from '../consume/options.js';
import { Reject, RetryAfter, Unavailable, Unroutable } from '../consume/outcomes.js';
import { CONTENT_TYPE } from '../publish/body.js';
import { type Envelope, wrapped } from './envelope.js';
import { Lanes } from './lanes.js';
import type { RelayMessage, RelayResult, RelayTarget } from './target.js';

export interface RelayOptions extends Omit<HandlerOptions, 'transactional' | 'workers'> {
  /** Default: `raw`. */
  readonly envelope?: Envelope;
}

/** Messages per batch. */
export const RELAY_BATCH = 100;

export interface RelayParts {
  readonly target: RelayTarget<unknown>;
  readonly envelope: Envelope;
  readonly batch: number;
  readonly logger: () => DLogger;
}

/** The handler of a relay. It gets the payload as bytes. */
export function relayHandler({ target, envelope, batch, logger }: RelayParts): Handler<unknown> {
  const lanes = new Lanes(target, batch);
  let isDown = false;
  /** Logs the first of several outages in a row. */
  const report = (result: RelayResult): void => {
    const wasDown = isDown;
    isDown = result.kind === 'unavailable';
    if (result.kind === 'unavailable' && !wasDown) {
      logger().warn(`The relay to ${target.name} waits, because the target is unavailable: ${String(result.error)}`);
    }
  };
  return async (payload, info) => {
    const message = wrapped(outgoing(payload as Uint8Array, info), envelope, target.cloudEventsPrefix);
    const built = target.build ? target.build(message) : message;
    const place = target.placeOf?.(built) ?? '';
    const { messageID, signal, attempts } = info;
    const result = await lanes.send({ messageID, place, built, signal }, attempts > 0);
    report(result);
    act(result, target);
  };
}

function outgoing(payload: Uint8Array, info: Message): RelayMessage {
  const { messageID, topic, key, headers, createdAt, traceparent } = info;
  return { messageID, topic, key, headers, contentType: headers[CONTENT_TYPE], payload, createdAt, traceparent };
}

/** What a handler does to decide what becomes of its message. */
function act(result: RelayResult, { name }: Pick<RelayTarget, 'name'>): void {
  if (result.kind === 'ok') return;
  const { error: cause } = result;
  const text = cause instanceof Error ? cause.message : shown(cause);
  switch (result.kind) {
    case 'retry': {
      const message = `${name} did not take the message: ${text}`;
      if (result.after !== undefined) throw new RetryAfter(result.after, message, { cause });
      throw new OutboxRelayError(message, { cause });
    }
    case 'reject':
      if (result.reason === 'unroutable') throw new Unroutable(`${name} has no place for it: ${text}`, { cause });
      throw new Reject(`${name} refused the message: ${text}`, { cause });
    case 'unavailable':
      throw new Unavailable(`${name} is unavailable: ${text}`, { cause });
  }
}
