// The mark of a completion record: the system database and the creator of the workflow that the record belongs to. It is
// a field in front of the recorded superjson text, where other programs ignore it.
import type { TransactionStep } from '../../run/plugin.js';
import { inheritsStep } from '../../kernel/workflow/creator.js';

const FIELD = '{"__everstep_workflow":';
const MARKED = /^\{"__everstep_workflow":("(?:[^"\\]|\\.)*"),/;
const SYSTEM = /^\{"__everstep_workflow":"([0-9a-f]{32})\//;

/** How every marked text begins, and the characters that show whose it is. */
export const MARK_START = FIELD;
export const MARK_HEAD_LENGTH = FIELD.length + 40;

type Marking = Pick<TransactionStep, 'systemID' | 'creator'>;

function markOf({ systemID, creator }: Marking): string {
  return `${systemID}/${creator}`;
}

/** Marks the text of a superjson object. */
export function mark(text: string, step: Marking): string {
  return `${FIELD}${JSON.stringify(markOf(step))},${text.slice(1)}`;
}

export function unmark(text: string): string {
  const [field] = MARKED.exec(text) ?? [];
  return field === undefined ? text : `{${text.slice(field.length)}`;
}

/** False for the record of an earlier workflow with the same ID. Other programs write records without a mark. */
export function isRecordOf(step: TransactionStep, text: string): boolean {
  const [, found] = MARKED.exec(text) ?? [];
  return found === undefined || JSON.parse(found) === markOf(step) || inheritsStep(step.creator, step.stepID);
}

/** The system database of a marked record, given the first characters of its text. */
export function systemIDIn(head: string): string | undefined {
  return SYSTEM.exec(head)?.[1];
}
