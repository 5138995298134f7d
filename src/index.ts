// The public names of the package.
export * as Error from './model/errors.js';
export { DBOSStepNondeterminismError, DBOSWorkflowConflictError, PortableWorkflowError } from './model/errors.js';
export { StatusString, type WorkflowStatusString } from './model/status.js';
export { createDBOS, DBOS, type DBOSInstance } from './facade/dbos.js';
export { Debouncer, type DebouncerConfig } from './facade/debouncer.js';
export {
  type ClientCreateSchedule,
  type ClientEnqueueOptions,
  type ClientSchedule,
  DBOSClient,
  type DBOSClientConfig,
} from './client/client.js';
export type { BorrowedConnection } from './store/borrowed.js';
export { DebouncerClient, type DebouncerClientConfig } from './client/debouncer-client.js';
export {
  type ApplySchedule,
  type CreateScheduleOptions,
  type ScheduledWorkflowFn,
  type SchedulerConfig,
  SchedulerMode,
} from './facade/schedules.js';
export type { ScheduleFilters, ScheduleOptions, ScheduleUpdate, WorkflowSchedule } from './control/schedules.js';
export type { DBOSExternalState } from './control/event-dispatch.js';
export type { ExternalRegistration, MethodParameter, MethodRegistrationBase } from './facade/associations.js';
export type { VersionInfo } from './control/versions.js';
export type { ScheduleOverlap } from './model/schedules.js';
export { WorkflowQueue } from './facade/workflow-queue.js';
export { ConfiguredInstance } from './facade/configured-instance.js';
export type {
  DBOSContextOptions,
  DBOSLifecycleCallback,
  DBOSMethodMiddlewareInstaller,
  ShutdownOptions,
} from './facade/types.js';
export type { ExplanationReason, WorkflowExplanation } from './control/explain.js';
export type { ApplicationRowCounts, RenameApplicationOptions } from './control/applications.js';
export type { ForkFromFailureOptions, ForkOptions, ForkRequest, ForkSettings } from './control/forks.js';
export type { CancelOptions, ResumeOptions } from './control/lifecycle.js';
export type { GarbageCollected, GarbageCollectOptions } from './control/retention.js';
export type { RewindOptions } from './control/rewind.js';
export type { QueueStats, QueueStatsQuery } from './control/queues.js';
export type { SetWorkflowDelayOptions } from './control/waiting.js';
export type { EnqueueOptions, EnqueueWorkflowOptions, WorkflowIDReusePolicy } from './control/enqueue.js';
export type { BulkStart } from './engine/enqueue.js';
export type {
  QueueConflictResolution,
  QueueParameters,
  QueueRateLimit,
  QueueRecord,
  RegisterQueueOptions,
} from './model/queues.js';
export type { DBOSConfig, OtelAttributeFormat } from './engine/config.js';
export type { GetEventOptions } from './engine/events.js';
export type { WorkflowHandle } from './control/outcome.js';
export type { GetResultOptions } from './engine/handles.js';
export type { ReadStreamOffsetOptions, ReadStreamOptions } from './control/streams.js';
export type { PollingOptions, TimeLimit } from './control/time-limit.js';
export type { NotificationInfo } from './control/inspection.js';
export type { BulkMessage } from './control/messages.js';
export type { RecvOptions } from './engine/messages.js';
export type { FunctionName, InputSchema, WorkflowConfig } from './engine/registry.js';
export type { StartWorkflowParams } from './engine/new-workflow.js';
export type { IncomingRequest, RequestFunction, RequestHandlers, RequestOptions } from './engine/requests.js';
export type { SerializationOptions } from './control/storable.js';
export type { GetWorkflowsInput, WorkflowFilters, WorkflowPage, WorkflowPageInput } from './control/listing.js';
export { type ExportedWorkflow, type ExportSource, toLines } from './control/export-format.js';
export type { ExportInput, ImportOptions, ImportResult } from './control/transfer.js';
export type { OptionalIndex, OptionalIndexInfo } from './control/indexes.js';
export type {
  GetStepAggregatesInput,
  GetWorkflowAggregatesInput,
  Metric,
  StepAggregate,
  WorkflowAggregate,
} from './control/aggregates.js';
export type { StepInfo, WorkflowStatus } from './control/status.js';
export type { StepConfig } from './engine/step.js';
export type { StepStatus } from './engine/ambient.js';
export type { WaitOptions, WaitResult } from './engine/wait.js';
export type { DBOSSerializer, SerializationRecipe } from './codec/serializer.js';
export type { ContextualMetadata, DLogger, StackTrace } from './base/log.js';
