// Publishes to Amazon SQS: a message has arrived when its entry of the batch succeeds. A FIFO queue drops a repeated message
// ID for 5 minutes.
import type { Duration } from '../../base/duration.js';
import { OutboxRelayError } from '../../model/errors/errors.js';
import { SendMessageBatchCommand, type SendMessageBatchRequestEntry, type SQSClient } from '@aws-sdk/client-sqs';
import { countWithin } from '../../base/batcher.js';
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

export function sqs(client: Pick<SQSClient, 'send'>, options: SQSTargetOptions): RelayTarget {
  const timeoutMs = timeoutMsOf(options, OPTIONS);
  const { queueUrl: QueueUrl } = options;
  const send = async (messages: readonly RelayMessage[], signal: AbortSignal): Promise<RelayResult[]> => {
    const Entries = messages.map((message, index) => entryOf(message, { ...options, index }));
    try {
      const { Failed = [] } = await within(
        client.send(new SendMessageBatchCommand({ QueueUrl, Entries }), { abortSignal: signal }),
        timeoutMs,
        signal,
      );
      const failed = new Map(Failed.map((one) => [one.Id, one]));
      return messages.map((_, index) => {
        const failure = failed.get(String(index));
        if (!failure) return OK;
        const error = new OutboxRelayError(`${failure.Code}: ${failure.Message ?? ''}`);
        return failure.SenderFault ? { kind: 'reject', error } : { kind: 'retry', error };
      });
    } catch (error) {
      return messages.map(() => unavailable(error));
    }
  };
  return {
    name: 'SQS',
    async publish(messages, signal) {
      const results: RelayResult[] = [];
      for (let rest = messages.map((item) => ({ item })); rest.length > 0;) {
        const count = countWithin(rest, { itemsMax: REQUEST_MAX, weightMax: REQUEST_BYTES_MAX, weigh });
        results.push(
          ...(await send(
            rest.slice(0, count).map(({ item }) => item),
            signal,
          )),
        );
        rest = rest.slice(count);
      }
      return results;
    },
  };
}

/** Bytes as base64 are longer by a third. */
function weigh({ payload, headers }: RelayMessage): number {
  return Math.ceil(payload.byteLength * 1.34) + JSON.stringify(headers).length + 512;
}

function entryOf(
  message: RelayMessage,
  { queueUrl, groupID, index }: SQSTargetOptions & { readonly index: number },
): SendMessageBatchRequestEntry {
  const { messageID, topic, key, headers } = message;
  const bytes = bufferOf(message);
  const text = bytes.toString('utf8');
  const isText = Buffer.from(text).equals(bytes);
  const attribute = (StringValue: string) => ({ DataType: 'String', StringValue });
  return {
    Id: String(index),
    MessageBody: isText ? text : bytes.toString('base64'),
    MessageAttributes: {
      messageID: attribute(messageID),
      topic: attribute(topic),
      headers: attribute(JSON.stringify(headers)),
      ...(!isText && { encoding: attribute('base64') }),
    },
    ...(queueUrl.endsWith('.fifo') && {
      MessageDeduplicationId: messageID,
      MessageGroupId: groupID === undefined ? (key ?? topic) : settingOf(groupID, message),
    }),
  };
}
