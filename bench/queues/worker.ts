// A process that carries out one command with one library. Arguments: the library, the command, and where peers are.
import type { QueueCommand, QueueEngine } from './commands.js';
import type { JobQueue, QueueSettings } from './job-queue.js';
import { runTask } from './tasks.js';

// Each is imported only where it is measured.
const OPEN: Readonly<Record<QueueEngine, (settings: QueueSettings) => Promise<JobQueue>>> = {
  everstep: async (settings) => (await import('./everstep-queue.js')).openEverstep(settings),
  'dbos-5': async (settings) => (await import('./dbos-queue.js')).openDbos(settings),
  'graphile-worker': async (settings) => (await import('./graphile-queue.js')).openGraphile(settings),
  'pg-boss': async (settings) => (await import('./pg-boss-queue.js')).openPgBoss(settings),
};

await runTask(OPEN[process.argv[2] as QueueEngine], JSON.parse(process.argv[3] ?? '') as QueueCommand);
// Some libraries leave timers behind.
process.exit();
