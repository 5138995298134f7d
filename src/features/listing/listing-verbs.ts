// The verbs of `DBOS` and `DBOSClient` that read workflows. Their implementations are in the files beside this one.
import { filledName } from '../../kernel/check/validation.js';
import * as checks from '../../operator/verb-checks.js';
import { internals } from '../../kernel/base/internals.js';
import { explainWorkflow, type WorkflowExplanation } from '../diagnosis/explain.js';
import type { Operator } from '../../operator/operator.js';
import { look, lookUp, type Performer } from '../../operator/performer.js';
import {
  getMetrics,
  getStepAggregates,
  type GetStepAggregatesInput,
  getWorkflowAggregates,
  type GetWorkflowAggregatesInput,
  type Metric,
  type StepAggregate,
  type WorkflowAggregate,
} from './aggregates.js';
import {
  createOptionalIndex,
  dropOptionalIndex,
  listOptionalIndexes,
  type OptionalIndex,
  type OptionalIndexInfo,
} from './indexes.js';
import { getAllEvents, getAllNotifications, getAllStreamEntries, type NotificationInfo } from './inspection.js';
import {
  countWorkflows,
  eachOf,
  findQueuedRecords,
  findWorkflowPage,
  findWorkflowRecords,
  type GetWorkflowsInput,
  readPage,
  readWorkflows,
  type WorkflowFilters,
  type WorkflowPage,
  type WorkflowPageInput,
} from './listing.js';
import type { StepInfo, WorkflowStatus } from './status.js';
import { findWorkflowSteps, readSteps, type StepsQuery } from './steps.js';

export abstract class ListingVerbs {
  abstract readonly [internals]: Performer;

  /** The steps of a workflow, in order; undefined if the workflow does not exist. */
  async listWorkflowSteps(workflowID: string, options: StepsQuery = {}): Promise<StepInfo[] | undefined> {
    filledName.read(workflowID, 'workflowID');
    const find = (operator: Operator) => findWorkflowSteps(operator, workflowID, options);
    return lookUp(this[internals], 'listWorkflowSteps', find, readSteps);
  }

  /** The matching workflows, in creation order. */
  async listWorkflows(input: GetWorkflowsInput = {}): Promise<WorkflowStatus[]> {
    return lookUp(this[internals], 'listWorkflows', (operator) => findWorkflowRecords(operator, input), readWorkflows);
  }

  /** The matching workflows in queues: enqueued, delayed or running. Without outcomes. */
  async listQueuedWorkflows(input: GetWorkflowsInput = {}): Promise<WorkflowStatus[]> {
    checks.optionsObject.read(input, 'input');
    return lookUp(
      this[internals],
      'listQueuedWorkflows',
      (operator) => findQueuedRecords(operator, input),
      readWorkflows,
    );
  }

  /** A page of the matching workflows, and the cursor of the next page. */
  async listWorkflowPage(input: WorkflowPageInput = {}): Promise<WorkflowPage> {
    return lookUp(this[internals], 'listWorkflowPage', (operator) => findWorkflowPage(operator, input), readPage);
  }

  /** Iterates over all matching workflows, page by page. */
  iterateWorkflows(input: WorkflowPageInput = {}): AsyncGenerator<WorkflowStatus, void, undefined> {
    return eachOf(input, (page) => this.listWorkflowPage(page));
  }

  /** Counts the matching workflows. */
  async countWorkflows(filters: WorkflowFilters = {}): Promise<number> {
    return look(this[internals], 'countWorkflows', (operator) => countWorkflows(operator, filters));
  }

  /** Counts the matching workflows by group, with their longest waits and durations. */
  async getWorkflowAggregates(input: GetWorkflowAggregatesInput): Promise<WorkflowAggregate[]> {
    return look(this[internals], 'getWorkflowAggregates', (operator) => getWorkflowAggregates(operator, input));
  }

  /** Counts the matching steps by group, with their longest durations. */
  async getStepAggregates(input: GetStepAggregatesInput): Promise<StepAggregate[]> {
    return look(this[internals], 'getStepAggregates', (operator) => getStepAggregates(operator, input));
  }

  /** Counts workflows created and steps completed, by name, from `startTime` to before `endTime`. */
  async getMetrics(startTime: string, endTime: string, applicationNames?: readonly string[]): Promise<Metric[]> {
    checks.optionalNames.read(applicationNames, 'applicationNames');
    const span = { startTime, endTime };
    return look(this[internals], 'getMetrics', (operator) => getMetrics(operator, span, applicationNames));
  }

  /** All events of a workflow, by key. */
  async getAllEvents(workflowID: string): Promise<Record<string, unknown>> {
    filledName.read(workflowID, 'workflowID');
    return look(this[internals], 'getAllEvents', (operator) => getAllEvents(operator, workflowID));
  }

  /** All values written to the streams of a workflow so far, by key. */
  async getAllStreamEntries(workflowID: string): Promise<Record<string, unknown[]>> {
    filledName.read(workflowID, 'workflowID');
    return look(this[internals], 'getAllStreamEntries', (operator) => getAllStreamEntries(operator, workflowID));
  }

  /** All messages sent to a workflow, oldest first, received or not. */
  async getAllNotifications(workflowID: string): Promise<NotificationInfo[]> {
    filledName.read(workflowID, 'workflowID');
    return look(this[internals], 'getAllNotifications', (operator) => getAllNotifications(operator, workflowID));
  }

  /** Explains the status of a workflow, such as why it has not started. */
  async explainWorkflow(workflowID: string): Promise<WorkflowExplanation> {
    filledName.read(workflowID, 'workflowID');
    return explainWorkflow(this[internals].operatorFor('explainWorkflow'), workflowID);
  }

  /** The optional indexes for frequent filters, and whether each exists. */
  async listOptionalIndexes(): Promise<OptionalIndexInfo[]> {
    return listOptionalIndexes(this[internals].operatorFor('listOptionalIndexes'));
  }

  /** Builds an index for a filter. Postgres builds it concurrently; on SQLite writers wait. */
  async createOptionalIndex(index: OptionalIndex): Promise<void> {
    return createOptionalIndex(this[internals].operatorFor('createOptionalIndex'), index);
  }

  async dropOptionalIndex(index: OptionalIndex): Promise<void> {
    return dropOptionalIndex(this[internals].operatorFor('dropOptionalIndex'), index);
  }
}
