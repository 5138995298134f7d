// Publishes to Kafka: messages have arrived when all in-sync replicas have them. The key decides on the partition, so order
// per key is kept.
import type { Duration } from '../../base/duration.js';
import type { Message, Producer } from 'kafkajs';
import {
  bufferOf,
  OK,
  type PerMessage,
  type RelayMessage,
  type RelayResult,
  type RelayTarget,
  settingOf,
  targetOptions,
  timeoutMsOf,
  unavailable,
  within,
} from './target.js';

export interface KafkaTargetOptions {
  /** Default: the topic. */
  readonly topic?: PerMessage<string>;
  /** Default: the ordering key. */
  readonly key?: PerMessage<string | undefined>;
  /** How long a batch may take. Default: 10s. */
  readonly timeout?: Duration;
}

const OPTIONS = targetOptions('topic', 'key');

/** The part of a `kafkajs` producer that is used. It must be connected. */
export type KafkaProducer = Pick<Producer, 'sendBatch'>;

/** All in-sync replicas. */
const ACKS = -1;

export function kafka(producer: KafkaProducer, options: KafkaTargetOptions = {}): RelayTarget {
  const timeoutMs = timeoutMsOf(options, OPTIONS);
  const send = async (messages: readonly RelayMessage[], signal: AbortSignal): Promise<void> => {
    const byTopic = new Map<string, Message[]>();
    for (const message of messages) {
      const { topic = message.topic } = options;
      const name = settingOf(topic, message);
      byTopic.set(name, [...(byTopic.get(name) ?? []), toKafka(message, options)]);
    }
    const topicMessages = [...byTopic].map(([topic, list]) => ({ topic, messages: list }));
    await within(producer.sendBatch({ acks: ACKS, topicMessages }), timeoutMs, signal);
  };
  const sendOne = async (message: RelayMessage, signal: AbortSignal): Promise<RelayResult> => {
    try {
      await send([message], signal);
      return OK;
    } catch (error) {
      return isAboutMessage(error) ? { kind: 'retry', error } : unavailable(error);
    }
  };
  return {
    name: 'Kafka',
    cloudEventsPrefix: 'ce_',
    async publish(messages, signal) {
      try {
        await send(messages, signal);
        return messages.map(() => OK);
      } catch (error) {
        if (!isAboutMessage(error)) return messages.map(() => unavailable(error));
      }
      // One message that is too large, or of a topic that is not there, must not hold up the others.
      const results: RelayResult[] = [];
      for (const message of messages) results.push(await sendOne(message, signal));
      return results;
    },
  };
}

/** The broker answered, and trying again in a moment will not help. `kafkajs` has repeated all others itself. */
function isAboutMessage(error: unknown): boolean {
  const { name, retriable, cause } = error as { name?: unknown; retriable?: unknown; cause?: unknown };
  if (name === 'KafkaJSProtocolError') return retriable === false;
  return (
    name === 'KafkaJSNonRetriableError' || (name === 'KafkaJSNumberOfRetriesExceeded' && isAboutMessage(cause ?? {}))
  );
}

function toKafka(message: RelayMessage, { key = message.key }: KafkaTargetOptions): Message {
  const { messageID, topic, headers, createdAt } = message;
  return {
    key: settingOf(key, message) ?? null,
    value: bufferOf(message),
    timestamp: String(createdAt),
    headers: { ...headers, 'message-id': messageID, 'everstep-topic': topic },
  };
}
