// The adapter for NATS JetStream: pulls from a durable consumer, one batch ahead.
import {
  AckPolicy,
  type ConsumerConfig,
  type ConsumerMessages,
  DeliverPolicy,
  jetstream,
  jetstreamManager,
  type JetStreamManager,
  type JsMsg,
} from '@nats-io/jetstream';
import { connect, type NatsConnection, type NodeConnectionOptions } from '@nats-io/transport-node';
import { type DurationText, inMs } from '../../../kernel/base/duration.js';
import { Service } from '../../../kernel/base/service.js';
import { ReceiverUnavailableError } from '../../../kernel/errors/errors.js';
import type { Adapter, ConnectContext, ConsumerOptions, Source } from '../adapter.js';
import { Mailbox } from '../mailbox.js';
import { checkDuration, Receiver, type ReceiverSettings } from '../receiver.js';

/** A message of a stream. */
export interface NatsMessage {
  readonly stream: string;
  /** Part of the workflow ID: a stream that is deleted and created again reuses its sequence numbers. */
  readonly streamCreatedAt: number;
  readonly consumer: string;
  readonly sequence: number;
  readonly subject: string;
  readonly data: Uint8Array;
  readonly headers: Readonly<Record<string, string[]>>;
}

export interface NatsConsumerOptions extends ConsumerOptions<NatsMessage> {
  /** An existing stream. */
  readonly stream: string;
  /** The durable consumer, created if it is missing. Default: named after the function. */
  readonly consumer?: string;
  /** The subjects of a new consumer. Default: all. */
  readonly filterSubjects?: readonly string[];
  /** Where a new consumer starts: at the first message, or with new ones only. Default: `first`. */
  readonly startFrom?: 'first' | 'new';
  /** The ack wait of a new consumer: unacknowledged messages are redelivered after it. Default: 30000. */
  readonly ackWaitMs?: number | DurationText;
}

const CONNECT_MS = 10_000;
const ACK_WAIT_MS = 30_000;
const NANOSECONDS = 1_000_000;
/** How long a pull request waits for messages before the next one. */
const PULL_MS = 30_000;

/**
 * Receives from NATS JetStream. `config` is what `connect` of `@nats-io/transport-node` takes. Without a `decode`, the
 * data of messages must be JSON.
 */
export class NatsReceiver extends Receiver<NatsMessage, NatsConsumerOptions> {
  constructor(config: NodeConnectionOptions, settings?: ReceiverSettings) {
    super(natsAdapter(config), settings);
  }
}

export function natsAdapter(config: NodeConnectionOptions): Adapter<NatsMessage, NatsConsumerOptions> {
  return {
    name: 'nats',
    optionNames: ['stream', 'consumer', 'filterSubjects', 'startFrom', 'ackWaitMs'],
    check: ({ ackWaitMs }) => checkDuration('ackWaitMs', ackWaitMs),
    canReject: true,
    describe: ({ stream }) => `stream "${stream}"`,
    workflowIDOf: ({ stream, streamCreatedAt, consumer, sequence }) =>
      `nats-${stream}-${streamCreatedAt.toString(36)}-${consumer}-${sequence}`,
    decode: ({ stream, sequence, subject, data, headers }) => [
      JSON.parse(Buffer.from(data).toString()) as unknown,
      { stream, sequence, subject, headers },
    ],
    async connect(options, context) {
      // The kit reconnects, and then sets everything up again.
      const connection = await connect({ timeout: CONNECT_MS, ...config, reconnect: false });
      try {
        return await openSource(connection, options, context);
      } catch (error) {
        await connection.close();
        throw error;
      }
    },
  };
}

async function openSource(
  connection: NatsConnection,
  options: NatsConsumerOptions,
  context: ConnectContext,
): Promise<Source<NatsMessage>> {
  const manager = await jetstreamManager(connection);
  const { created } = await manager.streams.info(options.stream);
  const consumer = options.consumer ?? `everstep-${context.functionName.replaceAll(/[^\w-]/g, '-')}`;
  await createConsumer(manager, consumer, options);
  const pulled = await jetstream(connection).consumers.get(options.stream, consumer);
  const messages = await pulled.consume({
    max_messages: context.batchSize,
    expires: PULL_MS,
    abort_on_missing_resource: true,
  });
  const toMessage = (message: JsMsg): NatsMessage => ({
    stream: options.stream,
    streamCreatedAt: Date.parse(created),
    consumer,
    sequence: message.seq,
    subject: message.subject,
    data: message.data,
    headers: Object.fromEntries(message.headers ?? []),
  });
  return new StreamSource({ connection, messages, toMessage, batchSize: context.batchSize });
}

async function createConsumer(manager: JetStreamManager, name: string, options: NatsConsumerOptions): Promise<void> {
  const { stream, filterSubjects, startFrom } = options;
  const ackWaitMs = inMs(options.ackWaitMs) ?? ACK_WAIT_MS;
  const exists = await manager.consumers.info(stream, name).then(
    () => true,
    (error: Error) => (error.message.includes('consumer not found') ? false : Promise.reject(error)),
  );
  if (exists) return;
  const config: Partial<ConsumerConfig> = {
    durable_name: name,
    ack_policy: AckPolicy.Explicit,
    ack_wait: ackWaitMs * NANOSECONDS,
    deliver_policy: startFrom === 'new' ? DeliverPolicy.New : DeliverPolicy.All,
    ...(filterSubjects && { filter_subjects: [...filterSubjects] }),
  };
  await manager.consumers.add(stream, config);
}

interface SourceParts {
  readonly connection: NatsConnection;
  readonly messages: ConsumerMessages;
  readonly toMessage: (message: JsMsg) => NatsMessage;
  readonly batchSize: number;
}

class StreamSource implements Source<NatsMessage> {
  readonly #parts: SourceParts;
  readonly #mailbox: Mailbox<NatsMessage>;
  readonly #originals = new WeakMap<NatsMessage, JsMsg>();
  readonly #pump: Service;

  constructor(parts: SourceParts) {
    this.#parts = parts;
    this.#mailbox = new Mailbox(parts.batchSize);
    this.#pump = new Service(
      () => this.#run(),
      (error) => this.#mailbox.fail(error as Error),
    );
    this.#pump.start();
    void parts.connection.closed().then((error) => this.#end(error ?? undefined));
  }

  /** Ends with the message iterator. */
  async #run(): Promise<void> {
    const { messages, toMessage } = this.#parts;
    for await (const original of messages) {
      const message = toMessage(original);
      this.#originals.set(message, original);
      await this.#mailbox.put(message);
    }
    this.#end();
  }

  #end(error: Error = new ReceiverUnavailableError('The NATS connection or consumer was closed.')): void {
    this.#mailbox.fail(error);
  }

  fetch(max: number, signal: AbortSignal): Promise<NatsMessage[]> {
    return this.#mailbox.take(max, signal);
  }

  async acknowledge(messages: readonly NatsMessage[]): Promise<void> {
    for (const message of messages) this.#originals.get(message)?.ack();
    await this.#flush();
  }

  async reject(message: NatsMessage, error: Error): Promise<void> {
    this.#originals.get(message)?.term(error.message);
    await this.#flush();
  }

  /** Waits until the server has processed what was sent. On a closed connection `flush` alone would never settle. */
  async #flush(): Promise<void> {
    const { connection } = this.#parts;
    const closed = connection.closed().then((error) => {
      throw error ?? new ReceiverUnavailableError('The connection to NATS was closed.');
    });
    await Promise.race([connection.flush(), closed]);
  }

  async close(): Promise<void> {
    const { connection, messages } = this.#parts;
    this.#end();
    await messages.close();
    await this.#pump.stop();
    if (connection.isClosed()) return;
    // Have messages that were pulled but not fetched redelivered at once.
    for (const message of this.#mailbox.drain()) this.#originals.get(message)?.nak();
    await this.#flush();
    await connection.close();
  }
}
