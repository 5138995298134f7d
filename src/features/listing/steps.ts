// Lists the steps of a workflow.
import type { StepRecord } from '../../kernel/workflow/records.js';
import { integer, nullish, record } from '../../kernel/check/validation.js';
import { listSteps } from '../../run/rows/steps.js';
import { findWorkflows } from '../../run/rows/workflows.js';
import type { Operator } from '../../operator/operator.js';
import { type StepInfo, toStepInfo } from './status.js';

export interface StepsQuery {
  readonly limit?: number;
  readonly offset?: number;
}

const queryCheck = record({ limit: nullish(integer()), offset: nullish(integer()) });

/** The steps in order; undefined if the workflow does not exist. */
export async function listWorkflowSteps(
  operator: Operator,
  workflowID: string,
  query: StepsQuery = {},
): Promise<StepInfo[] | undefined> {
  return readSteps(operator, await findWorkflowSteps(operator, workflowID, query));
}

/** The stored rows; null if the workflow does not exist. */
export async function findWorkflowSteps(
  operator: Operator,
  workflowID: string,
  query: StepsQuery = {},
): Promise<StepRecord[] | null> {
  const { limit, offset } = queryCheck.read(query, 'query');
  const page = { limit: limit ?? undefined, offset: offset ?? undefined };
  const { database } = operator;
  return operator.retrying(async () => {
    const steps = await listSteps(database, workflowID, page);
    const isThere = steps.length > 0 || (await findWorkflows(database, [workflowID])).length > 0;
    return isThere ? steps : null;
  });
}

export async function readSteps(
  { codec }: Pick<Operator, 'codec'>,
  steps: readonly StepRecord[] | null,
): Promise<StepInfo[] | undefined> {
  return steps === null ? undefined : Promise.all(steps.map((step) => toStepInfo(codec, step)));
}
