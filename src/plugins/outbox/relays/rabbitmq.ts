// Publishes to RabbitMQ: a message has arrived when the broker confirms it and does not return it as unroutable.
import type { Duration } from '../../../kernel/base/duration.js';
import { Mutex } from '../../../kernel/base/mutex.js';
import { OutboxRelayError } from '../../../kernel/errors/errors.js';
import type { ConfirmChannel, Message, Options } from 'amqplib';
import { deferred, type Deferred } from '../../../kernel/base/deferred.js';
import { Connection, type ConnectionSource } from './connection.js';
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

export interface RabbitMQTargetOptions {
  /** Default: the default exchange, whose routing keys are names of queues. */
  readonly exchange?: PerMessage<string>;
  /** Default: the topic. */
  readonly routingKey?: PerMessage<string>;
  /** How long opening a channel, or the confirmations of a batch, may take. Default: 10s. */
  readonly timeout?: Duration;
}

const OPTIONS = targetOptions('exchange', 'routingKey');

/** A channel, or how to open one: then it is opened again after it was closed. */
export type ConfirmChannelSource = ConnectionSource<ConfirmChannel>;

/** The most bytes of a short string, and of all headers together, in AMQP and `amqplib`. */
const SHORT_MAX = 255;
const HEADERS_MAX = 65_536;

const NACKED = 'message nacked';
const CLOSED = 'The channel was closed.';

interface Built {
  readonly exchange: string;
  readonly routingKey: string;
  readonly content: Buffer;
  readonly properties: Options.Publish & { readonly messageId: string };
}

export function rabbitMQ(source: ConfirmChannelSource, options: RabbitMQTargetOptions = {}): RelayTarget<unknown> {
  const timeoutMs = timeoutMsOf(options, OPTIONS);
  const channels = new Connection<ConfirmChannel, RelayChannel>(source, {
    timeoutMs,
    begin: (channel, lose) => new RelayChannel(channel, lose),
    end: (channel) => channel.close(),
  });
  // What is in flight is lost when one message makes the broker close the channel, so nothing else may be.
  const turn = new Mutex();
  const target: RelayTarget<Built> = {
    name: 'RabbitMQ',
    cloudEventsPrefix: 'cloudEvents:',
    build: (message) => built(message, options),
    async publish(messages, signal) {
      // Those that wait for their turn share an opening that fails.
      await channels.use(signal, async () => {});
      return turn.run(() => channels.use(signal, (channel) => channel.publishAll(messages, timeoutMs, signal)));
    },
    close: () => channels.close(),
  };
  return target;
}

function built(message: RelayMessage, options: RabbitMQTargetOptions): Built {
  const { exchange = '', routingKey = message.topic } = options;
  const built: Built = {
    exchange: settingOf('exchange', exchange, message),
    routingKey: settingOf('routingKey', routingKey, message),
    content: bufferOf(message),
    properties: propertiesOf(message),
  };
  refuseLong(built);
  return built;
}

/** `amqplib` fails in the middle of sending what does not fit, and some versions lose count of the confirmations then. */
function refuseLong({ exchange, routingKey, properties }: Built): void {
  const { type, contentType, correlationId } = properties;
  const headers = properties.headers as Record<string, string>;
  const names = Object.keys(headers).map((name) => [`header name "${name.slice(0, 20)}…"`, name] as const);
  const short = Object.entries({ exchange, 'routing key': routingKey, type, 'content type': contentType });
  for (const [name, value = ''] of [...short, ['correlation ID', correlationId] as const, ...names]) {
    if (Buffer.byteLength(value) > SHORT_MAX) {
      throw uncarriable('RabbitMQ', `the ${name} has more than ${SHORT_MAX} bytes.`);
    }
  }
  // Each is written with its length before the name, and a type and a length before the value.
  const sizes = Object.entries(headers).map(([name, value]) => Buffer.byteLength(name) + Buffer.byteLength(value) + 6);
  if (sizes.reduce((sum, size) => sum + size, 4) > HEADERS_MAX) {
    throw uncarriable('RabbitMQ', `the headers have more than ${HEADERS_MAX} bytes.`);
  }
}

interface Pending {
  readonly result: Deferred<RelayResult>;
  returned: string | undefined;
}

class RelayChannel {
  readonly #channel: ConfirmChannel;
  readonly #lose: () => void;
  /** By message ID, which a returned message has. */
  readonly #pending = new Map<string, Pending>();
  /** Why the broker has closed the channel: something that was published, unless it closed the connection. */
  #refusal: { readonly error: Error; readonly isAboutOne: boolean } | undefined;

  constructor(channel: ConfirmChannel, lose: () => void) {
    this.#channel = channel;
    this.#lose = lose;
    channel.on('return', ({ fields, properties }: Message) => {
      const pending = this.#pending.get(String(properties.messageId));
      const { replyText } = fields as unknown as { readonly replyText?: string };
      // It comes before the confirmation.
      if (pending) pending.returned = replyText ?? 'no route';
    });
    // A closed channel fails its messages; the event must not end the process.
    channel.on('error', (error: Error) => {
      this.#refusal ??= { error, isAboutOne: this.#pending.size === 1 };
      lose();
    });
    channel.on('close', () => {
      lose();
      for (const [messageID, pending] of this.#pending) this.#confirm(messageID, pending, new OutboxRelayError(CLOSED));
    });
  }

  async publishAll(messages: readonly Built[], timeoutMs: number, signal: AbortSignal): Promise<RelayResult[]> {
    try {
      return await within(Promise.all(messages.map((message) => this.#publish(message))), timeoutMs, signal);
    } catch (error) {
      // Its confirmations may never come.
      this.#lose();
      throw error;
    }
  }

  #publish({ exchange, routingKey, content, properties }: Built): Promise<RelayResult> {
    const { messageId } = properties;
    const pending: Pending = { result: deferred(), returned: undefined };
    this.#pending.set(messageId, pending);
    const onConfirmed = (error: unknown): void => this.#confirm(messageId, pending, error);
    try {
      this.#channel.publish(exchange, routingKey, content, properties, onConfirmed);
    } catch (error) {
      this.#lose();
      const isClosed = (error as Partial<Error>).name === 'IllegalOperationError';
      this.#settle(messageId, pending, isClosed ? unavailable(error) : { kind: 'reject', error });
    }
    return pending.result.promise;
  }

  #confirm(messageID: string, pending: Pending, error: unknown): void {
    this.#settle(messageID, pending, error ? this.#failed(error as Error) : resultOf(pending));
  }

  /** `amqplib` says the same way that the broker refuses a message and that the channel was closed before it answered. */
  #failed(error: Error): RelayResult {
    if (error.message === NACKED) return { kind: 'retry', error };
    if (this.#refusal?.isAboutOne) return { kind: 'retry', error: this.#refusal.error };
    return unavailable(this.#refusal?.error ?? error);
  }

  #settle(messageID: string, pending: Pending, result: RelayResult): void {
    if (this.#pending.get(messageID) === pending) this.#pending.delete(messageID);
    pending.result.resolve(result);
  }
}

function resultOf({ returned }: Pending): RelayResult {
  return returned === undefined ? OK : { kind: 'reject', reason: 'unroutable', error: new OutboxRelayError(returned) };
}

function propertiesOf({ messageID, topic, headers, contentType, createdAt }: RelayMessage): Built['properties'] {
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
