// The adapter for RabbitMQ: messages of a queue are pushed over a channel, with a prefetch of two batches.
import { ReceiverUnavailableError } from '../../../kernel/errors/errors.js';
import { type Channel, type ChannelModel, connect, type ConsumeMessage, type Options } from 'amqplib';
import type { Adapter, ConnectContext, ConsumerOptions, Source } from '../adapter.js';
import { Mailbox } from '../mailbox.js';
import { Receiver, type ReceiverSettings } from '../receiver.js';

/** A message as `amqplib` has it, with its queue. */
export interface RabbitMQMessage extends ConsumeMessage {
  readonly queue: string;
}

export interface RabbitMQConsumerOptions extends ConsumerOptions<RabbitMQMessage> {
  /** An existing queue. */
  readonly queue: string;
}

const CONNECT_MS = 10_000;

/**
 * Receives from RabbitMQ. `config` is what `connect` of `amqplib` takes. A message is identified by its `messageId`,
 * which the sender must set. Without a `decode`, the content of messages must be JSON.
 */
export class RabbitMQReceiver extends Receiver<RabbitMQMessage, RabbitMQConsumerOptions> {
  constructor(config: string | Options.Connect, settings?: ReceiverSettings) {
    super(rabbitMQAdapter(config), settings);
  }
}

export function rabbitMQAdapter(config: string | Options.Connect): Adapter<RabbitMQMessage, RabbitMQConsumerOptions> {
  return {
    name: 'rabbitmq',
    optionNames: ['queue'],
    canReject: true,
    describe: ({ queue }) => `queue "${queue}"`,
    workflowIDOf: ({ queue, properties }) => {
      const messageID: unknown = properties.messageId;
      // The sender chooses it. The brackets keep `x-1` apart from the first child of the workflow for `x`.
      return typeof messageID === 'string' && messageID !== '' ? `rabbitmq-${queue}-(${messageID})` : undefined;
    },
    decode: ({ queue, content, fields, properties }) => {
      const { exchange, routingKey } = fields;
      const { messageId, headers, type, timestamp } = properties as unknown as Record<string, unknown>;
      const info = { queue, exchange, routingKey, messageId, headers, type, timestamp };
      return [JSON.parse(content.toString()) as unknown, info];
    },
    async connect({ queue }, context) {
      const connection = await connect(config, { timeout: CONNECT_MS });
      // The channel reports the failure too.
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
    // Acknowledges all up to the last: any earlier ones were already acknowledged or rejected.
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
    // The reply comes after everything sent before it, including acknowledgements, has been processed.
    await this.#channel.close().catch(ignore);
    await this.#connection.close().catch(ignore);
  }
}
