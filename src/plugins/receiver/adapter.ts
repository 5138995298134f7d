// The contract between the receiver kit and the adapter for a broker, and the options that all receivers share.
import type { Clock } from '../../kernel/base/clock.js';
import type { DLogger } from '../../kernel/base/log.js';

/** What to do with a message that cannot become a workflow. */
export type DeadLetterPolicy<Message> =
  /** Store it in the system database; see `listDeadLetters`. */
  | 'keep'
  /** Reject it, so that the broker applies its own dead-letter policy. */
  | 'broker'
  /** Handle it. The message is acknowledged when the promise resolves, and redelivered when it rejects. */
  | ((message: Message, error: Error) => Promise<void>);

/** The options that consumers of all receivers share. */
export interface ConsumerOptions<Message> {
  /** The queue for the workflows. Default: a queue of the function's own. */
  readonly queueName?: string;
  /** Workflows of messages with the same key run one at a time, in message order. */
  readonly orderingKey?: (message: Message) => string | undefined;
  /** The most messages to enqueue in one commit. Default: 250. */
  readonly batchSize?: number;
  /** Fetching pauses while this many workflows wait on the queue. Default: 10,000. */
  readonly maxQueueDepth?: number;
  /** The arguments of the workflow. Default: those of the adapter. */
  readonly decode?: (message: Message) => unknown[] | Promise<unknown[]>;
  /** The workflow ID: the same for each delivery of a message, and unique per message. Default: that of the adapter. */
  readonly workflowID?: (message: Message) => string;
  /** What to do with messages that cannot become workflows. Default: `keep`. */
  readonly deadLetter?: DeadLetterPolicy<Message>;
}

/** How far a source has been read, if it does not track that itself. */
export interface Position {
  readonly value?: string;
  readonly updateTime?: number;
  readonly updateSeq?: bigint;
}

/** What the kit passes to an adapter when it connects. */
export interface ConnectContext {
  readonly clock: Clock;
  readonly logger: DLogger;
  readonly batchSize: number;
  /** The workflow function, to name consumers and groups at the broker after. */
  readonly functionName: string;
  /** Reads the position that was committed last. */
  readonly loadPosition: () => Promise<Position | undefined>;
}

/** An open connection that delivers messages. */
export interface Source<Message> {
  /**
   * Waits for messages and returns up to `max` of them, in order. May return none after a while. Settles soon after the
   * signal aborts, in any way.
   */
  fetch(max: number, signal: AbortSignal): Promise<readonly Message[]>;
  /** The messages are durable as workflows, and need not be redelivered. */
  acknowledge(messages: readonly Message[]): Promise<void>;
  /** The message cannot become a workflow: the broker applies its own dead-letter policy. */
  reject?(message: Message, error: Error): Promise<void>;
  /** Where to continue after these messages. Committed together with their workflows. */
  positionAfter?(messages: readonly Message[]): Position | undefined;
  /** Closes the connection. Messages that were fetched and not acknowledged go back to the broker. */
  close(): Promise<void>;
}

/** A kind of broker. */
export interface Adapter<Message, Options extends ConsumerOptions<Message>> {
  /** One word, which begins the names of queues and workflows. */
  readonly name: string;
  /** What a consumer reads, for logs and errors: `stream "orders"`. */
  describe(options: Options): string;
  /** The options that it adds to those of all receivers. If it lists them, a consumer with any other is refused. */
  readonly optionNames?: readonly (keyof Options & string)[];
  /** Throws if the options contradict each other. */
  check?(options: Options): void;
  /** Opens a connection. Fails if what the consumer reads does not exist. */
  connect(options: Options, context: ConnectContext): Promise<Source<Message>>;
  /** The workflow ID for a message, the same for each delivery; undefined if the message has no ID. */
  workflowIDOf(message: Message, options: Options): string | undefined;
  /** The default for the consumer's `orderingKey`; undefined for no order. */
  orderingKey?(options: Options): ConsumerOptions<Message>['orderingKey'];
  /** The default for the consumer's `decode`. */
  decode(message: Message): unknown[];
  /** Whether rejected messages are kept at the broker, so that `deadLetter: 'broker'` is allowed. */
  readonly canReject?: boolean;
}
