// Amazon SQS, through the client of the AWS SDK: messages are deleted after their workflows are committed. Until then they
// are hidden, and come again when their time is up.
import {
  ChangeMessageVisibilityBatchCommand,
  DeleteMessageBatchCommand,
  GetQueueAttributesCommand,
  type Message,
  ReceiveMessageCommand,
  type SQSClient,
} from '@aws-sdk/client-sqs';
import type { Adapter, ConsumerOptions, Source } from '../adapter.js';
import { Receiver, type ReceiverSettings } from '../receiver.js';

/** A message as the SDK gives it, and the queue it comes from. */
export interface SQSMessage extends Message {
  readonly queueUrl: string;
}

export interface SQSConsumerOptions extends ConsumerOptions<SQSMessage> {
  readonly queueUrl: string;
  /** For FIFO queues: handles the messages of a group one after the other. */
  readonly orderByGroup?: boolean;
}

/** What is used of `SQSClient`. */
export type SQSClientLike = Pick<SQSClient, 'send'>;

/** As many as SQS gives and takes at a time. */
const REQUEST_MAX = 10;
const WAIT_SECONDS = 20;

/** Receives from Amazon SQS. The body of a message is read as JSON, unless the consumer has a `decode`. */
export class SQSReceiver extends Receiver<SQSMessage, SQSConsumerOptions> {
  constructor(client: SQSClientLike, settings?: ReceiverSettings) {
    super(sqsAdapter(client), settings);
  }
}

export function sqsAdapter(client: SQSClientLike): Adapter<SQSMessage, SQSConsumerOptions> {
  return {
    name: 'sqs',
    // What is not deleted goes to the dead-letter queue, if the queue has one, when it has come often enough.
    canReject: true,
    describe: ({ queueUrl }) => `queue ${queueUrl}`,
    workflowIDOf: ({ queueUrl, MessageId }) =>
      MessageId === undefined ? undefined : `sqs-${queueUrl.replace(/^.*\//, '')}-${MessageId}`,
    orderingKey: ({ orderByGroup }) => (orderByGroup ? ({ Attributes }) => Attributes?.MessageGroupId : undefined),
    decode: ({ queueUrl, MessageId, Body = '', Attributes, MessageAttributes }) => [
      JSON.parse(Body) as unknown,
      { queueUrl, messageId: MessageId, attributes: Attributes, messageAttributes: MessageAttributes },
    ],
    async connect({ queueUrl }) {
      await client.send(new GetQueueAttributesCommand({ QueueUrl: queueUrl, AttributeNames: ['QueueArn'] }));
      return new QueueSource(client, queueUrl);
    },
  };
}

class QueueSource implements Source<SQSMessage> {
  readonly #client: SQSClientLike;
  readonly #queueUrl: string;
  /** Fetched and not deleted. */
  readonly #held = new Set<SQSMessage>();

  constructor(client: SQSClientLike, queueUrl: string) {
    this.#client = client;
    this.#queueUrl = queueUrl;
  }

  async fetch(max: number, signal: AbortSignal): Promise<SQSMessage[]> {
    const first = await this.#receive(Math.min(max, REQUEST_MAX), WAIT_SECONDS, signal);
    const found = [...first];
    // One after the other: the messages of a group come in order.
    for (let last = first.length; last === REQUEST_MAX && found.length < max;) {
      const more = await this.#receive(Math.min(max - found.length, REQUEST_MAX), 0, signal).catch(() => []);
      found.push(...more);
      last = more.length;
    }
    for (const message of found) this.#held.add(message);
    return found;
  }

  async #receive(max: number, waitSeconds: number, signal: AbortSignal): Promise<SQSMessage[]> {
    const queueUrl = this.#queueUrl;
    const command = new ReceiveMessageCommand({
      QueueUrl: queueUrl,
      MaxNumberOfMessages: max,
      WaitTimeSeconds: waitSeconds,
      MessageSystemAttributeNames: ['All'],
      MessageAttributeNames: ['All'],
    });
    const { Messages = [] } = await this.#client.send(command, { abortSignal: signal });
    return Messages.map((message) => ({ ...message, queueUrl }));
  }

  async acknowledge(messages: readonly SQSMessage[]): Promise<void> {
    await Promise.all(
      inTens(messages).map(async (some) => {
        const Entries = some.map(({ ReceiptHandle }, index) => ({ Id: String(index), ReceiptHandle }));
        await this.#client.send(new DeleteMessageBatchCommand({ QueueUrl: this.#queueUrl, Entries }));
      }),
    );
    for (const message of messages) this.#held.delete(message);
  }

  /** It stays where it is, until its time is up. */
  async reject(message: SQSMessage): Promise<void> {
    this.#held.delete(message);
  }

  /** What is held shall come again at once. */
  async close(): Promise<void> {
    for (const some of inTens([...this.#held])) {
      const Entries = some.map(({ ReceiptHandle }, index) => ({
        Id: String(index),
        ReceiptHandle,
        VisibilityTimeout: 0,
      }));
      await this.#client.send(new ChangeMessageVisibilityBatchCommand({ QueueUrl: this.#queueUrl, Entries }));
    }
    this.#held.clear();
  }
}

function inTens<T>(values: readonly T[]): T[][] {
  const count = Math.ceil(values.length / REQUEST_MAX);
  return Array.from({ length: count }, (_, index) => values.slice(index * REQUEST_MAX, (index + 1) * REQUEST_MAX));
}
