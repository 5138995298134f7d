// The commands of `dbos`, for scripts written for DBOS: its flags and its JSON, on one line. Commands that only Everstep has,
// and those without output to parse, are the same as in `everstep`.
import { inspect } from 'node:util';
import { type Command, command, type CommandContext, type Output } from '../command.js';
import { COMMANDS } from '../commands.js';
import { APPLICATION, DATABASE, withClient } from '../connection.js';
import type { DBOSClient } from '../../client/client.js';
import { StatusString } from '../../../kernel/workflow/status.js';
import { choice, required, text, type Values, wholeNumber, withDefault } from '../option.js';

const LIST_LIMIT = 10;
const STATUSES = Object.values(StatusString);
const ID = { name: 'ID', about: 'Workflow ID', takes: 'one' } as const;

const LIST_OPTIONS = {
  name: text('Name of the workflow function', { short: 'n' }),
  startTime: text('Created at this time or later (ISO 8601)', { short: 't' }),
  endTime: text('Created at this time or earlier (ISO 8601)', { short: 'e' }),
  status: choice(`One of ${STATUSES.join(', ')}`, STATUSES, { short: 'S', placeholder: 'STATUS' }),
  ...APPLICATION,
  ...DATABASE,
};

/** As DBOS prints it: values as Node shows them, because JSON cannot hold all of them. */
function shown(item: object): Record<string, unknown> {
  const result = { ...item } as Record<string, unknown>;
  for (const field of ['input', 'output', 'error']) {
    if (result[field] != null) result[field] = inspect(result[field]);
  }
  return result;
}

function line(json: unknown): Output {
  return { json, text: () => JSON.stringify(json) };
}

/** Runs the body with a client of all applications, and prints what it returns. */
function asked(
  context: CommandContext,
  { sysDbUrl, schema }: Values<typeof DATABASE>,
  body: (client: DBOSClient) => Promise<unknown>,
): Promise<Output | void> {
  return withClient(context, { sysDbUrl, schema }, async (_, __, client) => {
    const found = await body(client);
    return found === undefined ? undefined : line(found);
  });
}

const OVERRIDES: readonly Command[] = [
  command({
    name: 'workflow list',
    about: 'List workflows as JSON, oldest first',
    options: {
      ...LIST_OPTIONS,
      limit: withDefault(wholeNumber('At most this many', { short: 'l' }), LIST_LIMIT),
      user: text('Run for this user', { short: 'u' }),
      applicationVersion: text('With this application version', { short: 'v', placeholder: 'VERSION' }),
    },
    examples: [['dbos workflow list -S ERROR -l 50', 'up to fifty failures']],
    run: (context, { options }) =>
      asked(context, options, async (client) => {
        const { name, user, limit, startTime, endTime, status, applicationVersion, applicationName } = options;
        const filters = { workflowName: name, authenticatedUser: user, startTime, endTime, status, limit };
        return (await client.listWorkflows({ ...filters, applicationVersion, applicationName })).map(shown);
      }),
  }),
  command({
    name: 'workflow queue list',
    about: 'List enqueued workflows as JSON, oldest first',
    options: {
      ...LIST_OPTIONS,
      limit: wholeNumber('At most this many', { short: 'l' }),
      queue: text('In this queue', { short: 'q', placeholder: 'NAME' }),
    },
    examples: [['dbos workflow queue list -q mail', 'waiting and running in one queue']],
    run: (context, { options }) =>
      asked(context, options, async (client) => {
        const { name, queue, limit, startTime, endTime, status, applicationName } = options;
        const filters = { workflowName: name, queueName: queue, startTime, endTime, status, limit };
        return (await client.listQueuedWorkflows({ ...filters, applicationName })).map(shown);
      }),
  }),
  command({
    name: 'workflow get',
    about: 'Print a workflow as JSON; null if it does not exist',
    parameter: ID,
    options: DATABASE,
    examples: [['dbos workflow get order-7', 'one workflow']],
    run: (context, { options, args: [workflowID = ''] }) =>
      asked(context, options, async (client) => {
        const found = await client.getWorkflow(workflowID);
        return found ? shown(found) : null;
      }),
  }),
  command({
    name: 'workflow steps',
    about: 'List the steps of a workflow as JSON; null if it does not exist',
    parameter: ID,
    options: DATABASE,
    examples: [['dbos workflow steps order-7', 'in the order of their numbers']],
    run: (context, { options, args: [workflowID = ''] }) =>
      asked(context, options, async (client) => (await client.listWorkflowSteps(workflowID))?.map(shown) ?? null),
  }),
  command({
    name: 'workflow cancel',
    about: 'Cancel a workflow',
    parameter: ID,
    options: DATABASE,
    examples: [['dbos workflow cancel order-7', 'prints nothing']],
    run: (context, { options, args: [workflowID = ''] }) =>
      asked(context, options, async (client) => void (await client.cancelWorkflow(workflowID))),
  }),
  command({
    name: 'workflow resume',
    about: 'Continue a workflow from its last checkpoint',
    parameter: ID,
    options: DATABASE,
    examples: [['dbos workflow resume order-7', 'prints nothing']],
    run: (context, { options, args: [workflowID = ''] }) =>
      asked(context, options, async (client) => void (await client.resumeWorkflow(workflowID))),
  }),
  command({
    name: 'workflow fork',
    about: 'Start a copy of a workflow from one of its steps',
    parameter: ID,
    options: {
      step: required(wholeNumber('Run from this step on', { short: 'S' })),
      forkedWorkflowId: text('ID of the copy', { short: 'f', placeholder: 'ID' }),
      applicationVersion: text('Version of the copy', { short: 'v', placeholder: 'VERSION' }),
      ...DATABASE,
    },
    examples: [['dbos workflow fork order-7 -S 3', 'prints nothing']],
    run: (context, { options, args: [workflowID = ''] }) =>
      asked(context, options, async (client) => {
        const { step, forkedWorkflowId: newWorkflowID, applicationVersion } = options;
        await client.forkWorkflow(workflowID, step, { newWorkflowID, applicationVersion });
      }),
  }),
];

const LOG_LEVEL = { loglevel: text('Has no effect: the commands log for themselves', { short: 'l' }) };

/** The command of DBOS for a command of ours. */
function asInDBOS(ours: Command): Command {
  if (ours.name === 'start') return { ...ours, options: { ...ours.options, ...LOG_LEVEL } };
  return OVERRIDES.find(({ name }) => name === ours.name) ?? ours;
}

export const DBOS_COMMANDS: readonly Command[] = COMMANDS.map(asInDBOS);
