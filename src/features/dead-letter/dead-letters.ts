// What the verbs for dead letters of outboxes and of receivers have in common: their options, cursors of pages, and changes
// of many in batches.
import { DBOSInvalidArgumentError } from '../../kernel/errors/errors.js';
import { boolean, func, integer, optional, positiveInteger, record, string } from '../../kernel/check/validation.js';

export interface LetterChangeOptions {
  /** The most to change. Default: all. */
  readonly limit?: number;
  /** Only count. */
  readonly dryRun?: boolean;
  /** Called after each commit with the number so far. */
  readonly onProgress?: (done: number) => void;
}

export const LETTER_PAGE_FIELDS = {
  limit: optional(integer({ min: 1, max: 1000 })),
  cursor: optional(string()),
};
export const LETTER_CHANGE_FIELDS = {
  limit: optional(positiveInteger),
  dryRun: optional(boolean),
  onProgress: optional(func),
};
const CHANGE = record(LETTER_CHANGE_FIELDS);

/** Dead letters per page of an answer. */
export const LETTER_PAGE = 100;
/** Dead letters per commit. */
export const LETTER_BATCH = 200;

/** Refuses a filter that matches everything by accident. Returns its conditions. */
export function meantConditions<Filter extends { readonly all?: unknown; readonly archived?: unknown }>(
  filter: Filter,
): Omit<Filter, 'all'> {
  const { all, ...conditions } = filter;
  const isNarrow = Object.entries(conditions).some(([name, value]) => name !== 'archived' && value !== undefined);
  if (all !== true && !isNarrow) {
    throw new DBOSInvalidArgumentError('The filter matches every dead letter. Say so with all: true.', 'filter');
  }
  return conditions;
}

/** Throws for a filter of letters that are archived. */
export function refuseArchived({ archived = false }: { readonly archived?: boolean | 'both' | undefined }): void {
  if (archived === false) return;
  throw new DBOSInvalidArgumentError('Only dead letters that are not archived can be.', 'filter.archived');
}

export interface LetterChange {
  /** How many match. */
  count(): Promise<number>;
  /** Changes up to so many in one commit. Fewer than that means that no more match. */
  changeSome(max: number): Promise<number>;
}

/** Changes dead letters batch by batch. Returns how many. */
export async function changeLetters(options: LetterChangeOptions, change: LetterChange): Promise<number> {
  CHANGE.read(options, 'options');
  const { limit = Infinity, dryRun, onProgress } = options;
  if (dryRun) return Math.min(await change.count(), limit);
  for (let done = 0; ;) {
    const max = Math.min(LETTER_BATCH, limit - done);
    const changed = max === 0 ? 0 : await change.changeSome(max);
    done += changed;
    if (changed > 0) onProgress?.(done);
    if (changed < max || max === 0) return done;
  }
}

export function writeLetterCursor(position: readonly (string | number)[]): string {
  return Buffer.from(JSON.stringify(position)).toString('base64url');
}

/** `read` returns undefined for what is no position. */
export function readLetterCursor<Position>(
  cursor: string,
  read: (parts: readonly unknown[]) => Position | undefined,
): Position {
  const position = read(partsOf(cursor));
  if (position !== undefined) return position;
  throw new DBOSInvalidArgumentError('It is not the cursor of a page of dead letters.', 'options.cursor');
}

function partsOf(cursor: string): readonly unknown[] {
  try {
    const parts: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString());
    return Array.isArray(parts) ? parts : [];
  } catch {
    // No cursor of ours.
    return [];
  }
}
