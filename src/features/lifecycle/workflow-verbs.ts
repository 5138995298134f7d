// The verbs of `DBOS` and `DBOSClient` that change workflows. Their implementations are in the files beside this one.
import type { DurationText } from '../../kernel/base/duration.js';
import { filledName } from '../../kernel/check/validation.js';
import * as checks from '../../operator/verb-checks.js';
import { internals } from '../../kernel/base/internals.js';
import { HistoryVerbs } from '../history/history-verbs.js';
import type { ChangeReason } from '../history/cancellations.js';
import type { Operator } from '../../operator/operator.js';
import { change, changed } from '../../operator/performer.js';
import { setWorkflowDelay, type SetWorkflowDelayOptions, setWorkflowPriority } from '../queue/reschedule.js';
import type { WorkflowHandle } from '../../operator/outcome.js';
import { setWorkflowAttributes, updateWorkflowAttributes } from './attributes.js';
import type { ExportedWorkflow, ExportSource } from '../transfer/export-format.js';
import {
  type CancelOptions,
  cancelWorkflows,
  deleteWorkflows,
  type ResumeOptions,
  resumeWorkflows,
} from './lifecycle.js';
import type { RetentionPolicy } from '../retention/policy.js';
import { getArchivedWorkflow } from '../retention/archive.js';
import {
  applyRetention,
  type ApplyRetentionOptions,
  type PlannedRetention,
  planRetention,
  type RetentionApplied,
} from '../retention/retention-policy.js';
import {
  garbageCollect,
  type GarbageCollected,
  type GarbageCollectOptions,
  globalTimeout,
} from '../retention/retention.js';
import { type RewindOptions, rewindWorkflow } from './rewind.js';
import {
  type ExportInput,
  exportWorkflows,
  type ImportOptions,
  type ImportResult,
  importWorkflows,
} from '../transfer/transfer.js';

export abstract class WorkflowVerbs extends HistoryVerbs {
  async cancelWorkflow(workflowID: string, options: CancelOptions = {}): Promise<string[]> {
    return this.cancelWorkflows([workflowID], options);
  }

  /**
   * Cancels workflows that have not ended. They stop at their next operation; a blocked wait is woken at once. Resolves to
   * the IDs of those that were cancelled, in no particular order.
   */
  async cancelWorkflows(workflowIDs: readonly string[], options: CancelOptions = {}): Promise<string[]> {
    checks.ids.read(workflowIDs, 'workflowIDs');
    checks.cancelOptions.read(options, 'options');
    const cancel = (operator: Operator) => cancelWorkflows(operator, workflowIDs, options);
    return changed(this[internals], 'cancelWorkflow', [], cancel);
  }

  async resumeWorkflow<T>(workflowID: string, options: ResumeOptions = {}): Promise<WorkflowHandle<Awaited<T>>> {
    await this.resumeWorkflows([workflowID], options);
    return this[internals].handleOf(workflowID);
  }

  /**
   * Resumes cancelled, dead-lettered or abandoned workflows from their last checkpoint. Resolves to the handles of all of
   * them, including those that have ended with a result or an error and do not change.
   */
  async resumeWorkflows<T>(
    workflowIDs: readonly string[],
    options: ResumeOptions = {},
  ): Promise<WorkflowHandle<Awaited<T>>[]> {
    checks.ids.read(workflowIDs, 'workflowIDs');
    checks.resumeOptions.read(options, 'options');
    const performer = this[internals];
    const operator = performer.operatorFor('resumeWorkflow');
    await change(performer, 'resumeWorkflow', () => resumeWorkflows(operator, workflowIDs, options));
    return workflowIDs.map((workflowID) => this[internals].handleOf(workflowID));
  }

  async deleteWorkflow(workflowID: string, deleteChildren = false, why: ChangeReason = {}): Promise<string[]> {
    return this.deleteWorkflows([workflowID], deleteChildren, why);
  }

  /**
   * Deletes workflows and all their data, in any status. Their runs end with an error. Resolves to the IDs of those that were
   * deleted, in no particular order. Their histories are deleted, too; the log says why and by whom.
   */
  async deleteWorkflows(
    workflowIDs: readonly string[],
    deleteChildren = false,
    why: ChangeReason = {},
  ): Promise<string[]> {
    checks.ids.read(workflowIDs, 'workflowIDs');
    checks.flag.read(deleteChildren, 'deleteChildren');
    checks.changeReason.read(why, 'why');
    const remove = (operator: Operator) => deleteWorkflows(operator, workflowIDs, { deleteChildren, ...why });
    return changed<string[]>(this[internals], 'deleteWorkflow', [], remove);
  }

  /** Runs an ended workflow again from one of its steps, under its own ID. */
  async rewindWorkflow<T>(workflowID: string, options: RewindOptions = {}): Promise<WorkflowHandle<Awaited<T>>> {
    filledName.read(workflowID, 'workflowID');
    checks.rewindOptions.read(options, 'options');
    const performer = this[internals];
    const operator = performer.operatorFor('rewindWorkflow');
    await change(performer, 'rewindWorkflow', (_, token) =>
      rewindWorkflow(operator, workflowID, { ...options, token }),
    );
    return this[internals].handleOf(workflowID);
  }

  /**
   * Delays a workflow that is enqueued or delayed: by seconds from now, or until a time. Resolves to false for any other,
   * which does not change.
   */
  async setWorkflowDelay(
    workflowID: string,
    options: number | DurationText | SetWorkflowDelayOptions,
  ): Promise<boolean> {
    filledName.read(workflowID, 'workflowID');
    const delay = (operator: Operator) => setWorkflowDelay(operator, workflowID, options);
    return changed(this[internals], 'setWorkflowDelay', false, delay);
  }

  /**
   * Sets the priority of a workflow; lower numbers run first. Resolves to false if it has ended, and does not change it.
   */
  async setWorkflowPriority(workflowID: string, priority: number, options: ChangeReason = {}): Promise<boolean> {
    filledName.read(workflowID, 'workflowID');
    checks.changeReason.read(options, 'options');
    const prioritize = (operator: Operator) => setWorkflowPriority(operator, workflowID, { ...options, priority });
    return changed(this[internals], 'setWorkflowPriority', false, prioritize);
  }

  /** Changes the given attributes; null removes one. Others stay. */
  async updateWorkflowAttributes(workflowID: string, attributes: Record<string, unknown>): Promise<void> {
    filledName.read(workflowID, 'workflowID');
    return change(this[internals], 'updateWorkflowAttributes', (operator) =>
      updateWorkflowAttributes(operator, workflowID, attributes),
    );
  }

  /** Replaces all attributes of a workflow; null leaves it without any. */
  async setWorkflowAttributes(workflowID: string, attributes: Record<string, unknown> | null): Promise<void> {
    filledName.read(workflowID, 'workflowID');
    return change(this[internals], 'setWorkflowAttributes', (operator) =>
      setWorkflowAttributes(operator, workflowID, attributes),
    );
  }

  /** Deletes old workflows that have ended, in small commits that do not slow down running work. */
  async garbageCollect(options: GarbageCollectOptions): Promise<GarbageCollected> {
    const verb = { name: 'garbageCollect', isEffect: true };
    return this[internals].perform(verb, (operator) => garbageCollect(operator, options));
  }

  /**
   * Deletes workflows that ended longer ago than the policy, by default the configured one, keeps them. With an archive,
   * they are archived first.
   */
  async applyRetention(policy?: RetentionPolicy, options: ApplyRetentionOptions = {}): Promise<RetentionApplied> {
    const verb = { name: 'applyRetention', isEffect: true };
    return this[internals].perform(verb, (operator) => applyRetention(operator, policy, options));
  }

  /** Counts what `applyRetention` would delete now, by workflow and status. */
  async planRetention(policy?: RetentionPolicy): Promise<PlannedRetention[]> {
    return planRetention(this[internals].operatorFor('planRetention', 'outside workflow code'), policy);
  }

  /** A workflow that retention has archived, in the format of exports: `importWorkflows` restores it. */
  async getArchivedWorkflow(workflowID: string): Promise<ExportedWorkflow | undefined> {
    filledName.read(workflowID, 'workflowID');
    return getArchivedWorkflow(this[internals].operatorFor('getArchivedWorkflow', 'outside workflow code'), workflowID);
  }

  /** Cancels all active workflows created at this time or earlier. Resolves to their number. */
  async globalTimeout(cutoffEpochTimestampMs: number): Promise<number> {
    const verb = { name: 'globalTimeout', isEffect: true };
    return this[internals].perform(verb, (operator) => globalTimeout(operator, cutoffEpochTimestampMs));
  }

  /** Exports the matching workflows with steps, events, streams and messages, and optionally their descendants. */
  async *exportWorkflows(input: ExportInput = {}): AsyncGenerator<ExportedWorkflow, void, undefined> {
    checks.optionsObject.read(input, 'input');
    yield* exportWorkflows(this[internals].operatorFor('exportWorkflows', 'outside workflow code'), input);
  }

  /** Imports exported workflows, given as objects or chunks of text. Each is imported completely or not at all. */
  async importWorkflows(source: ExportSource, options: ImportOptions = {}): Promise<ImportResult> {
    checks.exportSource.read(source, 'source');
    checks.importOptions.read(options, 'options');
    const operator = this[internals].operatorFor('importWorkflows', 'outside workflow code');
    return importWorkflows(operator, source, options);
  }
}
