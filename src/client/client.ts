// `DBOSClient`: what a program may do with an application's system database without running any workflow. It needs no
// migrations and no background work; each member is a line or two over the control room.
import {
  type ApplicationRowCounts,
  renameApplication,
  type RenameApplicationOptions,
} from '../control/management/applications.js';
import {
  getMetrics,
  type GetStepAggregatesInput,
  getStepAggregates,
  type GetWorkflowAggregatesInput,
  getWorkflowAggregates,
  type Metric,
  type StepAggregate,
  type WorkflowAggregate,
} from '../control/listing/aggregates.js';
import { setWorkflowAttributes, updateWorkflowAttributes } from '../control/management/attributes.js';
import type { ExportedWorkflow, ExportSource } from '../control/management/export-format.js';
import {
  createOptionalIndex,
  dropOptionalIndex,
  listOptionalIndexes,
  type OptionalIndex,
  type OptionalIndexInfo,
} from '../control/listing/indexes.js';
import {
  type ExportInput,
  exportWorkflows,
  type ImportOptions,
  type ImportResult,
  importWorkflows,
} from '../control/management/transfer.js';
import {
  countWorkflows,
  type GetWorkflowsInput,
  iterateWorkflows,
  listQueuedWorkflows,
  listWorkflowPage,
  listWorkflows,
  type WorkflowFilters,
  type WorkflowPage,
  type WorkflowPageInput,
} from '../control/listing/listing.js';
import type { DBOSSerializer, SerializationRecipe } from '../codec/serializer.js';
import { putOff } from '../control/queues/debounce.js';
import type { EnqueueWorkflowOptions } from '../control/queues/enqueue.js';
import { explainWorkflow, type WorkflowExplanation } from '../control/management/explain.js';
import {
  getAllEvents,
  getAllNotifications,
  getAllStreamEntries,
  getWorkflow,
  type NotificationInfo,
} from '../control/listing/inspection.js';
import {
  forkFromFailure,
  type ForkFromFailureOptions,
  type ForkOptions,
  type ForkRequest,
  type ForkSettings,
  forkWorkflows,
} from '../control/management/forks.js';
import {
  type CancelOptions,
  cancelWorkflows,
  deleteWorkflows,
  type ResumeOptions,
  resumeWorkflows,
} from '../control/management/lifecycle.js';
import {
  garbageCollect,
  type GarbageCollected,
  type GarbageCollectOptions,
  globalTimeout,
} from '../control/management/retention.js';
import { type RewindOptions, rewindWorkflow } from '../control/management/rewind.js';
import { allEnded, checkHandles, firstToEnd, outcomeBy, type WorkflowHandle } from '../control/runs/outcome.js';
import {
  deleteQueue,
  findQueueRecord,
  getQueueStats,
  listQueueRecords,
  pauseQueue,
  type QueueStats,
  type QueueStatsQuery,
  registerQueue,
  resumeQueue,
} from '../control/queues/queues.js';
import {
  applySchedules,
  backfillSchedule,
  createSchedule,
  deleteSchedule,
  getSchedule,
  listSchedules,
  nextRuns,
  pauseSchedule,
  resumeSchedule,
  type ScheduleDefinition,
  type ScheduleFilters,
  type ScheduleOptions,
  type ScheduleUpdate,
  triggerSchedule,
  updateSchedule,
  type WorkflowSchedule,
} from '../control/schedules/schedules.js';
import type { StepInfo, WorkflowStatus } from '../control/listing/status.js';
import { listWorkflowSteps, type StepsQuery } from '../control/listing/steps.js';
import { checkName, type SerializationOptions } from '../control/runs/storable.js';
import {
  readAll,
  readOne,
  type ReadStreamOffsetOptions,
  type ReadStreamOptions,
  StreamReader,
} from '../control/messaging/streams.js';
import { checkPolling, deadlineOf, type PollingOptions, type TimeLimit } from '../control/runs/time-limit.js';
import {
  getLatestApplicationVersion,
  listApplicationVersions,
  setLatestApplicationVersion,
  type SetLatestVersionOptions,
  type VersionInfo,
} from '../control/management/versions.js';
import { setWorkflowDelay, type SetWorkflowDelayOptions, setWorkflowPriority } from '../control/queues/waiting.js';
import { queueOf, type WorkflowQueue } from '../facade/workflow-queue.js';
import { DBOSError, type JSONValue } from '../model/errors/errors.js';
import type { RegisterQueueOptions } from '../model/queues.js';
import type { BorrowedConnection } from '../store/transactions/borrowed.js';
import type { Bounce } from '../store/queues/debounce.js';
import { ClientHandle } from './client-handle.js';
import { ClientOperator } from './client-operator.js';
import { type ClientTestSettings, type DBOSClientConfig, resolveClientConfig } from './config.js';
import { enqueue, enqueueIn, send, sendIn } from './enqueueing.js';

export type { DBOSClientConfig };

export type ClientEnqueueOptions = EnqueueWorkflowOptions;

/** A schedule for a workflow that is known by name. */
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

// A workflow takes and gives anything; its own type says what.
// eslint-disable-next-line @typescript-eslint/no-explicit-any
type AnyWorkflow = (...args: any[]) => Promise<any>;
type ResultOf<T extends AnyWorkflow> = Awaited<ReturnType<T>>;

export class DBOSClient {
  readonly #operator: ClientOperator;

  private constructor(operator: ClientOperator) {
    this.#operator = operator;
  }

  /** Connects to the system database. It must be at the version of this library; a client migrates nothing. */
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

  /** For Everstep's own command line and HTTP interface. */
  get operator(): ClientOperator {
    return this.#operator;
  }

  /** Teaches the default serializer a class of yours, as `DBOS.registerSerialization` does for an engine. */
  registerSerialization<T, S extends JSONValue>(recipe: SerializationRecipe<T, S>): void {
    this.#operator.codec.registerRecipe(recipe);
  }

  /** Closes the connections. Whoever still waits gets an error. */
  destroy(): Promise<void> {
    return this.#operator.close();
  }

  // ── Enqueueing and sending ─────────────────────────────────────────────────────────────────────────────────────

  /** Enqueues a workflow by the name of its function. */
  async enqueue<T extends AnyWorkflow>(
    options: ClientEnqueueOptions,
    ...args: Parameters<T>
  ): Promise<WorkflowHandle<ResultOf<T>>> {
    return this.#handleOf(await enqueue(this.#operator, options, { args }));
  }

  /** Enqueues with arguments that programs in other languages can read. */
  async enqueuePortable<T = unknown>(
    options: ClientEnqueueOptions,
    positionalArgs: unknown[],
    namedArgs?: Record<string, unknown>,
  ): Promise<WorkflowHandle<T>> {
    return this.#handleOf(await enqueue(this.#operator, portable(options), { args: positionalArgs, namedArgs }));
  }

  /** Enqueues in a transaction of your own: the workflow is there if and when it commits. */
  async enqueueInTransaction<T extends AnyWorkflow>(
    connection: BorrowedConnection,
    options: ClientEnqueueOptions,
    ...args: Parameters<T>
  ): Promise<WorkflowHandle<ResultOf<T>>> {
    return this.#handleOf(await enqueueIn(this.#operator, connection, { options, args }));
  }

  async enqueuePortableInTransaction<T = unknown>(
    connection: BorrowedConnection,
    options: ClientEnqueueOptions,
    positionalArgs: unknown[],
    namedArgs?: Record<string, unknown>,
  ): Promise<WorkflowHandle<T>> {
    const given = { options: portable(options), args: positionalArgs, namedArgs };
    return this.#handleOf(await enqueueIn(this.#operator, connection, given));
  }

  /** Sends a message to a workflow. With an idempotency key it is sent once, however often this is called. */
  // The order of the parameters is that of DBOS.
  // eslint-disable-next-line max-params
  send<T>(
    destinationID: string,
    message: T,
    topic?: string,
    idempotencyKey?: string,
    options: SerializationOptions = {},
  ): Promise<void> {
    return send(this.#operator, { destinationID, message, topic, idempotencyKey, ...options });
  }

  // eslint-disable-next-line max-params
  sendInTransaction<T>(
    connection: BorrowedConnection,
    destinationID: string,
    message: T,
    topic?: string,
    idempotencyKey?: string,
    options: SerializationOptions = {},
  ): Promise<void> {
    return sendIn(this.#operator, connection, { destinationID, message, topic, idempotencyKey, ...options });
  }

  /** For `DebouncerClient`. Gives the ID of the workflow that stands for the key. */
  enqueueDebounced(options: ClientEnqueueOptions, timeoutMs: number | null, args: unknown[]): Promise<string> {
    return enqueue(this.#operator, options, { args, debouncing: { timeoutMs } });
  }

  /** For `DebouncerClient`. Null if the key is free. */
  debounceDelayedWorkflow(bounce: Bounce): Promise<string | null> {
    return putOff(this.#operator, bounce);
  }

  // ── Results, events and streams ────────────────────────────────────────────────────────────────────────────────

  retrieveWorkflow<T = unknown>(workflowID: string): WorkflowHandle<Awaited<T>> {
    return this.#handleOf(workflowID);
  }

  /** The result; null when the time is up. */
  async getResult<T>(workflowID: string, limit: number | TimeLimit = {}): Promise<T | null> {
    const deadlineAt = deadlineOf(this.#operator.clock, limit);
    return (await outcomeBy(this.#operator, workflowID, { deadlineAt })) as T | null;
  }

  /** The handle of the first workflow to have ended. */
  async waitFirst(
    handles: readonly WorkflowHandle<unknown>[],
    options: PollingOptions = {},
  ): Promise<WorkflowHandle<unknown>> {
    checkPolling(options);
    checkHandles(handles);
    const workflowID = await firstToEnd(this.#operator, idsOf(handles));
    return handles.find((handle) => handle.workflowID === workflowID) as WorkflowHandle<unknown>;
  }

  /** Resolves when all workflows have ended, however they have. */
  async waitAll<R>(handles: readonly WorkflowHandle<R>[], options: PollingOptions = {}): Promise<WorkflowHandle<R>[]> {
    checkPolling(options);
    await allEnded(this.#operator, idsOf(handles));
    return [...handles];
  }

  /** The value of an event; null when the time is up, after 60 s unless said otherwise. */
  async getEvent<T>(workflowID: string, key: string, limit?: number | TimeLimit): Promise<T | null> {
    const { clock, codec, watchers } = this.#operator;
    checkName('ID of the workflow', workflowID);
    checkName('key of an event', key);
    const found = await watchers.events.waitUntil({ workflowID, key }, { deadlineAt: deadlineOf(clock, limit, 60) });
    return found ? ((await codec.decodeValue(found.text, found.serialization)) as T) : null;
  }

  /** The values of a stream from its beginning, or from an offset, to its end. */
  readStream<T>(workflowID: string, key: string, options: ReadStreamOptions = {}): AsyncGenerator<T, void, unknown> {
    const reader = new StreamReader(this.#operator, { workflowID, key }, options, undefined);
    return readAll(reader) as AsyncGenerator<T, void, unknown>;
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

  getAllEvents(workflowID: string): Promise<Record<string, unknown>> {
    return getAllEvents(this.#operator, workflowID);
  }

  getAllNotifications(workflowID: string): Promise<NotificationInfo[]> {
    return getAllNotifications(this.#operator, workflowID);
  }

  getAllStreamEntries(workflowID: string): Promise<Record<string, unknown[]>> {
    return getAllStreamEntries(this.#operator, workflowID);
  }

  // ── Workflows ──────────────────────────────────────────────────────────────────────────────────────────────────

  async getWorkflow(workflowID: string): Promise<WorkflowStatus | undefined> {
    return (await getWorkflow(this.#operator, workflowID)) ?? undefined;
  }

  /** Undefined if there is no such workflow. */
  listWorkflowSteps(workflowID: string, options: StepsQuery = {}): Promise<StepInfo[] | undefined> {
    return listWorkflowSteps(this.#operator, workflowID, options);
  }

  /** The workflows that match, in the order of their creation. */
  listWorkflows(input: GetWorkflowsInput = {}): Promise<WorkflowStatus[]> {
    return listWorkflows(this.#operator, input);
  }

  /** The workflows that match and are in a queue: enqueued, delayed or running. Without their outcomes. */
  listQueuedWorkflows(input: GetWorkflowsInput = {}): Promise<WorkflowStatus[]> {
    return listQueuedWorkflows(this.#operator, input);
  }

  /** A page of the workflows that match, and where the next one begins. */
  listWorkflowPage(input: WorkflowPageInput = {}): Promise<WorkflowPage> {
    return listWorkflowPage(this.#operator, input);
  }

  /** All workflows that match, one after the other, however many there are. */
  iterateWorkflows(input: WorkflowPageInput = {}): AsyncGenerator<WorkflowStatus, void, undefined> {
    return iterateWorkflows(this.#operator, input);
  }

  /** How many workflows match. */
  countWorkflows(filters: WorkflowFilters = {}): Promise<number> {
    return countWorkflows(this.#operator, filters);
  }

  getWorkflowAggregates(input: GetWorkflowAggregatesInput): Promise<WorkflowAggregate[]> {
    return getWorkflowAggregates(this.#operator, input);
  }

  getStepAggregates(input: GetStepAggregatesInput): Promise<StepAggregate[]> {
    return getStepAggregates(this.#operator, input);
  }

  /** How many workflows were created and steps completed, by name, from a time on and before another. */
  getMetrics(startTime: string, endTime: string, applicationNames?: readonly string[]): Promise<Metric[]> {
    return getMetrics(this.#operator, { startTime, endTime }, applicationNames);
  }

  /** Changes the attributes that are named; null takes a name out. */
  updateWorkflowAttributes(workflowID: string, attributes: Record<string, unknown>): Promise<void> {
    return updateWorkflowAttributes(this.#operator, workflowID, attributes);
  }

  /** Puts the attributes in place of all that the workflow has; null leaves it without any. */
  setWorkflowAttributes(workflowID: string, attributes: Record<string, unknown> | null): Promise<void> {
    return setWorkflowAttributes(this.#operator, workflowID, attributes);
  }

  /** The workflows that match, whole: with steps, events, streams and messages, and with their children if wanted. */
  exportWorkflows(input: ExportInput = {}): AsyncGenerator<ExportedWorkflow, void, undefined> {
    return exportWorkflows(this.#operator, input);
  }

  /** Puts exported workflows in: objects, or the pieces of a text. Each is there whole or not at all. */
  importWorkflows(source: ExportSource, options: ImportOptions = {}): Promise<ImportResult> {
    return importWorkflows(this.#operator, source, options);
  }

  /** The indexes that you can have for filters that you often use, and whether they are there. */
  listOptionalIndexes(): Promise<OptionalIndexInfo[]> {
    return listOptionalIndexes(this.#operator);
  }

  /** Builds an index for a filter. On Postgres work goes on meanwhile; on SQLite writers wait. */
  createOptionalIndex(index: OptionalIndex): Promise<void> {
    return createOptionalIndex(this.#operator, index);
  }

  dropOptionalIndex(index: OptionalIndex): Promise<void> {
    return dropOptionalIndex(this.#operator, index);
  }

  /** Says why a workflow is in the state that it is in: above all, why it has not started. */
  explainWorkflow(workflowID: string): Promise<WorkflowExplanation> {
    return explainWorkflow(this.#operator, workflowID);
  }

  cancelWorkflow(workflowID: string, options: CancelOptions = {}): Promise<void> {
    return cancelWorkflows(this.#operator, [workflowID], options);
  }

  cancelWorkflows(workflowIDs: readonly string[], options: CancelOptions = {}): Promise<void> {
    return cancelWorkflows(this.#operator, workflowIDs, options);
  }

  async resumeWorkflow<T>(workflowID: string, options: ResumeOptions = {}): Promise<WorkflowHandle<Awaited<T>>> {
    await resumeWorkflows(this.#operator, [workflowID], options);
    return this.#handleOf(workflowID);
  }

  async resumeWorkflows<T>(
    workflowIDs: readonly string[],
    options: ResumeOptions = {},
  ): Promise<WorkflowHandle<Awaited<T>>[]> {
    await resumeWorkflows(this.#operator, workflowIDs, options);
    return workflowIDs.map((workflowID) => this.#handleOf(workflowID));
  }

  deleteWorkflow(workflowID: string, deleteChildren = false): Promise<void> {
    return deleteWorkflows(this.#operator, [workflowID], { deleteChildren });
  }

  /** Deletes workflows and all that belongs to them, in whatever state they are. */
  deleteWorkflows(workflowIDs: readonly string[], deleteChildren = false): Promise<void> {
    return deleteWorkflows(this.#operator, workflowIDs, { deleteChildren });
  }

  /** Starts a copy of a workflow from one of its steps and gives its ID. It has the version of the original. */
  async forkWorkflow(workflowID: string, startStep: number, options: ForkOptions = {}): Promise<string> {
    const { newWorkflowID, ...settings } = options;
    const [forkedID = ''] = await this.forkWorkflows([{ workflowID, startStep, newWorkflowID }], settings);
    return forkedID;
  }

  /** Forks many workflows in one commit: all of them, or none. Gives the IDs of the forks, in order. */
  forkWorkflows(requests: readonly ForkRequest[], settings: ForkSettings = {}): Promise<string[]> {
    return forkWorkflows(this.#operator, requests, settings);
  }

  /** Forks workflows from the step in which each has failed, or from another one that is described. */
  forkFromFailure(workflowIDs: readonly string[], options: ForkFromFailureOptions): Promise<string[]> {
    return forkFromFailure(this.#operator, workflowIDs, options);
  }

  /** Lets a workflow that has ended run again under its own ID. What data sources keep of its steps stays. */
  async rewindWorkflow<T>(workflowID: string, options: RewindOptions = {}): Promise<WorkflowHandle<Awaited<T>>> {
    await rewindWorkflow(this.#operator, workflowID, options);
    return this.#handleOf(workflowID);
  }

  /** Deletes old workflows that have ended, in small commits beside the work that goes on. */
  garbageCollect(options: GarbageCollectOptions): Promise<GarbageCollected> {
    return garbageCollect(this.#operator, options);
  }

  /** Cancels all workflows that were created at this time or before and have not ended. Gives their number. */
  globalTimeout(cutoffEpochTimestampMs: number): Promise<number> {
    return globalTimeout(this.#operator, cutoffEpochTimestampMs);
  }

  setWorkflowPriority(workflowID: string, priority: number): Promise<void> {
    return setWorkflowPriority(this.#operator, workflowID, priority);
  }

  setWorkflowDelay(workflowID: string, options: number | SetWorkflowDelayOptions): Promise<void> {
    return setWorkflowDelay(this.#operator, workflowID, options);
  }

  // ── Queues ─────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Keeps a queue in the database. Settings of one that is there are replaced unless `onConflict` says otherwise. */
  async registerQueue(
    name: string,
    options: RegisterQueueOptions & { readonly applicationName?: string } = {},
  ): Promise<WorkflowQueue> {
    const { onConflict = 'always_update', applicationName = this.applicationName ?? null, ...parameters } = options;
    if (onConflict === 'update_if_latest_version') {
      throw new DBOSError("A client has no version of its own, so onConflict cannot be 'update_if_latest_version'.");
    }
    const registration = { name, parameters, onConflict, applicationName, applicationVersion: null };
    return queueOf(this.#operator, await registerQueue(this.#operator, registration));
  }

  async retrieveQueue(name: string): Promise<WorkflowQueue | null> {
    const record = await findQueueRecord(this.#operator, name);
    return record && queueOf(this.#operator, record);
  }

  deleteQueue(name: string): Promise<void> {
    return deleteQueue(this.#operator, name);
  }

  async listQueues(applicationName?: string | string[]): Promise<WorkflowQueue[]> {
    const records = await listQueueRecords(this.#operator, applicationName);
    return records.map((record) => queueOf(this.#operator, record));
  }

  /** No process takes workflows from the queue until it is resumed. */
  pauseQueue(name: string): Promise<void> {
    return pauseQueue(this.#operator, name);
  }

  resumeQueue(name: string): Promise<void> {
    return resumeQueue(this.#operator, name);
  }

  getQueueStats(query: QueueStatsQuery = {}): Promise<QueueStats[]> {
    return getQueueStats(this.#operator, query);
  }

  // ── Schedules ──────────────────────────────────────────────────────────────────────────────────────────────────

  async createSchedule({ options = {}, ...schedule }: ClientCreateSchedule): Promise<void> {
    await createSchedule(this.#operator, toDefinition({ ...options, ...schedule }));
  }

  listSchedules(filters: ScheduleFilters = {}): Promise<WorkflowSchedule[]> {
    return listSchedules(this.#operator, filters);
  }

  getSchedule(name: string): Promise<WorkflowSchedule | null> {
    return getSchedule(this.#operator, name);
  }

  updateSchedule(name: string, updates: ScheduleUpdate): Promise<void> {
    return updateSchedule(this.#operator, name, updates);
  }

  deleteSchedule(name: string): Promise<void> {
    return deleteSchedule(this.#operator, name);
  }

  pauseSchedule(name: string): Promise<void> {
    return pauseSchedule(this.#operator, name);
  }

  resumeSchedule(name: string): Promise<void> {
    return resumeSchedule(this.#operator, name);
  }

  /** Creates or redefines several schedules, all or none. */
  async applySchedules(schedules: readonly ClientSchedule[]): Promise<void> {
    await applySchedules(this.#operator, schedules.map(toDefinition));
  }

  async triggerSchedule(name: string): Promise<WorkflowHandle<unknown>> {
    return this.#handleOf(await triggerSchedule(this.#operator, name));
  }

  async backfillSchedule(name: string, start: Date, end: Date): Promise<WorkflowHandle<unknown>[]> {
    const workflowIDs = await backfillSchedule(this.#operator, name, { start, end });
    return workflowIDs.map((workflowID) => this.#handleOf(workflowID));
  }

  nextRuns(schedule: Parameters<typeof nextRuns>[1], count: number): Promise<Date[]> {
    return nextRuns(this.#operator, schedule, count);
  }

  // ── Applications and their versions ────────────────────────────────────────────────────────────────────────────

  listApplicationVersions(): Promise<VersionInfo[]> {
    return listApplicationVersions(this.#operator);
  }

  getLatestApplicationVersion(): Promise<VersionInfo> {
    return getLatestApplicationVersion(this.#operator);
  }

  setLatestApplicationVersion(versionName: string, options: SetLatestVersionOptions = {}): Promise<void> {
    return setLatestApplicationVersion(this.#operator, versionName, options);
  }

  /** Gives all that belongs to an application another name. No process of either name should run meanwhile. */
  renameApplication(
    oldName: string | undefined,
    newName: string,
    options: RenameApplicationOptions = {},
  ): Promise<ApplicationRowCounts> {
    return renameApplication(this.#operator, { oldName, newName }, options);
  }

  #handleOf<R>(workflowID: string): WorkflowHandle<R> {
    return new ClientHandle<R>(this.#operator, workflowID);
  }
}

function portable(options: ClientEnqueueOptions): ClientEnqueueOptions {
  return { ...options, serializationType: 'portable' };
}

function idsOf(handles: readonly WorkflowHandle<unknown>[]): string[] {
  return handles.map(({ workflowID }) => workflowID);
}

function toDefinition({ workflowClassName, ...rest }: ClientSchedule): ScheduleDefinition {
  if (typeof rest.workflowName !== 'string' || rest.workflowName.trim() === '') {
    throw new DBOSError('A schedule needs a workflowName.');
  }
  return { ...rest, workflowClassName: workflowClassName ?? null };
}
