// Commands that list workflows.
import { listWorkflowPage, type WorkflowPage } from './listing.js';
import type { WorkflowStatus } from './status.js';
import type { WaitingFor } from '../parking/waiting-for.js';
import { command, JSON_FLAG, type Output } from '../../faces/cli/command.js';
import { DATABASE, withClient } from '../../faces/cli/connection.js';
import { flag, text, type Values, wholeNumber, withDefault } from '../../faces/cli/option.js';
import { paint, type RenderContext, sanitize, shortValue, statusColour } from '../../faces/cli/render-context.js';
import { type Column, formatTable } from '../../faces/cli/table.js';
import { formatDuration, formatRelative } from '../../faces/cli/time.js';
import { FILTERS, toFilters } from './workflow-filters.cli.js';
import type { CommandContext } from '../../faces/cli/command.js';

const OPTIONS = {
  limit: withDefault(wholeNumber('Maximum number of workflows', { short: 'l', min: 1 }), 10),
  cursor: text('Continue after a previous page'),
  oldestFirst: flag('List the oldest first'),
  ids: flag('Print only IDs, one a line'),
  ...FILTERS,
  ...DATABASE,
  ...JSON_FLAG,
};

function columns({ now }: RenderContext): Column<WorkflowStatus>[] {
  return [
    { title: 'ID', text: (row) => row.workflowID },
    { title: 'STATUS', text: (row) => shortStatus(row.status), colour: (row) => statusColour(row.status) },
    { title: 'NAME', text: nameOf, isShortenable: true },
    { title: 'QUEUE', text: (row) => row.queueName, isShortenable: true, rank: 2 },
    { title: 'CREATED', text: (row) => formatRelative(row.createdAt, now), isRight: true },
    { title: 'TOOK', text: (row) => tookText(row, now), isRight: true, rank: 3 },
    { title: 'WAITS FOR', text: (row) => waitText(row.waitingFor, now), isShortenable: true, rank: 1 },
    {
      title: 'ERROR',
      text: (row) => (row.error === undefined ? '' : shortValue(row.error)),
      isShortenable: true,
      rank: 4,
    },
  ];
}

export function shortStatus(status: WorkflowStatus['status']): string {
  return status === 'MAX_RECOVERY_ATTEMPTS_EXCEEDED' ? 'DEAD LETTER' : sanitize(status);
}

/** The function's name, with class and instance if it has them. */
export function nameOf(row: WorkflowStatus): string {
  const instance = row.workflowConfigName === '' ? '' : `[${row.workflowConfigName}]`;
  return row.workflowClassName === '' ? row.workflowName : `${row.workflowClassName}${instance}.${row.workflowName}`;
}

/** As in `message approval, 23 h left`. */
export function waitText(waits: readonly WaitingFor[] | undefined, now: number): string | undefined {
  const [first, ...others] = waits ?? [];
  if (!first) return undefined;
  const more = others.length === 0 ? '' : ` or ${others.length} more`;
  const limit = first.until === undefined ? '' : `, ${formatDuration(first.until - now)} left`;
  return `${awaitedText(first)}${more}${limit}`;
}

function awaitedText(wait: WaitingFor): string {
  switch (wait.kind) {
    case 'sleep':
      return 'sleep';
    case 'retry':
      return `retry of step ${wait.stepID}`;
    case 'message':
      return wait.topic === null ? 'message' : `message ${wait.topic}`;
    case 'event':
      return `event ${wait.key} of ${wait.workflowID}`;
    case 'workflow':
      return `workflow ${wait.workflowID}`;
  }
}

/** From start to end, or until now. */
function tookText({ status, createdAt, dequeuedAt, completedAt }: WorkflowStatus, now: number): string {
  const startedAt = dequeuedAt ?? createdAt;
  if (completedAt !== undefined) return formatDuration(completedAt - startedAt);
  return status === 'PENDING' ? `${formatDuration(now - startedAt)}…` : '';
}

async function list(context: CommandContext, options: Values<typeof OPTIONS>): Promise<Output> {
  const page = await withClient(context, options, ({ operator }) =>
    listWorkflowPage(operator, {
      ...toFilters(options),
      limit: options.limit,
      cursor: options.cursor,
      sortDesc: !options.oldestFirst,
      loadInput: options.json,
    }),
  );
  if (!options.ids) return { json: page, text: (rendering) => pageText(rendering, page) };
  const ids = page.workflows.map(({ workflowID }) => workflowID);
  return { json: { workflowIDs: ids, nextCursor: page.nextCursor }, text: () => ids.map((id) => `${id}\n`).join('') };
}

function pageText(rendering: RenderContext, { workflows, nextCursor }: WorkflowPage): string {
  if (workflows.length === 0) return 'No workflows.';
  const table = formatTable(rendering, columns(rendering), workflows);
  return nextCursor === null ? table : `${table}\n${paint(rendering, 'grey', `More: --cursor ${nextCursor}`)}`;
}

const listCommand = command({
  name: 'workflow list',
  about: 'List workflows, newest first',
  details: 'A workflow must match all filters, and any of the values of a repeated filter.',
  options: OPTIONS,
  examples: [
    ['everstep workflow list', 'the ten newest'],
    ['everstep workflow list -S ERROR -t 2h -l 50', 'failures of the last two hours'],
    ['everstep workflow list -n fulfil --attributes \'{"customer": 7}\' --json', 'for scripts'],
    ['everstep workflow list -S ERROR --ids | everstep workflow fork - --from-failure', 'retry failures'],
  ],
  run: (context, { options }) => list(context, options),
});

const queuedCommand = command({
  name: 'workflow queue list',
  about: 'List workflows in queues; same as workflow list --queued',
  options: OPTIONS,
  examples: [['everstep workflow queue list -q mail', 'waiting and running in one queue']],
  run: (context, { options }) => list(context, { ...options, queued: true }),
});

export const WORKFLOW_LIST_COMMANDS = [listCommand, queuedCommand];
