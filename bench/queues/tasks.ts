// What a process does for each command, with whatever library it has.
import type { Socket } from 'node:net';
import { answer, now as moment } from '../engine/commands.js';
import { ServerCounter } from '../engine/statements.js';
import { median, timed } from '../report.js';
import type {
  BulkAnswer,
  BulkCommand,
  IdleAnswer,
  IdleCommand,
  LatencyAnswer,
  LatencyCommand,
  QueueCommand,
  SendCommand,
  ServeAnswer,
  ServeCommand,
  StreamAnswer,
  StreamCommand,
} from './commands.js';
import { type Job, type JobQueue, now, type QueueSettings } from './job-queue.js';

const SETTLE_MS = 2000;
/** The first jobs of a long series are not counted. */
const WARM_UP_SAMPLES = 10;

type Open = (settings: QueueSettings) => Promise<JobQueue>;

/** What the jobs of this process have noted. */
class Record {
  readonly waited: number[] = [];
  ended = 0;
  firstStartedAt: number | null = null;
  lastEndedAt: number | null = null;

  onStart({ sentAt }: Job): void {
    const at = now();
    this.firstStartedAt ??= at;
    this.waited.push(at - sentAt);
  }

  onEnd(): void {
    this.ended += 1;
    this.lastEndedAt = now();
  }

  latency(): LatencyAnswer {
    const counted = this.waited.slice(this.waited.length >= 10 * WARM_UP_SAMPLES ? WARM_UP_SAMPLES : 0);
    counted.sort((a, b) => a - b);
    return {
      samples: counted.length,
      median: median(counted),
      p95: counted[Math.min(counted.length - 1, Math.floor(counted.length * 0.95))] ?? NaN,
    };
  }
}

export async function runTask(open: Open, command: QueueCommand): Promise<void> {
  endWithParent();
  const record = new Record();
  const isServing = !['fill', 'send', 'bulk'].includes(command.task);
  const { url, isTuned = false, concurrency } = command;
  const queues = command.task === 'idle' ? command.queues : 1;
  const queue = await open({ url, isServing, isTuned, concurrency, queues, hooks: record });
  await queue.launch();
  switch (command.task) {
    case 'latency':
      await latency(queue, record, command);
      break;
    case 'send':
      await send(queue, command);
      break;
    case 'fill':
      await queue.enqueueMany(newJobs(command.jobs, command.workMs));
      answer({});
      break;
    case 'serve':
      await serve(queue, record, command);
      break;
    case 'stream':
      await stream(queue, record, command);
      break;
    case 'bulk':
      await bulk(queue, command);
      break;
    case 'idle':
      await idle(command);
      break;
  }
  await queue.close();
}

/** However the parent ends, its end of the pipe closes. */
function endWithParent(): void {
  process.stdin.on('end', () => process.exit()).resume();
  (process.stdin as Socket).unref();
}

function pause(durationMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, durationMs));
}

function newJobs(count: number, workMs = 0): Job[] {
  const sentAt = now();
  return Array.from({ length: count }, () => ({ sentAt, workMs }));
}

async function until(isSo: () => boolean | Promise<boolean>, everyMs: number): Promise<void> {
  while (!(await isSo())) await pause(everyMs);
}

async function send(queue: JobQueue, { samples, gapMs }: Pick<SendCommand, 'samples' | 'gapMs'>): Promise<void> {
  for (let index = 0; index < samples; index += 1) {
    // Of random length, or the pauses could keep step with an interval of polling.
    await pause(gapMs * (1 + Math.random()));
    await queue.enqueue({ sentAt: now(), workMs: 0 });
  }
}

async function latency(queue: JobQueue, record: Record, command: LatencyCommand): Promise<void> {
  await pause(SETTLE_MS / 2);
  await send(queue, command);
  await until(() => record.ended >= command.samples, 20);
  answer(record.latency());
}

async function serve(queue: JobQueue, record: Record, command: ServeCommand): Promise<void> {
  const { jobs, processes } = command;
  const launchedAt = now();
  answer(moment('ready'));
  if (processes === 1) await until(() => record.ended >= jobs, 1);
  // The last jobs have run, but may not be recorded as done. Counting while jobs run would slow them down.
  let seen = -1;
  const isQuiet = (): boolean => {
    const wasQuiet = record.ended === seen;
    seen = record.ended;
    return wasQuiet;
  };
  await until(
    async () => (processes === 1 || isQuiet()) && (await queue.countDone(jobs)) >= jobs,
    processes === 1 ? 1 : 50,
  );
  const { ended, firstStartedAt, lastEndedAt } = record;
  const beganAt = Math.min(launchedAt, firstStartedAt ?? launchedAt);
  answer({
    ...record.latency(),
    count: ended,
    firstStartedAt,
    lastEndedAt,
    drainMs: now() - beganAt,
  } satisfies ServeAnswer);
}

async function stream(queue: JobQueue, record: Record, command: StreamCommand): Promise<void> {
  const { jobs, warmUpJobs, inFlight } = command;
  const enqueueAll = async (count: number): Promise<void> => {
    let left = count;
    const enqueue = async (): Promise<void> => {
      while (left > 0) {
        left -= 1;
        await queue.enqueue({ sentAt: now(), workMs: 0 });
      }
    };
    await Promise.all(Array.from({ length: inFlight }, enqueue));
  };
  const drained = async (count: number): Promise<void> => {
    await until(() => record.ended >= count, 1);
    await until(async () => (await queue.countDone(count)) >= count, 1);
  };
  await enqueueAll(warmUpJobs);
  await drained(warmUpJobs);
  const drainMs = await timed(async () => {
    await enqueueAll(jobs);
    await drained(warmUpJobs + jobs);
  });
  answer({ drainMs } satisfies StreamAnswer);
}

async function bulk(queue: JobQueue, { rows, rounds }: BulkCommand): Promise<void> {
  await queue.enqueueMany(newJobs(rows / 10));
  const elapsedMs: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const jobs = newJobs(rows);
    elapsedMs.push(await timed(() => queue.enqueueMany(jobs)));
  }
  answer({ elapsedMs } satisfies BulkAnswer);
}

async function idle({ url, windowMs }: IdleCommand): Promise<void> {
  const counter = await ServerCounter.connect(url);
  await pause(SETTLE_MS);
  const before = await counter.statements();
  await pause(windowMs);
  const after = await counter.statements();
  answer({ statementsPerMinute: ((after - before) / windowMs) * 60_000 } satisfies IdleAnswer);
  await counter.close();
}
