// Commands that show what happened to workflows: the timeline of one, and the latest events of all.
import { utcText } from '../../kernel/base/clock.js';
import { getHistory, type HistoryEvent, tailHistory } from './history.js';
import { command, JSON_FLAG } from '../../faces/cli/command.js';
import { DATABASE, withClient } from '../../faces/cli/connection.js';
import { notFound } from '../../faces/cli/failure.js';
import { flag, moment, repeatable, text, wholeNumber, withDefault } from '../../faces/cli/option.js';
import { type Colour, paint, type RenderContext, sanitize, shortValue } from '../../faces/cli/render-context.js';
import { type Column, formatTable } from '../../faces/cli/table.js';
import { formatDuration } from '../../faces/cli/time.js';

const TYPES = { type: repeatable(text('Only events of this type', { placeholder: 'TYPE' })) };

async function collect<T>(source: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const one of source) found.push(one);
  return found;
}

function colourOf(type: string): Colour | undefined {
  if (/Failed|Lost|DeadLettered|TimedOut/.test(type)) return 'red';
  if (/Cancel|Retry|Resumed|Rewound/.test(type)) return 'yellow';
  return /Completed$|Fired$/.test(type) ? 'green' : undefined;
}

/** What it is about: its main detail, then who and why. */
function subjectOf({ details, executor, actor }: HistoryEvent): string {
  const names = [
    'activity_name',
    'workflow_name',
    'child_id',
    'signal_name',
    'patch',
    'key',
    'new_id',
    'operation',
    'timer_id',
  ];
  const name = names.map((key) => details[key]).find((value) => typeof value === 'string');
  const payload = ['error', 'result', 'input'].filter((key) => details[key] !== undefined && details[key] !== null);
  const change =
    'to' in details ? `${shortValue(details['from'] ?? null)} → ${shortValue(details['to'] ?? null)}` : undefined;
  const parts = [
    typeof name === 'string' ? sanitize(name) : undefined,
    change,
    executor === undefined ? undefined : `on ${sanitize(executor)}`,
    actor === undefined ? undefined : `by ${sanitize(actor)}`,
    typeof details['reason'] === 'string' ? `(${sanitize(details['reason'])})` : undefined,
    ...payload.map((key) => `${key}: ${shortValue(details[key])}`),
  ];
  return parts.filter((part) => part !== undefined).join(' ');
}

const BAR = 24;

/** Where in the life of the workflow an event is. */
function barOf(at: number, first: number, last: number): string {
  const place = last > first ? Math.round(((at - first) / (last - first)) * (BAR - 1)) : 0;
  return `${'─'.repeat(place)}●${' '.repeat(BAR - 1 - place)}`;
}

function timelineText(rendering: RenderContext, events: readonly HistoryEvent[]): string {
  const first = Math.min(...events.map(({ at }) => at));
  const last = Math.max(...events.map(({ at }) => at));
  const lines = events.map((event) => {
    const offset = `+${formatDuration(event.at - first)}`.padStart(10);
    const step = (event.step === undefined ? '' : String(event.step)).padStart(4);
    const type = paint(rendering, colourOf(event.type), sanitize(event.type).padEnd(24));
    const line = `${offset} ${paint(rendering, 'grey', barOf(event.at, first, last))} ${step} ${type} ${subjectOf(event)}`;
    return line.trimEnd();
  });
  return [`${utcText(first)}, ${events.length} events in ${formatDuration(last - first)}`, ...lines].join('\n');
}

const historyCommand = command({
  name: 'workflow history',
  about: 'Show what happened to a workflow, as a timeline',
  parameter: { name: 'ID', takes: 'one', about: 'ID of a workflow' },
  options: {
    ...TYPES,
    limit: wholeNumber('Maximum number of events', { short: 'l', min: 1 }),
    payloads: flag('Include inputs, results and errors'),
    ...DATABASE,
    ...JSON_FLAG,
  },
  examples: [
    ['everstep workflow history order-17', 'a timeline'],
    ['everstep workflow history order-17 --type AttemptLost --type ActivityRetryScheduled', 'what went wrong'],
  ],
  run: (context, { options, args: [id = ''] }) =>
    withClient(context, options, async ({ operator }) => {
      const { type: types, limit, payloads } = options;
      const events = await collect(getHistory(operator, id, { types, limit, payloads }));
      if (events.length === 0 && types === undefined) {
        throw notFound(`Workflow "${id}" not found. See: everstep workflow list`);
      }
      return {
        json: events,
        text: (rendering) => (events.length === 0 ? 'No events.' : timelineText(rendering, events)),
      };
    }),
});

const TAIL_COLUMNS: readonly Column<HistoryEvent>[] = [
  { title: 'TIME', text: (row) => utcText(row.at) },
  { title: 'WORKFLOW', text: (row) => row.workflowID, isShortenable: true },
  { title: 'STEP', text: (row) => row.step, isRight: true, rank: 1 },
  { title: 'EVENT', text: (row) => row.type, colour: (row) => colourOf(row.type) },
  { title: 'ABOUT', text: subjectOf, isShortenable: true },
];

const DEFAULT_SINCE_MS = 30_000;

const recentCommand = command({
  name: 'workflow recent',
  about: 'Show what happened lately to all workflows',
  details:
    'Lists the stored events: lost attempts, failed attempts of steps, cancellations and other changes, and with the ' +
    'history level full everything that runs do.',
  options: {
    since: moment('Start of the period (default 30s)', { placeholder: 'TIME' }),
    limit: withDefault(wholeNumber('Maximum number of events', { short: 'l', min: 1 }), 1000),
    ...TYPES,
    ...DATABASE,
    ...JSON_FLAG,
  },
  examples: [
    ['everstep workflow recent', 'the last 30 seconds'],
    ['everstep workflow recent --since 1h --type AttemptLost', 'attempts lost in the last hour'],
  ],
  run: (context, { options }) =>
    withClient(context, options, async ({ operator }) => {
      const { since = context.clock.now() - DEFAULT_SINCE_MS, type: types, limit } = options;
      const events: HistoryEvent[] = [];
      for await (const event of tailHistory(operator, { since, types, follow: false })) {
        if (events.push(event) >= limit) break;
      }
      return {
        json: events,
        text: (rendering) => (events.length === 0 ? 'No events.' : formatTable(rendering, TAIL_COLUMNS, events)),
      };
    }),
});

export const WORKFLOW_HISTORY_COMMANDS = [historyCommand, recentCommand];
