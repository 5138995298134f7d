// Commands for schedules.
import {
  backfillSchedule,
  createSchedule,
  deleteSchedule,
  getSchedule,
  listSchedules,
  nextRuns,
  pauseSchedule,
  resumeSchedule,
  triggerSchedule,
  type WorkflowSchedule,
} from './schedules.js';
import type { Operator } from '../../operator/operator.js';
import {
  changeOutput,
  command,
  confirm,
  JSON_FLAG,
  type Output,
  type Parameter,
  YES_FLAG,
} from '../../faces/cli/command.js';
import { APPLICATION, DATABASE, withClient } from '../../faces/cli/connection.js';
import { notFound } from '../../faces/cli/failure.js';
import {
  choice,
  duration,
  flag,
  json,
  moment,
  required,
  repeatable,
  text,
  wholeNumber,
  withDefault,
} from '../../faces/cli/option.js';
import { sanitize, longValue, type RenderContext } from '../../faces/cli/render-context.js';
import { type Column, counted, formatFields, formatTable } from '../../faces/cli/table.js';
import { formatDuration, formatMoment, formatRelative } from '../../faces/cli/time.js';

const OPTIONS = { ...DATABASE, ...JSON_FLAG };
const PARAMETER: Parameter = { name: 'NAME', takes: 'one', about: 'Name of a schedule' };

interface ScheduleView extends WorkflowSchedule {
  /** ISO 8601; null while the schedule is paused. */
  readonly nextRunAt: string | null;
}

async function view(operator: Operator, schedule: WorkflowSchedule): Promise<ScheduleView> {
  // An expression or a time zone that we do not know has no next run here.
  const [next] = schedule.status === 'ACTIVE' ? await nextRuns(operator, schedule, 1).catch(() => []) : [];
  return { ...schedule, nextRunAt: next?.toISOString() ?? null };
}

async function requireSchedule(operator: Operator, name: string): Promise<ScheduleView> {
  const found = await getSchedule(operator, name);
  if (!found) throw notFound(`Schedule "${name}" not found. See: everstep schedule list`);
  return view(operator, found);
}

function columns({ now }: RenderContext): Column<ScheduleView>[] {
  const relative = (iso: string | null): string => (iso === null ? '' : formatRelative(Date.parse(iso), now));
  return [
    { title: 'SCHEDULE', text: (row) => row.scheduleName, isShortenable: true },
    {
      title: 'STATE',
      text: (row) => row.status.toLowerCase(),
      colour: (row) => (row.status === 'ACTIVE' ? 'green' : 'yellow'),
    },
    { title: 'CRON', text: (row) => row.schedule },
    { title: 'ZONE', text: (row) => row.cronTimezone, rank: 3 },
    { title: 'WORKFLOW', text: (row) => row.workflowName, isShortenable: true },
    { title: 'LAST', text: (row) => relative(row.lastFiredAt), isRight: true, rank: 2 },
    { title: 'NEXT', text: (row) => relative(row.nextRunAt), isRight: true, rank: 1 },
    { title: 'APPLICATION', text: (row) => row.applicationName, rank: 4 },
  ];
}

function scheduleText(rendering: RenderContext, row: ScheduleView): string {
  const at = (iso: string | null): string | undefined =>
    iso === null ? undefined : formatMoment(Date.parse(iso), rendering.now);
  return formatFields(rendering, [
    ['schedule', sanitize(row.scheduleName), 'bold'],
    ['state', row.status.toLowerCase(), row.status === 'ACTIVE' ? 'green' : 'yellow'],
    ['cron', sanitize(row.schedule)],
    ['time zone', row.cronTimezone ?? 'UTC'],
    ['workflow', sanitize([row.workflowClassName, row.workflowName].filter(Boolean).join('.'))],
    ['queue', row.queueName === null ? undefined : sanitize(row.queueName)],
    ['overlap', row.overlap],
    ['jitter', row.jitterMs === 0 ? undefined : formatDuration(row.jitterMs)],
    ['backfill', row.automaticBackfill ? 'at launch' : undefined],
    ['last run', at(row.lastFiredAt)],
    ['next run', at(row.nextRunAt)],
    ['application', row.applicationName === undefined ? undefined : sanitize(row.applicationName)],
    ['context', row.context == null ? undefined : longValue(row.context)],
  ]);
}

function viewOutput(row: ScheduleView): Output & { readonly json: object } {
  return { json: row, text: (rendering) => scheduleText(rendering, row) };
}

const listCommand = command({
  name: 'schedule list',
  about: 'List schedules with their last and next runs',
  options: {
    status: choice('ACTIVE or PAUSED', ['ACTIVE', 'PAUSED'], { short: 'S', placeholder: 'STATUS' }),
    workflowName: repeatable(text('Schedules of this workflow', { short: 'n', placeholder: 'NAME' })),
    namePrefix: repeatable(text('Names with this prefix')),
    ...APPLICATION,
    ...OPTIONS,
  },
  examples: [['everstep schedule list', 'all schedules']],
  run: (context, { options }) =>
    withClient(context, options, async ({ operator }) => {
      const { status, workflowName, namePrefix: scheduleNamePrefix } = options;
      const found = await listSchedules(operator, { status, workflowName, scheduleNamePrefix });
      const rows = await Promise.all(found.map((schedule) => view(operator, schedule)));
      return {
        json: rows,
        text: (rendering) => (rows.length === 0 ? 'No schedules.' : formatTable(rendering, columns(rendering), rows)),
      };
    }),
});

const getCommand = command({
  name: 'schedule get',
  about: 'Show a schedule',
  parameter: PARAMETER,
  options: OPTIONS,
  examples: [['everstep schedule get nightly', 'its settings, last and next run']],
  run: (context, { options, args: [name = ''] }) =>
    withClient(context, options, async ({ operator }) => viewOutput(await requireSchedule(operator, name))),
});

const createCommand = command({
  name: 'schedule create',
  about: 'Create a schedule for a registered workflow',
  parameter: { name: 'NAME', takes: 'one', about: 'Name of the new schedule' },
  options: {
    cron: required(text('Cron expression: five fields, or six with seconds first', { placeholder: 'CRON' })),
    workflowName: required(text('Name of the workflow function', { short: 'n', placeholder: 'NAME' })),
    className: text('Class of the workflow function', { placeholder: 'NAME' }),
    timezone: text('IANA name such as Europe/Berlin; defaults to UTC', { placeholder: 'ZONE' }),
    queueName: text('Queue for its workflows', { short: 'q', aliases: ['queue'], placeholder: 'NAME' }),
    overlap: choice(
      'While the previous run is active: allow, skip or cancelPrevious',
      ['allow', 'skip', 'cancelPrevious'],
      {
        placeholder: 'POLICY',
      },
    ),
    jitter: duration('Random delay of at most this'),
    backfill: flag('Run missed occurrences at launch'),
    context: json("The workflow's second argument"),
    applicationName: text('Application that runs it', { short: 'a', aliases: ['app'], placeholder: 'NAME' }),
    ...OPTIONS,
  },
  examples: [
    ["everstep schedule create nightly --cron '0 3 * * *' -n cleanUp --timezone Europe/Berlin", 'daily at three'],
  ],
  run: (context, { options, args: [scheduleName = ''] }) =>
    withClient(context, options, async ({ operator }) => {
      await createSchedule(operator, {
        scheduleName,
        workflowName: options.workflowName,
        workflowClassName: options.className ?? null,
        schedule: options.cron,
        context: options.context,
        cronTimezone: options.timezone,
        queueName: options.queueName,
        overlap: options.overlap,
        jitterMs: options.jitter,
        automaticBackfill: options.backfill,
      });
      return viewOutput(await requireSchedule(operator, scheduleName));
    }),
});

const pauseCommand = command({
  name: 'schedule pause',
  about: 'Stop a schedule from firing until it is resumed',
  parameter: PARAMETER,
  options: OPTIONS,
  examples: [['everstep schedule pause nightly', 'pause it']],
  run: (context, { options, args: [name = ''] }) =>
    withClient(context, options, async ({ operator }) => {
      await requireSchedule(operator, name);
      const changed = await pauseSchedule(operator, name);
      return changeOutput(
        viewOutput(await requireSchedule(operator, name)),
        changed,
        `Schedule "${sanitize(name)}" was already paused.`,
      );
    }),
});

const resumeCommand = command({
  name: 'schedule resume',
  about: 'Resume a paused schedule',
  parameter: PARAMETER,
  options: OPTIONS,
  examples: [['everstep schedule resume nightly', 'fire again']],
  run: (context, { options, args: [name = ''] }) =>
    withClient(context, options, async ({ operator }) => {
      await requireSchedule(operator, name);
      const changed = await resumeSchedule(operator, name);
      return changeOutput(
        viewOutput(await requireSchedule(operator, name)),
        changed,
        `Schedule "${sanitize(name)}" was not paused.`,
      );
    }),
});

const triggerCommand = command({
  name: 'schedule trigger',
  about: "Run a schedule's workflow now",
  parameter: PARAMETER,
  options: OPTIONS,
  examples: [['everstep schedule trigger nightly', 'even while it is paused']],
  run: (context, { options, args: [name = ''] }) =>
    withClient(context, options, async ({ operator }) => {
      await requireSchedule(operator, name);
      const workflowID = await triggerSchedule(operator, name);
      return { json: { workflowID }, text: () => sanitize(workflowID) };
    }),
});

const backfillCommand = command({
  name: 'schedule backfill',
  about: 'Run the occurrences of a schedule in a time range',
  details: 'Skips occurrences that have already fired.',
  parameter: PARAMETER,
  options: {
    from: required(moment('Occurrences after this time', { aliases: ['start'] })),
    to: withDefault(
      moment('Occurrences before this time', { aliases: ['end'] }),
      undefined as number | undefined,
      'now',
    ),
    ...OPTIONS,
  },
  examples: [['everstep schedule backfill nightly --from 2026-01-01 --to 2026-01-08', 'a week']],
  run: (context, { options, args: [name = ''] }) =>
    withClient(context, options, async ({ operator }) => {
      await requireSchedule(operator, name);
      const span = { start: new Date(options.from), end: new Date(options.to ?? context.clock.now()) };
      const workflowIDs = await backfillSchedule(operator, name, span);
      return {
        json: { workflowIDs },
        text: () => [`${counted(workflowIDs.length, 'occurrence')}.`, ...workflowIDs.map(sanitize)].join('\n'),
      };
    }),
});

const nextCommand = command({
  name: 'schedule next',
  about: 'Show the next occurrences of a schedule',
  parameter: PARAMETER,
  options: { count: withDefault(wholeNumber('Number of occurrences', { short: 'l', min: 1 }), 5), ...OPTIONS },
  examples: [['everstep schedule next nightly --count 10', 'the next ten']],
  run: (context, { options, args: [name = ''] }) =>
    withClient(context, options, async ({ operator }) => {
      await requireSchedule(operator, name);
      const times = await nextRuns(operator, name, options.count);
      return {
        json: times,
        text: ({ now }) => times.map((time) => formatMoment(time.getTime(), now)).join('\n'),
      };
    }),
});

const deleteCommand = command({
  name: 'schedule delete',
  about: 'Delete a schedule; workflows it has started stay',
  parameter: PARAMETER,
  options: { ...YES_FLAG, ...OPTIONS },
  examples: [['everstep schedule delete nightly', 'asks first']],
  run: (context, { options, args: [name = ''] }) =>
    withClient(context, options, async ({ operator }) => {
      await requireSchedule(operator, name);
      await confirm(context, `Delete schedule "${sanitize(name)}"?`, options.yes);
      const changed = await deleteSchedule(operator, name);
      return {
        json: { deleted: name, changed },
        text: () => `Schedule "${sanitize(name)}" ${changed ? '' : 'was already '}deleted.`,
      };
    }),
});

export const SCHEDULE_COMMANDS = [
  listCommand,
  getCommand,
  createCommand,
  pauseCommand,
  resumeCommand,
  triggerCommand,
  backfillCommand,
  nextCommand,
  deleteCommand,
];
