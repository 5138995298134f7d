// `everstep/client`: what a program needs that enqueues and inspects workflows and runs none. It loads no engine.
export * as Error from './model/errors/errors.js';
export { StatusString, type WorkflowStatusString } from './model/status.js';
export {
  type ClientCreateSchedule,
  type ClientEnqueueOptions,
  type ClientSchedule,
  DBOSClient,
  type DBOSClientConfig,
} from './client/client.js';
export { DebouncerClient, type DebouncerClientConfig } from './client/debouncer-client.js';
export { WorkflowQueue } from './facade/workflow-queue.js';
export type { BorrowedConnection } from './store/transactions/borrowed.js';
export type { WorkflowHandle } from './control/runs/outcome.js';
