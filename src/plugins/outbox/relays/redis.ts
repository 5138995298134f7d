// Publishes to Redis Streams: a message has arrived when XADD returns. A stream deduplicates nothing, so consumers see the
// message ID as a field.
import type { Duration } from '../../../kernel/base/duration.js';
import { OutboxRelayError } from '../../../kernel/errors/errors.js';
import type { Redis } from 'ioredis';
import { optional, positiveInteger } from '../../../kernel/check/validation.js';
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

/** Answers that concern all messages: the server is full, starting, a replica, or wants a password. */
const ABOUT_SERVER =
  /^(?:OOM|LOADING|READONLY|CLUSTERDOWN|MASTERDOWN|NOREPLICAS|MISCONF|BUSY|TRYAGAIN|NOAUTH|WRONGPASS|NOPERM)\b/;

interface Built {
  readonly stream: string;
  readonly fields: readonly (string | Buffer)[];
}

export function redisStream(client: Pick<Redis, 'pipeline'>, options: RedisTargetOptions = {}): RelayTarget<unknown> {
  LENGTH.read(options.maxLength, 'options.maxLength');
  const timeoutMs = timeoutMsOf(options, OPTIONS);
  const trim = options.maxLength === undefined ? [] : ['MAXLEN', '~', options.maxLength];
  const target: RelayTarget<Built> = {
    name: 'Redis',
    cloudEventsPrefix: 'ce-',
    build(message) {
      const { stream = message.topic } = options;
      return { stream: settingOf('stream', stream, message), fields: fieldsOf(message) };
    },
    async publish(messages, signal) {
      const pipeline = client.pipeline();
      // With a trimming the command has more forms than the types have overloads.
      for (const { stream, fields } of messages) pipeline.call('XADD', stream, ...trim, '*', ...fields);
      const replies = await within(pipeline.exec(), timeoutMs, signal);
      return messages.map((_, index) => resultOf(replies?.[index]?.[0]));
    },
  };
  return target;
}

/** Only an error that the server has sent is about the message. */
function resultOf(error: Error | null | undefined): RelayResult {
  if (error === null) return OK;
  const isAboutMessage = error?.name === 'ReplyError' && !ABOUT_SERVER.test(error.message);
  return isAboutMessage
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
