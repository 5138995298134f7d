// Commands for the dead letters of an outbox.
import type { DeadLetterGroup, DeadLetters } from '../../outbox/dead-letters/dead-letters.js';
import type { ChangeFilter, DeadLetterFilter } from '../../outbox/dead-letters/filter.js';
import type { DeadLetter } from '../../outbox/dead-letters/letter.js';
import { command, type CommandContext, confirm, JSON_FLAG, progressOn, YES_FLAG } from '../command.js';
import { notFound, wrongUsage } from '../failure.js';
import { choice, duration, flag, json, moment, text, type Values, wholeNumber, withDefault } from '../option.js';
import { OUTBOX, withOutbox } from '../outbox-connection.js';
import { longValue, type RenderContext, sanitize, shortValue } from '../render-context.js';
import { type Column, counted, formatFields, formatTable } from '../table.js';
import { formatMoment, formatRelative } from '../time.js';
import { readIDs } from '../commands/workflow-filters.js';

const OPTIONS = { ...OUTBOX, ...JSON_FLAG };
const FILTERS = {
  topic: text('Of this topic', { short: 't', placeholder: 'NAME' }),
  reason: text('With this reason: rejected, retry_terminal, max_deliveries, expired or unroutable'),
  fingerprint: text('Of this group of equal failures; see: everstep outbox dlq groups'),
  since: moment('Failed at this time or later'),
  before: moment('Failed before this time'),
  archived: choice('yes, no or both; defaults to no', ['yes', 'no', 'both'], { placeholder: 'WHICH' }),
};

function filterOf({ topic, reason, fingerprint, since, before, archived }: Values<typeof FILTERS>): DeadLetterFilter {
  const filter = {
    topic,
    reason,
    fingerprint,
    since,
    before,
    archived: archived === undefined ? undefined : archived === 'both' ? archived : archived === 'yes',
  };
  return Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined));
}

function letterColumns({ now }: RenderContext): Column<DeadLetter>[] {
  return [
    { title: 'ID', text: (row) => row.id },
    { title: 'TOPIC', text: (row) => row.topic, isShortenable: true },
    { title: 'FAILED', text: (row) => formatRelative(row.failedAt, now) },
    { title: 'REASON', text: (row) => row.reason },
    { title: 'ATTEMPTS', text: (row) => row.attempts, isRight: true, rank: 2 },
    { title: 'REPLAYS', text: (row) => row.replays || '', isRight: true, rank: 3 },
    { title: 'ERROR', text: (row) => row.error?.split('\n')[0], isShortenable: true, rank: 1 },
  ];
}

const listCommand = command({
  name: 'outbox dlq list',
  about: 'List dead letters, the newest first',
  options: {
    ...FILTERS,
    limit: withDefault(wholeNumber('At most this many, up to 1,000', { short: 'l', min: 1 }), 20),
    cursor: text('Continue after the page that had this cursor'),
    ids: flag('Print only the IDs, one a line'),
    ...OPTIONS,
  },
  examples: [
    ['everstep outbox dlq list -t order.mail', 'the newest of a topic'],
    ['everstep outbox dlq list --since 1d --json', 'for scripts, with bodies'],
  ],
  run: (context, { options }) =>
    withOutbox(context, options, async ({ dlq }) => {
      const { limit, cursor, ids } = options;
      const page = await dlq.list({ ...filterOf(options), limit, ...(cursor !== undefined && { cursor }) });
      const more = page.cursor === undefined ? '' : `\n\nMore: --cursor ${page.cursor}`;
      return {
        json: { letters: page.letters.map(plainLetter), cursor: page.cursor ?? null },
        text: (rendering) => {
          if (ids) return page.letters.map(({ id }) => id).join('\n');
          if (page.letters.length === 0) return 'No dead letters.';
          return `${formatTable(rendering, letterColumns(rendering), page.letters)}${more}`;
        },
      };
    }),
});

function groupColumns({ now }: RenderContext): Column<DeadLetterGroup>[] {
  return [
    { title: 'COUNT', text: (row) => row.count, isRight: true },
    { title: 'TOPIC', text: (row) => row.topic, isShortenable: true },
    { title: 'REASON', text: (row) => row.reason },
    { title: 'ERROR', text: (row) => row.errorName, isShortenable: true },
    { title: 'FIRST', text: (row) => formatRelative(row.firstFailedAt, now), rank: 1 },
    { title: 'LAST', text: (row) => formatRelative(row.lastFailedAt, now) },
    { title: 'SAMPLE', text: (row) => row.sampleID, rank: 2 },
    { title: 'FINGERPRINT', text: (row) => row.fingerprint },
  ];
}

const groupsCommand = command({
  name: 'outbox dlq groups',
  about: 'Count dead letters that failed the same way, the most frequent first',
  options: {
    ...FILTERS,
    limit: withDefault(wholeNumber('At most this many, up to 1,000', { short: 'l', min: 1 }), 20),
    ...OPTIONS,
  },
  examples: [['everstep outbox dlq groups --since 1d', 'what went wrong today?']],
  run: (context, { options }) =>
    withOutbox(context, options, async ({ dlq }) => {
      const groups = await dlq.groups({ ...filterOf(options), limit: options.limit });
      return {
        json: groups,
        text: (rendering) =>
          groups.length === 0 ? 'No dead letters.' : formatTable(rendering, groupColumns(rendering), groups),
      };
    }),
});

const getCommand = command({
  name: 'outbox dlq get',
  about: 'Show a dead letter with its body and error',
  parameter: { name: 'ID', takes: 'one', about: 'ID of a dead letter' },
  options: OPTIONS,
  examples: [['everstep outbox dlq get 17', 'why did it fail?']],
  run: (context, { options, args: [id = ''] }) =>
    withOutbox(context, options, async ({ dlq }) => {
      const letter = await dlq.get(id);
      if (!letter) throw notFound(`There is no dead letter "${id}". See: everstep outbox dlq list`);
      return { json: plainLetter(letter), text: (rendering) => letterText(rendering, letter) };
    }),
});

function letterText(rendering: RenderContext, letter: DeadLetter): string {
  const at = (time: number | undefined) => (time === undefined ? undefined : formatMoment(time, rendering.now));
  return formatFields(rendering, [
    ['id', letter.id],
    ['message ID', letter.messageID],
    ['topic', sanitize(letter.topic)],
    ['key', letter.key === undefined ? undefined : sanitize(letter.key)],
    ['timer ID', letter.timerId === undefined ? undefined : sanitize(letter.timerId)],
    ['reason', letter.reason],
    ['failed', at(letter.failedAt)],
    ['created', at(letter.createdAt)],
    ['archived', at(letter.archivedAt)],
    ['attempts', `${letter.attempts}, in ${letter.deliveries} deliveries`],
    ['replays', letter.replays || undefined],
    ['fingerprint', letter.fingerprint],
    ['headers', shortValue(letter.headers)],
    ['body', longValue(letter.body)],
    ['error', letter.error?.split('\n').map(sanitize).join('\n')],
  ]);
}

/** Bytes as JSON can hold them. */
function plainLetter(letter: DeadLetter): object {
  const { body } = letter;
  return body instanceof Uint8Array ? { ...letter, body: { base64: Buffer.from(body).toString('base64') } } : letter;
}

const CHANGE = {
  ...FILTERS,
  all: flag('All dead letters'),
  limit: wholeNumber('At most this many', { short: 'l', min: 1 }),
  dryRun: flag('Only count'),
  ...YES_FLAG,
  ...OPTIONS,
};
const IDS = { name: 'ID', takes: 'any', about: 'IDs of dead letters; "-" reads them from standard input' } as const;

interface Change {
  readonly verb: string;
  readonly past: string;
  /** Asks before it, unless IDs are given. */
  readonly act: (
    dlq: DeadLetters,
    filter: ChangeFilter,
    options: { readonly limit?: number; readonly dryRun?: boolean; readonly onProgress?: (done: number) => void },
  ) => Promise<number>;
}

async function change(
  context: CommandContext,
  dlq: DeadLetters,
  { args, options, verb, past, act }: Change & { args: readonly string[]; options: Values<typeof CHANGE> },
): Promise<number> {
  const { all, limit, dryRun, yes } = options;
  const given = filterOf(options);
  const ids = args.length > 0 ? await readIDs(context, args) : undefined;
  const isFiltered = Object.keys(given).some((name) => name !== 'archived');
  if (ids && (isFiltered || all)) throw wrongUsage('Pass IDs or filters, not both.');
  if (!ids && !isFiltered && !all) throw wrongUsage('Pass IDs, a filter such as --topic, or --all.');
  if (ids?.length === 0) return 0;
  const filter: ChangeFilter = { ...given, ...(ids && { ids }), ...(all && { all }) };
  const bounds = limit === undefined ? {} : { limit };
  const count = dryRun || !ids ? await act(dlq, filter, { ...bounds, dryRun: true }) : 0;
  if (dryRun) return count;
  if (!ids && count === 0) return 0;
  if (!ids) await confirm(context, `${verb} ${counted(count, 'dead letter')}?`, yes);
  const progress = progressOn(context);
  try {
    return await act(dlq, filter, {
      ...bounds,
      onProgress(done) {
        progress.show(`${counted(done, 'dead letter')} ${past}`);
        context.signal.throwIfAborted();
      },
    });
  } finally {
    progress.done();
  }
}

const requeueCommand = command({
  name: 'outbox dlq requeue',
  about: 'Put dead letters back into the outbox',
  details:
    'They keep their message IDs; attempts begin anew. One whose timer ID is pending stays a dead letter. Each commit ' +
    'takes 200 of them, so you can stop it with Ctrl-C.',
  parameter: IDS,
  options: {
    delay: duration('How long until they are due'),
    body: json('Replace the body'),
    ...CHANGE,
  },
  examples: [
    ['everstep outbox dlq requeue 17 18', 'two of them'],
    ['everstep outbox dlq requeue --fingerprint 5f1c --dry-run', 'how many would it be?'],
    ['everstep outbox dlq requeue -t order.mail --limit 1000 --yes', 'without a prompt'],
  ],
  run: (context, { options, args }) =>
    withOutbox(context, options, async ({ dlq }) => {
      const { delay, body } = options;
      const settings = { ...(delay !== undefined && { delay }), ...(body !== undefined && { edit: () => body }) };
      let skipped = 0;
      const requeued = await change(context, dlq, {
        args,
        options,
        verb: 'Requeue',
        past: 'requeued',
        async act(letters, filter, bounds) {
          const result = await letters.requeue(filter, { ...bounds, ...settings });
          skipped = result.skipped;
          return result.requeued;
        },
      });
      const rest = skipped > 0 ? ` ${counted(skipped, 'dead letter')} skipped: their timer IDs are pending.` : '';
      return {
        json: { requeued, skipped, dryRun: options.dryRun },
        text: () => `${counted(requeued, 'dead letter')} ${options.dryRun ? 'would be ' : ''}requeued.${rest}`,
      };
    }),
});

const discardCommand = command({
  name: 'outbox dlq discard',
  about: 'Delete dead letters',
  parameter: IDS,
  options: CHANGE,
  examples: [['everstep outbox dlq discard --before 90d --archived both', 'asks first']],
  run: (context, { options, args }) =>
    withOutbox(context, options, async ({ dlq }) => {
      const discarded = await change(context, dlq, {
        args,
        options,
        verb: 'Delete',
        past: 'deleted',
        act: async (letters, filter, bounds) => (await letters.discard(filter, bounds)).discarded,
      });
      return {
        json: { discarded, dryRun: options.dryRun },
        text: () => `${counted(discarded, 'dead letter')} ${options.dryRun ? 'would be ' : ''}deleted.`,
      };
    }),
});

const archiveCommand = command({
  name: 'outbox dlq archive',
  about: 'Take dead letters out of the lists, and keep them',
  parameter: IDS,
  options: CHANGE,
  examples: [['everstep outbox dlq archive -t order.mail --yes', 'those of a topic']],
  run: (context, { options, args }) =>
    withOutbox(context, options, async ({ dlq }) => {
      const archived = await change(context, dlq, {
        args,
        options,
        verb: 'Archive',
        past: 'archived',
        act: async (letters, filter, bounds) => (await letters.archive(filter, bounds)).archived,
      });
      return {
        json: { archived, dryRun: options.dryRun },
        text: () => `${counted(archived, 'dead letter')} ${options.dryRun ? 'would be ' : ''}archived.`,
      };
    }),
});

export const OUTBOX_DLQ_COMMANDS = [
  listCommand,
  groupsCommand,
  getCommand,
  requeueCommand,
  discardCommand,
  archiveCommand,
];
