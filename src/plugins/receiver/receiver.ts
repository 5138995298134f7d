// A receiver. Functions are registered with it before launch; from launch to shutdown it starts a workflow of them for
// each message. It is the same for all brokers: what differs is in the adapter.
import type { Deadline } from '../../kernel/base/time-limit.js';
import type { DurationText } from '../../kernel/base/duration.js';
import { InvalidReceiverError } from '../../kernel/errors/errors.js';
import {
  type Check,
  INT_MAX,
  messageOf,
  number,
  positiveInteger,
  timed,
  unknownKey,
} from '../../kernel/check/validation.js';
import {
  type FunctionName,
  Receiving,
  type ReceivingHost,
  receivingHost,
  type ServedFunction,
  serveQueue,
  type UserFunction,
} from '../../run/plugin.js';
import type { Adapter, ConsumerOptions } from './adapter.js';
import { Consumer } from './consumer.js';
import { type DeadLetter, deleteDeadLetter, listDeadLetters } from './dead-letters.js';
import { ReceivedDeadLetters } from './dead-letter-verbs.js';

export interface ReceiverSettings {
  /** The instance whose functions are served. Default: `DBOS`. */
  readonly dbos?: ReceivingHost;
}

/** The type of a decorator for workflow methods, legacy or standard. */
export interface ConsumerDecorator {
  <This, Args extends never[], Return>(
    target: (this: This, ...args: Args) => Promise<Return>,
    context: ClassMethodDecoratorContext<This, (this: This, ...args: Args) => Promise<Return>>,
  ): void;
  <This, Args extends never[], Return>(
    target: object,
    key: string | symbol,
    descriptor: TypedPropertyDescriptor<(this: This, ...args: Args) => Promise<Return>>,
  ): void;
}

const SHARED_OPTIONS = Object.keys({
  queueName: true,
  orderingKey: true,
  batchSize: true,
  maxQueueDepth: true,
  decode: true,
  workflowID: true,
  deadLetter: true,
} satisfies Record<keyof ConsumerOptions<never>, true>);
const BATCH_SIZE = 250;
const QUEUE_DEPTH_MAX = 10_000;

/** The information that a receiver associates with a function. */
interface FunctionConfig<Options> {
  consumers?: Options[];
}

export class Receiver<Message, Options extends ConsumerOptions<Message>> {
  readonly #adapter: Adapter<Message, Options>;
  readonly #host: ReceivingHost;
  #consumers: Consumer<Message, Options>[] = [];

  constructor(adapter: Adapter<Message, Options>, { dbos }: ReceiverSettings = {}) {
    this.#adapter = adapter;
    this.#host = receivingHost(dbos);
    this.#host.registerLifecycleCallback(this);
  }

  /** Starts the workflow for each message. Call it before launch. */
  registerConsumer(
    workflow: (...args: never[]) => Promise<unknown>,
    options: Options,
    target: FunctionName = {},
  ): void {
    this.#refuseUnknown(options);
    checkCount('batchSize', options.batchSize);
    checkCount('maxQueueDepth', options.maxQueueDepth);
    if (options.deadLetter === 'broker' && !this.#adapter.canReject) {
      throw new InvalidReceiverError(
        `The ${this.#adapter.name} receiver cannot leave dead letters to the broker. Use deadLetter: 'keep', or a function.`,
      );
    }
    this.#adapter.check?.(options);
    const config: FunctionConfig<Options> = this.#host.associateFunctionWithInfo(this, workflow, target);
    (config.consumers ??= []).push(options);
  }

  #refuseUnknown(options: Options): void {
    const { optionNames } = this.#adapter;
    if (!optionNames) return;
    const known: readonly string[] = [...optionNames, ...SHARED_OPTIONS];
    const unknown = Object.keys(options).find((name) => !known.includes(name));
    if (unknown !== undefined) throw new InvalidReceiverError(messageOf(unknownKey(unknown, known), 'options'));
  }

  /** Decorator: starts the static workflow for each message. */
  consumer(options: Options): ConsumerDecorator {
    const decorator = (target: unknown, contextOrKey: unknown, descriptor?: PropertyDescriptor): void => {
      if (descriptor) {
        const owner = { ctorOrProto: target as object, name: String(contextOrKey) };
        this.registerConsumer(descriptor.value as UserFunction, options, owner);
      } else {
        const { name } = contextOrKey as ClassMethodDecoratorContext;
        this.registerConsumer(target as UserFunction, options, { name: String(name) });
      }
    };
    // The types of the two kinds exclude each other. At run time one function serves both.
    return decorator;
  }

  /** Called at launch: connects all consumers, then starts to fetch. */
  async initialize(): Promise<void> {
    const receiving = new Receiving(this.#host);
    const consumers = await Promise.all(this.#registrations().map((one) => this.#newConsumer(receiving, one)));
    this.#consumers = consumers;
    for (const consumer of consumers) await consumer.open();
    for (const consumer of consumers) consumer.start();
  }

  /** Called at shutdown. */
  async destroy(deadline: Deadline): Promise<void> {
    await Promise.all(this.#consumers.splice(0).map((consumer) => consumer.stop(deadline)));
  }

  logRegisteredEndpoints(): void {
    for (const consumer of this.#consumers) this.#host.logger.info(`Receiving: ${consumer.description}`);
  }

  /** The dead letters of a workflow that are stored in the system database. */
  listDeadLetters(workflow: (...args: never[]) => Promise<unknown>): Promise<DeadLetter[]> {
    const receiving = new Receiving(this.#host);
    return listDeadLetters(receiving, receiving.fullNameOf(workflow));
  }

  /** Deletes a dead letter. */
  deleteDeadLetter(workflow: (...args: never[]) => Promise<unknown>, id: string): Promise<void> {
    const receiving = new Receiving(this.#host);
    return deleteDeadLetter(receiving, receiving.fullNameOf(workflow), id);
  }

  /** The verbs for the dead letters of a workflow: those of an outbox. Call it after launch. */
  dlq(workflow: (...args: never[]) => Promise<unknown>): ReceivedDeadLetters<Message, Options> {
    const receiving = new Receiving(this.#host);
    const functionName = receiving.fullNameOf(workflow);
    const consumer = this.#consumers.find(({ settings }) => settings.functionName === functionName);
    return new ReceivedDeadLetters({ receiving, functionName, settings: consumer?.settings });
  }

  #registrations(): { readonly served: ServedFunction; readonly options: Options }[] {
    return this.#host.getAssociatedInfo(this).flatMap((served) => {
      const { consumers = [] } = (served.methodConfig ?? {}) as FunctionConfig<Options>;
      return consumers.map((options) => ({ served, options }));
    });
  }

  async #newConsumer(
    receiving: Receiving,
    { served, options }: { readonly served: ServedFunction; readonly options: Options },
  ): Promise<Consumer<Message, Options>> {
    const fn = this.#workflowOf(served);
    const functionName = receiving.fullNameOf(fn);
    const orderingKey = options.orderingKey ?? this.#adapter.orderingKey?.(options);
    const wanted = { functionName, queueName: options.queueName, isOrdered: orderingKey !== undefined };
    const queueName = await this.#prepareQueue(receiving, wanted);
    return new Consumer(receiving, {
      adapter: this.#adapter,
      options,
      fn,
      functionName,
      queueName,
      orderingKey,
      batchSize: options.batchSize ?? BATCH_SIZE,
      maxQueueDepth: options.maxQueueDepth ?? QUEUE_DEPTH_MAX,
    });
  }

  #workflowOf({ methodReg }: ServedFunction): UserFunction {
    const { name, className, isInstance, workflowConfig, registeredFunction } = methodReg;
    const fullName = className === '' ? name : `${className}.${name}`;
    if (!workflowConfig) {
      throw new InvalidReceiverError(
        `"${fullName}" cannot receive messages: it is not a workflow. Register it with DBOS.registerWorkflow, or put @DBOS.workflow() below the decorator of the receiver.`,
      );
    }
    if (isInstance) {
      throw new InvalidReceiverError(
        `"${fullName}" cannot receive messages: it is an instance method. Make it static, or register a function.`,
      );
    }
    return registeredFunction;
  }

  /** The queue for the workflows. By default an in-memory queue per function, with another one for ordered messages. */
  async #prepareQueue(
    receiving: Receiving,
    wanted: { readonly functionName: string; readonly queueName: string | undefined; readonly isOrdered: boolean },
  ): Promise<string> {
    const { functionName, queueName, isOrdered } = wanted;
    if (queueName === undefined) {
      const name = `_everstep_receiver${isOrdered ? '_ordered' : ''}.${functionName}`;
      serveQueue(this.#host, name, isOrdered ? { partitionConcurrency: 1 } : {});
      return name;
    }
    serveQueue(this.#host, queueName);
    const isPartitioned = await receiving.isPartitioned(queueName);
    if (isPartitioned !== undefined && isPartitioned !== isOrdered) {
      throw new InvalidReceiverError(
        isOrdered
          ? `Queue "${queueName}" has no partitions, so it cannot keep the order of the messages for "${functionName}". Register it with partitionConcurrency: 1.`
          : `Queue "${queueName}" has partitions, but the messages for "${functionName}" have no key. Set the option orderingKey.`,
      );
    }
    return queueName;
  }
}

function checkCount(name: string, value: number | undefined): void {
  checkOption(positiveInteger, name, value);
}

const durationOption = timed(number({ min: 1, max: INT_MAX }));

/** Refuses what is neither milliseconds nor a number with a unit. */
export function checkDuration(name: string, value: number | DurationText | undefined): void {
  checkOption(durationOption, name, value);
}

function checkOption(check: Check<number>, name: string, value: unknown): void {
  const problem = value === undefined ? undefined : check.find(value);
  if (problem !== undefined) throw new InvalidReceiverError(messageOf(problem, name));
}
