// `everstep doctor`: is anything wrong?
import { LIBRARY_VERSION } from '../../base/version.js';
import { type Diagnosis, diagnose, type Finding } from '../../control/management/diagnosis.js';
import { DBOSError } from '../../model/errors/errors.js';
import type { ExecutorRecord } from '../../store/liveness/executors.js';
import { latestVersion, tracksOf } from '../../store/migrations/plan.js';
import { isCurrent, type Versions } from '../../store/migrations/versions.js';
import { command, JSON_FLAG, type Output, type Scene } from '../command.js';
import {
  APPLICATION,
  DATABASE,
  type DatabaseTarget,
  findDatabase,
  refuseMissingFile,
  withClient,
} from '../connection.js';
import { CommandFailure, EXIT } from '../failure.js';
import type { Values } from '../option.js';
import { harmless, paint, type Paper } from '../paper.js';
import { type Column, counted, formatTable } from '../table.js';
import { formatDuration, formatRelative } from '../time.js';
import { readTableVersions, withDatabase } from './database.js';

const OPTIONS = { ...APPLICATION, ...DATABASE, ...JSON_FLAG };

/** What is known when the database cannot be used. */
interface Report {
  readonly database: string;
  readonly dialect?: 'postgres' | 'sqlite';
  readonly isReachable: boolean;
  readonly versions?: { readonly shared: number; readonly everstep: number };
  readonly neededVersions?: { readonly shared: number; readonly everstep: number };
  readonly diagnosis?: Diagnosis;
  readonly findings: readonly (Omit<Finding, 'subject'> & { readonly subject: string })[];
}

async function examine(scene: Scene, options: Values<typeof OPTIONS>): Promise<Report> {
  const target = findDatabase(scene, options);
  const report = { database: target.shown, isReachable: false };
  let tables: { readonly dialect: 'postgres' | 'sqlite'; readonly versions: Versions };
  try {
    tables = await lookAtTables(scene, target);
  } catch (error) {
    scene.signal.throwIfAborted();
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
  if (!isCurrent(dialect, versions)) {
    const message =
      versions[0] === 0
        ? 'There are no system tables. Create them: everstep migrate'
        : `The tables are at version ${versions[0]} (Everstep's own at ${versions[1]}), and this release needs ${shared} (and ${everstep}). Run: everstep migrate`;
    return { ...known, findings: [{ kind: 'problem', subject: 'database', message }] };
  }
  const diagnosis = await withClient(scene, options, ({ operator }) => diagnose(operator));
  return { ...known, diagnosis, findings: diagnosis.findings };
}

async function lookAtTables(scene: Scene, target: DatabaseTarget) {
  refuseMissingFile(target);
  return withDatabase(scene, target, async (database) => ({
    dialect: database.dialect.name,
    versions: await readTableVersions(database, target),
  }));
}

function executorColumns({ now }: Paper): Column<ExecutorRecord>[] {
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

function reportText(paper: Paper, report: Report): string {
  const { diagnosis, findings, versions } = report;
  const parts = [
    `${paint(paper, 'bold', harmless(report.database))}: ` +
      (report.isReachable ? `reachable (${report.dialect})` : paint(paper, 'red', 'not usable')),
  ];
  if (versions) {
    parts.push(
      `Tables at version ${versions.shared}, Everstep's own at ${versions.everstep}; release ${LIBRARY_VERSION}.`,
    );
  }
  if (diagnosis) parts.push(...diagnosisLines(paper, diagnosis));
  const problems = findings.filter(({ kind }) => kind === 'problem');
  for (const { kind, message } of findings) {
    const mark = kind === 'problem' ? paint(paper, 'red', '✗') : paint(paper, 'yellow', '!');
    parts.push(`${mark} ${harmless(message)}`);
  }
  parts.push(
    problems.length === 0
      ? paint(paper, 'green', '✓ Nothing is wrong.')
      : paint(paper, 'red', `${counted(problems.length, 'problem')}.`),
  );
  return parts.join('\n');
}

function diagnosisLines(paper: Paper, { clockAheadMs, executors, queues, oldest }: Diagnosis): string[] {
  const sum = (key: 'enqueued' | 'running'): string =>
    queues.reduce((total, queue) => total + queue[key], 0).toLocaleString('en-US');
  const waiting = oldest.find(({ status }) => status === 'ENQUEUED');
  return [
    `The clock here differs from the database's by ${formatDuration(Math.abs(clockAheadMs))}.`,
    executors.length === 0 ? 'No executors.' : `\n${formatTable(paper, executorColumns(paper), executors)}\n`,
    `In queues: ${sum('enqueued')} waiting, ${sum('running')} running.`,
    ...(waiting ? [`The oldest that waits is "${harmless(waiting.workflowID)}": ${harmless(waiting.message)}`] : []),
  ];
}

const doctorCommand = command({
  name: 'doctor',
  about: 'Find out whether anything is wrong, and what to do about it',
  details:
    'Looks at the database and its version, the processes and their leases, the clock, dead letters, queues that nobody ' +
    'serves, and the workflows that have waited or run for longest. The exit code is 1 if something is wrong.',
  options: OPTIONS,
  examples: [
    ['everstep doctor', 'a look at everything'],
    ["everstep doctor --json | jq '.findings'", 'for a program'],
  ],
  async run(scene, { options }): Promise<Output> {
    const report = await examine(scene, options);
    const isWrong = report.findings.some(({ kind }) => kind === 'problem');
    return {
      json: { isHealthy: !isWrong, ...report },
      text: (paper) => reportText(paper, report),
      exitCode: isWrong ? EXIT.failed : EXIT.ok,
    };
  },
});

export const DOCTOR_COMMANDS = [doctorCommand];
