// The verbs of `DBOS` and `DBOSClient` that change workflows. What they do is in the files beside this one.
import { internals } from '../../base/internals.js';
import { ListingVerbs } from '../listing/listing-verbs.js';
import type { Operator } from '../operator.js';
import { change, changed } from '../performer.js';
import { setWorkflowDelay, type SetWorkflowDelayOptions, setWorkflowPriority } from '../queues/reschedule.js';
import type { WorkflowHandle } from '../runs/outcome.js';
import { setWorkflowAttributes, updateWorkflowAttributes } from './attributes.js';
import type { ExportedWorkflow, ExportSource } from './export-format.js';
import {
  type CancelOptions,
  cancelWorkflows,
  deleteWorkflows,
  type ResumeOptions,
  resumeWorkflows,
} from './lifecycle.js';
import { garbageCollect, type GarbageCollected, type GarbageCollectOptions, globalTimeout } from './retention.js';
import { type RewindOptions, rewindWorkflow } from './rewind.js';
import {
  type ExportInput,
  exportWorkflows,
  type ImportOptions,
  type ImportResult,
  importWorkflows,
} from './transfer.js';

export abstract class WorkflowVerbs extends ListingVerbs {
  cancelWorkflow(workflowID: string, options: CancelOptions = {}): Promise<string[]> {
    return this.cancelWorkflows([workflowID], options);
  }

  /**
   * Cancels workflows that have not ended. They stop at their next operation; a blocked wait is woken at once. Resolves to
   * the IDs of those that were cancelled, in no particular order.
   */
  cancelWorkflows(workflowIDs: readonly string[], options: CancelOptions = {}): Promise<string[]> {
    const cancel = (operator: Operator) => cancelWorkflows(operator, workflowIDs, options);
    return changed(this[internals], 'cancelWorkflow', [], cancel);
  }

  async resumeWorkflow<T>(workflowID: string, options: ResumeOptions = {}): Promise<WorkflowHandle<Awaited<T>>> {
    await this.resumeWorkflows([workflowID], options);
    return this[internals].handleOf(workflowID);
  }

  /**
   * Lets workflows that were cancelled, dead-lettered or left behind continue from their last checkpoint. Resolves to the
   * handles of all of them, also of those that have ended with a result or an error and stay as they are.
   */
  async resumeWorkflows<T>(
    workflowIDs: readonly string[],
    options: ResumeOptions = {},
  ): Promise<WorkflowHandle<Awaited<T>>[]> {
    const performer = this[internals];
    const operator = performer.operatorFor('resumeWorkflow');
    await change(performer, 'resumeWorkflow', () => resumeWorkflows(operator, workflowIDs, options));
    return workflowIDs.map((workflowID) => this[internals].handleOf(workflowID));
  }

  deleteWorkflow(workflowID: string, deleteChildren = false): Promise<string[]> {
    return this.deleteWorkflows([workflowID], deleteChildren);
  }

  /**
   * Deletes workflows and everything that belongs to them, in any state. Runs of them end with an error. Resolves to the
   * IDs of those that were deleted, in no particular order.
   */
  deleteWorkflows(workflowIDs: readonly string[], deleteChildren = false): Promise<string[]> {
    const performer = this[internals];
    return changed<string[]>(performer, 'deleteWorkflow', [], (operator) => {
      const deleteCheckpoints = performer.dataSources?.forgetDeleted;
      return deleteWorkflows(operator, workflowIDs, { deleteChildren, deleteCheckpoints });
    });
  }

  /**
   * Lets an ended workflow run again from one of its steps, under its own ID. A client does not know your data sources:
   * what they keep of its steps stays.
   */
  async rewindWorkflow<T>(workflowID: string, options: RewindOptions = {}): Promise<WorkflowHandle<Awaited<T>>> {
    const performer = this[internals];
    const operator = performer.operatorFor('rewindWorkflow');
    await change(performer, 'rewindWorkflow', (_, token) => {
      const deleteCheckpoints = performer.dataSources?.deleteFrom;
      return rewindWorkflow(operator, workflowID, { ...options, token, deleteCheckpoints });
    });
    return this[internals].handleOf(workflowID);
  }

  /**
   * Delays a workflow that is enqueued or delayed: by seconds from now, or until a time. Resolves to whether it was delayed:
   * any other is left alone.
   */
  setWorkflowDelay(workflowID: string, options: number | SetWorkflowDelayOptions): Promise<boolean> {
    const delay = (operator: Operator) => setWorkflowDelay(operator, workflowID, options);
    return changed(this[internals], 'setWorkflowDelay', false, delay);
  }

  /**
   * Changes the priority of a workflow; lower numbers come first. Resolves to whether it was changed: one that has ended is
   * left alone.
   */
  setWorkflowPriority(workflowID: string, priority: number): Promise<boolean> {
    const prioritize = (operator: Operator) => setWorkflowPriority(operator, workflowID, priority);
    return changed(this[internals], 'setWorkflowPriority', false, prioritize);
  }

  /** Changes the named attributes and leaves the others; null removes one. */
  updateWorkflowAttributes(workflowID: string, attributes: Record<string, unknown>): Promise<void> {
    return change(this[internals], 'updateWorkflowAttributes', (operator) =>
      updateWorkflowAttributes(operator, workflowID, attributes),
    );
  }

  /** Replaces all attributes of a workflow; null leaves it without any. */
  setWorkflowAttributes(workflowID: string, attributes: Record<string, unknown> | null): Promise<void> {
    return change(this[internals], 'setWorkflowAttributes', (operator) =>
      setWorkflowAttributes(operator, workflowID, attributes),
    );
  }

  /** Deletes old workflows that have ended, in small commits beside running work. */
  garbageCollect(options: GarbageCollectOptions): Promise<GarbageCollected> {
    const verb = { name: 'garbageCollect', isEffect: true };
    return this[internals].perform(verb, (operator) => garbageCollect(operator, options));
  }

  /** Cancels all workflows created at this time or before that have not ended. Resolves to their number. */
  globalTimeout(cutoffEpochTimestampMs: number): Promise<number> {
    const verb = { name: 'globalTimeout', isEffect: true };
    return this[internals].perform(verb, (operator) => globalTimeout(operator, cutoffEpochTimestampMs));
  }

  /** The workflows that match, complete: with steps, events, streams and messages, and with their children if wanted. */
  exportWorkflows(input: ExportInput = {}): AsyncGenerator<ExportedWorkflow, void, undefined> {
    return exportWorkflows(this[internals].operatorFor('exportWorkflows', 'outside workflow code'), input);
  }

  /** Imports exported workflows: objects, or the chunks of a text. Each is imported completely or not at all. */
  importWorkflows(source: ExportSource, options: ImportOptions = {}): Promise<ImportResult> {
    const operator = this[internals].operatorFor('importWorkflows', 'outside workflow code');
    return importWorkflows(operator, source, options);
  }
}
