// The public queue class: a queue defined in this process's memory, or stored in the database, where its settings can be
// read and changed while workers run.
import type { DurationText } from '../../kernel/base/duration.js';
import { internals } from '../../kernel/base/internals.js';
import type { Operator } from '../../operator/operator.js';
import { changeQueue, getQueueRecord } from '../../features/queue/queues.js';
import { InvalidQueueError } from '../../kernel/errors/errors.js';
import { isRecord } from '../../kernel/check/validation.js';
import {
  checkQueueName,
  checkQueueParameters,
  type QueueParameters,
  type QueueRateLimit,
  type QueueRateLimitOption,
  type QueueRecord,
  type QueueSettings,
  toQueueParameters,
  toQueueRecord,
} from '../../features/queue/queue.js';

/** A `DBOS` instance, which serves in-memory queues. */
export interface QueueOwner {
  readonly [internals]: { registerMemoryQueue(record: QueueRecord): void };
}

/** A database queue, and how its row is read and changed. */
export class StoredQueue {
  constructor(
    readonly record: QueueRecord,
    readonly read: (name: string) => Promise<QueueRecord>,
    readonly change: (name: string, change: QueueParameters) => Promise<QueueRecord>,
    /** Whether a client has looked it up, not an engine. */
    readonly isClientBound = false,
  ) {}
}

/** A database queue, read and changed through the operator. */
export function queueOf(
  operator: Operator,
  record: QueueRecord,
  { isClientBound = false }: { readonly isClientBound?: boolean } = {},
): WorkflowQueue {
  const read: StoredQueue['read'] = (name) => getQueueRecord(operator, name);
  const change: StoredQueue['change'] = (name, parameters) => changeQueue(operator, name, parameters);
  return new WorkflowQueue(new StoredQueue(record, read, change, isClientBound));
}

function isQueueRecord(value: unknown): value is QueueRecord {
  return isRecord(value) && typeof value['name'] === 'string' && 'isPartitionQueue' in value;
}

/** The default owner of queues: `DBOS` itself. */
let defaultOwner: QueueOwner | undefined;

export function setDefaultQueueOwner(owner: QueueOwner): void {
  defaultOwner = owner;
}

export class WorkflowQueue {
  readonly name: string;
  #record: QueueRecord;
  readonly #stored: StoredQueue | undefined;

  /** Defines an in-memory queue. `owner` is the instance that serves it; defaults to `DBOS`. */
  constructor(name: string, parameters?: QueueParameters, owner?: QueueOwner);
  /** The older form. */
  constructor(name: string, concurrency?: number, rateLimit?: QueueRateLimit);
  /** An existing queue. */
  constructor(known: StoredQueue | QueueRecord);
  constructor(
    nameOrKnown: string | StoredQueue | QueueRecord,
    parametersOrConcurrency?: QueueParameters | number,
    rateLimitOrOwner?: QueueRateLimit | QueueOwner,
  ) {
    if (nameOrKnown instanceof StoredQueue || isQueueRecord(nameOrKnown)) {
      this.#stored = nameOrKnown instanceof StoredQueue ? nameOrKnown : undefined;
      this.#record = nameOrKnown instanceof StoredQueue ? nameOrKnown.record : nameOrKnown;
    } else {
      const rateLimit = rateLimitOrOwner && 'limitPerPeriod' in rateLimitOrOwner ? rateLimitOrOwner : undefined;
      const parameters =
        parametersOrConcurrency !== null && typeof parametersOrConcurrency === 'object'
          ? parametersOrConcurrency
          : { concurrency: parametersOrConcurrency, rateLimit };
      WorkflowQueue.validateQueueRegistration(nameOrKnown, parameters);
      this.#record = toQueueRecord(nameOrKnown, parameters, null);
      const owner = rateLimitOrOwner && internals in rateLimitOrOwner ? rateLimitOrOwner : defaultOwner;
      owner?.[internals].registerMemoryQueue(this.#record);
    }
    this.name = this.#record.name;
  }

  static validateQueueRegistration(name: string, parameters: QueueParameters): void {
    checkQueueName(name);
    checkQueueParameters(parameters);
  }

  static validateQueueParams(parameters: QueueParameters): void {
    checkQueueParameters(parameters);
  }

  static recordFromParams(name: string, parameters: QueueParameters): QueueRecord {
    return toQueueRecord(name, parameters, null);
  }

  /** Whether the queue is stored in the database. */
  get databaseBacked(): boolean {
    return this.#stored !== undefined;
  }

  /** Whether the queue is read and changed through a `DBOSClient`. */
  get clientBound(): boolean {
    return this.#stored?.isClientBound ?? false;
  }

  // The settings this object has cached; the getters below read the row.

  get globalConcurrency(): number | undefined {
    return toQueueParameters(this.#record).globalConcurrency;
  }
  /** The older name of `globalConcurrency`. */
  get concurrency(): number | undefined {
    return this.globalConcurrency;
  }
  get workerConcurrency(): number | undefined {
    return toQueueParameters(this.#record).workerConcurrency;
  }
  get rateLimit(): QueueRateLimit | undefined {
    return toQueueParameters(this.#record).rateLimit;
  }
  get partitionConcurrency(): number | undefined {
    return toQueueParameters(this.#record).partitionConcurrency;
  }
  get partitionWorkerConcurrency(): number | undefined {
    return toQueueParameters(this.#record).partitionWorkerConcurrency;
  }
  get partitionRateLimit(): QueueRateLimit | undefined {
    return toQueueParameters(this.#record).partitionRateLimit;
  }
  get minPollingIntervalMs(): number | undefined {
    return toQueueParameters(this.#record).minPollingIntervalMs;
  }
  get priorityEnabled(): boolean {
    return this.#record.isPriorityEnabled;
  }
  get partitionQueue(): boolean {
    return this.#record.isPartitionQueue;
  }
  get releaseSlotWhileParked(): boolean {
    return this.#record.releasesParkedSlots === true;
  }
  get applicationName(): string | undefined {
    return this.#record.applicationName ?? undefined;
  }

  async getGlobalConcurrency(): Promise<number | undefined> {
    return (await this.#read()).globalConcurrency;
  }
  getConcurrency(): Promise<number | undefined> {
    return this.getGlobalConcurrency();
  }
  async getWorkerConcurrency(): Promise<number | undefined> {
    return (await this.#read()).workerConcurrency;
  }
  async getRateLimit(): Promise<QueueRateLimit | undefined> {
    return (await this.#read()).rateLimit;
  }
  async getPartitionConcurrency(): Promise<number | undefined> {
    return (await this.#read()).partitionConcurrency;
  }
  async getPartitionWorkerConcurrency(): Promise<number | undefined> {
    return (await this.#read()).partitionWorkerConcurrency;
  }
  async getPartitionRateLimit(): Promise<QueueRateLimit | undefined> {
    return (await this.#read()).partitionRateLimit;
  }
  async getMinPollingIntervalMs(): Promise<number | undefined> {
    return (await this.#read()).minPollingIntervalMs;
  }
  async getPriorityEnabled(): Promise<boolean | undefined> {
    return (await this.#read()).priorityEnabled;
  }
  async getPartitionQueue(): Promise<boolean | undefined> {
    return (await this.#read()).partitionQueue;
  }
  async getReleaseSlotWhileParked(): Promise<boolean | undefined> {
    return (await this.#read()).releaseSlotWhileParked ?? false;
  }

  /** Undefined removes a limit. Running workers pick up the change at once. */
  setGlobalConcurrency(value: number | undefined): Promise<void> {
    return this.#change({ globalConcurrency: value });
  }
  /** The older name of `setGlobalConcurrency`. */
  setConcurrency(value: number | undefined): Promise<void> {
    return this.setGlobalConcurrency(value);
  }
  setWorkerConcurrency(value: number | undefined): Promise<void> {
    return this.#change({ workerConcurrency: value });
  }
  setRateLimit(value: QueueRateLimitOption | undefined): Promise<void> {
    return this.#change({ rateLimit: value });
  }
  setPartitionConcurrency(value: number | undefined): Promise<void> {
    return this.#change({ partitionConcurrency: value });
  }
  setPartitionWorkerConcurrency(value: number | undefined): Promise<void> {
    return this.#change({ partitionWorkerConcurrency: value });
  }
  setPartitionRateLimit(value: QueueRateLimitOption | undefined): Promise<void> {
    return this.#change({ partitionRateLimit: value });
  }
  setMinPollingIntervalMs(value: number | DurationText): Promise<void> {
    return this.#change({ minPollingIntervalMs: value });
  }
  setPriorityEnabled(value: boolean): Promise<void> {
    return this.#change({ priorityEnabled: value });
  }
  setPartitionQueue(value: boolean): Promise<void> {
    return this.#change({ partitionQueue: value });
  }
  setReleaseSlotWhileParked(value: boolean): Promise<void> {
    return this.#change({ releaseSlotWhileParked: value });
  }

  async #read(): Promise<QueueSettings> {
    if (this.#stored) this.#record = await this.#stored.read(this.name);
    return toQueueParameters(this.#record);
  }

  async #change(change: QueueParameters): Promise<void> {
    if (!this.#stored) {
      throw new InvalidQueueError(
        `Cannot configure queue "${this.name}": it is defined in memory. Register it with DBOS.registerQueue to change it while workers run.`,
      );
    }
    this.#record = await this.#stored.change(this.name, change);
  }
}
