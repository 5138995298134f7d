// `DBOSClient`: access to an application's system database for programs that run no workflows. It does not migrate the
// database and has no background work. The management verbs come from `Management`.
import type { DurationText } from '../../kernel/base/duration.js';
import { internals } from '../../kernel/base/internals.js';
import { callSite } from '../../kernel/base/log.js';
import type { ErrorClasses } from '../../kernel/codec/error-classes.js';
import type { DBOSSerializer, SerializationRecipe } from '../../kernel/codec/serializer.js';
import { getWorkflow } from '../../features/listing/inspection.js';
import type { WorkflowStatus } from '../../features/listing/status.js';
import {
  forkFromFailure,
  type ForkFromFailureOptions,
  type ForkOptions,
  type ForkRequest,
  type ForkSettings,
  forkWorkflows,
} from '../../features/lifecycle/forks.js';
import { Management } from '../../operator/management.js';
import {
  readAll,
  readOne,
  type ReadStreamOffsetOptions,
  type ReadStreamOptions,
  StreamReader,
} from '../../features/message/streams.js';
import type { EnqueueWorkflowOptions } from '../../features/queue/enqueue.js';
import { registerQueue } from '../../features/queue/queues.js';
import {
  allEnded,
  checkAreHandles,
  checkHandles,
  firstToEnd,
  outcomeBy,
  type WorkflowHandle,
} from '../../operator/outcome.js';
import * as checks from '../../operator/verb-checks.js';
import { filledName, nullish } from '../../kernel/check/validation.js';
import { checkName, type SerializationOptions } from '../../operator/storable.js';
import { deadlineOf, pollMsOf, pollMsOfWait, type PollingOptions, type TimeLimit } from '../../operator/time-limit.js';
import {
  applySchedules,
  createSchedule,
  type ScheduleDefinition,
  type ScheduleOptions,
} from '../../features/schedule/schedules.js';
import { queueOf, type WorkflowQueue } from '../library/workflow-queue.js';
import { DBOSInvalidArgumentError, type JSONValue } from '../../kernel/errors/errors.js';
import type { RegisterQueueOptions } from '../../features/queue/queue.js';
import type { BorrowedConnection } from '../../database/transactions/borrowed.js';
import { ClientOperator } from './client-operator.js';
import { ClientPerformer } from './client-performer.js';
import { type ClientTestSettings, type DBOSClientConfig, resolveClientConfig } from './config.js';
import { enqueue, enqueueIn, send, sendIn } from './enqueueing.js';

export type { DBOSClientConfig };

export type ClientEnqueueOptions = EnqueueWorkflowOptions;

/** A schedule for a workflow given by name. */
export interface ClientSchedule extends ScheduleOptions {
  readonly scheduleName: string;
  readonly workflowName: string;
  readonly workflowClassName?: string;
  readonly schedule: string;
  readonly context?: unknown;
  readonly applicationName?: string;
}

export interface ClientCreateSchedule extends Omit<ClientSchedule, keyof ScheduleOptions> {
  readonly options?: ScheduleOptions;
}

// Arguments and result are typed by the workflow itself.
// eslint-disable-next-line @typescript-eslint/no-explicit-any
type AnyWorkflow = (...args: any[]) => Promise<any>;
type ResultOf<T extends AnyWorkflow> = Awaited<ReturnType<T>>;

export class DBOSClient extends Management<WorkflowQueue> {
  readonly [internals]: ClientPerformer;

  private constructor(operator: ClientOperator) {
    super();
    this[internals] = new ClientPerformer(operator);
  }

  get #operator(): ClientOperator {
    return this[internals].operator;
  }

  /** Connects to the system database, which must be at this library's version; a client does not migrate it. */
  static async create(config: DBOSClientConfig, settings: ClientTestSettings = {}): Promise<DBOSClient> {
    const operator = await ClientOperator.open({ ...resolveClientConfig(config), ...settings });
    return new DBOSClient(operator);
  }

  get applicationName(): string | undefined {
    return this.#operator.applicationName ?? undefined;
  }

  /** How arguments, results and messages are stored. */
  get serializer(): DBOSSerializer {
    return this.#operator.codec.serializer;
  }

  /** Registers a class of yours with the default serializer, as `DBOS.registerSerialization` does for an engine. */
  registerSerialization<T, S extends JSONValue>(recipe: SerializationRecipe<T, S>): void {
    checks.recipeCheck.read(recipe, 'recipe');
    this.#operator.codec.registerRecipe(recipe);
  }

  /** Registers classes of errors of yours, as `DBOS.registerErrors` does for an engine. */
  registerErrors(...classes: ErrorClasses): void {
    checks.errorClasses.read(classes, 'classes');
    this.#operator.codec.registerErrors(classes, { site: callSite() });
  }

  /** Closes the connections. Pending waits fail. */
  destroy(): Promise<void> {
    return this.#operator.close();
  }

  // ── Enqueueing and sending ─────────────────────────────────────────────────────────────────────────────────────

  /** Enqueues a workflow by function name. */
  async enqueue<T extends AnyWorkflow>(
    options: ClientEnqueueOptions,
    ...args: Parameters<T>
  ): Promise<WorkflowHandle<ResultOf<T>>> {
    return this.#operator.handleOfExisting(await enqueue(this.#operator, options, { args }));
  }

  /** Enqueues with arguments that programs in other languages can read. */
  async enqueuePortable<T = unknown>(
    options: ClientEnqueueOptions,
    positionalArgs: unknown[],
    namedArgs?: Record<string, unknown>,
  ): Promise<WorkflowHandle<T>> {
    return this.#operator.handleOfExisting(
      await enqueue(this.#operator, portable(options), { args: positionalArgs, namedArgs }),
    );
  }

  /** Enqueues in your own transaction: the workflow exists if and when it commits. */
  async enqueueInTransaction<T extends AnyWorkflow>(
    connection: BorrowedConnection,
    options: ClientEnqueueOptions,
    ...args: Parameters<T>
  ): Promise<WorkflowHandle<ResultOf<T>>> {
    return this.#operator.handleOf(await enqueueIn(this.#operator, connection, { options, args }));
  }

  async enqueuePortableInTransaction<T = unknown>(
    connection: BorrowedConnection,
    options: ClientEnqueueOptions,
    positionalArgs: unknown[],
    namedArgs?: Record<string, unknown>,
  ): Promise<WorkflowHandle<T>> {
    const given = { options: portable(options), args: positionalArgs, namedArgs };
    return this.#operator.handleOf(await enqueueIn(this.#operator, connection, given));
  }

  /** Sends a message to a workflow. Calls with the same idempotency key send it once. */
  // eslint-disable-next-line max-params -- The signature is that of DBOS.
  async send<T>(
    destinationID: string,
    message: T,
    topic?: string,
    idempotencyKey?: string,
    options: SerializationOptions = {},
  ): Promise<void> {
    return send(this.#operator, { destinationID, message, topic, idempotencyKey, ...options });
  }

  // eslint-disable-next-line max-params -- The signature is that of DBOS.
  async sendInTransaction<T>(
    connection: BorrowedConnection,
    destinationID: string,
    message: T,
    topic?: string,
    idempotencyKey?: string,
    options: SerializationOptions = {},
  ): Promise<void> {
    return sendIn(this.#operator, connection, { destinationID, message, topic, idempotencyKey, ...options });
  }

  // ── Results, events and streams ────────────────────────────────────────────────────────────────────────────────

  retrieveWorkflow<T = unknown>(workflowID: string): WorkflowHandle<Awaited<T>> {
    filledName.read(workflowID, 'workflowID');
    return this.#operator.handleOf(workflowID);
  }

  /** The result; null on timeout. */
  async getResult<T>(workflowID: string, limit: number | DurationText | TimeLimit = {}): Promise<T | null> {
    filledName.read(workflowID, 'workflowID');
    const deadlineAt = deadlineOf(this.#operator.databaseClock, limit);
    return (await outcomeBy(this.#operator, workflowID, { deadlineAt, pollMs: pollMsOf(limit) })) as T | null;
  }

  /** The handle of the first workflow to end. */
  async waitFirst(
    handles: readonly WorkflowHandle<unknown>[],
    options: PollingOptions = {},
  ): Promise<WorkflowHandle<unknown>> {
    const pollMs = pollMsOfWait(options);
    checkHandles(handles);
    const workflowID = await firstToEnd(this.#operator, handles, { pollMs });
    return handles.find((handle) => handle.workflowID === workflowID) as WorkflowHandle<unknown>;
  }

  /** Resolves when all workflows have ended, whatever the outcome. */
  async waitAll<R>(handles: readonly WorkflowHandle<R>[], options: PollingOptions = {}): Promise<WorkflowHandle<R>[]> {
    const pollMs = pollMsOfWait(options);
    checkAreHandles(handles);
    await allEnded(this.#operator, handles, { pollMs });
    return [...handles];
  }

  /** The value of an event; null on timeout, by default after 60 seconds. */
  async getEvent<T>(workflowID: string, key: string, limit?: number | DurationText | TimeLimit): Promise<T | null> {
    const { databaseClock, codec, watchers } = this.#operator;
    checkName('workflowID', workflowID);
    checkName('key', key);
    const deadlineAt = deadlineOf(databaseClock, limit, 60);
    const found = await watchers.events.waitUntil({ workflowID, key }, { deadlineAt, pollMs: pollMsOf(limit) });
    return found ? ((await codec.decodeValue(found.text, found.serialization)) as T) : null;
  }

  /** The values of a stream from its start, or from an offset, to its end. */
  async *readStream<T>(
    workflowID: string,
    key: string,
    options: ReadStreamOptions = {},
  ): AsyncGenerator<T, void, unknown> {
    const reader = new StreamReader(this.#operator, { workflowID, key }, options, undefined);
    yield* readAll(reader) as AsyncGenerator<T, void, unknown>;
  }

  async readStreamOffset<T>(
    workflowID: string,
    key: string,
    offset: number,
    options: ReadStreamOffsetOptions = {},
  ): Promise<T> {
    const reader = new StreamReader(this.#operator, { workflowID, key }, { ...options, offset }, undefined);
    return (await readOne(reader, offset)) as T;
  }

  // ── Workflows ──────────────────────────────────────────────────────────────────────────────────────────────────

  async getWorkflow(workflowID: string): Promise<WorkflowStatus | undefined> {
    filledName.read(workflowID, 'workflowID');
    return (await getWorkflow(this.#operator, workflowID)) ?? undefined;
  }

  /** Starts a copy of a workflow from one of its steps and returns its ID. It has the version of the original. */
  async forkWorkflow(workflowID: string, startStep: number, options: ForkOptions = {}): Promise<string> {
    checks.optionsObject.read(options, 'options');
    const { newWorkflowID, ...settings } = options;
    const [forkedID = ''] = await this.forkWorkflows([{ workflowID, startStep, newWorkflowID }], settings);
    return forkedID;
  }

  /** Forks many workflows in one commit, all or none. Returns the IDs of the forks, in order. */
  async forkWorkflows(requests: readonly ForkRequest[], settings: ForkSettings = {}): Promise<string[]> {
    return forkWorkflows(this.#operator, requests, settings);
  }

  /** Forks each workflow from the step in which it failed, or from another step. */
  async forkFromFailure(workflowIDs: readonly string[], options: ForkFromFailureOptions): Promise<string[]> {
    return forkFromFailure(this.#operator, workflowIDs, options);
  }

  // ── Queues ─────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Registers a queue in the database. By default the settings of an existing one are replaced; see `onConflict`. */
  async registerQueue(
    name: string,
    options: RegisterQueueOptions & { readonly applicationName?: string } = {},
  ): Promise<WorkflowQueue> {
    checks.optionsObject.read(options, 'options');
    const { onConflict = 'always_update', applicationName = this.applicationName ?? null, ...parameters } = options;
    nullish(filledName).read(applicationName, 'options.applicationName');
    if (onConflict === 'update_if_latest_version') {
      throw new DBOSInvalidArgumentError(
        "onConflict cannot be 'update_if_latest_version' here: a client has no application version.",
        'options.onConflict',
      );
    }
    const registration = { name, parameters, onConflict, applicationName, applicationVersion: null };
    return queueOf(this.#operator, await registerQueue(this.#operator, registration), { isClientBound: true });
  }

  // ── Schedules ──────────────────────────────────────────────────────────────────────────────────────────────────

  async createSchedule(given: ClientCreateSchedule): Promise<void> {
    checks.optionsObject.read(given, 'options');
    const { options = {}, ...schedule } = given;
    checks.optionsObject.read(options, 'options.options');
    await createSchedule(this.#operator, toDefinition({ ...options, ...schedule }));
  }

  /** Creates or replaces several schedules, all or none. */
  async applySchedules(schedules: readonly ClientSchedule[]): Promise<void> {
    checks.objects.read(schedules, 'schedules');
    await applySchedules(this.#operator, schedules.map(toDefinition));
  }
}

function portable(options: ClientEnqueueOptions): ClientEnqueueOptions {
  return { ...options, serializationType: 'portable' };
}

function toDefinition({ workflowClassName, ...rest }: ClientSchedule): ScheduleDefinition {
  if (typeof rest.workflowName !== 'string' || rest.workflowName.trim() === '') {
    throw new DBOSInvalidArgumentError('A schedule needs a workflowName.', 'workflowName');
  }
  return { ...rest, workflowClassName: workflowClassName ?? null };
}
