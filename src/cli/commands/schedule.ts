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
} from '../../control/schedules/schedules.js';
import type { Operator } from '../../control/operator.js';
import { changeOutput, command, confirm, JSON_FLAG, type Output, type Parameter, YES_FLAG } from '../command.js';
import { APPLICATION, DATABASE, withClient } from '../connection.js';
import { notFound } from '../failure.js';
import { choice, duration, flag, json, moment, needed, several, text, wholeNumber, withDefault } from '../option.js';
import { harmless, longValue, type Paper } from '../paper.js';
import { type Column, counted, formatFields, formatTable } from '../table.js';
import { formatDuration, formatMoment, formatRelative } from '../time.js';

const OPTIONS = { ...DATABASE, ...JSON_FLAG };
const PARAMETER: Parameter = { name: 'NAME', takes: 'one', about: 'The name of a schedule' };

interface ScheduleView extends WorkflowSchedule {
  /** In ISO 8601; null while it is paused. */
  readonly nextRunAt: string | null;
}

async function view(operator: Operator, schedule: WorkflowSchedule): Promise<ScheduleView> {
  const [next] = schedule.status === 'ACTIVE' ? await nextRuns(operator, schedule, 1) : [];
  return { ...schedule, nextRunAt: next?.toISOString() ?? null };
}

async function requireSchedule(operator: Operator, name: string): Promise<ScheduleView> {
  const found = await getSchedule(operator, name);
  if (!found) throw notFound(`Schedule "${name}" not found. See: everstep schedule list`);
  return view(operator, found);
}

function columns({ now }: Paper): Column<ScheduleView>[] {
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

function scheduleText(paper: Paper, row: ScheduleView): string {
  const at = (iso: string | null): string | undefined =>
    iso === null ? undefined : formatMoment(Date.parse(iso), paper.now);
  return formatFields(paper, [
    ['schedule', harmless(row.scheduleName), 'bold'],
    ['state', row.status.toLowerCase(), row.status === 'ACTIVE' ? 'green' : 'yellow'],
    ['cron', harmless(row.schedule)],
    ['time zone', row.cronTimezone ?? 'UTC'],
    ['workflow', harmless([row.workflowClassName, row.workflowName].filter(Boolean).join('.'))],
    ['queue', row.queueName === null ? undefined : harmless(row.queueName)],
    ['overlap', row.overlap],
    ['jitter', row.jitterMs === 0 ? undefined : formatDuration(row.jitterMs)],
    ['backfill', row.automaticBackfill ? 'at launch' : undefined],
    ['last run', at(row.lastFiredAt)],
    ['next run', at(row.nextRunAt)],
    ['application', row.applicationName === undefined ? undefined : harmless(row.applicationName)],
    ['context', row.context == null ? undefined : longValue(row.context)],
  ]);
}

function viewOutput(row: ScheduleView): Output & { readonly json: object } {
  return { json: row, text: (paper) => scheduleText(paper, row) };
}

const listCommand = command({
  name: 'schedule list',
  about: 'List schedules with their last and next runs',
  options: {
    status: choice('ACTIVE or PAUSED', ['ACTIVE', 'PAUSED'], { short: 'S', placeholder: 'STATUS' }),
    workflowName: several(text('That run this workflow', { short: 'n', placeholder: 'NAME' })),
    namePrefix: several(text('Names that begin so')),
    ...APPLICATION,
    ...OPTIONS,
  },
  examples: [['everstep schedule list', 'all of them']],
  run: (scene, { options }) =>
    withClient(scene, options, async ({ operator }) => {
      const { status, workflowName, namePrefix: scheduleNamePrefix } = options;
      const found = await listSchedules(operator, { status, workflowName, scheduleNamePrefix });
      const rows = await Promise.all(found.map((schedule) => view(operator, schedule)));
      return {
        json: rows,
        text: (paper) => (rows.length === 0 ? 'No schedules.' : formatTable(paper, columns(paper), rows)),
      };
    }),
});

const getCommand = command({
  name: 'schedule get',
  about: 'Show a schedule',
  parameter: PARAMETER,
  options: OPTIONS,
  examples: [['everstep schedule get nightly', 'when, what and how']],
  run: (scene, { options, args: [name = ''] }) =>
    withClient(scene, options, async ({ operator }) => viewOutput(await requireSchedule(operator, name))),
});

const createCommand = command({
  name: 'schedule create',
  about: 'Create a schedule for a workflow that processes know by name',
  parameter: { name: 'NAME', takes: 'one', about: 'The name of the new schedule' },
  options: {
    cron: needed(text('When: five fields, or six with seconds first', { placeholder: 'CRON' })),
    workflowName: needed(text('The name of the workflow function', { short: 'n', placeholder: 'NAME' })),
    className: text('Its class', { placeholder: 'NAME' }),
    timezone: text('An IANA name such as Europe/Berlin; UTC if not given', { placeholder: 'ZONE' }),
    queueName: text('The queue that its workflows wait in', { short: 'q', aliases: ['queue'], placeholder: 'NAME' }),
    overlap: choice(
      'While the run before is active: allow, skip or cancelPrevious',
      ['allow', 'skip', 'cancelPrevious'],
      {
        placeholder: 'POLICY',
      },
    ),
    jitter: duration('Fire up to so much later than due'),
    backfill: flag('At launch, fire what was missed'),
    context: json('What the workflow gets as its second argument'),
    applicationName: text('The application that runs it', { short: 'a', aliases: ['app'], placeholder: 'NAME' }),
    ...OPTIONS,
  },
  examples: [["everstep schedule create nightly --cron '0 3 * * *' -n cleanUp --timezone Europe/Berlin", 'at three']],
  run: (scene, { options, args: [scheduleName = ''] }) =>
    withClient(scene, options, async ({ operator }) => {
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
  about: 'Let a schedule fire nothing until it is resumed',
  parameter: PARAMETER,
  options: OPTIONS,
  examples: [['everstep schedule pause nightly', 'for now']],
  run: (scene, { options, args: [name = ''] }) =>
    withClient(scene, options, async ({ operator }) => {
      await requireSchedule(operator, name);
      const changed = await pauseSchedule(operator, name);
      return changeOutput(
        viewOutput(await requireSchedule(operator, name)),
        changed,
        `Schedule "${harmless(name)}" was already paused.`,
      );
    }),
});

const resumeCommand = command({
  name: 'schedule resume',
  about: 'Let a schedule fire again',
  parameter: PARAMETER,
  options: OPTIONS,
  examples: [['everstep schedule resume nightly', 'go on']],
  run: (scene, { options, args: [name = ''] }) =>
    withClient(scene, options, async ({ operator }) => {
      await requireSchedule(operator, name);
      const changed = await resumeSchedule(operator, name);
      return changeOutput(
        viewOutput(await requireSchedule(operator, name)),
        changed,
        `Schedule "${harmless(name)}" was not paused.`,
      );
    }),
});

const triggerCommand = command({
  name: 'schedule trigger',
  about: 'Run the workflow of a schedule now',
  parameter: PARAMETER,
  options: OPTIONS,
  examples: [['everstep schedule trigger nightly', 'whether or not it is paused']],
  run: (scene, { options, args: [name = ''] }) =>
    withClient(scene, options, async ({ operator }) => {
      await requireSchedule(operator, name);
      const workflowID = await triggerSchedule(operator, name);
      return { json: { workflowID }, text: () => harmless(workflowID) };
    }),
});

const backfillCommand = command({
  name: 'schedule backfill',
  about: 'Run what a schedule would have fired in a span of time',
  details: 'Occurrences that were fired already are left out.',
  parameter: PARAMETER,
  options: {
    from: needed(moment('After this time', { aliases: ['start'] })),
    to: withDefault(moment('Before this time', { aliases: ['end'] }), undefined as number | undefined, 'now'),
    ...OPTIONS,
  },
  examples: [['everstep schedule backfill nightly --from 2026-01-01 --to 2026-01-08', 'a week']],
  run: (scene, { options, args: [name = ''] }) =>
    withClient(scene, options, async ({ operator }) => {
      await requireSchedule(operator, name);
      const span = { start: new Date(options.from), end: new Date(options.to ?? scene.clock.now()) };
      const workflowIDs = await backfillSchedule(operator, name, span);
      return {
        json: { workflowIDs },
        text: () => [`${counted(workflowIDs.length, 'occurrence')}.`, ...workflowIDs.map(harmless)].join('\n'),
      };
    }),
});

const nextCommand = command({
  name: 'schedule next',
  about: 'Show when a schedule is due next',
  parameter: PARAMETER,
  options: { count: withDefault(wholeNumber('How many times', { short: 'l', min: 1 }), 5), ...OPTIONS },
  examples: [['everstep schedule next nightly --count 10', 'the next ten times']],
  run: (scene, { options, args: [name = ''] }) =>
    withClient(scene, options, async ({ operator }) => {
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
  about: 'Remove a schedule; workflows that it has fired stay',
  parameter: PARAMETER,
  options: { ...YES_FLAG, ...OPTIONS },
  examples: [['everstep schedule delete nightly', 'asks before it does anything']],
  run: (scene, { options, args: [name = ''] }) =>
    withClient(scene, options, async ({ operator }) => {
      await requireSchedule(operator, name);
      await confirm(scene, `Remove schedule "${harmless(name)}"?`, options.yes);
      const changed = await deleteSchedule(operator, name);
      return {
        json: { deleted: name, changed },
        text: () => `Schedule "${harmless(name)}" ${changed ? '' : 'was already '}removed.`,
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
