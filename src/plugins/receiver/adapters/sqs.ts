// The adapter for Amazon SQS, on the AWS SDK. Messages are deleted after their workflows are committed. Until then they
// are hidden, and reappear when their visibility timeout ends.
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

/** A message as the SDK has it, with its queue. */
export interface SQSMessage extends Message {
  readonly queueUrl: string;
}

export interface SQSConsumerOptions extends ConsumerOptions<SQSMessage> {
  readonly queueUrl: string;
  /** For FIFO queues: handles the messages of a group one at a time, in order. Default: false. */
  readonly orderByGroup?: boolean;
}

/** The part of `SQSClient` that the adapter uses. */
export type SQSClientLike = Pick<SQSClient, 'send'>;

/** The most messages that SQS allows per request. */
const REQUEST_MAX = 10;
const WAIT_SECONDS = 20;

/** Receives from Amazon SQS. Without a `decode`, the body of messages must be JSON. */
export class SQSReceiver extends Receiver<SQSMessage, SQSConsumerOptions> {
  constructor(client: SQSClientLike, settings?: ReceiverSettings) {
    super(sqsAdapter(client), settings);
  }
}

export function sqsAdapter(client: SQSClientLike): Adapter<SQSMessage, SQSConsumerOptions> {
  return {
    name: 'sqs',
    optionNames: ['queueUrl', 'orderByGroup'],
    // A message that is not deleted goes to the queue's dead-letter queue, if it has one, after enough deliveries.
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
    // One request at a time, to keep the order within a group.
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
      toBatches(messages).map(async (some) => {
        const Entries = some.map(({ ReceiptHandle }, index) => ({ Id: String(index), ReceiptHandle }));
        await this.#client.send(new DeleteMessageBatchCommand({ QueueUrl: this.#queueUrl, Entries }));
      }),
    );
    for (const message of messages) this.#held.delete(message);
  }

  /** Leaves the message hidden until its visibility timeout ends. */
  async reject(message: SQSMessage): Promise<void> {
    this.#held.delete(message);
  }

  /** Makes the messages that are held visible again at once. */
  async close(): Promise<void> {
    for (const some of toBatches([...this.#held])) {
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

function toBatches<T>(values: readonly T[]): T[][] {
  const count = Math.ceil(values.length / REQUEST_MAX);
  return Array.from({ length: count }, (_, index) => values.slice(index * REQUEST_MAX, (index + 1) * REQUEST_MAX));
}
