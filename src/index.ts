// The package's public API.
export * as Error from './model/errors/errors.js';
export {
  DBOSStepNondeterminismError,
  DBOSWorkflowConflictError,
  PortableWorkflowError,
} from './model/errors/errors.js';
export { StatusString, type WorkflowStatusString } from './model/status.js';
export type { ErrorClass, ErrorClasses } from './codec/error-classes.js';
export { createDBOS, DBOS, type DBOSInstance } from './facade/dbos.js';
export { Debouncer, type DebouncerConfig } from './facade/debouncer.js';
export {
  type ClientCreateSchedule,
  type ClientEnqueueOptions,
  type ClientSchedule,
  DBOSClient,
  type DBOSClientConfig,
} from './client/client.js';
export type { BorrowedConnection } from './store/transactions/borrowed.js';
export { DebouncerClient, type DebouncerClientConfig } from './client/debouncer-client.js';
export {
  type ApplySchedule,
  type CreateScheduleOptions,
  type ScheduledWorkflowFn,
  type SchedulerConfig,
  SchedulerMode,
} from './facade/schedules.js';
export type {
  ScheduleFilters,
  ScheduleOptions,
  ScheduleUpdate,
  WorkflowSchedule,
} from './control/schedules/schedules.js';
export type { DBOSExternalState } from './control/receiving/event-dispatch.js';
export type { ClassRegistrationView, ExternalRegistration, MethodRegistrationBase } from './facade/associations.js';
export { type ArgDataType, DBOSDataType, MethodParameter } from './engine/registration/method-parameter.js';
export { ArgName } from './facade/arg-name.js';
export type { VersionInfo } from './control/management/versions.js';
export type { ScheduleOverlap } from './model/schedules.js';
export { WorkflowQueue } from './facade/workflow-queue.js';
export { ConfiguredInstance } from './facade/configured-instance.js';
export type {
  AlertHandler,
  DBOSContextOptions,
  DBOSLaunchOptions,
  DBOSLifecycleCallback,
  DBOSMethodMiddlewareInstaller,
  ShutdownDeadline,
  ShutdownOptions,
} from './facade/types.js';
export type { DBOSSpan } from './engine/tracing.js';
export type { ExplanationReason, WorkflowExplanation } from './control/management/explain.js';
export {
  type ApplicationRowCounts,
  DEFAULT_RENAME_BATCH_SIZE,
  type RenameApplicationOptions,
} from './control/management/applications.js';
export type { ForkFromFailureOptions, ForkOptions, ForkRequest, ForkSettings } from './control/management/forks.js';
export type { CancelOptions, ResumeOptions } from './control/management/lifecycle.js';
export type { Archive } from './control/management/archive-target.js';
export { fileArchive } from './control/management/file-archive.js';
export { type S3ArchiveOptions, s3Archive, type S3Like } from './control/management/s3-archive.js';
export type { KeptFor, RetentionConfig, RetentionPolicy } from './model/retention.js';
export type { Duration } from './base/duration.js';
export type {
  ApplyRetentionOptions,
  PlannedRetention,
  RetentionApplied,
} from './control/management/retention-policy.js';
export type { PartitionedHistory, PartitionHistoryOptions } from './control/journal/partitions.js';
export type { GarbageCollected, GarbageCollectOptions } from './control/management/retention.js';
export type { RewindOptions } from './control/management/rewind.js';
export type { HistoryEventType, HistoryLevel } from './model/history.js';
export type {
  AppendedEvent,
  Completion,
  Execution,
  ExecutionStatus,
  HistoryStore,
  NewExecution,
  StoredEvent,
  StoredTimer,
} from './store/journal/history-store.js';
export { openHistoryStore } from './store/journal/open-history-store.js';
export type { ChangeReason } from './control/journal/cancellations.js';
export type { HistoryEvent, HistoryOptions, TailOptions } from './control/journal/history.js';
export type { HistoryDiff, HistoryDifference } from './control/journal/history-diff.js';
export type { HistoryFormat } from './control/journal/history-export.js';
export type { ExportHistoryOptions } from './control/journal/history-verbs.js';
export type { QueueStats, QueueStatsQuery } from './control/queues/queues.js';
export type { SetWorkflowDelayOptions } from './control/queues/reschedule.js';
export type { EnqueueOptions, EnqueueWorkflowOptions, WorkflowIDReusePolicy } from './control/queues/enqueue.js';
export type { BulkStart } from './engine/queues/enqueue.js';
export type {
  QueueConflictResolution,
  QueueParameters,
  QueueRateLimit,
  QueueRecord,
  RegisterQueueOptions,
} from './model/queues.js';
export type { AdoptOptions, DBOSConfig, OtelAttributeFormat } from './engine/config/config.js';
export type { GetEventOptions } from './engine/messaging/events.js';
export type { WorkflowHandle } from './control/runs/outcome.js';
export type { GetResultOptions } from './engine/runs/handles.js';
export type { ReadStreamOffsetOptions, ReadStreamOptions } from './control/messaging/streams.js';
export type {
  PollingOptions,
  PollingOptions as WaitAllOptions,
  PollingOptions as WaitFirstOptions,
  TimeLimit,
} from './control/runs/time-limit.js';
export type { NotificationInfo } from './control/listing/inspection.js';
export type { BulkMessage } from './control/messaging/messages.js';
export type { RecvOptions } from './engine/messaging/messages.js';
export type { FunctionName, InputSchema, WorkflowConfig } from './engine/registration/registry.js';
export type { StartWorkflowParams } from './engine/runs/new-workflow.js';
export type { IncomingRequest, RequestFunction, RequestHandlers, RequestOptions } from './engine/messaging/requests.js';
export type { SerializationOptions } from './control/runs/storable.js';
export type {
  GetWorkflowsInput,
  GetWorkflowsInput as GetQueuedWorkflowsInput,
  WorkflowFilters,
  WorkflowPage,
  WorkflowPageInput,
} from './control/listing/listing.js';
export { type ExportedWorkflow, type ExportSource, toLines } from './control/management/export-format.js';
export type { ExportInput, ImportOptions, ImportResult } from './control/management/transfer.js';
export type { OptionalIndex, OptionalIndexInfo } from './control/listing/indexes.js';
export type {
  GetStepAggregatesInput,
  GetWorkflowAggregatesInput,
  Metric,
  StepAggregate,
  WorkflowAggregate,
} from './control/listing/aggregates.js';
export type { StepInfo, WorkflowStatus } from './control/listing/status.js';
export type { StepsQuery as ListWorkflowStepsOptions } from './control/listing/steps.js';
export type { StepConfig } from './engine/runs/step.js';
export type { StepStatus } from './engine/runs/ambient.js';
export type { ParallelOptions } from './engine/runs/parallel.js';
export type { WaitOptions, WaitResult } from './engine/runs/wait.js';
export type { DBOSSerializer, SerializationRecipe } from './codec/serializer.js';
export type { ContextualMetadata, DLogger, StackTrace } from './base/log.js';
