// What a receiver for one kind of broker supplies, and the options that all receivers share. The kit does the rest.
import type { Clock } from '../base/clock.js';
import type { DLogger } from '../base/log.js';

/** What to do with a message that cannot become a workflow. */
export type DeadLetterPolicy<Message> =
  /** Keep it in the system database; see `listDeadLetters`. */
  | 'keep'
  /** Refuse it, so that the broker does with it what it is set up to do. */
  | 'broker'
  /** Deal with it. The message is acknowledged when the promise resolves, and delivered again when it rejects. */
  | ((message: Message, error: Error) => Promise<void>);

/** The options of a consumer that have the same meaning for all receivers. */
export interface ConsumerOptions<Message> {
  /** The queue for the workflows; one of the function's own if not given. */
  readonly queueName?: string;
  /** Workflows of messages with the same key run one after the other, in the order of the messages. */
  readonly orderingKey?: (message: Message) => string | undefined;
  /** Messages that are enqueued in one commit at most; 250 unless given. */
  readonly batchSize?: number;
  /** Nothing is fetched while so many workflows wait in the queue; 10,000 unless given. */
  readonly maxQueueDepth?: number;
  /** The arguments of the workflow. */
  readonly decode?: (message: Message) => unknown[] | Promise<unknown[]>;
  /** The ID of the workflow: the same for each delivery of a message, and different for different messages. */
  readonly workflowID?: (message: Message) => string;
  /** What becomes of messages that cannot be decoded; `keep` unless given. */
  readonly deadLetter?: DeadLetterPolicy<Message>;
}

/** How far a source without a memory of its own has come. */
export interface Position {
  readonly value?: string;
  readonly updateTime?: number;
  readonly updateSeq?: bigint;
}

/** What the kit tells an adapter when it connects. */
export interface ConnectContext {
  readonly clock: Clock;
  readonly logger: DLogger;
  readonly batchSize: number;
  /** The function that the messages go to, for names at the broker. */
  readonly functionName: string;
  /** The position that was committed last. */
  readonly loadPosition: () => Promise<Position | undefined>;
}

/** An open connection from which messages come. */
export interface Source<Message> {
  /**
   * Waits for messages and gives some, `max` at most, in order. May give none after a while. Ends soon after the signal
   * has aborted, in whatever way.
   */
  fetch(max: number, signal: AbortSignal): Promise<readonly Message[]>;
  /** These have become workflows, durably: they need not be delivered again. */
  acknowledge(messages: readonly Message[]): Promise<void>;
  /** This cannot become a workflow: the broker may do with it what it is set up to do. */
  reject?(message: Message, error: Error): Promise<void>;
  /** Where to go on after these; committed together with their workflows. */
  positionAfter?(messages: readonly Message[]): Position | undefined;
  /** What was fetched and not acknowledged goes back. */
  close(): Promise<void>;
}

/** A kind of broker. */
export interface Adapter<Message, Options extends ConsumerOptions<Message>> {
  /** One word; it begins the names of queues and workflows. */
  readonly name: string;
  /** What a consumer reads, for people: `stream "orders"`. */
  describe(options: Options): string;
  /** Throws if the options contradict each other. */
  check?(options: Options): void;
  /** Opens a connection, and fails if what is to be read is not there. */
  connect(options: Options, context: ConnectContext): Promise<Source<Message>>;
  /** The ID of the message's workflow, the same for each delivery; undefined if the message has none. */
  workflowIDOf(message: Message, options: Options): string | undefined;
  /** The ordering key of the consumer's messages, unless the consumer says otherwise; undefined for no order. */
  orderingKey?(options: Options): ConsumerOptions<Message>['orderingKey'];
  /** The arguments of the workflow, unless the consumer says otherwise. */
  decode(message: Message): unknown[];
  /** Whether `reject` does not lose a message. */
  readonly canReject?: boolean;
}
