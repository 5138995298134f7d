// Commands that show one workflow: status, steps, events, messages and streams.
import { explainWorkflow } from '../diagnosis/explain.js';
import { getAllEvents, getAllNotifications, getAllStreamEntries, getWorkflow } from './inspection.js';
import type { Operator } from '../../operator/operator.js';
import type { StepInfo, WorkflowStatus } from './status.js';
import { listWorkflowSteps } from './steps.js';
import { command, JSON_FLAG, type Output, type Parameter } from '../../faces/cli/command.js';
import { DATABASE, withClient } from '../../faces/cli/connection.js';
import { notFound } from '../../faces/cli/failure.js';
import { wholeNumber, withDefault } from '../../faces/cli/option.js';
import {
  sanitize,
  longValue,
  paint,
  type RenderContext,
  shortValue,
  statusColour,
} from '../../faces/cli/render-context.js';
import { type Column, formatFields, formatTable } from '../../faces/cli/table.js';
import { formatDuration, formatMoment } from '../../faces/cli/time.js';
import { nameOf, shortStatus, waitText } from './workflow-list.cli.js';

const OPTIONS = { ...DATABASE, ...JSON_FLAG };
const PARAMETER: Parameter = { name: 'ID', takes: 'one', about: 'ID of a workflow' };

function missing(workflowID: string): Error {
  return notFound(`Workflow "${workflowID}" not found. See: everstep workflow list`);
}

async function requireWorkflow(operator: Operator, workflowID: string): Promise<WorkflowStatus> {
  const found = await getWorkflow(operator, workflowID);
  if (!found) throw missing(workflowID);
  return found;
}

function workflowText(rendering: RenderContext, row: WorkflowStatus): string {
  const at = (time: number | undefined): string | undefined =>
    time === undefined ? undefined : formatMoment(time, rendering.now);
  const length = (ms: number | undefined): string | undefined => (ms === undefined ? undefined : formatDuration(ms));
  const plain = (value: string | undefined): string | undefined => (value === undefined ? undefined : sanitize(value));
  return formatFields(rendering, [
    ['ID', sanitize(row.workflowID), 'bold'],
    ['status', shortStatus(row.status), statusColour(row.status)],
    ['workflow', sanitize(nameOf(row))],
    ['queue', plain(row.queueName)],
    ['partition', plain(row.queuePartitionKey)],
    ['priority', row.priority === 0 ? undefined : row.priority],
    ['deduplication ID', plain(row.deduplicationID)],
    ['created', at(row.createdAt)],
    ['delayed until', at(row.delayUntilEpochMS)],
    ['started', at(row.dequeuedAt)],
    ['waits for', plain(waitText(row.waitingFor, rendering.now))],
    ['ended', at(row.completedAt)],
    ['cancelled by', plain(row.cancelledBy)],
    ['reason', plain(row.cancelReason)],
    ['timeout', length(row.timeoutMS)],
    ['deadline', at(row.deadlineEpochMS)],
    ['attempts', row.recoveryAttempts],
    ['executor', plain(row.executorId)],
    ['version', plain(row.applicationVersion)],
    ['application', plain(row.applicationName)],
    ['schedule', plain(row.scheduleName)],
    ['parent', plain(row.parentWorkflowID)],
    ['forked from', plain(row.forkedFrom)],
    ['user', plain(row.authenticatedUser)],
    ['roles', row.authenticatedRoles?.length ? sanitize([row.authenticatedRoles].flat().join(', ')) : undefined],
    ['attributes', row.attributes === undefined ? undefined : longValue(row.attributes)],
    ['input', row.input === undefined ? undefined : longValue(row.input)],
    ['output', row.output === undefined ? undefined : longValue(row.output)],
    ['error', row.error === undefined ? undefined : longValue(row.error), 'red'],
  ]);
}

const getCommand = command({
  name: 'workflow get',
  about: 'Show a workflow',
  parameter: PARAMETER,
  options: OPTIONS,
  examples: [['everstep workflow get order-17', 'everything about it']],
  run: (context, { options, args: [id = ''] }) =>
    withClient(context, options, async ({ operator }) => {
      const found = await requireWorkflow(operator, id);
      return { json: found, text: (rendering) => workflowText(rendering, found) };
    }),
});

const STEP_COLUMNS: readonly Column<StepInfo>[] = [
  { title: 'STEP', text: (row) => row.functionID, isRight: true },
  { title: 'NAME', text: (row) => row.name, isShortenable: true },
  { title: 'TOOK', text: (row) => stepTook(row), isRight: true, rank: 1 },
  { title: 'CHILD', text: (row) => row.childWorkflowID, rank: 2 },
  {
    title: 'RESULT',
    text: (row) => shortValue(row.error ?? row.output),
    colour: (row) => (row.error ? 'red' : undefined),
    isShortenable: true,
  },
];

function stepTook({ startedAtEpochMs, completedAtEpochMs }: StepInfo): string {
  if (startedAtEpochMs === undefined || completedAtEpochMs === undefined) return '';
  return formatDuration(completedAtEpochMs - startedAtEpochMs);
}

const stepsCommand = command({
  name: 'workflow steps',
  about: 'Show the steps of a workflow',
  parameter: PARAMETER,
  options: {
    limit: wholeNumber('Maximum number of steps', { short: 'l', min: 1 }),
    offset: withDefault(wholeNumber('Number of steps to skip'), 0),
    ...OPTIONS,
  },
  examples: [['everstep workflow steps order-17', 'with results, errors and children']],
  run: (context, { options, args: [id = ''] }) =>
    withClient(context, options, async ({ operator }) => {
      const steps = await listWorkflowSteps(operator, id, { limit: options.limit, offset: options.offset });
      if (!steps) throw missing(id);
      return {
        json: steps,
        text: (rendering) => (steps.length === 0 ? 'No steps.' : formatTable(rendering, STEP_COLUMNS, steps)),
      };
    }),
});

const explainCommand = command({
  name: 'workflow explain',
  about: 'Explain the status of a workflow, such as why it has not started',
  parameter: PARAMETER,
  options: OPTIONS,
  examples: [['everstep workflow explain order-17', 'why is it waiting?']],
  run: (context, { options, args: [id = ''] }) =>
    withClient(context, options, async ({ operator }) => {
      const found = await explainWorkflow(operator, id);
      if (found.status === null) throw missing(id);
      const status = found.status;
      return {
        json: found,
        text: (rendering) =>
          `${paint(rendering, statusColour(status), shortStatus(status))} (${sanitize(found.reason)})\n${sanitize(found.message)}`,
      };
    }),
});

/** One key and value a line. */
function entriesOutput(entries: Readonly<Record<string, unknown>>, noun: string): Output {
  const rows = Object.entries(entries);
  return {
    json: entries,
    text: (rendering) =>
      rows.length === 0
        ? `No ${noun}.`
        : formatFields(
            rendering,
            rows.map(([key, value]) => [sanitize(key), longValue(value)]),
          ),
  };
}

const eventsCommand = command({
  name: 'workflow events',
  about: 'Show the events of a workflow',
  parameter: PARAMETER,
  options: OPTIONS,
  examples: [['everstep workflow events order-17', 'by key']],
  run: (context, { options, args: [id = ''] }) =>
    withClient(context, options, async ({ operator }) => {
      await requireWorkflow(operator, id);
      return entriesOutput(await getAllEvents(operator, id), 'events');
    }),
});

const streamsCommand = command({
  name: 'workflow streams',
  about: 'Show the streams of a workflow',
  parameter: PARAMETER,
  options: OPTIONS,
  examples: [['everstep workflow streams order-17', 'by key']],
  run: (context, { options, args: [id = ''] }) =>
    withClient(context, options, async ({ operator }) => {
      await requireWorkflow(operator, id);
      return entriesOutput(await getAllStreamEntries(operator, id), 'streams');
    }),
});

type Message = Awaited<ReturnType<typeof getAllNotifications>>[number];

const messagesCommand = command({
  name: 'workflow messages',
  about: 'Show the messages sent to a workflow',
  parameter: PARAMETER,
  options: OPTIONS,
  examples: [['everstep workflow messages order-17', 'received and pending']],
  run: (context, { options, args: [id = ''] }) =>
    withClient(context, options, async ({ operator }) => {
      await requireWorkflow(operator, id);
      const messages = await getAllNotifications(operator, id);
      const columns = ({ now }: RenderContext): Column<Message>[] => [
        { title: 'SENT', text: (row) => formatMoment(row.createdAtEpochMs, now) },
        { title: 'TOPIC', text: (row) => row.topic, isShortenable: true },
        { title: 'RECEIVED', text: (row) => (row.consumed ? 'yes' : 'no') },
        { title: 'MESSAGE', text: (row) => shortValue(row.message), isShortenable: true },
      ];
      return {
        json: messages,
        text: (rendering) =>
          messages.length === 0 ? 'No messages.' : formatTable(rendering, columns(rendering), messages),
      };
    }),
});

export const WORKFLOW_INSPECT_COMMANDS = [
  getCommand,
  stepsCommand,
  explainCommand,
  eventsCommand,
  messagesCommand,
  streamsCommand,
];
