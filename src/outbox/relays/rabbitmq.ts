// Publishes to RabbitMQ: a message has arrived when the broker confirms it and does not return it as unroutable.
import type { Duration } from '../../base/duration.js';
import { OutboxRelayError } from '../../model/errors/errors.js';
import type { ConfirmChannel, Message, Options } from 'amqplib';
import { deferred, type Deferred } from '../../base/deferred.js';
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

export interface RabbitMQTargetOptions {
  /** Default: the default exchange, whose routing keys are names of queues. */
  readonly exchange?: PerMessage<string>;
  /** Default: the topic. */
  readonly routingKey?: PerMessage<string>;
  /** How long a confirmation may take. Default: 10s. */
  readonly timeout?: Duration;
}

const OPTIONS = targetOptions('exchange', 'routingKey');

/** A channel, or how to open one: then it is opened again after it was closed. */
export type ConfirmChannelSource = ConfirmChannel | (() => Promise<ConfirmChannel>);

export function rabbitMQ(source: ConfirmChannelSource, options: RabbitMQTargetOptions = {}): RelayTarget {
  const channels = new Channels(source);
  const timeoutMs = timeoutMsOf(options, OPTIONS);
  return {
    name: 'RabbitMQ',
    cloudEventsPrefix: 'cloudEvents:',
    async publish(messages, signal) {
      const channel = await within(channels.open(), timeoutMs, signal);
      return within(Promise.all(messages.map((message) => channel.publish(message, options))), timeoutMs, signal);
    },
  };
}

/** The channel in use. */
class Channels {
  readonly #source: ConfirmChannelSource;
  #opening: Promise<RelayChannel> | undefined;

  constructor(source: ConfirmChannelSource) {
    this.#source = source;
  }

  open(): Promise<RelayChannel> {
    this.#opening ??= this.#open();
    return this.#opening;
  }

  async #open(): Promise<RelayChannel> {
    const forget = (): void => {
      if (typeof this.#source === 'function') this.#opening = undefined;
    };
    try {
      const channel = typeof this.#source === 'function' ? await this.#source() : this.#source;
      channel.on('close', forget);
      // A closed channel fails its messages; the event must not end the process.
      channel.on('error', forget);
      return new RelayChannel(channel);
    } catch (error) {
      forget();
      throw error;
    }
  }
}

interface Pending {
  readonly result: Deferred<RelayResult>;
  returned: string | undefined;
}

class RelayChannel {
  readonly #channel: ConfirmChannel;
  /** By message ID, which a returned message has. */
  readonly #pending = new Map<string, Pending>();

  constructor(channel: ConfirmChannel) {
    this.#channel = channel;
    channel.on('return', ({ fields, properties }: Message) => {
      const pending = this.#pending.get(String(properties.messageId));
      const { replyText } = fields as unknown as { readonly replyText?: string };
      // It comes before the confirmation.
      if (pending) pending.returned = replyText ?? 'no route';
    });
    channel.on('close', () => this.#fail(new OutboxRelayError('The channel was closed.')));
  }

  publish(message: RelayMessage, options: RabbitMQTargetOptions): Promise<RelayResult> {
    const { messageID, topic } = message;
    const { exchange = '', routingKey = topic } = options;
    const pending: Pending = { result: deferred(), returned: undefined };
    this.#pending.set(messageID, pending);
    const onConfirmed = (error: unknown): void => this.#confirm(messageID, pending, error);
    try {
      this.#channel.publish(
        settingOf(exchange, message),
        settingOf(routingKey, message),
        bufferOf(message),
        propertiesOf(message),
        onConfirmed,
      );
    } catch (error) {
      // The channel is closed.
      this.#settle(messageID, pending, unavailable(error));
    }
    return pending.result.promise;
  }

  #confirm(messageID: string, pending: Pending, error: unknown): void {
    const { returned } = pending;
    if (error) this.#settle(messageID, pending, { kind: 'retry', error });
    else if (returned === undefined) this.#settle(messageID, pending, OK);
    else
      this.#settle(messageID, pending, { kind: 'reject', reason: 'unroutable', error: new OutboxRelayError(returned) });
  }

  #fail(error: Error): void {
    for (const [messageID, pending] of this.#pending) this.#settle(messageID, pending, unavailable(error));
  }

  #settle(messageID: string, pending: Pending, result: RelayResult): void {
    if (this.#pending.get(messageID) === pending) this.#pending.delete(messageID);
    pending.result.resolve(result);
  }
}

function propertiesOf({ messageID, topic, headers, contentType, createdAt }: RelayMessage): Options.Publish {
  return {
    mandatory: true,
    persistent: true,
    messageId: messageID,
    type: topic,
    timestamp: Math.floor(createdAt / 1000),
    headers: { ...headers },
    ...(contentType !== undefined && { contentType }),
    ...(headers['correlation_id'] !== undefined && { correlationId: headers['correlation_id'] }),
  };
}
