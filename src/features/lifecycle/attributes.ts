// Changes the attributes of a workflow in any status.
import { DBOSInvalidArgumentError, DBOSNonExistentWorkflowError } from '../../kernel/errors/errors.js';
import { readJSONObject } from '../../kernel/check/validation.js';
import { mergeAttributes, replaceAttributes } from './attributes.sql.js';
import type { Operator } from '../../operator/operator.js';

type Attributes = Readonly<Record<string, unknown>>;

/** More names at once would nest the statement too deeply. */
const NAMES_MAX = 100;

/**
 * Changes the given attributes; others stay. Each value replaces the previous one, without merging; null removes the
 * attribute.
 */
export async function updateWorkflowAttributes(
  operator: Operator,
  workflowID: string,
  attributes: Attributes,
): Promise<void> {
  const change = readJSONObject(attributes, 'attributes');
  const count = Object.keys(change).length;
  if (count > NAMES_MAX) {
    throw new DBOSInvalidArgumentError(
      `attributes has ${count} names, but at most ${NAMES_MAX} can be changed at a time.`,
      'attributes',
    );
  }
  refuseMissing(workflowID, await operator.retrying(() => mergeAttributes(operator.database, workflowID, change)));
}

/** Replaces all attributes of the workflow; null removes them. */
export async function setWorkflowAttributes(
  operator: Operator,
  workflowID: string,
  attributes: Attributes | null,
): Promise<void> {
  const whole = attributes == null ? null : readJSONObject(attributes, 'attributes');
  refuseMissing(workflowID, await operator.retrying(() => replaceAttributes(operator.database, workflowID, whole)));
}

function refuseMissing(workflowID: string, isThere: boolean): void {
  if (!isThere) throw new DBOSNonExistentWorkflowError(`Workflow ${workflowID} does not exist`);
}
