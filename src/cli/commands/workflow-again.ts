// Commands that run workflows again: under new IDs, or under their own.
import { forkFromFailure, type ForkFromFailureOptions, forkWorkflows } from '../../control/management/forks.js';
import { rewindWorkflow } from '../../control/management/rewind.js';
import { command, JSON_FLAG } from '../command.js';
import { DATABASE, withClient } from '../connection.js';
import { wrongUsage } from '../failure.js';
import { duration, flag, text, wholeNumber, withDefault } from '../option.js';
import { harmless } from '../paper.js';
import { type Column, formatTable } from '../table.js';
import { chunksOf, findAll, IDS_PARAMETER, readIDs } from './workflow-filters.js';

const SEVERAL_PARAMETER = { ...IDS_PARAMETER, takes: 'several' } as const;

const AGAIN = {
  applicationVersion: text('The version that is to run it; its own if not given', {
    short: 'v',
    placeholder: 'VERSION',
  }),
  queueName: text('The queue that it waits in; the internal one if not given', {
    short: 'q',
    aliases: ['queue'],
    placeholder: 'NAME',
  }),
  partitionKey: text('Its partition of that queue', { placeholder: 'KEY' }),
};

interface Fork {
  readonly workflowID: string;
  readonly forkID: string;
}

/** Exactly one of them tells where a fork begins. */
interface ForkPoint {
  readonly step: number | undefined;
  readonly fromFailure: boolean;
  readonly fromLastStep: boolean;
  readonly fromStepName: string | undefined;
}

function forkPoint({ step, fromFailure, fromLastStep, fromStepName }: ForkPoint): ForkFromFailureOptions {
  const points: ForkFromFailureOptions = {
    ...(step !== undefined && { fromStep: step }),
    ...(fromFailure && { fromLastFailure: true }),
    ...(fromLastStep && { fromLastStep: true }),
    ...(fromStepName !== undefined && { fromStepName }),
  };
  if (Object.keys(points).length === 1) return points;
  throw wrongUsage('Pass exactly one of --step N, --from-failure, --from-last-step and --from-step-name NAME.');
}

const forkCommand = command({
  name: 'workflow fork',
  about: 'Run workflows again under new IDs, from a step on',
  details: 'The steps before it are copied with their results. The original stays as it is.',
  parameter: SEVERAL_PARAMETER,
  options: {
    step: wholeNumber('The first step that is executed again; 0 is the first of all', { short: 'S' }),
    fromFailure: flag('From the last step that has failed'),
    fromLastStep: flag('From the last step'),
    fromStepName: text('From the last step of this name', { placeholder: 'NAME' }),
    forkedWorkflowId: text('The ID of the fork', { short: 'f', placeholder: 'ID' }),
    timeout: duration('How long the fork may take'),
    ...AGAIN,
    ...DATABASE,
    ...JSON_FLAG,
  },
  examples: [
    ['everstep workflow fork order-17 --from-failure -v 1.4.2', 'try again with a version that is corrected'],
    ['everstep workflow fork order-17 --step 3 -f order-17-again', 'from step 3 on, under an ID of your choice'],
    ['everstep workflow list -S ERROR -t 1d --ids -l 1000 | everstep workflow fork - --from-failure', 'many'],
  ],
  run: (scene, { options, args }) =>
    withClient(scene, options, async ({ operator }) => {
      const point = forkPoint(options);
      const ids = await readIDs(scene, args);
      const { forkedWorkflowId: newWorkflowID } = options;
      const { step: startStep = 0 } = options;
      if (newWorkflowID !== undefined && (ids.length !== 1 || options.step === undefined)) {
        throw wrongUsage('--forked-workflow-id needs a single ID and --step N.');
      }
      await findAll(operator, ids);
      const settings = {
        applicationVersion: options.applicationVersion,
        queueName: options.queueName,
        queuePartitionKey: options.partitionKey,
        timeoutMS: options.timeout,
      };
      const forks: Fork[] = [];
      for (const chunk of chunksOf(ids)) {
        scene.signal.throwIfAborted();
        const forkIDs =
          newWorkflowID === undefined
            ? await forkFromFailure(operator, chunk, { ...settings, ...point })
            : await forkWorkflows(operator, [{ workflowID: chunk[0] ?? '', startStep, newWorkflowID }], settings);
        forks.push(...chunk.map((workflowID, index) => ({ workflowID, forkID: forkIDs[index] ?? '' })));
      }
      return { json: forks, text: (paper) => formatTable(paper, FORK_COLUMNS, forks) };
    }),
});

const FORK_COLUMNS: readonly Column<Fork>[] = [
  { title: 'WORKFLOW', text: (row) => row.workflowID },
  { title: 'FORK', text: (row) => row.forkID },
];

const rewindCommand = command({
  name: 'workflow rewind',
  about: 'Run workflows that have ended again under the same IDs, from a step on',
  details:
    'What came after the step is forgotten. Checkpoints that data sources keep in other databases stay: fork then.',
  parameter: SEVERAL_PARAMETER,
  options: {
    step: withDefault(wholeNumber('The first step that is executed again; 0 is the first of all', { short: 'S' }), 0),
    ...AGAIN,
    ...DATABASE,
    ...JSON_FLAG,
  },
  examples: [['everstep workflow rewind order-17 --step 3', 'from step 3 on']],
  run: (scene, { options, args }) =>
    withClient(scene, options, async ({ operator }) => {
      const ids = await readIDs(scene, args);
      await findAll(operator, ids);
      for (const id of ids) {
        scene.signal.throwIfAborted();
        await rewindWorkflow(operator, id, {
          startStep: options.step,
          applicationVersion: options.applicationVersion,
          queueName: options.queueName,
          queuePartitionKey: options.partitionKey,
        });
      }
      return {
        json: { rewound: ids, step: options.step },
        text: () => `Rewound to step ${options.step}: ${harmless(ids.join(', '))}`,
      };
    }),
});

export const WORKFLOW_AGAIN_COMMANDS = [forkCommand, rewindCommand];
