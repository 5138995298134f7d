// Commands that run workflows again: under new IDs, or under their own.
import { forkFromFailure, type ForkFromFailureOptions, forkWorkflows } from './forks.js';
import { rewindWorkflow } from './rewind.js';
import { command, JSON_FLAG } from '../../faces/cli/command.js';
import { DATABASE, withClient } from '../../faces/cli/connection.js';
import { wrongUsage } from '../../faces/cli/failure.js';
import { duration, flag, text, wholeNumber, withDefault } from '../../faces/cli/option.js';
import { sanitize } from '../../faces/cli/render-context.js';
import { type Column, formatTable } from '../../faces/cli/table.js';
import { chunksOf, findAll, IDS_PARAMETER, readIDs } from '../listing/workflow-filters.cli.js';

const SOME_PARAMETER = { ...IDS_PARAMETER, takes: 'some' } as const;

const AGAIN = {
  applicationVersion: text('Version that runs it; defaults to its own', {
    short: 'v',
    placeholder: 'VERSION',
  }),
  queueName: text('Queue to enqueue it in; defaults to the internal queue', {
    short: 'q',
    aliases: ['queue'],
    placeholder: 'NAME',
  }),
  partitionKey: text('Partition of that queue', { placeholder: 'KEY' }),
};

interface Fork {
  readonly workflowID: string;
  readonly forkID: string;
}

/** Exactly one of these is the start of a fork. */
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
  about: 'Run workflows again under new IDs, starting from a step',
  details: 'Earlier steps are copied with their results. The original does not change.',
  parameter: SOME_PARAMETER,
  options: {
    step: wholeNumber('First step to run again, from 0', { short: 'S' }),
    fromFailure: flag('Start from the last failed step'),
    fromLastStep: flag('Start from the last step'),
    fromStepName: text('Start from the last step of this name', { placeholder: 'NAME' }),
    forkedWorkflowId: text('ID of the fork', { short: 'f', placeholder: 'ID' }),
    timeout: duration('Timeout of the fork'),
    ...AGAIN,
    ...DATABASE,
    ...JSON_FLAG,
  },
  examples: [
    ['everstep workflow fork order-17 --from-failure -v 1.4.2', 'retry with a fixed version'],
    ['everstep workflow fork order-17 --step 3 -f order-17-again', 'from step 3, under a chosen ID'],
    [
      'everstep workflow list -S ERROR -t 1d --ids -l 1000 | everstep workflow fork - --from-failure',
      'all recent failures',
    ],
  ],
  run: (context, { options, args }) =>
    withClient(context, options, async ({ operator }) => {
      const point = forkPoint(options);
      const ids = await readIDs(context, args);
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
        context.signal.throwIfAborted();
        const forkIDs =
          newWorkflowID === undefined
            ? await forkFromFailure(operator, chunk, { ...settings, ...point })
            : await forkWorkflows(operator, [{ workflowID: chunk[0] ?? '', startStep, newWorkflowID }], settings);
        forks.push(...chunk.map((workflowID, index) => ({ workflowID, forkID: forkIDs[index] ?? '' })));
      }
      return { json: forks, text: (rendering) => formatTable(rendering, FORK_COLUMNS, forks) };
    }),
});

const FORK_COLUMNS: readonly Column<Fork>[] = [
  { title: 'WORKFLOW', text: (row) => row.workflowID },
  { title: 'FORK', text: (row) => row.forkID },
];

const rewindCommand = command({
  name: 'workflow rewind',
  about: 'Run completed workflows again under the same IDs, starting from a step',
  details: 'Deletes the checkpoints from that step on.',
  parameter: SOME_PARAMETER,
  options: {
    step: withDefault(wholeNumber('First step to run again, from 0', { short: 'S' }), 0),
    ...AGAIN,
    ...DATABASE,
    ...JSON_FLAG,
  },
  examples: [['everstep workflow rewind order-17 --step 3', 'from step 3']],
  run: (context, { options, args }) =>
    withClient(context, options, async ({ operator }) => {
      const ids = await readIDs(context, args);
      await findAll(operator, ids);
      for (const id of ids) {
        context.signal.throwIfAborted();
        await rewindWorkflow(operator, id, {
          startStep: options.step,
          applicationVersion: options.applicationVersion,
          queueName: options.queueName,
          queuePartitionKey: options.partitionKey,
        });
      }
      return {
        json: { rewound: ids, step: options.step },
        text: () => `Rewound to step ${options.step}: ${sanitize(ids.join(', '))}`,
      };
    }),
});

export const WORKFLOW_AGAIN_COMMANDS = [forkCommand, rewindCommand];
