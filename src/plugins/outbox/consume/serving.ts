// All consumers of an outbox in this process, with what wakes them.
import type { ClientConfig } from 'pg';
import type { DLogger } from '../../../kernel/base/log.js';
import type { Deadline } from '../../../kernel/base/time-limit.js';
import type { Handoff } from '../../../run/plugin.js';
import type { QueueParameters } from '../../../features/queue/queue.js';
import type { OutboxDatabase } from '../database.js';
import type { ErrorRenderer } from '../dead-letters/failure.js';
import type { DlqTable, OutboxTable, StateTable } from '../schema/tables.js';
import type { Consumer, ConsumerHost } from './consumer.js';
import type { WorkflowOptions } from './options.js';
import { consumersOf, type Subscription } from './subscriptions.js';
import { WakeUps } from './wake-ups.js';

export interface ServingOptions {
  readonly engine: Handoff;
  readonly database: OutboxDatabase;
  readonly tables: {
    readonly outbox: OutboxTable;
    readonly dlq: DlqTable | undefined;
    readonly state: StateTable | undefined;
  };
  readonly listenConfig: ClientConfig | undefined;
  readonly renderError: ErrorRenderer | undefined;
  readonly subscriptions: readonly Subscription[];
  /** Makes the engine serve a queue. */
  readonly serveQueue: (name: string, parameters?: QueueParameters) => void;
}

/** Covers lost notifications. Without notifications it is how late a message may be. */
const POLL_MS = 10_000;
const POLL_UNNOTIFIED_MS = 1000;
/** How long the targets of relays may take to close their connections. */
const CLOSE_MS = 5000;

export class Serving {
  readonly #logger: DLogger;
  readonly #consumers: readonly Consumer[];
  readonly #closers: readonly (() => Promise<void>)[];
  readonly #wakeUps: WakeUps;

  constructor(options: ServingOptions) {
    const { engine, database, tables, listenConfig, renderError, subscriptions } = options;
    const { clock, logger } = engine;
    this.#logger = logger;
    this.#closers = subscriptions.flatMap((one) => (one.kind === 'handler' && one.close) || []);
    const isNotified = database.driver.dialect === 'sqlite' || listenConfig !== undefined;
    const host: ConsumerHost = {
      clock,
      logger,
      database,
      table: tables.outbox,
      dlqTable: tables.dlq,
      stateTable: tables.state,
      renderError,
      pollMs: isNotified ? POLL_MS : POLL_UNNOTIFIED_MS,
    };
    this.#consumers = consumersOf(
      { host, engine, wake: (queue) => this.wake(queue), serveQueue: (name, own) => queueFor(options, name, own) },
      subscriptions,
    );
    const { channel } = tables.outbox;
    this.#wakeUps = new WakeUps({ clock, logger, database, channel, listenConfig, wake: (queue) => this.wake(queue) });
  }

  start(): void {
    for (const consumer of this.#consumers) consumer.start();
    this.#wakeUps.start();
  }

  /** Wakes the consumers of the queue; all without one. */
  wake(queue?: string): void {
    for (const consumer of this.#consumers) {
      if (queue === undefined || consumer.queue === queue || consumer.serves?.(queue)) consumer.wake(queue);
    }
  }

  async stop(deadline: Deadline): Promise<void> {
    const stopping = this.#consumers.map((consumer) => consumer.stop(deadline));
    await Promise.all([...stopping, deadline.settles(this.#wakeUps.stop())]);
    const closed = Promise.all(this.#closers.map((close) => close()));
    if (!(await deadline.within(CLOSE_MS).settles(closed))) {
      this.#logger.warn("A relay's connection was not closed in time.");
    }
  }
}

/** The queue for the workflows of a function. By default one in memory, with another for ordered messages. */
function queueFor(
  { serveQueue }: ServingOptions,
  functionName: string,
  { queueName, order }: WorkflowOptions<unknown>,
): string {
  if (queueName !== undefined) {
    serveQueue(queueName);
    return queueName;
  }
  const name = `_everstep_outbox${order === 'key' ? '_ordered' : ''}.${functionName}`;
  serveQueue(name, order === 'key' ? { partitionConcurrency: 1 } : {});
  return name;
}
