// Commands for the dead letters of an outbox.
import type { DeadLetterGroup } from './dead-letters/dead-letters.js';
import type { DeadLetterFilter } from './dead-letters/filter.js';
import type { DeadLetter } from './dead-letters/letter.js';
import { command, type CommandContext, JSON_FLAG } from '../../faces/cli/command.js';
import { notFound } from '../../faces/cli/failure.js';
import {
  CHANGE,
  type Change,
  changeLetters,
  countOutput,
  groupsOutput,
  IDS,
  PAGE,
  PAGE_LIMIT,
  pageOf,
  pageOutput,
} from '../../features/dead-letter/letters.cli.js';
import { choice, duration, json, moment, text, type Values } from '../../faces/cli/option.js';
import { OUTBOX, withOutbox } from './connection.cli.js';
import { longValue, type RenderContext, sanitize, shortValue } from '../../faces/cli/render-context.js';
import { type Column, counted, formatFields } from '../../faces/cli/table.js';
import { formatMoment, formatRelative } from '../../faces/cli/time.js';

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
  options: { ...FILTERS, ...PAGE, ...OPTIONS },
  examples: [
    ['everstep outbox dlq list -t order.mail', 'the newest of a topic'],
    ['everstep outbox dlq list --since 1d --json', 'for scripts, with bodies'],
  ],
  run: (context, { options }) =>
    withOutbox(context, options, async ({ dlq }) => {
      const page = await dlq.list({ ...filterOf(options), ...pageOf(options) });
      return pageOutput(page, options, letterColumns, plainLetter);
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
  options: { ...FILTERS, ...PAGE_LIMIT, ...OPTIONS },
  examples: [['everstep outbox dlq groups --since 1d', 'what went wrong today?']],
  run: (context, { options }) =>
    withOutbox(context, options, async ({ dlq }) => {
      const groups = await dlq.groups({ ...filterOf(options), limit: options.limit });
      return groupsOutput(groups, groupColumns);
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

const CHANGE_OPTIONS = { ...FILTERS, ...CHANGE, ...OPTIONS };
type Given = { readonly args: readonly string[]; readonly options: Values<typeof CHANGE_OPTIONS> };
type Act = Pick<Change<DeadLetterFilter>, 'verb' | 'past' | 'act'>;

function change(context: CommandContext, { args, options }: Given, act: Act): Promise<number> {
  const filter = filterOf(options);
  const isFiltered = Object.keys(filter).some((name) => name !== 'archived');
  return changeLetters(context, { ...act, args, options, filter, isFiltered, hint: '--topic' });
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
    ...CHANGE_OPTIONS,
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
      const past = 'requeued';
      const act: Act['act'] = async (filter, bounds) => {
        const result = await dlq.requeue(filter, { ...bounds, ...settings });
        skipped = result.skipped;
        return result.requeued;
      };
      const requeued = await change(context, { args, options }, { verb: 'Requeue', past, act });
      const rest = skipped > 0 ? ` ${counted(skipped, 'dead letter')} skipped: their timer IDs are pending.` : '';
      return countOutput({ requeued, skipped }, { options, past }, rest);
    }),
});

const discardCommand = command({
  name: 'outbox dlq discard',
  about: 'Delete dead letters',
  parameter: IDS,
  options: CHANGE_OPTIONS,
  examples: [['everstep outbox dlq discard --before 90d --archived both', 'asks first']],
  run: (context, { options, args }) =>
    withOutbox(context, options, async ({ dlq }) => {
      const past = 'deleted';
      const act: Act['act'] = async (filter, bounds) => (await dlq.discard(filter, bounds)).discarded;
      const discarded = await change(context, { args, options }, { verb: 'Delete', past, act });
      return countOutput({ discarded }, { options, past });
    }),
});

const archiveCommand = command({
  name: 'outbox dlq archive',
  about: 'Take dead letters out of the lists, and keep them',
  parameter: IDS,
  options: CHANGE_OPTIONS,
  examples: [['everstep outbox dlq archive -t order.mail --yes', 'those of a topic']],
  run: (context, { options, args }) =>
    withOutbox(context, options, async ({ dlq }) => {
      const past = 'archived';
      const act: Act['act'] = async (filter, bounds) => (await dlq.archive(filter, bounds)).archived;
      const archived = await change(context, { args, options }, { verb: 'Archive', past, act });
      return countOutput({ archived }, { options, past });
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
