// Commands that list workflows.
import { listWorkflowPage, type WorkflowPage } from '../../control/listing/listing.js';
import type { WorkflowStatus } from '../../control/listing/status.js';
import { command, JSON_FLAG, type Output } from '../command.js';
import { DATABASE, withClient } from '../connection.js';
import { flag, text, type Values, wholeNumber, withDefault } from '../option.js';
import { paint, type Paper, shortValue, statusColour } from '../paper.js';
import { type Column, formatTable } from '../table.js';
import { formatDuration, formatRelative } from '../time.js';
import { FILTERS, toFilters } from './workflow-filters.js';
import type { Scene } from '../command.js';

const OPTIONS = {
  limit: withDefault(wholeNumber('How many at most', { short: 'l', min: 1 }), 10),
  cursor: text('Go on where a list has ended'),
  oldestFirst: flag('The oldest first instead of the newest'),
  ids: flag('Write nothing but IDs, one on each line'),
  ...FILTERS,
  ...DATABASE,
  ...JSON_FLAG,
};

function columns({ now }: Paper): Column<WorkflowStatus>[] {
  return [
    { title: 'ID', text: (row) => row.workflowID },
    { title: 'STATUS', text: (row) => shortStatus(row.status), colour: (row) => statusColour(row.status) },
    { title: 'NAME', text: nameOf, isShortenable: true },
    { title: 'QUEUE', text: (row) => row.queueName, isShortenable: true, rank: 2 },
    { title: 'CREATED', text: (row) => formatRelative(row.createdAt, now), isRight: true },
    { title: 'TOOK', text: (row) => tookText(row, now), isRight: true, rank: 3 },
    {
      title: 'ERROR',
      text: (row) => (row.error === undefined ? '' : shortValue(row.error)),
      isShortenable: true,
      rank: 4,
    },
  ];
}

export function shortStatus(status: WorkflowStatus['status']): string {
  return status === 'MAX_RECOVERY_ATTEMPTS_EXCEEDED' ? 'DEAD LETTER' : status;
}

/** The function, with its class and instance where it has them. */
export function nameOf(row: WorkflowStatus): string {
  const instance = row.workflowConfigName === '' ? '' : `[${row.workflowConfigName}]`;
  return row.workflowClassName === '' ? row.workflowName : `${row.workflowClassName}${instance}.${row.workflowName}`;
}

/** From its start to its end, or until now. */
function tookText({ status, createdAt, dequeuedAt, completedAt }: WorkflowStatus, now: number): string {
  const startedAt = dequeuedAt ?? createdAt;
  if (completedAt !== undefined) return formatDuration(completedAt - startedAt);
  return status === 'PENDING' ? `${formatDuration(now - startedAt)}…` : '';
}

async function list(scene: Scene, options: Values<typeof OPTIONS>): Promise<Output> {
  const page = await withClient(scene, options, ({ operator }) =>
    listWorkflowPage(operator, {
      ...toFilters(options),
      limit: options.limit,
      cursor: options.cursor,
      sortDesc: !options.oldestFirst,
      loadInput: options.json,
    }),
  );
  if (!options.ids) return { json: page, text: (paper) => pageText(paper, page) };
  const ids = page.workflows.map(({ workflowID }) => workflowID);
  return { json: { workflowIDs: ids, nextCursor: page.nextCursor }, text: () => ids.map((id) => `${id}\n`).join('') };
}

function pageText(paper: Paper, { workflows, nextCursor }: WorkflowPage): string {
  if (workflows.length === 0) return 'No workflows.';
  const table = formatTable(paper, columns(paper), workflows);
  return nextCursor === null ? table : `${table}\n${paint(paper, 'grey', `There are more: --cursor ${nextCursor}`)}`;
}

const listCommand = command({
  name: 'workflow list',
  about: 'List workflows, the newest first',
  details: 'All filters that are given must hold. Of a filter that is repeated, one value must.',
  options: OPTIONS,
  examples: [
    ['everstep workflow list', 'the ten newest'],
    ['everstep workflow list -S ERROR -t 2h -l 50', 'what has failed in the last two hours'],
    ['everstep workflow list -n fulfil --attributes \'{"customer": 7}\' --json', 'for a program'],
    ['everstep workflow list -S ERROR --ids | everstep workflow fork - --from-failure', 'try again what has failed'],
  ],
  run: (scene, { options }) => list(scene, options),
});

const queuedCommand = command({
  name: 'workflow queue list',
  about: 'List workflows that are in a queue; the same as workflow list --queued',
  options: OPTIONS,
  examples: [['everstep workflow queue list -q mail', 'what waits and runs in a queue']],
  run: (scene, { options }) => list(scene, { ...options, queued: true }),
});

export const WORKFLOW_LIST_COMMANDS = [listCommand, queuedCommand];
