// For event receivers: turns messages into workflows, in batches.
import { internals } from '../../kernel/base/internals.js';
import { findQueueRecord } from '../../features/queue/queues.js';
import type { Engine } from '../../run/engine.js';
import {
  enqueuePrepared,
  prepareEnqueuedWorkflow as prepare,
  type PreparedWorkflow,
  type PrepareEnqueuedWorkflowOptions,
} from '../../run/prepared.js';
import { limitsOf, type QueueParameters, toQueueRecord } from '../../features/queue/queue.js';
import { DBOS } from './dbos.js';
import { queueOf, WorkflowQueue } from './workflow-queue.js';

export type { PreparedWorkflow, PrepareEnqueuedWorkflowOptions };

/** Prepares a workflow for `enqueueWorkflows`. Ignores the caller's context. */
export function prepareEnqueuedWorkflow<Args extends unknown[], Return>(
  workflow: (...args: Args) => Promise<Return>,
  args: Args,
  options: PrepareEnqueuedWorkflowOptions,
): Promise<PreparedWorkflow> {
  const engine = engineHere();
  return prepare(engine, engine.runtime.registry.workflowOf(workflow, workflow.name), args, options);
}

/** Enqueues prepared workflows in one commit, skips those whose ID is in use, and returns the IDs of the others. */
export function enqueueWorkflows(workflows: readonly PreparedWorkflow[]): Promise<Set<string>> {
  return enqueuePrepared(engineHere(), workflows);
}

/** The queue of this name, in memory or in the database. */
export async function getQueue(name: string): Promise<WorkflowQueue | null> {
  const inMemory = DBOS[internals].registry.queues.get(name);
  if (inMemory) return new WorkflowQueue(inMemory);
  const { runtime } = engineHere();
  const stored = await findQueueRecord(runtime, name);
  return stored && queueOf(runtime, stored);
}

/** Defines an in-memory queue, unless it exists. This process serves it regardless of `listenQueues`. */
export function registerInternalQueue(name: string, parameters: QueueParameters = {}): WorkflowQueue {
  const known = DBOS[internals].registry.queues.get(name);
  if (known) return new WorkflowQueue(known);
  WorkflowQueue.validateQueueParams(parameters);
  const record = WorkflowQueue.recordFromParams(name, parameters);
  registerPollerQueue(name);
  DBOS[internals].registerMemoryQueue(record);
  return new WorkflowQueue(record);
}

/** Makes this process serve a database queue regardless of `listenQueues`. */
export function registerPollerQueue(name: string): void {
  DBOS[internals].registry.alwaysServed.add(name);
}

/** The in-memory queue of this name; defines it if it does not exist. */
export function getOrCreateQueue(name: string, parameters: QueueParameters = {}): WorkflowQueue {
  const record = DBOS[internals].registry.queues.get(name);
  return record ? new WorkflowQueue(record) : new WorkflowQueue(name, parameters);
}

/** Whether the queue has limits for its partitions. */
export function isPartitionedQueue(queue: WorkflowQueue): boolean {
  return limitsOf(toQueueRecord(queue.name, queue, null)).partition !== null;
}

function engineHere(): Engine {
  return DBOS[internals].engineFor('event receivers');
}
