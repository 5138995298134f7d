// Commands for queues.
import {
  changeQueue,
  deleteQueue,
  findQueueRecord,
  getQueueStats,
  pauseQueue,
  type QueueStats,
  resumeQueue,
} from './queues.js';
import { changeOutput, command, confirm, JSON_FLAG, type Parameter, YES_FLAG } from '../../faces/cli/command.js';
import { APPLICATION, DATABASE, withClient } from '../../faces/cli/connection.js';
import { type CommandFailure, notFound, wrongUsage } from '../../faces/cli/failure.js';
import { flag } from '../../faces/cli/option.js';
import { sanitize } from '../../faces/cli/render-context.js';
import { type Column, formatTable } from '../../faces/cli/table.js';
import { formatDuration } from '../../faces/cli/time.js';
import { QUEUE_SETTINGS } from './queue-settings.cli.js';
import { QUEUE_COLUMNS, requireQueue, viewOutput, viewQueues } from './queue-view.cli.js';

const OPTIONS = { ...DATABASE, ...JSON_FLAG };
const PARAMETER: Parameter = { name: 'NAME', takes: 'one', about: 'Name of a queue' };

const listCommand = command({
  name: 'queue list',
  about: 'List queues with their waiting and running workflows',
  details: 'In-memory queues are listed while they hold workflows.',
  options: { ...APPLICATION, ...OPTIONS },
  examples: [['everstep queue list', 'all queues']],
  run: (context, { options }) =>
    withClient(context, options, async ({ operator }) => {
      const queues = await viewQueues(operator);
      return {
        json: queues,
        text: (rendering) => (queues.length === 0 ? 'No queues.' : formatTable(rendering, QUEUE_COLUMNS, queues)),
      };
    }),
});

const getCommand = command({
  name: 'queue get',
  about: 'Show a queue',
  parameter: PARAMETER,
  options: OPTIONS,
  examples: [['everstep queue get mail', 'its state, limits and backlog']],
  run: (context, { options, args: [name = ''] }) =>
    withClient(context, options, async ({ operator }) => viewOutput(await requireQueue(operator, name))),
});

const statsCommand = command({
  name: 'queue stats',
  about: 'Count waiting and running workflows by queue or partition',
  parameter: { name: 'NAME', takes: 'any', about: 'Names of queues; defaults to all' },
  options: { byPartition: flag('Count each partition separately'), ...APPLICATION, ...OPTIONS },
  examples: [['everstep queue stats mail --by-partition', 'which partition has the backlog?']],
  run: (context, { options, args }) =>
    withClient(context, options, async ({ operator }) => {
      const query = { queueName: args.length === 0 ? undefined : args, byPartition: options.byPartition };
      const stats = await getQueueStats(operator, query);
      return {
        json: stats,
        text: (rendering) =>
          stats.length === 0 ? 'No waiting or running workflows.' : formatTable(rendering, STATS_COLUMNS, stats),
      };
    }),
});

const STATS_COLUMNS: readonly Column<QueueStats>[] = [
  { title: 'QUEUE', text: (row) => row.queueName, isShortenable: true },
  { title: 'PARTITION', text: (row) => row.partitionKey, isShortenable: true },
  { title: 'WAITING', text: (row) => row.enqueued, isRight: true },
  { title: 'DELAYED', text: (row) => row.delayed, isRight: true },
  { title: 'RUNNING', text: (row) => row.running, isRight: true },
  { title: 'PARKED', text: (row) => row.parked || '', isRight: true },
  {
    title: 'OLDEST WAIT',
    text: (row) => (row.oldestWaitMs === null ? '' : formatDuration(row.oldestWaitMs)),
    isRight: true,
  },
];

const pauseCommand = command({
  name: 'queue pause',
  about: 'Stop claiming workflows from a queue until it is resumed',
  details: 'Running workflows continue. In-memory queues can be paused too.',
  parameter: PARAMETER,
  options: OPTIONS,
  examples: [['everstep queue pause mail', 'while the mail server is down']],
  run: (context, { options, args: [name = ''] }) =>
    withClient(context, options, async ({ operator }) => {
      const changed = await pauseQueue(operator, name);
      return changeOutput(
        viewOutput(await requireQueue(operator, name)),
        changed,
        `Queue "${sanitize(name)}" was already paused.`,
      );
    }),
});

const resumeCommand = command({
  name: 'queue resume',
  about: 'Resume a paused queue',
  parameter: PARAMETER,
  options: OPTIONS,
  examples: [['everstep queue resume mail', 'when the mail server is back']],
  run: (context, { options, args: [name = ''] }) =>
    withClient(context, options, async ({ operator }) => {
      await requireQueue(operator, name);
      const changed = await resumeQueue(operator, name);
      return {
        json: { queueName: name, pausedAt: null, changed },
        text: () => `Queue "${sanitize(name)}" ${changed ? 'resumed' : 'was not paused'}.`,
      };
    }),
});

const setCommand = command({
  name: 'queue set',
  about: 'Change the limits of a queue while its workers run',
  details:
    'Other settings stay; "none" removes a limit. A process that registers the queue at launch may overwrite the ' +
    'change, unless it calls registerQueue with onConflict "never_update".',
  parameter: PARAMETER,
  options: { ...QUEUE_SETTINGS, ...OPTIONS },
  examples: [
    ['everstep queue set mail --global-concurrency 20 --rate-limit 100/60', 'at most 100 a minute and 20 at once'],
    ['everstep queue set mail --rate-limit none', 'remove the rate limit'],
  ],
  run: (context, { options, args: [name = ''] }) =>
    withClient(context, options, async ({ operator }) => {
      const change = Object.keys(QUEUE_SETTINGS).flatMap((key) => {
        const value = options[key as keyof typeof QUEUE_SETTINGS];
        // Null removes the limit, which queue settings express as undefined.
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
  about: 'Delete a queue; its workflows wait until it is registered again',
  parameter: PARAMETER,
  options: { ...YES_FLAG, ...OPTIONS },
  examples: [['everstep queue delete old-mail', 'asks first']],
  run: (context, { options, args: [name = ''] }) =>
    withClient(context, options, async ({ operator }) => {
      const { enqueued, delayed, parked, isRegistered } = await requireQueue(operator, name);
      if (!isRegistered) throw notRegistered(name);
      await confirm(
        context,
        `Delete queue "${sanitize(name)}" with ${enqueued + delayed + parked} waiting workflows?`,
        options.yes,
      );
      const changed = await deleteQueue(operator, name);
      return {
        json: { deleted: name, changed },
        text: () => `Queue "${sanitize(name)}" ${changed ? '' : 'was already '}deleted.`,
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
