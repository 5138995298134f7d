// Changing the attributes of a workflow, in whatever state it is.
import { DBOSNonExistentWorkflowError, InvalidQueryError } from '../../model/errors/errors.js';
import { jsonObject } from '../../model/query-values.js';
import { mergeAttributes, replaceAttributes } from '../../store/management/attributes.js';
import type { Operator } from '../operator.js';

type Attributes = Readonly<Record<string, unknown>>;

/** More names at a time would be a statement that is nested too deeply. */
const NAMES_MAX = 100;

/**
 * Changes the attributes that are named and leaves the others as they are. A name gets the given value as a whole, in
 * place of what it had; null takes the name out.
 */
export async function updateWorkflowAttributes(
  operator: Operator,
  workflowID: string,
  attributes: Attributes,
): Promise<void> {
  const change = jsonObject('attributes', attributes);
  if (change === undefined) throw new InvalidQueryError('attributes must be an object.');
  const count = Object.keys(change).length;
  if (count > NAMES_MAX) {
    throw new InvalidQueryError(`${count} attributes are given, but at most ${NAMES_MAX} can be changed at a time.`);
  }
  refuseMissing(workflowID, await operator.retrying(() => mergeAttributes(operator.database, workflowID, change)));
}

/** Puts the attributes in place of all that the workflow has; null leaves it without any. */
export async function setWorkflowAttributes(
  operator: Operator,
  workflowID: string,
  attributes: Attributes | null,
): Promise<void> {
  const whole = jsonObject('attributes', attributes) ?? null;
  refuseMissing(workflowID, await operator.retrying(() => replaceAttributes(operator.database, workflowID, whole)));
}

function refuseMissing(workflowID: string, isThere: boolean): void {
  if (!isThere) throw new DBOSNonExistentWorkflowError(`Workflow ${workflowID} does not exist`);
}
