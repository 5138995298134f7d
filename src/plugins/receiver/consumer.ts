// A consumer: the loop that fetches messages, commits their workflows and acknowledges them.
//
//   connecting ──► waiting for headroom ──► fetching ──► committing ──► acknowledging ──► waiting for headroom …
//        ▲                     any failure: close, back off, reconnect             │
//        └─────────────────────────────────────────────────────────────────────────┘
//
// A message is acknowledged after its workflow is committed. After any failure before that, the broker redelivers the
// message. The workflow ID is made from the message, so the workflow is not enqueued twice.
import { type BackoffPolicy, backoffMs } from '../../kernel/base/backoff.js';
import { sleep } from '../../kernel/base/clock.js';
import type { Deadline } from '../../kernel/base/time-limit.js';
import { deferred } from '../../kernel/base/deferred.js';
import { newID } from '../../kernel/base/ids.js';
import { Service } from '../../kernel/base/service.js';
import { withTimeLimit } from '../../kernel/base/time-limit.js';
import { ReceiverUnavailableError } from '../../kernel/errors/errors.js';
import type { EventDispatchState, Receiving } from '../../run/plugin.js';
import type { ConsumerOptions, Source } from './adapter.js';
import { type ConsumerSettings, type DeadMessage, reasonOf, prepareBatch } from './batch.js';
import { toState } from './dead-letters.js';

const RECONNECT: BackoffPolicy = { firstMs: 100, maxMs: 30_000, rate: 2, jitter: 0.5 };
/** How often to check whether a full queue has headroom again. */
const FULL_PAUSE_MS = 100;
/** How long a broker may take to close a connection, and to accept an acknowledgement. */
const CLOSE_MAX_MS = 5_000;
const ANSWER_MAX_MS = 30_000;
/** How long a stop waits for a fetched batch to be committed and acknowledged. */
const STOP_MAX_MS = 5_000;

export class Consumer<Message, Options extends ConsumerOptions<Message>> {
  readonly #settings: ConsumerSettings<Message, Options>;
  readonly #receiving: Receiving;
  readonly #service: Service;
  /** Aborts when a stop has waited long enough. */
  readonly #stopTimeout = new AbortController();
  #source: Source<Message> | undefined;
  /** Messages fetched since the waiting workflows were counted. */
  #sinceCount = 0;
  #headroom = 0;
  #isFull = false;

  constructor(receiving: Receiving, settings: ConsumerSettings<Message, Options>) {
    this.#settings = settings;
    this.#receiving = receiving;
    this.#service = new Service(
      (signal) => this.#run(signal),
      (error) => receiving.logger.error(error),
    );
  }

  get settings(): ConsumerSettings<Message, Options> {
    return this.#settings;
  }

  /** What is read, and by which function, for logs. */
  get description(): string {
    const { adapter, options, functionName } = this.#settings;
    return `${adapter.name} ${adapter.describe(options)} -> ${functionName}`;
  }

  /** Connects for the first time, or fails. */
  async open(): Promise<void> {
    const { adapter, options, functionName } = this.#settings;
    try {
      this.#source = await this.#connect();
    } catch (cause) {
      throw new ReceiverUnavailableError(
        `The ${adapter.name} receiver cannot read ${adapter.describe(options)} for "${functionName}": ${reasonOf(cause)} ` +
          'Check that it exists and can be reached from here.',
        { cause },
      );
    }
  }

  start(): void {
    this.#service.start();
  }

  /** Stops fetching. What was fetched is committed and acknowledged, or goes back to the broker. */
  async stop(deadline: Deadline): Promise<void> {
    const finish = deadline.within(STOP_MAX_MS).onPassed(() => this.#stopTimeout.abort());
    await deadline.settles(this.#service.stop());
    await deadline.settles(this.#disconnect());
    finish();
  }

  #connect(): Promise<Source<Message>> {
    const { adapter, options, functionName, batchSize } = this.#settings;
    const { clock, logger } = this.#receiving;
    const loadPosition = () => this.#receiving.findState(this.#positionName());
    return adapter.connect(options, { clock, logger, functionName, batchSize, loadPosition });
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { clock, logger } = this.#receiving;
    for (let failures = 0; !signal.aborted;) {
      try {
        this.#source ??= await this.#reconnect(signal, failures);
        const max = await this.#waitForHeadroom(signal);
        const messages = await this.#source.fetch(max, signal);
        if (messages.length > 0) await this.#handle(this.#source, messages);
        failures = 0;
      } catch (error) {
        if (signal.aborted) break;
        failures += 1;
        logger.warn(`${this.description}: ${reasonOf(error)} Retrying with backoff.`);
        await this.#disconnect();
        await sleep(clock, backoffMs(RECONNECT, failures), signal).catch(() => {
          // Stopped: the loop ends.
        });
      }
    }
  }

  async #reconnect(signal: AbortSignal, failures: number): Promise<Source<Message>> {
    const source = await this.#connect();
    if (signal.aborted) {
      await source.close();
      signal.throwIfAborted();
    }
    if (failures > 0) this.#receiving.logger.info(`${this.description}: reconnected.`);
    return source;
  }

  async #disconnect(): Promise<void> {
    const source = this.#source;
    this.#source = undefined;
    if (!source) return;
    await this.#within(CLOSE_MAX_MS, source.close()).catch((error: unknown) => {
      this.#receiving.logger.debug(`${this.description}: cannot close the connection: ${reasonOf(error)}`);
    });
  }

  /** Waits until the queue has headroom, and returns how much, up to a batch. */
  async #waitForHeadroom(signal: AbortSignal): Promise<number> {
    const { queueName, batchSize, maxQueueDepth } = this.#settings;
    const { clock, logger } = this.#receiving;
    // Far from the limit, counting once per batch is enough.
    if (this.#headroom === batchSize && this.#sinceCount < batchSize) return batchSize;
    for (;;) {
      const waiting = await this.#receiving.countWaiting(queueName, maxQueueDepth, signal);
      this.#headroom = Math.min(batchSize, maxQueueDepth - waiting);
      this.#sinceCount = 0;
      if (this.#headroom > 0) break;
      if (!this.#isFull) {
        logger.warn(`${this.description}: queue "${queueName}" holds ${maxQueueDepth} workflows. Pausing fetches.`);
      }
      this.#isFull = true;
      await sleep(clock, FULL_PAUSE_MS, signal);
    }
    if (this.#isFull) logger.info(`${this.description}: resuming fetches.`);
    this.#isFull = false;
    return this.#headroom;
  }

  async #handle(source: Source<Message>, messages: readonly Message[]): Promise<void> {
    const { workflows, dead } = await prepareBatch(this.#receiving, this.#settings, messages);
    for (const { error } of dead) this.#receiving.logger.error(`${this.description}: ${reasonOf(error)}`);
    const states = [...this.#deadLetterStates(dead), ...this.#position(source, messages)];
    await this.#receiving.commit(workflows, { states, signal: this.#stopTimeout.signal });
    this.#sinceCount += messages.length;
    const rejected = await this.#dispose(source, dead);
    const accepted = messages.filter((message) => !rejected.has(message));
    if (accepted.length > 0) await this.#within(ANSWER_MAX_MS, source.acknowledge(accepted));
  }

  /** The dead letters to store in the same commit as the workflows. */
  #deadLetterStates(dead: readonly DeadMessage<Message>[]): EventDispatchState[] {
    const { options, functionName } = this.#settings;
    if ((options.deadLetter ?? 'keep') !== 'keep') return [];
    const receivedAt = this.#receiving.clock.now();
    return dead.map(({ message, error, workflowID }) =>
      toState({ id: workflowID ?? newID(), functionName, receivedAt, error: error.message, message }),
    );
  }

  /** Passes dead letters to the broker or to the user's function. Returns those that were rejected to the broker. */
  async #dispose(source: Source<Message>, dead: readonly DeadMessage<Message>[]): Promise<Set<Message>> {
    const { deadLetter = 'keep' } = this.#settings.options;
    if (deadLetter === 'keep') return new Set();
    for (const { message, error } of dead) {
      if (deadLetter === 'broker') await this.#within(ANSWER_MAX_MS, Promise.resolve(source.reject?.(message, error)));
      else await deadLetter(message, error);
    }
    return new Set(deadLetter === 'broker' ? dead.map(({ message }) => message) : []);
  }

  #positionName(): Pick<EventDispatchState, 'service' | 'workflowFnName' | 'key'> {
    const { adapter, options, functionName } = this.#settings;
    return {
      service: `everstep.receiver.${adapter.name}`,
      workflowFnName: functionName,
      key: adapter.describe(options),
    };
  }

  #position(source: Source<Message>, messages: readonly Message[]): EventDispatchState[] {
    const position = source.positionAfter?.(messages);
    return position ? [{ ...this.#positionName(), ...position }] : [];
  }

  /** Awaits the broker, with a time limit and until a stop times out. */
  async #within<T>(limitMs: number, promise: Promise<T>): Promise<T> {
    const { signal } = this.#stopTimeout;
    const stopped = deferred<never>();
    const onAbort = (): void => stopped.reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) onAbort();
    try {
      const first = Promise.race([promise, stopped.promise]);
      return await withTimeLimit(this.#receiving.clock, limitMs, first, () => {
        throw new ReceiverUnavailableError(`The broker has not answered for ${limitMs / 1000} seconds.`);
      });
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }
}
