// RabbitMQ: the messages of a queue are pushed over a channel, two batches ahead of what is acknowledged.
import { ReceiverUnavailableError } from '../../model/errors/errors.js';
import { type Channel, type ChannelModel, connect, type ConsumeMessage, type Options } from 'amqplib';
import type { Adapter, ConnectContext, ConsumerOptions, Source } from '../adapter.js';
import { Mailbox } from '../mailbox.js';
import { Receiver, type ReceiverSettings } from '../receiver.js';

/** A message as `amqplib` gives it, and the queue it comes from. */
export interface RabbitMQMessage extends ConsumeMessage {
  readonly queue: string;
}

export interface RabbitMQConsumerOptions extends ConsumerOptions<RabbitMQMessage> {
  /** A queue that exists. */
  readonly queue: string;
}

const CONNECT_MS = 10_000;

/**
 * Receives from RabbitMQ. `config` says how to connect, as `amqplib` takes it. A message is known by its `messageId`, which
 * the sender sets. Its content is read as JSON, unless the consumer has a `decode`.
 */
export class RabbitMQReceiver extends Receiver<RabbitMQMessage, RabbitMQConsumerOptions> {
  constructor(config: string | Options.Connect, settings?: ReceiverSettings) {
    super(rabbitMQAdapter(config), settings);
  }
}

export function rabbitMQAdapter(config: string | Options.Connect): Adapter<RabbitMQMessage, RabbitMQConsumerOptions> {
  return {
    name: 'rabbitmq',
    canReject: true,
    describe: ({ queue }) => `queue "${queue}"`,
    workflowIDOf: ({ queue, properties }) => {
      const messageID: unknown = properties.messageId;
      return typeof messageID === 'string' ? `rabbitmq-${queue}-${messageID}` : undefined;
    },
    decode: ({ queue, content, fields, properties }) => {
      const { exchange, routingKey } = fields;
      const { messageId, headers, type, timestamp } = properties as unknown as Record<string, unknown>;
      const info = { queue, exchange, routingKey, messageId, headers, type, timestamp };
      return [JSON.parse(content.toString()) as unknown, info];
    },
    async connect({ queue }, context) {
      const connection = await connect(config, { timeout: CONNECT_MS });
      // What happens to a connection also happens to its channel, which tells of it.
      connection.on('error', ignore);
      try {
        const channel = await connection.createChannel();
        channel.on('error', ignore);
        return await QueueSource.open(connection, channel, { queue, context });
      } catch (error) {
        await connection.close().catch(ignore);
        throw error;
      }
    },
  };
}

function ignore(): void {}

class QueueSource implements Source<RabbitMQMessage> {
  readonly #connection: ChannelModel;
  readonly #channel: Channel;
  readonly #mailbox = new Mailbox<RabbitMQMessage>();
  #isOpen = true;

  private constructor(connection: ChannelModel, channel: Channel) {
    this.#connection = connection;
    this.#channel = channel;
    const end = (error?: Error): void =>
      this.#end(error ?? new ReceiverUnavailableError('The connection to RabbitMQ was closed.'));
    for (const emitter of [connection, channel]) {
      emitter.on('error', end);
      emitter.on('close', end);
    }
  }

  static async open(
    connection: ChannelModel,
    channel: Channel,
    { queue, context }: { readonly queue: string; readonly context: ConnectContext },
  ): Promise<QueueSource> {
    const source = new QueueSource(connection, channel);
    await channel.checkQueue(queue);
    await channel.prefetch(2 * context.batchSize);
    await channel.consume(queue, (message) => {
      if (message) source.#mailbox.push({ ...message, queue });
      else source.#end(new ReceiverUnavailableError(`Queue "${queue}" was deleted.`));
    });
    return source;
  }

  #end(error: Error): void {
    this.#isOpen = false;
    this.#mailbox.fail(error);
  }

  fetch(max: number, signal: AbortSignal): Promise<RabbitMQMessage[]> {
    return this.#mailbox.take(max, signal);
  }

  async acknowledge(messages: readonly RabbitMQMessage[]): Promise<void> {
    // All up to the last one: those before it were acknowledged or refused earlier.
    const last = messages.at(-1);
    if (last) this.#channel.ack(last, true);
  }

  async reject(message: RabbitMQMessage): Promise<void> {
    this.#channel.nack(message, false, false);
  }

  async close(): Promise<void> {
    if (!this.#isOpen) {
      await this.#connection.close().catch(ignore);
      return;
    }
    // The answer comes after everything before it, acknowledgements too, was dealt with.
    await this.#channel.close().catch(ignore);
    await this.#connection.close().catch(ignore);
  }
}
