// Commands that cancel, resume and delete workflows, by ID or by filter.
import { cancelWorkflows, deleteWorkflows, resumeWorkflows } from './lifecycle.js';
import type { Operator } from '../../operator/operator.js';
import {
  ACTIVE_STATUSES,
  STOPPED_STATUSES,
  StatusString,
  TRANSITIONS,
  type WorkflowStatusString,
} from '../../kernel/workflow/status.js';
import { command, JSON_FLAG, type Output, progressOn, type CommandContext, YES_FLAG } from '../../faces/cli/command.js';
import { DATABASE, withClient } from '../../faces/cli/connection.js';
import { flag, text } from '../../faces/cli/option.js';
import { counted } from '../../faces/cli/table.js';
import {
  FILTERS,
  IDS_PARAMETER,
  type Selection,
  selectWorkflows,
  type Wanted,
} from '../listing/workflow-filters.cli.js';

const STATUSES = Object.values(StatusString);
const ANY_PARAMETER = { ...IDS_PARAMETER, takes: 'any' } as const;

const REASON = {
  reason: text('Why, for its history', { placeholder: 'TEXT' }),
  actor: text('Who asks for it, for its history', { placeholder: 'NAME' }),
};

interface Change {
  /** For the output: `cancelled`. */
  readonly done: string;
  /** Why a workflow did not change: `had already ended`. */
  readonly otherwise: string;
  /** The statuses it applies to. Workflows in others, and their descendants, are skipped. */
  readonly from: readonly WorkflowStatusString[];
  /** Returns the IDs it changed, descendants included. */
  apply(operator: Operator, workflowIDs: readonly string[]): Promise<string[]>;
}

/** Changes the workflows chunk by chunk, so that Ctrl-C never leaves one half changed. */
async function changeAll(
  context: CommandContext,
  operator: Operator,
  { total, parts }: Selection,
  change: Change,
): Promise<Output> {
  const progress = progressOn(context);
  const unchanged: string[] = [];
  // Descendants changed with their ancestor: a later chunk that selects one must not count it as unchanged.
  const descendants = new Set<string>();
  let changed = 0;
  try {
    for await (const part of parts) {
      const selected = new Set(part.map(({ workflowID }) => workflowID));
      const fit = part.filter(({ status }) => change.from.includes(status)).map(({ workflowID }) => workflowID);
      for (const workflowID of fit.length > 0 ? await change.apply(operator, fit) : []) {
        changed += 1;
        if (!selected.delete(workflowID)) descendants.add(workflowID);
      }
      unchanged.push(...[...selected].filter((workflowID) => !descendants.has(workflowID)));
      context.signal.throwIfAborted();
      progress.show(`${counted(changed, 'workflow')} of ${total.toLocaleString('en-US')} ${change.done}`);
    }
  } finally {
    progress.done();
    if (context.signal.aborted)
      context.terminal.printStderr(`${counted(changed, 'workflow')} ${change.done} so far.\n`);
  }
  const rest = unchanged.length === 0 ? '' : `; ${unchanged.length.toLocaleString('en-US')} ${change.otherwise}`;
  return {
    json: { changed, unchanged },
    text: () => `${counted(changed, 'workflow')} ${change.done}${rest}.`,
  };
}

async function changeSelected(
  context: CommandContext,
  wanted: Wanted & { readonly options: Parameters<typeof withClient>[1] },
  change: Change,
): Promise<Output> {
  return withClient(context, wanted.options, async ({ operator }) =>
    changeAll(context, operator, await selectWorkflows(context, operator, wanted), change),
  );
}

const cancelCommand = command({
  name: 'workflow cancel',
  about: 'Cancel workflows',
  details:
    'By ID, or by filter. With a filter it selects active workflows and asks first. Workflows that have ended do not ' +
    'change.',
  parameter: ANY_PARAMETER,
  options: {
    children: flag('Include descendants'),
    ...REASON,
    ...YES_FLAG,
    ...FILTERS,
    ...DATABASE,
    ...JSON_FLAG,
  },
  examples: [
    ['everstep workflow cancel order-17 order-18 --children', 'two workflows and their descendants'],
    ['everstep workflow cancel -q mail -S ENQUEUED --yes', 'empty a queue'],
    ['cat ids.txt | everstep workflow cancel -', 'IDs from a file'],
  ],
  run: (context, { options, args }) =>
    changeSelected(
      context,
      { args, options, verb: 'Cancel', statuses: ACTIVE_STATUSES },
      {
        done: 'cancelled',
        otherwise: 'had already ended',
        from: TRANSITIONS.cancel.from,
        apply: (operator, ids) =>
          cancelWorkflows(operator, ids, {
            cancelChildren: options.children,
            reason: options.reason,
            actor: options.actor,
          }),
      },
    ),
});

const resumeCommand = command({
  name: 'workflow resume',
  about: 'Resume workflows from their last checkpoint',
  details:
    'By ID, or by filter. With a filter it selects cancelled workflows and dead letters, unless you pass --status, and ' +
    'asks first. A workflow that has ended with a result or an error does not change; fork or rewind it.',
  parameter: ANY_PARAMETER,
  options: {
    toQueue: text('Queue to enqueue them in; defaults to the internal queue', { placeholder: 'NAME' }),
    ...REASON,
    ...YES_FLAG,
    ...FILTERS,
    ...DATABASE,
    ...JSON_FLAG,
  },
  examples: [
    ['everstep workflow resume order-17', 'a cancelled workflow'],
    ['everstep workflow resume -S MAX_RECOVERY_ATTEMPTS_EXCEEDED -t 1d', 'the dead letters of the last day'],
  ],
  run: (context, { options, args }) =>
    changeSelected(
      context,
      { args, options, verb: 'Resume', statuses: STOPPED_STATUSES },
      {
        done: 'resumed',
        otherwise: 'had already ended',
        from: TRANSITIONS.resume.from,
        apply: (operator, ids) =>
          resumeWorkflows(operator, ids, {
            queueName: options.toQueue,
            reason: options.reason,
            actor: options.actor,
          }),
      },
    ),
});

const deleteCommand = command({
  name: 'workflow delete',
  about: 'Delete workflows with their steps, events, messages and streams',
  details:
    'By ID, or by filter. With a filter it selects workflows in any status and asks first; on a terminal it asks for IDs ' +
    'too. Deleting a running workflow makes its run fail.',
  parameter: ANY_PARAMETER,
  options: {
    children: flag('Include descendants'),
    reason: text('Why, for the log', { placeholder: 'TEXT' }),
    actor: text('Who asks for it, for the log', { placeholder: 'NAME' }),
    ...YES_FLAG,
    ...FILTERS,
    ...DATABASE,
    ...JSON_FLAG,
  },
  examples: [
    ['everstep workflow delete order-17 --children', 'a workflow and its descendants'],
    ['everstep workflow delete -n importFile -S ERROR -e 30d', 'failures more than 30 days old'],
  ],
  run: (context, { options, args }) =>
    changeSelected(
      context,
      { args, options, verb: 'Delete', statuses: STATUSES, isIrreversible: true },
      {
        done: 'deleted',
        otherwise: 'had already been deleted',
        from: STATUSES,
        apply: (operator, ids) =>
          deleteWorkflows(operator, ids, {
            deleteChildren: options.children,
            reason: options.reason,
            actor: options.actor,
          }),
      },
    ),
});

export const WORKFLOW_CHANGE_COMMANDS = [cancelCommand, resumeCommand, deleteCommand];
