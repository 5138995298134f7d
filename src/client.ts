// `everstep/client`: what a program needs that enqueues and inspects workflows and runs none. It loads no engine.
export * as Error from './kernel/errors/errors.js';
export { StatusString, type WorkflowStatusString } from './kernel/workflow/status.js';
export {
  type ClientCreateSchedule,
  type ClientEnqueueOptions,
  type ClientSchedule,
  DBOSClient,
  type DBOSClientConfig,
} from './faces/client/client.js';
export { DebouncerClient, type DebouncerClientConfig } from './faces/client/debouncer-client.js';
export { WorkflowQueue } from './faces/library/workflow-queue.js';
export type { BorrowedConnection } from './database/transactions/borrowed.js';
export type { WorkflowHandle } from './operator/outcome.js';
