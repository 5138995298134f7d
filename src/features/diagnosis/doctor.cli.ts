// `everstep doctor`: checks the database and everything that runs on it.
import { LIBRARY_VERSION } from '../../kernel/base/version.js';
import { type Diagnosis, diagnose, type Finding } from './diagnosis.js';
import { DBOSError } from '../../kernel/errors/errors.js';
import type { ExecutorRecord } from '../liveness/executors.sql.js';
import { lackingIn } from '../../database/migrations/dbos-tables.js';
import { latestVersion, tracksOf } from '../../database/migrations/plan.js';
import { isCurrent, type Versions } from '../../database/migrations/versions.js';
import { command, JSON_FLAG, type Output, type CommandContext } from '../../faces/cli/command.js';
import {
  APPLICATION,
  DATABASE,
  type DatabaseTarget,
  findDatabase,
  refuseMissingFile,
  withClient,
} from '../../faces/cli/connection.js';
import { CommandFailure, EXIT } from '../../faces/cli/failure.js';
import type { Values } from '../../faces/cli/option.js';
import { sanitize, paint, type RenderContext } from '../../faces/cli/render-context.js';
import { type Column, counted, formatTable } from '../../faces/cli/table.js';
import { formatDuration, formatRelative } from '../../faces/cli/time.js';
import { diagnoseOutbox, DOCTOR_OUTBOX, type OutboxReport } from '../../plugins/outbox/diagnosis.cli.js';
import { readTableVersions, withDatabase } from '../../faces/cli/commands/database.js';

const OPTIONS = { ...APPLICATION, ...DATABASE, ...DOCTOR_OUTBOX, ...JSON_FLAG };

/** Without a diagnosis if the database cannot be used. */
interface Report {
  readonly database: string;
  readonly dialect?: 'postgres' | 'sqlite';
  readonly isReachable: boolean;
  readonly versions?: { readonly shared: number; readonly everstep: number };
  readonly neededVersions?: { readonly shared: number; readonly everstep: number };
  readonly diagnosis?: Diagnosis;
  readonly outbox?: OutboxReport;
  readonly findings: readonly (Omit<Finding, 'subject'> & { readonly subject: string })[];
}

async function examine(context: CommandContext, options: Values<typeof OPTIONS>): Promise<Report> {
  const target = findDatabase(context, options);
  const report = { database: target.shown, isReachable: false };
  let tables: { readonly dialect: 'postgres' | 'sqlite'; readonly versions: Versions };
  try {
    tables = await readTables(context, target);
  } catch (error) {
    context.signal.throwIfAborted();
    if (!(error instanceof DBOSError || error instanceof CommandFailure)) throw error;
    return { ...report, findings: [{ kind: 'problem', subject: 'database', message: error.message }] };
  }
  const { dialect, versions } = tables;
  const [shared, everstep] = tracksOf(dialect).map(latestVersion) as [number, number];
  const known = {
    ...report,
    isReachable: true,
    dialect,
    versions: { shared: versions[0], everstep: versions[1] },
    neededVersions: { shared, everstep },
  };
  const isOfDBOS = dialect === 'postgres' && lackingIn(versions) !== undefined;
  if (!isCurrent(dialect, versions) && !isOfDBOS) {
    const message =
      versions[0] === 0
        ? 'No system tables. Create them: everstep migrate'
        : `The tables are at version ${versions[0]} (Everstep's own at ${versions[1]}); this release needs ${shared} (and ${everstep}). Run: everstep migrate`;
    return { ...known, findings: [{ kind: 'problem', subject: 'database', message }] };
  }
  const diagnosis = await withClient(context, options, ({ operator }) => diagnose(operator, target.schema));
  const message =
    "The tables were made by DBOS. Everstep's own are missing; engines create them, or run: everstep migrate";
  const found = isOfDBOS ? [{ kind: 'notice', subject: 'database', message } as const] : [];
  const { outbox, findings } = await diagnoseOutbox(context, options, target.url);
  return { ...known, diagnosis, outbox, findings: [...found, ...diagnosis.findings, ...findings] };
}

async function readTables(context: CommandContext, target: DatabaseTarget) {
  refuseMissingFile(target);
  return withDatabase(context, target, async (database) => ({
    dialect: database.dialect.name,
    versions: await readTableVersions(database, target),
  }));
}

function executorColumns({ now }: RenderContext): Column<ExecutorRecord>[] {
  return [
    { title: 'EXECUTOR', text: (row) => row.executorID },
    {
      title: 'STATE',
      text: (row) => (row.isLeaseOver ? 'gone' : 'live'),
      colour: (row) => (row.isLeaseOver ? 'red' : 'green'),
    },
    { title: 'LEASE ENDS', text: (row) => formatRelative(row.leaseUntil, now) },
    { title: 'STARTED', text: (row) => formatRelative(row.startedAt, now), rank: 2 },
    { title: 'APPLICATION', text: (row) => row.applicationName, isShortenable: true, rank: 1 },
    { title: 'VERSION', text: (row) => row.applicationVersion, isShortenable: true },
    { title: 'PROCESS', text: (row) => `${row.pid} on ${row.host}`, isShortenable: true, rank: 3 },
  ];
}

function reportText(rendering: RenderContext, report: Report): string {
  const { diagnosis, findings, versions } = report;
  const parts = [
    `${paint(rendering, 'bold', sanitize(report.database))}: ` +
      (report.isReachable ? `reachable (${report.dialect})` : paint(rendering, 'red', 'not usable')),
  ];
  if (versions) {
    parts.push(
      `Tables at version ${versions.shared}, Everstep's own at ${versions.everstep}; release ${LIBRARY_VERSION}.`,
    );
  }
  if (diagnosis) parts.push(...diagnosisLines(rendering, diagnosis));
  if (report.outbox) parts.push(outboxLine(report.outbox));
  const problems = findings.filter(({ kind }) => kind === 'problem');
  for (const { kind, message } of findings) {
    const mark = kind === 'problem' ? paint(rendering, 'red', '✗') : paint(rendering, 'yellow', '!');
    parts.push(`${mark} ${sanitize(message)}`);
  }
  parts.push(
    problems.length === 0
      ? paint(rendering, 'green', '✓ No problems found.')
      : paint(rendering, 'red', `${counted(problems.length, 'problem')}.`),
  );
  return parts.join('\n');
}

function outboxLine({ database, queues }: OutboxReport): string {
  const sum = (key: 'depth' | 'due' | 'deadLetters'): string =>
    queues.reduce((total, queue) => total + queue[key], 0).toLocaleString('en-US');
  return `Outbox in ${sanitize(database)}: ${sum('depth')} messages, ${sum('due')} due, ${sum('deadLetters')} dead letters.`;
}

function namesOf(capabilities: Diagnosis['capabilities']): string {
  return capabilities
    .filter(({ isAvailable }) => isAvailable)
    .map(({ name }) => name)
    .join(', ');
}

function diagnosisLines(
  rendering: RenderContext,
  { clockAheadMs, capabilities, executors, queues, oldest }: Diagnosis,
): string[] {
  const sum = (key: 'enqueued' | 'running'): string =>
    queues.reduce((total, queue) => total + queue[key], 0).toLocaleString('en-US');
  const waiting = oldest.find(({ status }) => status === 'ENQUEUED');
  return [
    `Clock difference to the database: ${formatDuration(Math.abs(clockAheadMs))}.`,
    ...(capabilities.length === 0 ? [] : [`The server has ${namesOf(capabilities)}.`]),
    executors.length === 0 ? 'No executors.' : `\n${formatTable(rendering, executorColumns(rendering), executors)}\n`,
    `In queues: ${sum('enqueued')} waiting, ${sum('running')} running.`,
    ...(waiting ? [`Oldest waiting workflow "${sanitize(waiting.workflowID)}": ${sanitize(waiting.message)}`] : []),
  ];
}

const doctorCommand = command({
  name: 'doctor',
  about: 'Check for problems and say how to fix them',
  details:
    'Checks the database, its version and what its server can do, executors and their leases, clock skew, dead letters, unserved queues, ' +
    'the workflows that have waited or run longest, and the outbox in your database, if there is one. Exits with 1 if there is a problem.',
  options: OPTIONS,
  examples: [
    ['everstep doctor', 'check everything'],
    ["everstep doctor --json | jq '.findings'", 'for scripts'],
  ],
  async run(context, { options }): Promise<Output> {
    const report = await examine(context, options);
    const isWrong = report.findings.some(({ kind }) => kind === 'problem');
    return {
      json: { isHealthy: !isWrong, ...report },
      text: (rendering) => reportText(rendering, report),
      exitCode: isWrong ? EXIT.failed : EXIT.ok,
    };
  },
});

export const DOCTOR_COMMANDS = [doctorCommand];
