// Explains what a parked workflow waits for, and what wakes it.
import type { WorkflowRecord } from '../../kernel/workflow/records.js';
import type { Reader } from '../../database/database.js';
import { isParkedRow } from './parked.sql.js';
import { findParked } from './waits.sql.js';
import { describeWaits, earliestOf, waitsOfParked } from './waiting-for.js';

export interface ParkedFinding {
  readonly reason: 'parked';
  readonly message: string;
  readonly details: Readonly<Record<string, unknown>>;
}

/** Waits of one workflow. More are not explained. */
const WAITS_MAX = 1000;

/** Undefined for a delayed workflow that has not started. */
export async function explainParked(database: Reader, workflow: WorkflowRecord): Promise<ParkedFinding | undefined> {
  const { workflowID, applicationVersion } = workflow;
  const parked = isParkedRow(workflow) && (await findParked(database, [workflowID], WAITS_MAX)).get(workflowID);
  if (!parked) return undefined;
  const waitsFor = waitsOfParked(parked);
  return {
    reason: 'parked',
    message:
      `It is parked, out of memory. It ${describeWaits(waitsFor)}. ` +
      `A process of version "${applicationVersion}" continues it then.`,
    details: { waitsFor, wakesAt: earliestOf(waitsFor), applicationVersion },
  };
}
