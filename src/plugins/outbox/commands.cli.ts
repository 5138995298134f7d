// Commands for the outbox in the user's database: its tables, its health, and its topics.
import { locateDatabase } from '../../kernel/base/url.js';
import type { QueueStatistics } from './consume/statistics.js';
import { ddlText } from './schema/ddl.js';
import { declared } from './schema/tables.js';
import type { Finding } from './validate/finding.js';
import { command, JSON_FLAG, type Output, type Parameter } from '../../faces/cli/command.js';
import { EXIT } from '../../faces/cli/failure.js';
import { choice, duration, flag, wholeNumber } from '../../faces/cli/option.js';
import { findOutboxDatabase, OUTBOX, tablesOf, WITHOUT, withOutbox } from './connection.cli.js';
import { paint, type RenderContext, sanitize } from '../../faces/cli/render-context.js';
import { type Column, counted, formatTable } from '../../faces/cli/table.js';
import { formatDuration } from '../../faces/cli/time.js';

const OPTIONS = { ...OUTBOX, ...JSON_FLAG };
const TOPIC: Parameter = { name: 'TOPIC', takes: 'one', about: 'Name of a topic' };

const ddlCommand = command({
  name: 'outbox ddl',
  about: 'Print the SQL that creates the tables of an outbox',
  details: 'Put it into a migration. It needs no connection.',
  options: {
    dialect: choice('postgres or sqlite; defaults to that of the database, else postgres', ['postgres', 'sqlite'], {
      placeholder: 'NAME',
    }),
    autovacuum: flag('Add settings that let autovacuum keep up (Postgres)'),
    ...WITHOUT,
    ...OPTIONS,
  },
  examples: [
    ['everstep outbox ddl', 'all tables, for a migration'],
    ['everstep outbox ddl --dialect sqlite --without state', 'for SQLite, without pauses'],
  ],
  async run(context, { options }) {
    const { url = '' } = findOutboxDatabase(context, options.dbUrl) ?? {};
    const dialect = options.dialect ?? locateDatabase(url)?.kind ?? 'postgres';
    const { outboxTable: outbox, dlqTable: dlq, stateTable: state } = tablesOf(options);
    const sql = ddlText(declared({ outbox, dlq, state }), dialect, options);
    return { json: { dialect, sql }, text: () => sql };
  },
});

const installCommand = command({
  name: 'outbox install',
  about: 'Create the tables of an outbox in one transaction',
  details: 'Fails if one of them exists. For development; elsewhere put the output of outbox ddl into a migration.',
  options: { ...WITHOUT, ...OPTIONS },
  examples: [['everstep outbox install -d postgresql://me@localhost/shop', 'for development']],
  run: (context, { options }) =>
    withOutbox(context, options, async (outbox, { shown }) => {
      await outbox.install();
      const { outboxTable: table, dlqTable: dlq, stateTable: state } = tablesOf(options);
      const names = declared({ outbox: table, dlq, state }).map(({ tableName }) => tableName);
      return { json: { database: shown, created: names }, text: () => `Created ${names.join(', ')} in ${shown}.` };
    }),
});

const checkCommand = command({
  name: 'outbox check',
  about: 'Compare the tables of an outbox with their declaration',
  details:
    'Run it in CI after the migrations and before the deployment. Exits with 1 if a table differs; warnings do not count.',
  options: {
    sql: flag('Print only the SQL that fixes the findings'),
    autovacuum: flag('Look for the settings of outbox ddl --autovacuum too (Postgres)'),
    ...WITHOUT,
    ...OPTIONS,
  },
  examples: [
    ['everstep outbox check', 'all tables'],
    ['everstep outbox check --without state', 'without the table of paused topics'],
    ['everstep outbox check --sql', 'the fixes, for a migration'],
  ],
  run: (context, { options }) =>
    withOutbox(context, options, async (outbox): Promise<Output> => {
      const report = await outbox.checkSchema({ autovacuum: options.autovacuum });
      return {
        json: report,
        text: (rendering) => (options.sql ? fixes(report.findings) : reportText(rendering, report.findings)),
        exitCode: report.ok ? EXIT.ok : EXIT.failed,
      };
    }),
});

function fixes(findings: readonly Finding[]): string {
  return findings.map(({ object, fixSql }) => (fixSql === '' ? `-- ${object}: fix by hand` : `${fixSql};`)).join('\n');
}

function reportText(rendering: RenderContext, findings: readonly Finding[]): string {
  if (findings.length === 0) return paint(rendering, 'green', '✓ The tables match their declaration.');
  return findings
    .map(({ severity, object, code, expected, actual, fixSql }) => {
      const mark = severity === 'error' ? paint(rendering, 'red', '✗') : paint(rendering, 'yellow', '!');
      const lines = [
        `${mark} ${sanitize(object)}: ${code}`,
        `  expected ${sanitize(expected)}`,
        `  found    ${sanitize(actual)}`,
      ];
      return [...lines, ...(fixSql === '' ? [] : [`  fix      ${sanitize(fixSql)}`])].join('\n');
    })
    .join('\n');
}

const STATS_COLUMNS: readonly Column<QueueStatistics>[] = [
  { title: 'QUEUE', text: (row) => row.queue, isShortenable: true },
  { title: 'DEPTH', text: (row) => row.depth, isRight: true },
  { title: 'DUE', text: (row) => row.due, isRight: true },
  { title: 'IN FLIGHT', text: (row) => row.inFlight, isRight: true },
  { title: 'STALE', text: (row) => row.stale, isRight: true, rank: 2 },
  { title: 'RETRYING', text: (row) => row.retrying, isRight: true, rank: 1 },
  { title: 'LAG', text: (row) => formatDuration(row.lagMs), isRight: true },
  {
    title: 'DEAD LETTERS',
    text: (row) => row.deadLetters,
    isRight: true,
    colour: (row) => (row.deadLetters > 0 ? 'red' : undefined),
  },
];

const statsCommand = command({
  name: 'outbox stats',
  about: 'Count messages and dead letters by topic',
  details: 'Reads the whole table of the messages.',
  options: { ...WITHOUT, ...OPTIONS },
  examples: [['everstep outbox stats', 'what waits, and for how long?']],
  run: (context, { options }) =>
    withOutbox(context, options, async (outbox) => {
      const queues = await outbox.statistics();
      return {
        json: queues,
        text: (rendering) => (queues.length === 0 ? 'No messages.' : formatTable(rendering, STATS_COLUMNS, queues)),
      };
    }),
});

const healthCommand = command({
  name: 'outbox health',
  about: 'Check that messages are fetched in time and dead letters do not pile up',
  details: 'Exits with 1 if there is a problem. Messages of paused topics may wait.',
  options: {
    maxLag: duration('How long a due message may wait; defaults to 5m'),
    maxDeadLetters: wholeNumber('How many dead letters a topic may have; defaults to any number'),
    checkSchema: flag('Compare the tables with their declaration too'),
    ...WITHOUT,
    ...OPTIONS,
  },
  examples: [['everstep outbox health --max-lag 1m --max-dead-letters 0', 'for a monitor']],
  run: (context, { options }) =>
    withOutbox(context, options, async (outbox): Promise<Output> => {
      const { maxLag, maxDeadLetters, checkSchema: schema } = options;
      const health = await outbox.health({ maxLag, maxDeadLetters, schema });
      const { ok, problems, paused } = health;
      return {
        json: health,
        exitCode: ok ? EXIT.ok : EXIT.failed,
        text: (rendering) =>
          [
            ...problems.map((problem) => `${paint(rendering, 'red', '✗')} ${sanitize(problem)}`),
            ...paused.map((topic) => `${paint(rendering, 'yellow', '!')} "${sanitize(topic)}" is paused.`),
            ok
              ? paint(rendering, 'green', '✓ No problems found.')
              : paint(rendering, 'red', `${counted(problems.length, 'problem')}.`),
          ].join('\n'),
      };
    }),
});

const pauseCommand = command({
  name: 'outbox pause',
  about: 'Stop all processes from fetching messages of a topic until it is resumed',
  details: 'Messages in flight are finished. Needs the table of paused topics.',
  parameter: TOPIC,
  options: OPTIONS,
  examples: [['everstep outbox pause order.mail', 'while the mail server is down']],
  run: (context, { options, args: [topic = ''] }) =>
    withOutbox(context, options, async (outbox) => {
      const changed = await outbox.pause(topic);
      return {
        json: { topic, isPaused: true, changed },
        text: () => `Topic "${sanitize(topic)}" ${changed ? 'paused' : 'was already paused'}.`,
      };
    }),
});

const resumeCommand = command({
  name: 'outbox resume',
  about: 'Resume a paused topic',
  parameter: TOPIC,
  options: OPTIONS,
  examples: [['everstep outbox resume order.mail', 'when the mail server is back']],
  run: (context, { options, args: [topic = ''] }) =>
    withOutbox(context, options, async (outbox) => {
      const changed = await outbox.resume(topic);
      return {
        json: { topic, isPaused: false, changed },
        text: () => `Topic "${sanitize(topic)}" ${changed ? 'resumed' : 'was not paused'}.`,
      };
    }),
});

export const OUTBOX_COMMANDS = [
  ddlCommand,
  installCommand,
  checkCommand,
  statsCommand,
  healthCommand,
  pauseCommand,
  resumeCommand,
];
