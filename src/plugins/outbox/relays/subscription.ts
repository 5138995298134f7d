// The subscription of a relay.
import type { DLogger } from '../../../kernel/base/log.js';
import { InvalidOutboxError } from '../../../kernel/errors/errors.js';
import { objectWith } from '../../../kernel/check/validation.js';
import { isPattern } from './pattern-consumer.js';
import { handlerSubscription, type Subscription } from '../consume/subscriptions.js';
import type { OutboxDataSource } from '../database.js';
import type { Topic } from '../topic.js';
import { CLOUD_EVENTS } from './envelope.js';
import { RELAY_BATCH, relayHandler, type RelayOptions } from './relay.js';
import type { RelayTarget } from './target.js';

export function relaySubscription(
  source: OutboxDataSource,
  topic: Topic,
  {
    target,
    options,
    logger,
  }: { readonly target: RelayTarget<unknown>; readonly options: RelayOptions; readonly logger: () => DLogger },
): Subscription {
  if (!objectWith('publish').accepts(target)) {
    throw new InvalidOutboxError('A relay needs a target, such as one of everstep/outbox/rabbitmq.');
  }
  if (isPattern(topic.name) && options.subscription !== undefined) {
    throw new InvalidOutboxError('A relay of a pattern cannot be one of several subscriptions of a topic.');
  }
  const { envelope = 'raw', batch = RELAY_BATCH, ...rest } = options;
  if (envelope !== 'raw') CLOUD_EVENTS.read(envelope, 'options.envelope');
  const isBinary = envelope !== 'raw' && envelope.cloudEvents.mode === 'binary';
  if (isBinary && target.cloudEventsPrefix === undefined) {
    throw new InvalidOutboxError(
      `${target.name} has no headers for CloudEvents in binary mode. Use mode: 'structured'.`,
    );
  }
  const handler = relayHandler({ target, envelope, batch, logger });
  const close = async (): Promise<void> => target.close?.();
  return handlerSubscription(source, topic, {
    handler,
    options: { ...rest, batch, workers: batch },
    isRaw: true,
    close,
  });
}
