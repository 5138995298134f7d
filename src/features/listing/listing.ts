// Lists, pages, iterates over and counts workflows.
import { DBOSInvalidArgumentError } from '../../kernel/errors/errors.js';
import { integer, nullish } from '../../kernel/check/validation.js';
import type { WorkflowRecord } from '../../kernel/workflow/records.js';
import { type GetWorkflowsInput, toWorkflowFilter, toWorkflowQuery, type WorkflowFilters } from './workflow-query.js';
import { estimateWorkflows as estimateRows, type WorkflowEstimate } from './estimate.sql.js';
import { countWorkflows as countRows, listWorkflows as listRows, type Position } from './listing.sql.js';
import { explainRecords } from './explained-records.js';
import { type Operator, queryTimeoutMs } from '../../operator/operator.js';
import { toStatus, type WorkflowStatus } from './status.js';

export type { GetWorkflowsInput, WorkflowFilters };

/** Selects a page of workflows. `cursor` is the `nextCursor` of the previous page. */
export interface WorkflowPageInput extends Omit<GetWorkflowsInput, 'offset'> {
  /** Page size. Default: 100, at most 10,000. */
  readonly limit?: number;
  readonly cursor?: string;
}

export interface WorkflowPage {
  readonly workflows: WorkflowStatus[];
  /** The cursor of the next page; null after the last one. */
  readonly nextCursor: string | null;
}

/** A page of stored rows. */
export interface RecordPage {
  readonly records: readonly WorkflowRecord[];
  readonly nextCursor: string | null;
}

const PAGE_SIZE = 100;
const PAGE_SIZE_MAX = 10_000;
const pageSize = nullish(integer({ min: 1, max: PAGE_SIZE_MAX }));
const totalLimit = nullish(integer());
/** Page size while iterating. */
const STREAM_PAGE_SIZE = 500;

/** The matching workflows, in creation order. */
export async function listWorkflows(operator: Operator, input: GetWorkflowsInput = {}): Promise<WorkflowStatus[]> {
  return readWorkflows(operator, await findWorkflowRecords(operator, input));
}

/** The matching workflows in queues, without outcomes. */
export async function listQueuedWorkflows(
  operator: Operator,
  input: GetWorkflowsInput = {},
): Promise<WorkflowStatus[]> {
  return readWorkflows(operator, await findQueuedRecords(operator, input));
}

export async function findQueuedRecords(operator: Operator, input: GetWorkflowsInput = {}): Promise<WorkflowRecord[]> {
  // Refuses a wrong value before it is replaced.
  toWorkflowQuery(input, operator.applicationName);
  return findWorkflowRecords(operator, { ...input, queuesOnly: true, loadOutput: false });
}

/** The rows of the matching workflows. */
export async function findWorkflowRecords(
  operator: Operator,
  input: GetWorkflowsInput = {},
): Promise<WorkflowRecord[]> {
  const query = toWorkflowQuery(input, operator.applicationName);
  const records = await operator.retrying(() => listRows(operator.database, query, queryTimeoutMs(operator)));
  return explainRecords(operator, records);
}

/** Decodes rows. An undecodable value stays text. */
export function readWorkflows(
  { codec }: Pick<Operator, 'codec'>,
  records: readonly WorkflowRecord[],
): Promise<WorkflowStatus[]> {
  return Promise.all(records.map((record) => toStatus(codec, record)));
}

/** A page of the matching workflows. Concurrent inserts and deletes neither repeat nor skip others. */
export async function listWorkflowPage(operator: Operator, input: WorkflowPageInput = {}): Promise<WorkflowPage> {
  return readPage(operator, await findWorkflowPage(operator, input));
}

export async function readPage(
  operator: Pick<Operator, 'codec'>,
  { records, nextCursor }: RecordPage,
): Promise<WorkflowPage> {
  return { workflows: await readWorkflows(operator, records), nextCursor };
}

/** A page of the rows of the matching workflows. */
export async function findWorkflowPage(operator: Operator, input: WorkflowPageInput = {}): Promise<RecordPage> {
  const { cursor, ...rest } = input;
  if ('offset' in rest) {
    throw new DBOSInvalidArgumentError(
      'A page has no offset. Pass the nextCursor of the previous page.',
      'filter.offset',
    );
  }
  const limit = pageSize.read(rest.limit, 'filter.limit') ?? PAGE_SIZE;
  // One extra row shows whether there is another page.
  const query = toWorkflowQuery({ ...rest, limit: limit + 1 }, operator.applicationName);
  const after = cursor === undefined || cursor === null ? undefined : readCursor(cursor, query.isDescending);
  const found = await operator.retrying(() =>
    listRows(operator.database, { ...query, after }, queryTimeoutMs(operator)),
  );
  const records = await explainRecords(operator, found.slice(0, limit));
  const last = records.at(-1);
  return { records, nextCursor: last && found.length > limit ? writeCursor(last, query.isDescending) : null };
}

/** Iterates over all matching workflows, page by page, with bounded memory. */
export async function* iterateWorkflows(
  operator: Operator,
  input: Omit<WorkflowPageInput, 'limit'> & { readonly limit?: number } = {},
): AsyncGenerator<WorkflowStatus, void, undefined> {
  yield* eachOf(input, (page) => listWorkflowPage(operator, page));
}

/** Iterates over the pages that `getPage` returns. `limit` applies to all pages together. */
export async function* eachOf(
  input: WorkflowPageInput,
  getPage: (input: WorkflowPageInput) => Promise<WorkflowPage>,
): AsyncGenerator<WorkflowStatus, void, undefined> {
  let left = totalLimit.read(input.limit, 'filter.limit') ?? Infinity;
  let cursor = input.cursor;
  while (left > 0) {
    const page = await getPage({ ...input, cursor, limit: Math.min(left, STREAM_PAGE_SIZE) });
    yield* page.workflows;
    left -= page.workflows.length;
    if (page.nextCursor === null) return;
    cursor = page.nextCursor;
  }
}

/** Counts the matching workflows. */
export async function countWorkflows(operator: Operator, filters: WorkflowFilters = {}): Promise<number> {
  const filter = toWorkflowFilter(filters, operator.applicationName);
  return operator.retrying(() => countRows(operator.database, filter, queryTimeoutMs(operator)));
}

/** Counts up to a maximum, and estimates more. */
export async function estimateWorkflows(
  operator: Operator,
  filters: WorkflowFilters,
  exactMax: number,
): Promise<WorkflowEstimate> {
  const filter = toWorkflowFilter(filters, operator.applicationName);
  const options = { exactMax, timeoutMs: queryTimeoutMs(operator) };
  return operator.retrying(() => estimateRows(operator.database, filter, options));
}

/** A damaged row may have a time that is none, or too large for a cursor. Null if only such rows can follow. */
function writeCursor({ createdAt, workflowID }: Position, isDescending: boolean): string | null {
  const at = Number.isNaN(Number(createdAt)) ? Infinity : Math.floor(createdAt);
  if (at > Number.MAX_SAFE_INTEGER || at < -Number.MAX_SAFE_INTEGER) {
    if (at > 0 !== isDescending) return null;
    return writeCursor({ createdAt: Math.sign(at) * Number.MAX_SAFE_INTEGER, workflowID }, isDescending);
  }
  return Buffer.from(JSON.stringify([at, workflowID, isDescending])).toString('base64url');
}

function readCursor(cursor: string, isDescending: boolean): Position {
  const parts = parseCursor(cursor);
  if (!parts) {
    throw new DBOSInvalidArgumentError('Invalid cursor. Pass the nextCursor of a page, unchanged.', 'filter.cursor');
  }
  if (parts[2] !== isDescending) {
    throw new DBOSInvalidArgumentError(
      'The cursor belongs to a list in the opposite order. Pass the same sortDesc with it.',
      'filter.cursor',
    );
  }
  return { createdAt: parts[0], workflowID: parts[1] };
}

function parseCursor(cursor: unknown): readonly [number, string, boolean] | undefined {
  if (typeof cursor !== 'string' || !/^[\w-]{1,8000}$/.test(cursor)) return undefined;
  try {
    const parts: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString());
    if (!Array.isArray(parts) || parts.length !== 3) return undefined;
    const [createdAt, workflowID, isDescending] = parts as unknown[];
    const isPosition = Number.isSafeInteger(createdAt) && typeof workflowID === 'string' && !workflowID.includes('\0');
    if (!isPosition || typeof isDescending !== 'boolean') return undefined;
    return [createdAt as number, workflowID, isDescending];
  } catch {
    // Not a cursor of ours.
    return undefined;
  }
}
