// Commands for the dead letters of receivers. To requeue them takes the process that receives: `receiver.dlq(workflow)`.
import { type ReceivedFilter, type ReceivedGroup, type ReceivedLetter, ReceivedLetters } from './received-letters.js';
import { command, type CommandContext, JSON_FLAG } from '../../faces/cli/command.js';
import { DATABASE, withClient } from '../../faces/cli/connection.js';
import { notFound } from '../../faces/cli/failure.js';
import {
  CHANGE,
  type Change,
  changeLetters,
  countOutput,
  groupsOutput,
  IDS,
  PAGE,
  pageOf,
  pageOutput,
} from './letters.cli.js';
import { flag, moment, text, type Values } from '../../faces/cli/option.js';
import { longValue, type RenderContext, sanitize } from '../../faces/cli/render-context.js';
import { type Column, formatFields } from '../../faces/cli/table.js';
import { formatMoment, formatRelative } from '../../faces/cli/time.js';

const OPTIONS = { ...DATABASE, ...JSON_FLAG };
const FUNCTION = { function: text('Of this workflow function', { short: 'f', placeholder: 'NAME' }) };
const FILTERS = {
  ...FUNCTION,
  fingerprint: text('Of this group of equal failures; see: everstep receiver dlq groups'),
  since: moment('Received at this time or later'),
  before: moment('Received before this time'),
  archived: flag('Archived ones only'),
};

function filterOf({ fingerprint, since, before, archived }: Omit<Values<typeof FILTERS>, 'function'>): ReceivedFilter {
  return {
    ...(fingerprint !== undefined && { fingerprint }),
    ...(since !== undefined && { since }),
    ...(before !== undefined && { before }),
    ...(archived && { archived }),
  };
}

function letterColumns({ now }: RenderContext): Column<ReceivedLetter>[] {
  return [
    { title: 'ID', text: (row) => row.id, isShortenable: true },
    { title: 'FUNCTION', text: (row) => row.functionName, isShortenable: true },
    { title: 'RECEIVED', text: (row) => formatRelative(row.receivedAt, now) },
    { title: 'ERROR', text: (row) => row.error.split('\n')[0], isShortenable: true, rank: 1 },
  ];
}

const listCommand = command({
  name: 'receiver dlq list',
  about: 'List messages that could not become workflows, the newest first',
  options: { ...FILTERS, ...PAGE, ...OPTIONS },
  examples: [['everstep receiver dlq list --since 1d --json', 'for scripts, with messages']],
  run: (context, { options }) =>
    withClient(context, options, async ({ operator }) => {
      const letters = new ReceivedLetters(operator, options.function);
      return pageOutput(await letters.list({ ...filterOf(options), ...pageOf(options) }), options, letterColumns);
    }),
});

function groupColumns({ now }: RenderContext): Column<ReceivedGroup>[] {
  return [
    { title: 'COUNT', text: (row) => row.count, isRight: true },
    { title: 'FUNCTION', text: (row) => row.functionName, isShortenable: true },
    { title: 'FIRST', text: (row) => formatRelative(row.firstReceivedAt, now), rank: 1 },
    { title: 'LAST', text: (row) => formatRelative(row.lastReceivedAt, now) },
    { title: 'ERROR', text: (row) => row.error.split('\n')[0], isShortenable: true },
    { title: 'FINGERPRINT', text: (row) => row.fingerprint },
  ];
}

const groupsCommand = command({
  name: 'receiver dlq groups',
  about: 'Count dead letters of receivers that failed the same way, the most frequent first',
  options: { ...FILTERS, ...OPTIONS },
  examples: [['everstep receiver dlq groups --since 1d', 'what went wrong today?']],
  run: (context, { options }) =>
    withClient(context, options, async ({ operator }) => {
      const letters = new ReceivedLetters(operator, options.function);
      return groupsOutput(await letters.groups(filterOf(options)), groupColumns);
    }),
});

const getCommand = command({
  name: 'receiver dlq get',
  about: 'Show a dead letter of a receiver with its message and error',
  parameter: { name: 'ID', takes: 'one', about: 'ID of a dead letter' },
  options: { ...FUNCTION, ...OPTIONS },
  examples: [['everstep receiver dlq get kafka-orders-0-17', 'why did it fail?']],
  run: (context, { options, args: [id = ''] }) =>
    withClient(context, options, async ({ operator }) => {
      const letter = await new ReceivedLetters(operator, options.function).get(id);
      if (!letter) throw notFound(`There is no dead letter "${id}". See: everstep receiver dlq list`);
      return {
        json: letter,
        text: (rendering) =>
          formatFields(rendering, [
            ['id', sanitize(letter.id)],
            ['function', sanitize(letter.functionName)],
            ['received', formatMoment(letter.receivedAt, rendering.now)],
            ['archived', letter.archivedAt === undefined ? undefined : formatMoment(letter.archivedAt, rendering.now)],
            ['message', longValue(letter.message)],
            ['error', letter.error.split('\n').map(sanitize).join('\n')],
          ]),
      };
    }),
});

const CHANGE_OPTIONS = { ...FILTERS, ...CHANGE, ...OPTIONS };
type Given = { readonly args: readonly string[]; readonly options: Values<typeof CHANGE_OPTIONS> };
type Act = { readonly verb: string; readonly past: string; readonly act: Change<ReceivedFilter>['act'] };

function change(context: CommandContext, { args, options }: Given, { act, ...words }: Act): Promise<number> {
  const filter = filterOf(options);
  const isFiltered = Object.keys(filter).some((name) => name !== 'archived') || options.function !== undefined;
  return changeLetters(context, {
    ...words,
    args,
    options,
    filter,
    isFiltered,
    hint: '--function',
    // All of the function, which is no part of the filter.
    act: (chosen, bounds) => act(chosen.ids ? chosen : { ...chosen, all: true }, bounds),
  });
}

const discardCommand = command({
  name: 'receiver dlq discard',
  about: 'Delete dead letters of receivers',
  parameter: IDS,
  options: CHANGE_OPTIONS,
  examples: [['everstep receiver dlq discard --before 90d', 'asks first']],
  run: (context, { options, args }) =>
    withClient(context, options, async ({ operator }) => {
      const letters = new ReceivedLetters(operator, options.function);
      const past = 'deleted';
      const act: Act['act'] = async (filter, bounds) => (await letters.discard(filter, bounds)).discarded;
      const discarded = await change(context, { args, options }, { verb: 'Delete', past, act });
      return countOutput({ discarded }, { options, past });
    }),
});

const archiveCommand = command({
  name: 'receiver dlq archive',
  about: 'Take dead letters of receivers out of the lists, and keep them',
  parameter: IDS,
  options: CHANGE_OPTIONS,
  examples: [['everstep receiver dlq archive -f handleOrder --yes', 'those of a function']],
  run: (context, { options, args }) =>
    withClient(context, options, async ({ operator }) => {
      const letters = new ReceivedLetters(operator, options.function);
      const past = 'archived';
      const act: Act['act'] = async (filter, bounds) => (await letters.archive(filter, bounds)).archived;
      const archived = await change(context, { args, options }, { verb: 'Archive', past, act });
      return countOutput({ archived }, { options, past });
    }),
});

export const RECEIVER_COMMANDS = [listCommand, groupsCommand, getCommand, discardCommand, archiveCommand];
