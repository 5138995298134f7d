// Publishes to Redis Streams: a message has arrived when XADD returns. A stream deduplicates nothing, so consumers see the
// message ID as a field.
import type { Duration } from '../../base/duration.js';
import { OutboxRelayError } from '../../model/errors/errors.js';
import type { Redis } from 'ioredis';
import { optional, positiveInteger } from '../../model/validation/validation.js';
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

export interface RedisTargetOptions {
  /** Default: the topic. */
  readonly stream?: PerMessage<string>;
  /** About how many entries the stream keeps. Default: all. */
  readonly maxLength?: number;
  /** How long a batch may take. Default: 10s. */
  readonly timeout?: Duration;
}

const OPTIONS = targetOptions('stream', 'maxLength');

const LENGTH = optional(positiveInteger);

export function redisStream(client: Pick<Redis, 'pipeline'>, options: RedisTargetOptions = {}): RelayTarget {
  LENGTH.read(options.maxLength, 'options.maxLength');
  const timeoutMs = timeoutMsOf(options, OPTIONS);
  const trim = options.maxLength === undefined ? [] : ['MAXLEN', '~', options.maxLength];
  return {
    name: 'Redis',
    cloudEventsPrefix: 'ce-',
    async publish(messages, signal) {
      const pipeline = client.pipeline();
      for (const message of messages) {
        const { stream = message.topic } = options;
        // With a trimming the command has more forms than the types have overloads.
        pipeline.call('XADD', settingOf(stream, message), ...trim, '*', ...fieldsOf(message));
      }
      const replies = await within(pipeline.exec(), timeoutMs, signal);
      return messages.map((_, index) => resultOf(replies?.[index]?.[0]));
    },
  };
}

/** Only an error that the server has sent is about the message. */
function resultOf(error: Error | null | undefined): RelayResult {
  if (error === null) return OK;
  const isReply =
    error?.name === 'ReplyError' && !/^(?:OOM|LOADING|READONLY|CLUSTERDOWN|MASTERDOWN)/.test(error.message);
  return isReply
    ? { kind: 'retry', error }
    : unavailable(error ?? new OutboxRelayError('The pipeline has no reply for it.'));
}

function fieldsOf(message: RelayMessage): (string | Buffer)[] {
  const { messageID, topic, key, headers } = message;
  return [
    'messageID',
    messageID,
    'topic',
    topic,
    ...(key === undefined ? [] : ['key', key]),
    'headers',
    JSON.stringify(headers),
    'body',
    bufferOf(message),
  ];
}
