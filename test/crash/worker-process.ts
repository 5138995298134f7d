// A process that runs workflows until it is told to end, or is killed. It takes its settings as JSON in its first
// argument and commands as lines of JSON on standard input, and answers with lines on standard output. When its input
// closes, it ends.
import type { HistoryLevel } from '../../src/features/history/event.js';
import os from 'node:os';
import { syncBuiltinESMExports } from 'node:module';
import { createInterface } from 'node:readline';
import { internals } from '../../src/kernel/base/internals.js';
import type { DLogger } from '../../src/kernel/base/log.js';
import { Debouncer } from '../../src/faces/library/debouncer.js';
import { createDBOS } from '../../src/faces/library/dbos.js';
import { Journal } from './journal.js';
import { ledgerOn } from './ledger.js';
import { armKillPoint, type KillPoint } from './kill-points.js';
import { parkAfterMs, parkingSettings } from '../rig/parking.js';
import { patientClock } from '../rig/patient-clock.js';
import { registerWorkflows, type WorkflowName, type WorkflowSettings } from './workflows.js';

export interface WorkerSettings extends Omit<WorkflowSettings, 'journal' | 'book'> {
  readonly url: string;
  readonly journalPath: string;
  readonly leaseSeconds?: number;
  readonly killPoint?: KillPoint;
  /** Pretends to run on another machine. */
  readonly host?: string;
  /** How long running workflows are waited for when a signal ends the process. */
  readonly drainMs?: number;
  readonly applicationVersion?: string;
  /** The application's database, with the table `bookings`. */
  readonly ledgerURL?: string;
  /** The only queues to serve. */
  readonly listenQueues?: string[];
  readonly history?: HistoryLevel;
  readonly parkAfterMs?: number;
  /** Runs on the patient clock: what nobody notifies it of never happens. */
  readonly neverPolls?: boolean;
}

/** A job to be put into a queue. */
export interface Job {
  /** Without one it gets a fresh ID. */
  readonly workflowID?: string;
  readonly lengthMs: number;
  readonly partitionKey?: string;
  readonly deduplicationID?: string;
  readonly delaySeconds?: number;
  readonly applicationVersion?: string;
}

export type Command =
  | { readonly do: 'launch' }
  /** Starts a workflow under each of the IDs, an empty one for a fresh ID, and journals handles and results. */
  | { readonly do: 'start'; readonly name: WorkflowName; readonly workflowIDs: readonly string[] }
  /** Puts jobs into a queue, each by itself and all at once, and journals handles and refusals. */
  | {
      readonly do: 'enqueue';
      readonly queueName: string;
      readonly jobs: readonly Job[];
      readonly policy?: 'reject' | 'return-existing';
    }
  /** Puts jobs into a queue in one commit. */
  | { readonly do: 'enqueueAll'; readonly queueName: string; readonly jobs: readonly Job[] }
  /** Debounces a job once for each of the lengths, one after the other. */
  | { readonly do: 'debounce'; readonly key: string; readonly periodMs: number; readonly lengths: readonly number[] }
  /** Deletes all workflows that have ended, so many in a commit. */
  | { readonly do: 'collect'; readonly batchSize: number }
  /** Resolves when the engine claims only under this limit of the queue; null: when it knows no such queue. */
  | { readonly do: 'know'; readonly queueName: string; readonly globalConcurrency: number | null }
  /** Resolves when all results have been received. */
  | { readonly do: 'finish' }
  | { readonly do: 'shutdown' };

const settings = JSON.parse(process.argv[2] ?? '{}') as WorkerSettings;
const journal = new Journal(settings.journalPath);
const DBOS = createDBOS({ ...parkingSettings, ...(settings.neverPolls && { clock: patientClock }) });
const workflows = registerWorkflows(DBOS, { ...settings, journal, book: ledgerOn(DBOS, settings.ledgerURL) });
const results: Promise<void>[] = [];

const log =
  (level: string) =>
  (entry: unknown): void => {
    process.stderr.write(`${level}: ${entry instanceof Error ? entry.stack : String(entry)}\n`);
  };
const logger: DLogger = { debug() {}, info: log('info'), warn: log('warn'), error: log('error') };

async function startOne(name: WorkflowName, workflowID: string): Promise<void> {
  const handle = await DBOS.startWorkflow(workflows[name], workflowID === '' ? {} : { workflowID })();
  journal.write({ kind: 'handle', workflowID: handle.workflowID });
  results.push(
    handle.getResult().then(
      (value) => journal.write({ kind: 'result', workflowID: handle.workflowID, value }),
      (error: unknown) => log('error')(`Workflow "${handle.workflowID}" gave an error: ${String(error)}`),
    ),
  );
}

function toStart({ workflowID, lengthMs, partitionKey: queuePartitionKey, ...options }: Job) {
  return { workflowID, args: [lengthMs] as [number], enqueueOptions: { ...options, queuePartitionKey } };
}

async function enqueueOne(queueName: string, job: Job, duplicationPolicy: 'reject' | 'return-existing'): Promise<void> {
  const { args, ...params } = toStart(job);
  try {
    const handle = await DBOS.startWorkflow(workflows.job, { ...params, queueName, duplicationPolicy })(...args);
    journal.write({ kind: 'handle', workflowID: handle.workflowID });
  } catch (error) {
    journal.write({ kind: 'refused', workflowID: job.workflowID ?? '', reason: (error as Error).name });
  }
}

async function debounce(key: string, periodMs: number, lengths: readonly number[]): Promise<void> {
  const debouncer = new Debouncer({ workflow: workflows.job }, DBOS);
  for (const lengthMs of lengths) {
    const handle = await debouncer.debounce(key, periodMs, lengthMs);
    journal.write({ kind: 'handle', workflowID: handle.workflowID });
  }
}

async function untilKnown(queueName: string, globalConcurrency: number | null): Promise<void> {
  const { queues } = DBOS[internals].engineFor('a worker');
  const { known } = queues;
  while ((known.find(queueName)?.limits.whole.concurrency ?? null) !== globalConcurrency) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  await queues.reload();
}

async function perform(command: Command): Promise<void> {
  switch (command.do) {
    case 'launch':
      await DBOS.launch();
      if (settings.drainMs !== undefined) {
        DBOS.shutdownOnSignals({ workflowCompletionTimeoutMS: settings.drainMs });
      }
      break;
    case 'start':
      await Promise.all(command.workflowIDs.map((workflowID) => startOne(command.name, workflowID)));
      break;
    case 'enqueue': {
      const { queueName, jobs, policy = 'reject' } = command;
      await Promise.all(jobs.map((job) => enqueueOne(queueName, job, policy)));
      break;
    }
    case 'enqueueAll':
      await DBOS.startWorkflows(workflows.job, command.jobs.map(toStart), { queueName: command.queueName });
      break;
    case 'debounce':
      await debounce(command.key, command.periodMs, command.lengths);
      break;
    case 'collect':
      await DBOS.garbageCollect({ cutoffEpochTimestampMs: Date.now() + 60_000, batchSize: command.batchSize });
      break;
    case 'know':
      await untilKnown(command.queueName, command.globalConcurrency);
      break;
    case 'finish':
      await Promise.all(results.splice(0));
      break;
    case 'shutdown':
      await DBOS.shutdown();
      break;
  }
}

if (settings.host !== undefined) {
  os.hostname = () => settings.host ?? '';
  syncBuiltinESMExports();
}
if (settings.killPoint) {
  armKillPoint(settings.killPoint, (number, label) => journal.write({ kind: 'commit', number, label }));
}
DBOS.setConfig({
  name: 'crash',
  applicationVersion: settings.applicationVersion ?? 'v1',
  systemDatabaseUrl: settings.url,
  leaseSeconds: settings.leaseSeconds,
  listenQueues: settings.listenQueues,
  history: settings.history,
  parkAfterMs: settings.parkAfterMs ?? (parkAfterMs || undefined),
  logger,
});
process.stdout.write('loaded\n');

let last = Promise.resolve();
const lines = createInterface({ input: process.stdin });
lines.on('line', (line) => {
  last = last.then(async () => {
    const command = JSON.parse(line) as Command;
    await perform(command);
    process.stdout.write(`${command.do}\n`);
    if (command.do === 'shutdown') lines.close();
  });
  last.catch((error: unknown) => {
    log('error')(error);
    process.exit(1);
  });
});
// Whoever started this process is gone, or wants it to be.
lines.on('close', () => process.exit(0));
