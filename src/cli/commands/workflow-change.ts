// Commands that cancel, resume and delete workflows: some by ID, or many by filter.
import { cancelWorkflows, deleteWorkflows, resumeWorkflows } from '../../control/management/lifecycle.js';
import type { Operator } from '../../control/operator.js';
import {
  ACTIVE_STATUSES,
  STOPPED_STATUSES,
  StatusString,
  TRANSITIONS,
  type WorkflowStatusString,
} from '../../model/status.js';
import { command, JSON_FLAG, type Output, progressOn, type Scene, YES_FLAG } from '../command.js';
import { DATABASE, withClient } from '../connection.js';
import { flag, text } from '../option.js';
import { counted } from '../table.js';
import { FILTERS, IDS_PARAMETER, type Selection, selectWorkflows, type Wanted } from './workflow-filters.js';

const STATUSES = Object.values(StatusString);
const ANY_PARAMETER = { ...IDS_PARAMETER, takes: 'any' } as const;

interface Change {
  /** For the answer: `cancelled`. */
  readonly done: string;
  /** Why a workflow stays unchanged: `had already ended`. */
  readonly otherwise: string;
  /** The states it applies to. Others are left alone, and so are their descendants. */
  readonly from: readonly WorkflowStatusString[];
  /** Returns the IDs that it has changed, with descendants if wanted. */
  apply(operator: Operator, workflowIDs: readonly string[]): Promise<string[]>;
}

/** Changes the workflows chunk by chunk, so that Ctrl-C leaves each either changed or as it was. */
async function changeAll(
  scene: Scene,
  operator: Operator,
  { total, parts }: Selection,
  change: Change,
): Promise<Output> {
  const progress = progressOn(scene);
  const unchanged: string[] = [];
  // Descendants that were changed with their ancestor: if a later chunk selects one, it was not left alone.
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
      scene.signal.throwIfAborted();
      progress.show(`${counted(changed, 'workflow')} of ${total.toLocaleString('en-US')} ${change.done}`);
    }
  } finally {
    progress.done();
    if (scene.signal.aborted) scene.terminal.tell(`${counted(changed, 'workflow')} ${change.done} so far.\n`);
  }
  const rest = unchanged.length === 0 ? '' : `; ${unchanged.length.toLocaleString('en-US')} ${change.otherwise}`;
  return {
    json: { changed, unchanged },
    text: () => `${counted(changed, 'workflow')} ${change.done}${rest}.`,
  };
}

async function changeSelected(
  scene: Scene,
  wanted: Wanted & { readonly options: Parameters<typeof withClient>[1] },
  change: Change,
): Promise<Output> {
  return withClient(scene, wanted.options, async ({ operator }) =>
    changeAll(scene, operator, await selectWorkflows(scene, operator, wanted), change),
  );
}

const cancelCommand = command({
  name: 'workflow cancel',
  about: 'Cancel workflows',
  details:
    'By ID, or by filter: then those that have not ended, after a question. Those that have ended stay as they are.',
  parameter: ANY_PARAMETER,
  options: {
    children: flag('Also the workflows that they have started, and so on'),
    ...YES_FLAG,
    ...FILTERS,
    ...DATABASE,
    ...JSON_FLAG,
  },
  examples: [
    ['everstep workflow cancel order-17 order-18 --children', 'two of them, with all that they have started'],
    ['everstep workflow cancel -q mail -S ENQUEUED --yes', 'empty a queue'],
    ['cat ids.txt | everstep workflow cancel -', 'the IDs of a file'],
  ],
  run: (scene, { options, args }) =>
    changeSelected(
      scene,
      { args, options, verb: 'Cancel', statuses: ACTIVE_STATUSES },
      {
        done: 'cancelled',
        otherwise: 'had already ended',
        from: TRANSITIONS.cancel.from,
        apply: (operator, ids) => cancelWorkflows(operator, ids, { cancelChildren: options.children }),
      },
    ),
});

const resumeCommand = command({
  name: 'workflow resume',
  about: 'Let workflows continue from their last checkpoint',
  details:
    'By ID, or by filter: then those that were cancelled or set aside as dead letters, after a question, unless ' +
    '--status says otherwise. A workflow that has ended with a result or an error stays as it is; fork or rewind it.',
  parameter: ANY_PARAMETER,
  options: {
    toQueue: text('The queue that they wait in; the internal one if not given', { placeholder: 'NAME' }),
    ...YES_FLAG,
    ...FILTERS,
    ...DATABASE,
    ...JSON_FLAG,
  },
  examples: [
    ['everstep workflow resume order-17', 'one that was cancelled'],
    ['everstep workflow resume -S MAX_RECOVERY_ATTEMPTS_EXCEEDED -t 1d', 'the dead letters of the last day'],
  ],
  run: (scene, { options, args }) =>
    changeSelected(
      scene,
      { args, options, verb: 'Resume', statuses: STOPPED_STATUSES },
      {
        done: 'resumed',
        otherwise: 'had already ended',
        from: TRANSITIONS.resume.from,
        apply: (operator, ids) => resumeWorkflows(operator, ids, { queueName: options.toQueue }),
      },
    ),
});

const deleteCommand = command({
  name: 'workflow delete',
  about: 'Delete workflows with their steps, events, messages and streams',
  details:
    'By ID, or by filter: then in whatever state they are, after a question. A run of one that is deleted fails.',
  parameter: ANY_PARAMETER,
  options: {
    children: flag('Also the workflows that they have started, and so on'),
    ...YES_FLAG,
    ...FILTERS,
    ...DATABASE,
    ...JSON_FLAG,
  },
  examples: [
    ['everstep workflow delete order-17 --children', 'one, with all that it has started'],
    ['everstep workflow delete -n importFile -S ERROR -e 30d', 'what has failed more than 30 days ago'],
  ],
  run: (scene, { options, args }) =>
    changeSelected(
      scene,
      { args, options, verb: 'Delete', statuses: STATUSES },
      {
        done: 'deleted',
        otherwise: 'had already been deleted',
        from: STATUSES,
        apply: (operator, ids) => deleteWorkflows(operator, ids, { deleteChildren: options.children }),
      },
    ),
});

export const WORKFLOW_CHANGE_COMMANDS = [cancelCommand, resumeCommand, deleteCommand];
