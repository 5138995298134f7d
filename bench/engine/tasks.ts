// What a worker process does for each command, with whatever library it has.
import type { Socket } from 'node:net';
import { median } from '../report.js';
import {
  answer,
  type Command,
  type IdleAnswer,
  type IdleCommand,
  type LatencyAnswer,
  type LatencyCommand,
  type LoadAnswer,
  type LoadCommand,
  type LoneAnswer,
  type LoneCommand,
  type SleepersAnswer,
  type SleepersCommand,
} from './commands.js';
import type { Extras } from './extras.js';
import type { Library } from './library.js';
import { hold, recover, watch } from './recovery-tasks.js';
import { ServerCounter } from './statements.js';
import { tails } from './tail-task.js';
import { configure, pause, ratePerSecond, registerWorkload } from './workload.js';

const IN_FLIGHT = 100;
const WARM_UP_MS = 1000;
const SETTLE_MS = 2000;

export async function runTask(library: Library, command: Command, extras?: Extras): Promise<void> {
  endWithParent();
  configure(library, command.url);
  switch (command.task) {
    case 'load':
      return load(library, command, extras);
    case 'latency':
      return latency(library, command);
    case 'tails':
      if (!extras) throw new Error('only the driver of Everstep is observed');
      return tails(library, command, extras);
    case 'lone':
      return lone(library, command, extras);
    case 'hold':
      return hold(library, command.workflows);
    case 'recover':
      return recover(library, command, extras);
    case 'watch':
      return watch(library);
    case 'idle':
      return idle(library, command, extras);
    case 'sleepers':
      return sleepers(library, command);
  }
}

/** However the parent ends, its end of the pipe closes. */
function endWithParent(): void {
  process.stdin.on('end', () => process.exit()).resume();
  (process.stdin as Socket).unref();
}

/** A counter on the server, or undefined for SQLite. */
function connectCounter(url: string): Promise<ServerCounter> | undefined {
  return url.startsWith('postgresql:') ? ServerCounter.connect(url) : undefined;
}

async function load(library: Library, command: LoadCommand, extras: Extras | undefined): Promise<void> {
  const { steps: stepCount, rounds, roundMs, byHand } = command;
  const { steps } = registerWorkload(library);
  const counter = await connectCounter(command.url);
  await library.launch();
  const run = (durationMs: number) => ratePerSecond(IN_FLIGHT, durationMs, () => steps(stepCount));
  const runByHand = async (durationMs: number): Promise<number[]> =>
    byHand && extras ? [await extras.rateByHand({ inFlight: IN_FLIGHT, steps: stepCount, durationMs })] : [];
  await run(WARM_UP_MS);
  await runByHand(WARM_UP_MS);
  const rates: number[] = [];
  const byHandRates: number[] = [];
  let workflows = 0;
  let statements = 0;
  for (let round = 0; round < rounds; round += 1) {
    statements -= (await counter?.statements()) ?? 0;
    const { count, rate } = await run(roundMs);
    statements += (await counter?.statements()) ?? 0;
    workflows += count;
    rates.push(rate);
    byHandRates.push(...(await runByHand(roundMs)));
  }
  answer({ rates, byHandRates, statementsPerWorkflow: statements / workflows } satisfies LoadAnswer);
  await library.shutdown();
  await counter?.close();
}

async function latency(library: Library, command: LatencyCommand): Promise<void> {
  const { caseMs } = command;
  const { steps } = registerWorkload(library);
  await library.launch();
  const measure = async (count: number, durationMs: number): Promise<number[]> => {
    const endsAt = performance.now() + durationMs;
    const measured: number[] = [];
    while (performance.now() < endsAt) {
      const startedAt = performance.now();
      await steps(count);
      measured.push(performance.now() - startedAt);
    }
    return measured.sort((a, b) => a - b);
  };
  const cases = [];
  for (const count of command.steps) {
    // A tail of cold code would be the compiler's.
    await measure(count, WARM_UP_MS);
    const measured = await measure(count, caseMs);
    cases.push({ steps: count, median: median(measured), p99: measured[Math.floor(measured.length * 0.99)] ?? NaN });
  }
  answer({ cases } satisfies LatencyAnswer);
  await library.shutdown();
}

async function lone(library: Library, command: LoneCommand, extras: Extras | undefined): Promise<void> {
  if (!extras) throw new Error('only the driver of Everstep is counted');
  const { counts } = extras;
  const { steps } = registerWorkload(library);
  await library.launch();
  await pause(SETTLE_MS);
  const cases = [];
  for (const count of command.steps) {
    // A heartbeat may come in between; the median is without it.
    const commits: number[] = [];
    const reads: number[] = [];
    for (let round = 0; round < 21; round += 1) {
      const before = { ...counts };
      await steps(count);
      commits.push(counts.commits - before.commits);
      reads.push(counts.reads - before.reads);
    }
    cases.push({ steps: count, commits: median(commits), reads: median(reads) });
  }
  answer({ cases } satisfies LoneAnswer);
  await library.shutdown();
}

async function idle(library: Library, { url, windowMs }: IdleCommand, extras: Extras | undefined): Promise<void> {
  registerWorkload(library);
  const counter = await connectCounter(url);
  const statements = async (): Promise<number> =>
    counter ? counter.statements() : (extras?.counts.statementsBesides ?? NaN);
  await library.launch();
  await pause(SETTLE_MS);
  const before = await statements();
  await pause(windowMs);
  answer({ statementsPerMinute: (((await statements()) - before) / windowMs) * 60_000 } satisfies IdleAnswer);
  await library.shutdown();
  await counter?.close();
}

async function sleepers(library: Library, { workflows }: SleepersCommand): Promise<void> {
  const { sleeper } = registerWorkload(library);
  await library.launch();
  const start = async (count: number): Promise<void> => {
    for (let started = 0; started < count; started += IN_FLIGHT) {
      await Promise.all(Array.from({ length: IN_FLIGHT }, () => library.startWorkflow(sleeper)()));
    }
    await pause(SETTLE_MS);
    global.gc?.();
  };
  // The first ones fill caches that all share.
  await start(5 * IN_FLIGHT);
  const before = process.memoryUsage().heapUsed;
  await start(workflows);
  const heapBytes = process.memoryUsage().heapUsed - before;
  answer({ heapBytesPerWorkflow: heapBytes / workflows } satisfies SleepersAnswer);
  // They would sleep for an hour.
  process.exit();
}
