// Commands for queues in the database.
import {
  changeQueue,
  deleteQueue,
  findQueueRecord,
  getQueueStats,
  pauseQueue,
  type QueueStats,
  resumeQueue,
} from '../../control/queues/queues.js';
import { changeOutput, command, confirm, JSON_FLAG, type Parameter, YES_FLAG } from '../command.js';
import { APPLICATION, DATABASE, withClient } from '../connection.js';
import { type CommandFailure, notFound, wrongUsage } from '../failure.js';
import { flag } from '../option.js';
import { harmless } from '../paper.js';
import { type Column, formatTable } from '../table.js';
import { formatDuration } from '../time.js';
import { QUEUE_SETTINGS } from './queue-settings.js';
import { QUEUE_COLUMNS, requireQueue, viewOutput, viewQueues } from './queue-view.js';

const OPTIONS = { ...DATABASE, ...JSON_FLAG };
const PARAMETER: Parameter = { name: 'NAME', takes: 'one', about: 'The name of a queue' };

const listCommand = command({
  name: 'queue list',
  about: 'List queues with what waits and runs in them',
  details: 'Queues that processes have in memory are shown while workflows are in them.',
  options: { ...APPLICATION, ...OPTIONS },
  examples: [['everstep queue list', 'all of them']],
  run: (scene, { options }) =>
    withClient(scene, options, async ({ operator }) => {
      const queues = await viewQueues(operator);
      return {
        json: queues,
        text: (paper) => (queues.length === 0 ? 'No queues.' : formatTable(paper, QUEUE_COLUMNS, queues)),
      };
    }),
});

const getCommand = command({
  name: 'queue get',
  about: 'Show a queue',
  parameter: PARAMETER,
  options: OPTIONS,
  examples: [['everstep queue get mail', 'its state, its limits and its backlog']],
  run: (scene, { options, args: [name = ''] }) =>
    withClient(scene, options, async ({ operator }) => viewOutput(await requireQueue(operator, name))),
});

const statsCommand = command({
  name: 'queue stats',
  about: 'Count what waits and runs in queues, or in their partitions',
  parameter: { name: 'NAME', takes: 'any', about: 'Names of queues; all of them if none is given' },
  options: { byPartition: flag('Count each partition by itself'), ...APPLICATION, ...OPTIONS },
  examples: [['everstep queue stats mail --by-partition', 'which partition has the backlog?']],
  run: (scene, { options, args }) =>
    withClient(scene, options, async ({ operator }) => {
      const query = { queueName: args.length === 0 ? undefined : args, byPartition: options.byPartition };
      const stats = await getQueueStats(operator, query);
      return {
        json: stats,
        text: (paper) => (stats.length === 0 ? 'Nothing waits or runs.' : formatTable(paper, STATS_COLUMNS, stats)),
      };
    }),
});

const STATS_COLUMNS: readonly Column<QueueStats>[] = [
  { title: 'QUEUE', text: (row) => row.queueName, isShortenable: true },
  { title: 'PARTITION', text: (row) => row.partitionKey, isShortenable: true },
  { title: 'WAITING', text: (row) => row.enqueued, isRight: true },
  { title: 'DELAYED', text: (row) => row.delayed, isRight: true },
  { title: 'RUNNING', text: (row) => row.running, isRight: true },
  {
    title: 'OLDEST WAITS',
    text: (row) => (row.oldestWaitMs === null ? '' : formatDuration(row.oldestWaitMs)),
    isRight: true,
  },
];

const pauseCommand = command({
  name: 'queue pause',
  about: 'Let no process take workflows from a queue until it is resumed',
  details: 'What runs goes on. Queues that are only in memory can be paused too.',
  parameter: PARAMETER,
  options: OPTIONS,
  examples: [['everstep queue pause mail', 'while the mail server is down']],
  run: (scene, { options, args: [name = ''] }) =>
    withClient(scene, options, async ({ operator }) => {
      const changed = await pauseQueue(operator, name);
      return changeOutput(
        viewOutput(await requireQueue(operator, name)),
        changed,
        `Queue "${harmless(name)}" was already paused.`,
      );
    }),
});

const resumeCommand = command({
  name: 'queue resume',
  about: 'Let processes take workflows from a queue again',
  parameter: PARAMETER,
  options: OPTIONS,
  examples: [['everstep queue resume mail', 'when it is up again']],
  run: (scene, { options, args: [name = ''] }) =>
    withClient(scene, options, async ({ operator }) => {
      await requireQueue(operator, name);
      const changed = await resumeQueue(operator, name);
      return {
        json: { queueName: name, pausedAt: null, changed },
        text: () => `Queue "${harmless(name)}" ${changed ? 'resumed' : 'was not paused'}.`,
      };
    }),
});

const setCommand = command({
  name: 'queue set',
  about: 'Change the limits of a queue while its workers run',
  details:
    'What is not named stays as it is; "none" takes a limit away. A process that registers the queue at launch may set ' +
    'it back: registerQueue with onConflict "never_update" leaves it alone.',
  parameter: PARAMETER,
  options: { ...QUEUE_SETTINGS, ...OPTIONS },
  examples: [
    ['everstep queue set mail --global-concurrency 20 --rate-limit 100/60', 'at most 100 in a minute, 20 at once'],
    ['everstep queue set mail --rate-limit none', 'without a rate limit'],
  ],
  run: (scene, { options, args: [name = ''] }) =>
    withClient(scene, options, async ({ operator }) => {
      const change = Object.keys(QUEUE_SETTINGS).flatMap((key) => {
        const value = options[key as keyof typeof QUEUE_SETTINGS];
        // Null takes the limit away, which the settings of a queue express by leaving it undefined.
        return value === undefined ? [] : [[key, value ?? undefined] as const];
      });
      if (change.length === 0) throw wrongUsage('Pass at least one setting. See: everstep queue set --help');
      if (!(await findQueueRecord(operator, name))) {
        throw notRegistered(name);
      }
      await changeQueue(operator, name, Object.fromEntries(change));
      return viewOutput(await requireQueue(operator, name));
    }),
});

const deleteCommand = command({
  name: 'queue delete',
  about: 'Remove a queue; workflows in it wait until it is registered again',
  parameter: PARAMETER,
  options: { ...YES_FLAG, ...OPTIONS },
  examples: [['everstep queue delete old-mail', 'asks before it does anything']],
  run: (scene, { options, args: [name = ''] }) =>
    withClient(scene, options, async ({ operator }) => {
      const { enqueued, delayed, isRegistered } = await requireQueue(operator, name);
      if (!isRegistered) throw notRegistered(name);
      await confirm(scene, `Remove queue "${harmless(name)}" with ${enqueued + delayed} waiting?`, options.yes);
      const changed = await deleteQueue(operator, name);
      return {
        json: { deleted: name, changed },
        text: () => `Queue "${harmless(name)}" ${changed ? '' : 'was already '}removed.`,
      };
    }),
});

function notRegistered(name: string): CommandFailure {
  return notFound(`There is no queue "${name}" in the database. See: everstep queue list`);
}

export const QUEUE_COMMANDS = [
  listCommand,
  getCommand,
  statsCommand,
  pauseCommand,
  resumeCommand,
  setCommand,
  deleteCommand,
];
