// The family of a workflow: its parents up to the first, and its children down to the last.
import { type FamilyMember, findChildren, findMembers } from './family.sql.js';
import type { Operator } from '../../operator/operator.js';

export interface Family {
  /** The first parent comes first, each parent before its children, and children by creation. */
  readonly members: readonly FamilyMember[];
  /** Whether there are more. */
  readonly isTruncated: boolean;
}

const PARENTS_MAX = 100;
const MEMBERS_MAX = 1000;

/** Undefined if the workflow does not exist. Brothers and sisters are left out. */
export async function getFamily(operator: Operator, workflowID: string): Promise<Family | undefined> {
  const [self] = await find(operator, [workflowID]);
  if (!self) return undefined;
  const parents: FamilyMember[] = [];
  const known = new Set([workflowID]);
  let parentID = self.parentWorkflowID;
  // A row written by another program might be its own ancestor.
  while (parentID !== null && !known.has(parentID) && parents.length < PARENTS_MAX) {
    const [parent] = await find(operator, [parentID]);
    if (!parent) break;
    known.add(parentID);
    parents.unshift(parent);
    parentID = parent.parentWorkflowID;
  }
  const members = [...parents, self];
  let generation: readonly FamilyMember[] = [self];
  while (generation.length > 0 && members.length <= MEMBERS_MAX) {
    const parentIDs = generation.map((one) => one.workflowID);
    const limit = MEMBERS_MAX + 1 - members.length;
    const children = await operator.retrying(() => findChildren(operator.database, parentIDs, limit));
    generation = children.filter((child) => !known.has(child.workflowID)).sort(byCreation);
    for (const child of generation) known.add(child.workflowID);
    members.push(...generation);
  }
  return { members: members.slice(0, MEMBERS_MAX), isTruncated: members.length > MEMBERS_MAX };
}

function find(operator: Operator, workflowIDs: readonly string[]): Promise<FamilyMember[]> {
  return operator.retrying(() => findMembers(operator.database, workflowIDs));
}

function byCreation(a: FamilyMember, b: FamilyMember): number {
  return a.createdAt - b.createdAt || (a.workflowID < b.workflowID ? -1 : 1);
}
