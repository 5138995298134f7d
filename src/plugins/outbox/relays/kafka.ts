// Publishes to Kafka: messages have arrived when all in-sync replicas have them. The key decides on the partition, so order
// per key is kept.
import type { Duration } from '../../../kernel/base/duration.js';
import type { Message, Producer } from 'kafkajs';
import { Connection } from './connection.js';
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
  uncarriable,
  unavailable,
  within,
} from './target.js';

export interface KafkaTargetOptions {
  /** Default: the topic. */
  readonly topic?: PerMessage<string>;
  /** Default: the ordering key. */
  readonly key?: PerMessage<string | undefined>;
  /** How long opening a producer, or sending a batch, may take. Default: 30s, because `kafkajs` tries again for 10. */
  readonly timeout?: Duration;
}

const OPTIONS = targetOptions('topic', 'key');

/** The part of a `kafkajs` producer that is used. */
export type KafkaProducer = Pick<Producer, 'sendBatch'> & Partial<Pick<Producer, 'on' | 'disconnect'>>;

/** A connected producer, or how to open one: then another is opened after it was disconnected. */
export type KafkaProducerSource = KafkaProducer | (() => Promise<KafkaProducer>);

interface OpenProducer {
  readonly producer: KafkaProducer;
  /** The topics that it has sent to. */
  readonly topics: Set<string>;
}

interface KafkaRecord {
  readonly topic: string;
  readonly message: Message;
}

const TIMEOUT_MS = 30_000;
/** All in-sync replicas. */
const ACKS = -1;
const TOPIC = /^[\w.-]{1,249}$/;
/** What a broker says of a topic. */
const UNKNOWN_TOPIC = 3;
const ABOUT_TOPIC: readonly unknown[] = [
  UNKNOWN_TOPIC,
  17, // INVALID_TOPIC_EXCEPTION
  29, // TOPIC_AUTHORIZATION_FAILED
];
/** What it says of a message. Everything else may be over in a moment, or concerns all of Kafka. */
const ABOUT_MESSAGE: readonly unknown[] = [
  10, // MESSAGE_TOO_LARGE
  18, // RECORD_LIST_TOO_LARGE
  32, // INVALID_TIMESTAMP
  43, // UNSUPPORTED_FOR_MESSAGE_FORMAT
  44, // POLICY_VIOLATION
  87, // INVALID_RECORD
];

export function kafka(source: KafkaProducerSource, options: KafkaTargetOptions = {}): RelayTarget<unknown> {
  const timeoutMs = timeoutMsOf(options, OPTIONS, TIMEOUT_MS);
  const producers = new Connection<KafkaProducer, OpenProducer>(source, {
    timeoutMs,
    begin(producer, lose) {
      producer.on?.('producer.disconnect', lose);
      return { producer, topics: new Set() };
    },
    end: async (producer) => producer.disconnect?.(),
  });
  const target: RelayTarget<KafkaRecord> = {
    name: 'Kafka',
    cloudEventsPrefix: 'ce_',
    build: (message) => toRecord(message, options),
    // A batch is sent whole or not at all, and one with a topic that does not exist takes as long as a timeout.
    placeOf: ({ topic }) => topic,
    publish: (records, signal) =>
      producers.use(signal, async ({ producer, topics }, lose): Promise<readonly RelayResult[]> => {
        const topic = records[0]?.topic ?? '';
        const topicMessages = [{ topic, messages: records.map(({ message }) => message) }];
        try {
          await within(producer.sendBatch({ acks: ACKS, timeout: timeoutMs, topicMessages }), timeoutMs, signal);
          topics.add(topic);
          return records.map(() => OK);
        } catch (error) {
          const code = brokerCode(error);
          // A producer asks about all topics that it has sent to at once. After one of them was deleted it knows of none.
          const isForgotten = code === UNKNOWN_TOPIC && topics.has(topic);
          if (isForgotten) lose();
          const isKnown = ABOUT_TOPIC.includes(code) || (ABOUT_MESSAGE.includes(code) && records.length === 1);
          return records.map(() => (isKnown && !isForgotten ? { kind: 'retry', error } : unavailable(error)));
        }
      }),
    close: () => producers.close(),
  };
  return target;
}

function toRecord(
  message: RelayMessage,
  { topic = message.topic, key = message.key }: KafkaTargetOptions,
): KafkaRecord {
  const name = settingOf('topic', topic, message);
  if (!TOPIC.test(name) || name === '.' || name === '..') {
    throw uncarriable('Kafka', `"${name}" cannot be a topic. Only letters, digits, ".", "_" and "-" are allowed.`);
  }
  return { topic: name, message: toKafka(message, key) };
}

function toKafka(message: RelayMessage, key: PerMessage<string | undefined>): Message {
  const { messageID, topic, headers, createdAt } = message;
  const found = typeof key === 'function' ? key(message) : key;
  return {
    key: found === undefined ? null : settingOf('key', found, message),
    value: bufferOf(message),
    timestamp: String(createdAt),
    headers: { ...headers, 'message-id': messageID, 'everstep-topic': topic },
  };
}

/** The code of a broker's answer, if there was one. Clients wrap it in errors of their own. */
function brokerCode(error: unknown): number | undefined {
  if (typeof error !== 'object' || error === null) return undefined;
  const { name, code, cause } = error as { name?: unknown; code?: unknown; cause?: unknown };
  return name === 'KafkaJSProtocolError' && typeof code === 'number' ? code : brokerCode(cause);
}
