// A relay: a handler that hands messages on to a target. Messages that are handled at the same time go out as one batch.
import { Batcher, type Entry } from '../../base/batcher.js';
import type { DLogger } from '../../base/log.js';
import { invariant } from '../../base/assert.js';
import { DatabaseClosedError, OutboxRelayError } from '../../model/errors/errors.js';
import { shown } from '../../model/validation/validation.js';
import type { Handler } from '../consume/handling.js';
import type { Message } from '../consume/message.js';
import type { HandlerOptions } from '../consume/options.js';
import { Reject, RetryAfter, Unavailable, Unroutable } from '../consume/outcomes.js';
import { CONTENT_TYPE } from '../publish/body.js';
import { type Envelope, wrapped } from './envelope.js';
import type { RelayMessage, RelayResult, RelayTarget } from './target.js';

export interface RelayOptions extends Omit<HandlerOptions, 'transactional' | 'workers'> {
  /** Default: `raw`. */
  readonly envelope?: Envelope;
}

/** Messages per batch. */
export const RELAY_BATCH = 100;

interface Outgoing {
  readonly message: RelayMessage;
  readonly signal: AbortSignal;
}

export interface RelayParts {
  readonly target: RelayTarget;
  readonly envelope: Envelope;
  readonly batch: number;
  readonly logger: () => DLogger;
}

/** The handler of a relay. It gets the payload as bytes. */
export function relayHandler({ target, envelope, batch, logger }: RelayParts): Handler<unknown> {
  let isDown = false;
  /** Logs the first of several outages in a row. */
  const report = (result: RelayResult): void => {
    const wasDown = isDown;
    isDown = result.kind === 'unavailable';
    if (result.kind === 'unavailable' && !wasDown) {
      logger().warn(`The relay to ${target.name} waits, because the target is unavailable: ${String(result.error)}`);
    }
  };
  const batcher = new Batcher<Outgoing, RelayResult>({
    itemsMax: batch,
    backlogMax: Infinity,
    flush: async (entries) => {
      const results = await publish(target, entries);
      for (const [index, { resolve }] of entries.entries()) resolve(results[index] as RelayResult);
    },
  });
  return async (payload, info) => {
    const message = wrapped(outgoing(payload as Uint8Array, info), envelope, target.cloudEventsPrefix);
    const result = await batcher.submit({ message, signal: info.signal });
    report(result);
    act(result, target);
  };
}

function outgoing(payload: Uint8Array, info: Message): RelayMessage {
  const { messageID, topic, key, headers, createdAt, traceparent } = info;
  return { messageID, topic, key, headers, contentType: headers[CONTENT_TYPE], payload, createdAt, traceparent };
}

async function publish(
  target: RelayTarget,
  entries: readonly Entry<Outgoing, RelayResult>[],
): Promise<readonly RelayResult[]> {
  const { signal, dispose } = whenAllAborted(entries.map(({ item }) => item.signal));
  try {
    const messages = entries.map(({ item }) => item.message);
    const results = await target.publish(messages, signal);
    invariant(results.length === messages.length, 'A target has a result for each message.');
    return results;
  } catch (error) {
    return entries.map(() => ({ kind: 'unavailable', error }));
  } finally {
    dispose();
  }
}

/** A shutdown aborts all of a batch; a single lost lease must not stop the others. */
function whenAllAborted(signals: readonly AbortSignal[]) {
  const controller = new AbortController();
  const check = (): void => {
    if (signals.every(({ aborted }) => aborted)) {
      controller.abort(new DatabaseClosedError('The relay is shutting down.'));
    }
  };
  for (const signal of signals) signal.addEventListener('abort', check);
  check();
  return {
    signal: controller.signal,
    dispose: () => {
      for (const signal of signals) signal.removeEventListener('abort', check);
    },
  };
}

/** What a handler does to decide what becomes of its message. */
function act(result: RelayResult, { name }: RelayTarget): void {
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
