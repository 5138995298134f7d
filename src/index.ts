// The package's public API.
export * as Error from './kernel/errors/errors.js';
export {
  DBOSStepNondeterminismError,
  DBOSWorkflowConflictError,
  PortableWorkflowError,
} from './kernel/errors/errors.js';
export { StatusString, type WorkflowStatusString } from './kernel/workflow/status.js';
export type { ErrorClass, ErrorClasses } from './kernel/codec/error-classes.js';
export { createDBOS, DBOS, type DBOSInstance } from './faces/library/dbos.js';
export { Debouncer, type DebouncerConfig } from './faces/library/debouncer.js';
export {
  type ClientCreateSchedule,
  type ClientEnqueueOptions,
  type ClientSchedule,
  DBOSClient,
  type DBOSClientConfig,
} from './faces/client/client.js';
export type { BorrowedConnection } from './database/transactions/borrowed.js';
export { DebouncerClient, type DebouncerClientConfig } from './faces/client/debouncer-client.js';
export {
  type ApplySchedule,
  type CreateScheduleOptions,
  type ScheduledWorkflowFn,
  type SchedulerConfig,
  SchedulerMode,
} from './faces/library/schedules.js';
export type {
  ScheduleFilters,
  ScheduleOptions,
  ScheduleUpdate,
  WorkflowSchedule,
} from './features/schedule/schedules.js';
export type { DBOSExternalState } from './operator/event-dispatch.js';
export type {
  ClassRegistrationView,
  ExternalRegistration,
  MethodRegistrationBase,
} from './faces/library/associations.js';
export { type ArgDataType, DBOSDataType, MethodParameter } from './run/registration/method-parameter.js';
export { ArgName } from './faces/library/arg-name.js';
export type { VersionInfo } from './features/version/versions.js';
export type { ScheduleOverlap } from './features/schedule/schedule.js';
export { WorkflowQueue } from './faces/library/workflow-queue.js';
export { ConfiguredInstance } from './faces/library/configured-instance.js';
export type {
  AlertHandler,
  DBOSContextOptions,
  DBOSLaunchOptions,
  DBOSLifecycleCallback,
  DBOSMethodMiddlewareInstaller,
  ShutdownDeadline,
  ShutdownOptions,
} from './faces/library/types.js';
export type { DBOSSpan } from './run/tracing.js';
export type { ExplanationReason, WorkflowExplanation } from './features/diagnosis/explain.js';
export {
  type ApplicationRowCounts,
  DEFAULT_RENAME_BATCH_SIZE,
  type RenameApplicationOptions,
} from './features/version/applications.js';
export type { ForkFromFailureOptions, ForkOptions, ForkRequest, ForkSettings } from './features/lifecycle/forks.js';
export type { CancelOptions, ResumeOptions } from './features/lifecycle/lifecycle.js';
export type { Archive } from './features/retention/archive-target.js';
export { fileArchive } from './features/retention/file-archive.js';
export { type S3ArchiveOptions, s3Archive, type S3Like } from './features/retention/s3-archive.js';
export type { KeptFor, RetentionConfig, RetentionPolicy } from './features/retention/policy.js';
export type { Duration } from './kernel/base/duration.js';
export type {
  ApplyRetentionOptions,
  PlannedRetention,
  RetentionApplied,
} from './features/retention/retention-policy.js';
export type { PartitionedHistory, PartitionHistoryOptions } from './features/history/partitions.js';
export type { GarbageCollected, GarbageCollectOptions } from './features/retention/retention.js';
export type { RewindOptions } from './features/lifecycle/rewind.js';
export type { HistoryEventType, HistoryLevel } from './features/history/event.js';
export type {
  AppendedEvent,
  Completion,
  Execution,
  ExecutionStatus,
  HistoryStore,
  NewExecution,
  StoredEvent,
  StoredTimer,
} from './features/history/history-store.sql.js';
export { openHistoryStore } from './features/history/open-history-store.sql.js';
export type { ChangeReason } from './features/history/cancellations.js';
export type { HistoryEvent, HistoryOptions, TailOptions } from './features/history/history.js';
export type { HistoryDiff, HistoryDifference } from './features/history/history-diff.js';
export type { ExportHistoryOptions } from './features/history/history-verbs.js';
export type { QueueStats, QueueStatsQuery } from './features/queue/queues.js';
export type { SetWorkflowDelayOptions } from './features/queue/reschedule.js';
export type { EnqueueOptions, EnqueueWorkflowOptions, WorkflowIDReusePolicy } from './features/queue/enqueue.js';
export type { BulkStart } from './features/queue/enqueue.run.js';
export type {
  QueueConflictResolution,
  QueueParameters,
  QueueRateLimit,
  QueueRecord,
  RegisterQueueOptions,
} from './features/queue/queue.js';
export type { AdoptOptions, DBOSConfig, OtelAttributeFormat } from './run/config/config.js';
export type { GetEventOptions } from './features/message/events.run.js';
export type { WorkflowHandle } from './operator/outcome.js';
export type { GetResultOptions } from './run/handles.js';
export type { ReadStreamOffsetOptions, ReadStreamOptions } from './features/message/streams.js';
export type {
  PollingOptions,
  PollingOptions as WaitAllOptions,
  PollingOptions as WaitFirstOptions,
  TimeLimit,
} from './operator/time-limit.js';
export type { NotificationInfo } from './features/listing/inspection.js';
export type { BulkMessage } from './features/message/messages.js';
export type { RecvOptions } from './features/message/messages.run.js';
export type { FunctionName, InputSchema, WorkflowConfig } from './run/registration/registry.js';
export type { StartWorkflowParams } from './run/new-workflow.js';
export type {
  IncomingRequest,
  RequestFunction,
  RequestHandlers,
  RequestOptions,
} from './features/message/requests.run.js';
export type { SerializationOptions } from './operator/storable.js';
export type {
  GetWorkflowsInput,
  GetWorkflowsInput as GetQueuedWorkflowsInput,
  WorkflowFilters,
  WorkflowPage,
  WorkflowPageInput,
} from './features/listing/listing.js';
export { type ExportedWorkflow, type ExportSource, toLines } from './features/transfer/export-format.js';
export type { ExportInput, ImportOptions, ImportResult } from './features/transfer/transfer.js';
export type { OptionalIndex, OptionalIndexInfo } from './features/listing/indexes.js';
export type {
  GetStepAggregatesInput,
  GetWorkflowAggregatesInput,
  Metric,
  StepAggregate,
  WorkflowAggregate,
} from './features/listing/aggregates.js';
export type { StepInfo, WorkflowStatus } from './features/listing/status.js';
export type { WaitingFor } from './features/parking/waiting-for.js';
export type { StepsQuery as ListWorkflowStepsOptions } from './features/listing/steps.js';
export type { StepConfig } from './run/step.js';
export type { StepStatus } from './run/ambient.js';
export type { ParallelOptions } from './run/parallel.js';
export type { WaitOptions, WaitResult } from './run/wait.js';
export type { DBOSSerializer, SerializationRecipe } from './kernel/codec/serializer.js';
export type { ContextualMetadata, DLogger, StackTrace } from './kernel/base/log.js';
