// Commands for the dead letters of receivers. To requeue them takes the process that receives: `receiver.dlq(workflow)`.
import {
  type ReceivedChangeFilter,
  type ReceivedFilter,
  type ReceivedGroup,
  type ReceivedLetter,
  ReceivedLetters,
} from '../../control/receiving/received-letters.js';
import { command, type CommandContext, confirm, JSON_FLAG, YES_FLAG } from '../command.js';
import { DATABASE, withClient } from '../connection.js';
import { notFound, wrongUsage } from '../failure.js';
import { flag, moment, text, type Values, wholeNumber, withDefault } from '../option.js';
import { longValue, type RenderContext, sanitize } from '../render-context.js';
import { type Column, counted, formatFields, formatTable } from '../table.js';
import { formatMoment, formatRelative } from '../time.js';
import { readIDs } from './workflow-filters.js';

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
  options: {
    ...FILTERS,
    limit: withDefault(wholeNumber('At most this many, up to 1,000', { short: 'l', min: 1 }), 20),
    cursor: text('Continue after the page that had this cursor'),
    ids: flag('Print only the IDs, one a line'),
    ...OPTIONS,
  },
  examples: [['everstep receiver dlq list --since 1d --json', 'for scripts, with messages']],
  run: (context, { options }) =>
    withClient(context, options, async ({ operator }) => {
      const { limit, cursor, ids } = options;
      const letters = new ReceivedLetters(operator, options.function);
      const page = await letters.list({ ...filterOf(options), limit, ...(cursor !== undefined && { cursor }) });
      const more = page.cursor === undefined ? '' : `\n\nMore: --cursor ${page.cursor}`;
      return {
        json: { letters: page.letters, cursor: page.cursor ?? null },
        text: (rendering) => {
          if (ids) return page.letters.map(({ id }) => sanitize(id)).join('\n');
          if (page.letters.length === 0) return 'No dead letters.';
          return `${formatTable(rendering, letterColumns(rendering), page.letters)}${more}`;
        },
      };
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
      const groups = await new ReceivedLetters(operator, options.function).groups(filterOf(options));
      return {
        json: groups,
        text: (rendering) =>
          groups.length === 0 ? 'No dead letters.' : formatTable(rendering, groupColumns(rendering), groups),
      };
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

const CHANGE = {
  ...FILTERS,
  all: flag('All dead letters'),
  limit: wholeNumber('At most this many', { short: 'l', min: 1 }),
  dryRun: flag('Only count'),
  ...YES_FLAG,
  ...OPTIONS,
};
const IDS = { name: 'ID', takes: 'any', about: 'IDs of dead letters; "-" reads them from standard input' } as const;
type Bounds = { readonly limit?: number; readonly dryRun?: boolean };

/** Counts what a change is for, asks if no IDs are given, and makes it. Returns the number. */
async function change(
  context: CommandContext,
  { args, options }: { readonly args: readonly string[]; readonly options: Values<typeof CHANGE> },
  verb: string,
  act: (filter: ReceivedChangeFilter, bounds: Bounds) => Promise<number>,
): Promise<number> {
  const { all, limit, dryRun, yes } = options;
  const given = filterOf(options);
  const ids = args.length > 0 ? await readIDs(context, args) : undefined;
  const isFiltered = Object.keys(given).some((name) => name !== 'archived') || options.function !== undefined;
  if (ids && (isFiltered || all)) throw wrongUsage('Pass IDs or filters, not both.');
  if (!ids && !isFiltered && !all) throw wrongUsage('Pass IDs, a filter such as --function, or --all.');
  const filter: ReceivedChangeFilter = ids ? { ...given, ids } : { ...given, all: true };
  const bounds = limit === undefined ? {} : { limit };
  const count = await act(filter, { ...bounds, dryRun: true });
  if (dryRun || count === 0) return count;
  if (!ids) await confirm(context, `${verb} ${counted(count, 'dead letter')}?`, yes);
  return act(filter, bounds);
}

const discardCommand = command({
  name: 'receiver dlq discard',
  about: 'Delete dead letters of receivers',
  parameter: IDS,
  options: CHANGE,
  examples: [['everstep receiver dlq discard --before 90d', 'asks first']],
  run: (context, { options, args }) =>
    withClient(context, options, async ({ operator }) => {
      const letters = new ReceivedLetters(operator, options.function);
      const discarded = await change(
        context,
        { args, options },
        'Delete',
        async (filter, bounds) => (await letters.discard(filter, bounds)).discarded,
      );
      return {
        json: { discarded, dryRun: options.dryRun },
        text: () => `${counted(discarded, 'dead letter')} ${options.dryRun ? 'would be ' : ''}deleted.`,
      };
    }),
});

const archiveCommand = command({
  name: 'receiver dlq archive',
  about: 'Take dead letters of receivers out of the lists, and keep them',
  parameter: IDS,
  options: CHANGE,
  examples: [['everstep receiver dlq archive -f handleOrder --yes', 'those of a function']],
  run: (context, { options, args }) =>
    withClient(context, options, async ({ operator }) => {
      const letters = new ReceivedLetters(operator, options.function);
      const archived = await change(
        context,
        { args, options },
        'Archive',
        async (filter, bounds) => (await letters.archive(filter, bounds)).archived,
      );
      return {
        json: { archived, dryRun: options.dryRun },
        text: () => `${counted(archived, 'dead letter')} ${options.dryRun ? 'would be ' : ''}archived.`,
      };
    }),
});

export const RECEIVER_COMMANDS = [listCommand, groupsCommand, getCommand, discardCommand, archiveCommand];
