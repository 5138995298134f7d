// Publishes to Amazon SQS: a message has arrived when its entry of the batch succeeds. A FIFO queue drops a repeated message
// ID for 5 minutes.
import type { Duration } from '../../../kernel/base/duration.js';
import { OutboxRelayError } from '../../../kernel/errors/errors.js';
import { SendMessageBatchCommand, type SendMessageBatchRequestEntry, type SQSClient } from '@aws-sdk/client-sqs';
import { countWithin } from '../../../kernel/base/batcher.js';
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

export interface SQSTargetOptions {
  readonly queueUrl: string;
  /** For FIFO queues. Default: the ordering key, else the topic. */
  readonly groupID?: PerMessage<string>;
  /** How long a request may take. Default: 10s. */
  readonly timeout?: Duration;
}

const OPTIONS = targetOptions('queueUrl', 'groupID');

/** The most that SQS takes in one request. */
const REQUEST_MAX = 10;
const REQUEST_BYTES_MAX = 262_144;
/** Characters that SQS takes: those of XML 1.0. */
const CARRIABLE = /^[\t\n\r\u{20}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]*$/u;
/** What SQS says of a queue. */
const ABOUT_QUEUE: readonly unknown[] = ['QueueDoesNotExist', 'AWS.SimpleQueueService.NonExistentQueue'];
/** What it says of a message. Everything else concerns all messages, such as credentials and limits. */
const ABOUT_MESSAGE: readonly unknown[] = [
  'BatchRequestTooLong',
  'InvalidAttributeValue',
  'InvalidMessageContents',
  'InvalidParameterValue',
  'MissingParameter',
  'UnsupportedOperation',
];

type Entry = Omit<SendMessageBatchRequestEntry, 'Id'>;

export function sqs(client: Pick<SQSClient, 'send'>, options: SQSTargetOptions): RelayTarget<unknown> {
  const timeoutMs = timeoutMsOf(options, OPTIONS);
  const { queueUrl: QueueUrl } = options;
  const send = async (entries: readonly Entry[], signal: AbortSignal): Promise<RelayResult[]> => {
    const Entries = entries.map((entry, index) => ({ ...entry, Id: String(index) }));
    try {
      const { Failed = [] } = await within(
        client.send(new SendMessageBatchCommand({ QueueUrl, Entries }), { abortSignal: signal }),
        timeoutMs,
        signal,
      );
      const failed = new Map(Failed.map((one) => [one.Id, one]));
      return Entries.map(({ Id }) => {
        const failure = failed.get(Id);
        if (!failure) return OK;
        const error = new OutboxRelayError(`${failure.Code}: ${failure.Message ?? ''}`);
        return failure.SenderFault ? { kind: 'reject', error } : { kind: 'retry', error };
      });
    } catch (error) {
      const { name } = error as Partial<Error>;
      const isKnown = ABOUT_QUEUE.includes(name) || (ABOUT_MESSAGE.includes(name) && entries.length === 1);
      return entries.map(() => (isKnown ? { kind: 'retry', error } : unavailable(error)));
    }
  };
  const target: RelayTarget<Entry> = {
    name: 'SQS',
    build: (message) => entryOf(message, options),
    async publish(entries, signal) {
      const results: RelayResult[] = [];
      for (let rest = entries.map((item) => ({ item })); rest.length > 0;) {
        const count = countWithin(rest, { itemsMax: REQUEST_MAX, weightMax: REQUEST_BYTES_MAX, weigh });
        const sent = await send(
          rest.slice(0, count).map(({ item }) => item),
          signal,
        );
        results.push(...sent);
        rest = rest.slice(count);
        // Another request would take as long to fail.
        const silent = sent.find(({ kind }) => kind === 'unavailable');
        if (silent) return [...results, ...rest.map(() => silent)];
      }
      return results;
    },
  };
  return target;
}

/** The body with the attributes, in bytes. */
function weigh({ MessageBody = '', MessageAttributes = {} }: Entry): number {
  const attributes = Object.values(MessageAttributes).map(({ StringValue = '' }) => Buffer.byteLength(StringValue));
  return Buffer.byteLength(MessageBody) + attributes.reduce((sum, length) => sum + length, 0) + 512;
}

function entryOf(message: RelayMessage, { queueUrl, groupID }: SQSTargetOptions): Entry {
  const { messageID, topic, key, headers } = message;
  const bytes = bufferOf(message);
  const text = bytes.toString('utf8');
  const isText = CARRIABLE.test(text) && Buffer.from(text).equals(bytes);
  const attribute = (StringValue: string) => ({ DataType: 'String', StringValue });
  return {
    MessageBody: isText ? text : bytes.toString('base64'),
    MessageAttributes: {
      messageID: attribute(messageID),
      topic: attribute(topic),
      headers: attribute(JSON.stringify(headers)),
      ...(!isText && { encoding: attribute('base64') }),
    },
    ...(queueUrl.endsWith('.fifo') && {
      MessageDeduplicationId: messageID,
      MessageGroupId: groupID === undefined ? (key ?? topic) : settingOf('groupID', groupID, message),
    }),
  };
}
