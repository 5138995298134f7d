// The queues that this engine knows, and which of them it serves: queues in the database, which may change while it
// runs, and in-memory queues of the application.
import type { DLogger } from '../../kernel/base/log.js';
import { limitsOf, type QueueLimits, type QueueRecord, UNLIMITED, INTERNAL_QUEUE } from './queue.js';
import type { Database } from '../../database/database.js';
import { lookAtQueues, type QueueLook } from './queue-look.sql.js';
import { listQueues } from './queues.sql.js';

export interface Queue {
  readonly name: string;
  readonly limits: QueueLimits;
  /** Whether parked workflows leave their slots. */
  readonly releasesParkedSlots?: boolean;
  /** How often to poll where notifications are not pushed. */
  readonly pollMs: number;
}

export interface KnownQueuesOptions {
  readonly database: Database;
  readonly applicationName: string;
  /** Serve only these and the internal queue; undefined: serve all. */
  readonly listenQueues: readonly string[] | undefined;
  inMemory(): Iterable<QueueRecord>;
  /** Whether a queue is served even if `listenQueues` does not name it. */
  isAlwaysServed(name: string): boolean;
  readonly logger: DLogger;
}

const INTERNAL: Queue = { name: INTERNAL_QUEUE, limits: { whole: UNLIMITED, partition: null }, pollMs: 1000 };

export class KnownQueues {
  readonly #options: KnownQueuesOptions;
  #stored = new Map<string, Queue>();
  #reads = 0;
  /** The number of the read that `#stored` is from. */
  #storedRead = 0;
  readonly #warned = new Set<string>();

  constructor(options: KnownQueuesOptions) {
    this.#options = options;
  }

  /** Reloads the queues in the database. */
  async refresh(): Promise<void> {
    const { database, applicationName } = this.#options;
    const read = ++this.#reads;
    this.#replace(read, await listQueues(database, [applicationName]));
  }

  /** Reloads them, and finds out where work waits. */
  async look(): Promise<QueueLook> {
    const { database, applicationName } = this.#options;
    const read = ++this.#reads;
    const names = [INTERNAL_QUEUE, ...[...this.#options.inMemory()].map(({ name }) => name)];
    const look = await lookAtQueues(database, { applicationName, names });
    this.#replace(read, look.queues);
    return look;
  }

  #replace(read: number, records: readonly QueueRecord[]): void {
    // Reads may overtake each other: an older result must not replace a newer one.
    if (read < this.#storedRead) return;
    this.#storedRead = read;
    const before = this.#stored;
    this.#stored = new Map(records.map((record) => [record.name, toQueue(record)]));
    for (const name of before.keys()) {
      if (!this.#stored.has(name)) this.#options.logger.info(`Queue "${name}" was deleted and is no longer served.`);
    }
  }

  /** A known queue, served or not. In-memory queues win. */
  find(name: string): Queue | undefined {
    return this.findInMemory(name) ?? (name === INTERNAL_QUEUE ? INTERNAL : this.#stored.get(name));
  }

  findInMemory(name: string): Queue | undefined {
    for (const record of this.#options.inMemory()) if (record.name === name) return toQueue(record);
    return undefined;
  }

  /** Without the one that all processes serve. */
  get servedNames(): string[] {
    return this.served.map(({ name }) => name).filter((name) => name !== INTERNAL_QUEUE);
  }

  /** The queues to claim from. */
  get served(): Queue[] {
    const { listenQueues } = this.#options;
    const all = new Map(this.#stored);
    for (const record of this.#options.inMemory()) all.set(record.name, toQueue(record));
    const isWanted = ({ name }: Queue): boolean =>
      listenQueues === undefined || listenQueues.includes(name) || this.#options.isAlwaysServed(name);
    return [INTERNAL, ...[...all.values()].filter(isWanted)];
  }

  /** Log an unknown queue once: workflows under a misspelt name would wait silently. */
  warnIfUnknown(name: string): void {
    if (this.find(name) || this.#warned.has(name)) return;
    this.#warned.add(name);
    this.#options.logger.warn(
      `Queue "${name}" is not known here. Its workflows wait until it is registered with DBOS.registerQueue.`,
    );
  }
}

function toQueue(record: QueueRecord): Queue {
  const { name, pollingIntervalSec, releasesParkedSlots } = record;
  return { name, limits: limitsOf(record), pollMs: pollingIntervalSec * 1000, releasesParkedSlots };
}
