// The parent's side: processes that enqueue and work, and what to do when one gets stuck.
import { compiledPath, peerPath } from '../engine/preparations.js';
import { ScriptProcess } from '../engine/workers.js';
import type { QueueCommand, QueueEngine } from './commands.js';

const MODULES: Readonly<Record<QueueEngine, readonly string[]>> = {
  everstep: [],
  'dbos-5': ['dbos-5', 'dbos-5/eventreceiver'],
  'graphile-worker': ['graphile-worker'],
  'pg-boss': ['pg-boss'],
};
/** A process that takes longer is given up; its figure is missing then. */
const ANSWER_MAX_MS = 45_000;

/** Runs `body` with processes that are gone when it ends. */
export async function withProcesses<Result>(
  body: (start: (engine: QueueEngine, command: QueueCommand) => ScriptProcess) => Promise<Result>,
): Promise<Result> {
  const started: ScriptProcess[] = [];
  const start = (engine: QueueEngine, command: QueueCommand): ScriptProcess => {
    const paths = Object.fromEntries(MODULES[engine].map((name) => [name, peerPath(name)]));
    const script = compiledPath(new URL('./worker.ts', import.meta.url));
    const child = new ScriptProcess(script, [engine, JSON.stringify(command), JSON.stringify(paths)]);
    started.push(child);
    return child;
  };
  let timer: NodeJS.Timeout | undefined;
  const isTooLate = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${ANSWER_MAX_MS / 1000} s`)), ANSWER_MAX_MS);
  });
  try {
    return await Promise.race([body(start), isTooLate]);
  } finally {
    clearTimeout(timer);
    for (const child of started) child.kill();
    await Promise.all(started.map((child) => child.gone));
  }
}

/** Has a process carry out a command. */
export function askQueue<Answer>(engine: QueueEngine, command: QueueCommand): Promise<Answer> {
  return withProcesses((start) => start(engine, command).next<Answer>());
}

/** Says what is measured now, and goes on without the figure if that fails. */
export async function attempt<Answer>(what: string, measure: () => Promise<Answer>): Promise<Answer | undefined> {
  console.error(`· ${Math.round(process.uptime())} s: ${what}`);
  try {
    return await measure();
  } catch (error) {
    console.error(`  ${what} was not measured: ${(error as Error).message}`);
    return undefined;
  }
}
