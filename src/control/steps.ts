// The steps of a workflow, for people.
import { loadSteps } from '../store/steps.js';
import type { Operator } from './operator.js';
import { type StepInfo, toStepInfo } from './status.js';

export interface StepsQuery {
  readonly limit?: number;
  readonly offset?: number;
}

/** The steps in the order of their numbers. */
export async function listWorkflowSteps(
  operator: Operator,
  workflowID: string,
  { offset = 0, limit }: StepsQuery = {},
): Promise<StepInfo[]> {
  const steps = await operator.retrying(() => loadSteps(operator.database, [workflowID]));
  const end = limit === undefined ? undefined : offset + limit;
  return Promise.all(steps.slice(offset, end).map((step) => toStepInfo(operator.codec, step)));
}
