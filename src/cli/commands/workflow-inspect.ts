// Commands that show a workflow from all sides.
import { explainWorkflow } from '../../control/management/explain.js';
import {
  getAllEvents,
  getAllNotifications,
  getAllStreamEntries,
  getWorkflow,
} from '../../control/listing/inspection.js';
import type { Operator } from '../../control/operator.js';
import type { StepInfo, WorkflowStatus } from '../../control/listing/status.js';
import { listWorkflowSteps } from '../../control/listing/steps.js';
import { command, JSON_FLAG, type Output, type Parameter } from '../command.js';
import { DATABASE, withClient } from '../connection.js';
import { notFound } from '../failure.js';
import { wholeNumber, withDefault } from '../option.js';
import { harmless, longValue, paint, type Paper, shortValue, statusColour } from '../paper.js';
import { type Column, formatFields, formatTable } from '../table.js';
import { formatDuration, formatMoment } from '../time.js';
import { nameOf, shortStatus } from './workflow-list.js';

const OPTIONS = { ...DATABASE, ...JSON_FLAG };
const PARAMETER: Parameter = { name: 'ID', takes: 'one', about: 'The ID of a workflow' };

function missing(workflowID: string): Error {
  return notFound(`Workflow "${workflowID}" not found. See: everstep workflow list`);
}

async function requireWorkflow(operator: Operator, workflowID: string): Promise<WorkflowStatus> {
  const found = await getWorkflow(operator, workflowID);
  if (!found) throw missing(workflowID);
  return found;
}

function workflowText(paper: Paper, row: WorkflowStatus): string {
  const at = (time: number | undefined): string | undefined =>
    time === undefined ? undefined : formatMoment(time, paper.now);
  const length = (ms: number | undefined): string | undefined => (ms === undefined ? undefined : formatDuration(ms));
  const plain = (value: string | undefined): string | undefined => (value === undefined ? undefined : harmless(value));
  return formatFields(paper, [
    ['ID', harmless(row.workflowID), 'bold'],
    ['status', shortStatus(row.status), statusColour(row.status)],
    ['workflow', harmless(nameOf(row))],
    ['queue', plain(row.queueName)],
    ['partition', plain(row.queuePartitionKey)],
    ['priority', row.priority === 0 ? undefined : row.priority],
    ['deduplication ID', plain(row.deduplicationID)],
    ['created', at(row.createdAt)],
    ['delayed until', at(row.delayUntilEpochMS)],
    ['started', at(row.dequeuedAt)],
    ['ended', at(row.completedAt)],
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
    ['roles', row.authenticatedRoles?.length ? harmless(row.authenticatedRoles.join(', ')) : undefined],
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
  examples: [['everstep workflow get order-17', 'everything that is known of it']],
  run: (scene, { options, args: [id = ''] }) =>
    withClient(scene, options, async ({ operator }) => {
      const found = await requireWorkflow(operator, id);
      return { json: found, text: (paper) => workflowText(paper, found) };
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
    limit: wholeNumber('How many at most', { short: 'l', min: 1 }),
    offset: withDefault(wholeNumber('How many to pass over'), 0),
    ...OPTIONS,
  },
  examples: [['everstep workflow steps order-17', 'with results, errors and children']],
  run: (scene, { options, args: [id = ''] }) =>
    withClient(scene, options, async ({ operator }) => {
      const steps = await listWorkflowSteps(operator, id, { limit: options.limit, offset: options.offset });
      if (!steps) throw missing(id);
      return {
        json: steps,
        text: (paper) => (steps.length === 0 ? 'No steps.' : formatTable(paper, STEP_COLUMNS, steps)),
      };
    }),
});

const explainCommand = command({
  name: 'workflow explain',
  about: 'Say why a workflow is in the state that it is in, above all why it has not started',
  parameter: PARAMETER,
  options: OPTIONS,
  examples: [['everstep workflow explain order-17', 'why does it wait?']],
  run: (scene, { options, args: [id = ''] }) =>
    withClient(scene, options, async ({ operator }) => {
      const found = await explainWorkflow(operator, id);
      if (found.status === null) throw missing(id);
      const status = found.status;
      return {
        json: found,
        text: (paper) =>
          `${paint(paper, statusColour(status), shortStatus(status))} (${found.reason})\n${harmless(found.message)}`,
      };
    }),
});

/** Names and values below each other. */
function entriesOutput(entries: Readonly<Record<string, unknown>>, noun: string): Output {
  const rows = Object.entries(entries);
  return {
    json: entries,
    text: (paper) =>
      rows.length === 0
        ? `No ${noun}.`
        : formatFields(
            paper,
            rows.map(([key, value]) => [harmless(key), longValue(value)]),
          ),
  };
}

const eventsCommand = command({
  name: 'workflow events',
  about: 'Show the events that a workflow has set',
  parameter: PARAMETER,
  options: OPTIONS,
  examples: [['everstep workflow events order-17', 'by key']],
  run: (scene, { options, args: [id = ''] }) =>
    withClient(scene, options, async ({ operator }) => {
      await requireWorkflow(operator, id);
      return entriesOutput(await getAllEvents(operator, id), 'events');
    }),
});

const streamsCommand = command({
  name: 'workflow streams',
  about: 'Show the values of the streams of a workflow',
  parameter: PARAMETER,
  options: OPTIONS,
  examples: [['everstep workflow streams order-17', 'by key']],
  run: (scene, { options, args: [id = ''] }) =>
    withClient(scene, options, async ({ operator }) => {
      await requireWorkflow(operator, id);
      return entriesOutput(await getAllStreamEntries(operator, id), 'streams');
    }),
});

type Message = Awaited<ReturnType<typeof getAllNotifications>>[number];

const messagesCommand = command({
  name: 'workflow messages',
  about: 'Show the messages that were sent to a workflow',
  parameter: PARAMETER,
  options: OPTIONS,
  examples: [['everstep workflow messages order-17', 'those received and those that wait']],
  run: (scene, { options, args: [id = ''] }) =>
    withClient(scene, options, async ({ operator }) => {
      await requireWorkflow(operator, id);
      const messages = await getAllNotifications(operator, id);
      const columns = ({ now }: Paper): Column<Message>[] => [
        { title: 'SENT', text: (row) => formatMoment(row.createdAtEpochMs, now) },
        { title: 'TOPIC', text: (row) => row.topic, isShortenable: true },
        { title: 'RECEIVED', text: (row) => (row.consumed ? 'yes' : 'no') },
        { title: 'MESSAGE', text: (row) => shortValue(row.message), isShortenable: true },
      ];
      return {
        json: messages,
        text: (paper) => (messages.length === 0 ? 'No messages.' : formatTable(paper, columns(paper), messages)),
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
