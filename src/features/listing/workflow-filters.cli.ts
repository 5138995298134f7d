// Selects the workflows of a command: by ID, from arguments or standard input, or by filter.
import { countWorkflows, findWorkflowPage, findWorkflowRecords, type WorkflowFilters } from './listing.js';
import type { Operator } from '../../operator/operator.js';
import { StatusString, type WorkflowStatusString } from '../../kernel/workflow/status.js';
import type { WorkflowRecord } from '../../kernel/workflow/records.js';
import { confirm, type CommandContext } from '../../faces/cli/command.js';
import { APPLICATION } from '../../faces/cli/connection.js';
import { notFound, wrongUsage } from '../../faces/cli/failure.js';
import { choice, flag, jsonObject, longName, moment, repeatable, text, type Values } from '../../faces/cli/option.js';
import { counted } from '../../faces/cli/table.js';

const STATUSES = Object.values(StatusString);

export const FILTERS = {
  name: repeatable(text('Name of the workflow function', { short: 'n' })),
  status: repeatable(choice(`One of ${STATUSES.join(', ')}`, STATUSES, { short: 'S', placeholder: 'STATUS' })),
  queueName: repeatable(text('In this queue', { short: 'q', aliases: ['queue'], placeholder: 'NAME' })),
  queued: flag('Only workflows in a queue: enqueued, delayed or running', { aliases: ['queues-only'] }),
  startTime: moment('Created at this time or later', { short: 't' }),
  endTime: moment('Created at this time or earlier', { short: 'e' }),
  completedAfter: moment('Ended at this time or later'),
  completedBefore: moment('Ended at this time or earlier'),
  user: repeatable(text('Run for this user', { short: 'u' })),
  applicationVersion: repeatable(text('With this application version', { short: 'v', placeholder: 'VERSION' })),
  ...APPLICATION,
  executorId: repeatable(text('Claimed by this executor', { placeholder: 'ID' })),
  idPrefix: repeatable(text('IDs with this prefix', { placeholder: 'TEXT' })),
  parent: repeatable(text('Started by this workflow', { placeholder: 'ID' })),
  roots: flag('Only workflows without a parent'),
  forkedFrom: repeatable(text('Forked from this workflow', { placeholder: 'ID' })),
  scheduleName: repeatable(text('Started by this schedule', { aliases: ['schedule'], placeholder: 'NAME' })),
  attributes: jsonObject('With these attributes'),
};

type FilterValues = Values<typeof FILTERS>;

export function toFilters(given: FilterValues): WorkflowFilters {
  const iso = (at: number | undefined): string | undefined =>
    at === undefined ? undefined : new Date(at).toISOString();
  const filters: WorkflowFilters = {
    workflowName: given.name,
    status: given.status,
    queueName: given.queueName,
    queuesOnly: given.queued || undefined,
    startTime: iso(given.startTime),
    endTime: iso(given.endTime),
    completedAfter: iso(given.completedAfter),
    completedBefore: iso(given.completedBefore),
    authenticatedUser: given.user,
    applicationVersion: given.applicationVersion,
    applicationName: given.applicationName,
    executorId: given.executorId,
    workflow_id_prefix: given.idPrefix,
    parentWorkflowID: given.parent,
    hasParent: given.roots ? false : undefined,
    forkedFrom: given.forkedFrom,
    scheduleName: given.scheduleName,
    attributes: given.attributes,
  };
  return Object.fromEntries(Object.entries(filters).filter(([, value]) => value !== undefined));
}

export const IDS_PARAMETER = {
  name: 'ID',
  about: 'Workflow IDs; "-" reads them from standard input, one a line',
} as const;

/** The IDs without duplicates. */
export async function readIDs({ terminal, signal }: CommandContext, args: readonly string[]): Promise<string[]> {
  const ids = new Set<string>();
  for (const arg of args) {
    if (arg !== '-') ids.add(arg);
    else for await (const line of terminal.lines(signal)) if (line.trim() !== '') ids.add(line.trim());
  }
  // Do not act on part of the IDs.
  signal.throwIfAborted();
  return [...ids];
}

/** Workflows read or changed at once. */
export const CHUNK = 500;

export function chunksOf<T>(list: readonly T[], size = CHUNK): T[][] {
  return Array.from({ length: Math.ceil(list.length / size) }, (_, index) =>
    list.slice(index * size, (index + 1) * size),
  );
}

/** The workflows with these IDs, without inputs and outcomes. Fails if one does not exist. */
export async function findAll(operator: Operator, ids: readonly string[]): Promise<WorkflowRecord[]> {
  const found = new Map<string, WorkflowRecord>();
  for (const workflowIDs of chunksOf(ids)) {
    const records = await findWorkflowRecords(operator, { workflowIDs, loadInput: false, loadOutput: false });
    for (const record of records) found.set(record.workflowID, record);
  }
  const missing = ids.filter((id) => !found.has(id));
  if (missing.length > 0) throw notFound(missingText(missing, ids.length));
  return ids.flatMap((id) => found.get(id) ?? []);
}

const LISTED_MAX = 5;

function missingText(missing: readonly string[], total: number): string {
  const listed = missing.slice(0, LISTED_MAX).map((id) => `"${id}"`);
  const more = missing.length > LISTED_MAX ? ` and ${missing.length - LISTED_MAX} more` : '';
  const nothingDone = total > 1 ? ' Nothing was changed.' : '';
  return `Workflow ${listed.join(', ')}${more} not found.${nothingDone} See: everstep workflow list`;
}

export interface Selection {
  /** The number selected. More may be created meanwhile. */
  readonly total: number;
  /** The workflows in parts, without inputs and outcomes. */
  readonly parts: AsyncIterable<readonly WorkflowRecord[]>;
}

export interface Wanted {
  readonly args: readonly string[];
  readonly options: FilterValues & { readonly yes: boolean };
  /** For the prompt, such as `Cancel`. */
  readonly verb: string;
  /** The default for --status. */
  readonly statuses: readonly WorkflowStatusString[];
  /** Whether it cannot be undone, so that IDs on a terminal are confirmed too. */
  readonly isIrreversible?: boolean;
}

/** Selects the workflows to change. With filters it shows their number and asks first. */
export async function selectWorkflows(context: CommandContext, operator: Operator, wanted: Wanted): Promise<Selection> {
  const { args, options, verb, statuses } = wanted;
  const given = toFilters(options);
  const filterNames = Object.keys(given).filter((name) => name !== 'applicationName');
  if (args.length > 0) {
    if (filterNames.length > 0) throw wrongUsage('Pass IDs or filters, not both.');
    const records = await findAll(operator, await readIDs(context, args));
    // A script that names IDs means them. A person may have mistyped one.
    if (wanted.isIrreversible && context.terminal.isInteractive && !args.includes('-')) {
      await confirm(context, `${verb} ${counted(records.length, 'workflow')}?`, options.yes);
    }
    return { total: records.length, parts: inChunks(records) };
  }
  if (Object.keys(given).length === 0) {
    const examples = ['status', 'name', 'queueName'].map((key) => `--${longName(key)}`).join(', ');
    throw wrongUsage(`Pass IDs, or at least one filter such as ${examples}.`);
  }
  const filters = { ...given, status: given.status ?? statuses };
  const total = await countWorkflows(operator, filters);
  if (total > 0) await confirm(context, `${verb} ${counted(total, 'workflow')}?`, options.yes);
  return { total, parts: pagesOf(operator, filters) };
}

async function* inChunks(records: readonly WorkflowRecord[]): AsyncGenerator<readonly WorkflowRecord[]> {
  yield* chunksOf(records);
}

async function* pagesOf(operator: Operator, filters: WorkflowFilters): AsyncGenerator<readonly WorkflowRecord[]> {
  for (let cursor: string | undefined; ;) {
    const input = { ...filters, cursor, limit: CHUNK, loadInput: false, loadOutput: false };
    const { records, nextCursor } = await findWorkflowPage(operator, input);
    if (records.length > 0) yield records;
    if (nextCursor === null) return;
    cursor = nextCursor;
  }
}
