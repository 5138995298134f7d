// A process that runs workflows until it is told to end, or is killed. It takes its settings as JSON in its first
// argument and commands as lines of JSON on standard input, and answers with lines on standard output. When its input
// closes, it ends.
import os from 'node:os';
import { syncBuiltinESMExports } from 'node:module';
import { createInterface } from 'node:readline';
import type { DLogger } from '../../src/base/log.js';
import { createDBOS } from '../../src/facade/dbos.js';
import { Journal } from './journal.js';
import { armKillPoint, type KillPoint } from './kill-points.js';
import { registerWorkflows, type WorkflowName, type WorkflowSettings } from './workflows.js';

export interface WorkerSettings extends Omit<WorkflowSettings, 'journal'> {
  readonly url: string;
  readonly journalPath: string;
  readonly leaseSeconds?: number;
  readonly killPoint?: KillPoint;
  /** Pretends to run on another machine. */
  readonly host?: string;
  /** How long running workflows are waited for when a signal ends the process. */
  readonly drainMs?: number;
}

export type Command =
  | { readonly do: 'launch' }
  /** Starts a workflow under each of the IDs, an empty one for a fresh ID, and journals handles and results. */
  | { readonly do: 'start'; readonly name: WorkflowName; readonly workflowIDs: readonly string[] }
  /** Resolves when all results have been received. */
  | { readonly do: 'finish' }
  | { readonly do: 'shutdown' };

const settings = JSON.parse(process.argv[2] ?? '{}') as WorkerSettings;
const journal = new Journal(settings.journalPath);
const DBOS = createDBOS();
const workflows = registerWorkflows(DBOS, { ...settings, journal });
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
  applicationVersion: 'v1',
  systemDatabaseUrl: settings.url,
  leaseSeconds: settings.leaseSeconds,
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
