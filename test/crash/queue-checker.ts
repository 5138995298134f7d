// Holds what jobs of a queue have done against the limits of the queue: none was exceeded at any instant, and no room was
// left empty for long while a job that could have used it was waiting.
import type { QueueSettings, QueueRateLimit } from '../../src/features/queue/queue.js';
import type { Tables } from './invariants.js';
import { type Line, linesOf } from './journal.js';

/** When a job waited and ran, and where. Its place in the queue is taken from its start to its end. */
export interface JobTimes {
  readonly workflowID: string;
  readonly partitionKey: string | null;
  readonly process: number;
  readonly waitsFrom: number;
  readonly startedAt: number;
  readonly endedAt: number;
}

/**
 * The jobs of a queue by its rows, and so by the database's clock: a row is claimed in the commit that sets its start, and
 * its place is free after the commit that sets its end.
 */
export function jobsByRows(tables: Tables, lines: readonly Line[], queueName: string): JobTimes[] {
  const processes = new Map(linesOf(lines, 'step').map(({ token, pid }) => [token, pid]));
  return [...tables.workflows.values()]
    .filter((workflow) => workflow.queueName === queueName)
    .map((workflow) => ({
      workflowID: workflow.workflowID,
      partitionKey: workflow.queuePartitionKey,
      process: processes.get((workflow.value as string[] | null)?.[0] ?? '') ?? 0,
      waitsFrom: workflow.createdAt,
      startedAt: workflow.startedAt ?? Infinity,
      endedAt: workflow.completedAt ?? Infinity,
    }));
}

/**
 * The same by what the bodies of the steps have seen, each of their executions by itself. It lies within the time in which
 * the place was taken. A body that was killed lasted at least until the last line of its process.
 */
export function jobsByJournal(jobs: readonly JobTimes[], lines: readonly Line[]): JobTimes[] {
  const byID = new Map(jobs.map((job) => [job.workflowID, job]));
  const ends = linesOf(lines, 'ended');
  const lastSeen = new Map<number, number>();
  for (const { pid, at } of [...linesOf(lines, 'step'), ...ends]) {
    lastSeen.set(pid, Math.max(at, lastSeen.get(pid) ?? 0));
  }
  return linesOf(lines, 'step').flatMap(({ workflowID, pid, at }) => {
    const job = byID.get(workflowID);
    const end = ends.find((line) => line.workflowID === workflowID && line.pid === pid && line.at >= at);
    return job ? [{ ...job, process: pid, startedAt: at, endedAt: end?.at ?? lastSeen.get(pid) ?? at }] : [];
  });
}

/** Where a limit was exceeded: at which time, and by whom. */
export function excessesOf(jobs: readonly JobTimes[], limits: QueueSettings): string[] {
  const { globalConcurrency, workerConcurrency, partitionConcurrency, partitionWorkerConcurrency } = limits;
  return [
    ...overfull('the queue', [jobs], globalConcurrency),
    ...overfull('a process', groupsOf(jobs, processOf), workerConcurrency),
    ...overfull('a partition', groupsOf(jobs, partitionOf), partitionConcurrency),
    ...overfull(
      'a partition in a process',
      groupsOf(jobs, (job) => `${processOf(job)} ${partitionOf(job)}`),
      partitionWorkerConcurrency,
    ),
    ...tooFrequent('the queue', [jobs], limits.rateLimit),
    ...tooFrequent('a partition', groupsOf(jobs, partitionOf), limits.partitionRateLimit),
  ];
}

const processOf = ({ process }: JobTimes): string => String(process);
const partitionOf = ({ partitionKey }: JobTimes): string => partitionKey ?? '';

function groupsOf(jobs: readonly JobTimes[], keyOf: (job: JobTimes) => string): JobTimes[][] {
  const groups = new Map<string, JobTimes[]>();
  for (const job of jobs) groups.set(keyOf(job), [...(groups.get(keyOf(job)) ?? []), job]);
  return [...groups.values()];
}

function overfull(where: string, groups: readonly (readonly JobTimes[])[], max: number | undefined): string[] {
  if (max === undefined) return [];
  return groups.flatMap((jobs) => {
    // Who starts in the millisecond in which another one ends may have taken its place.
    const running = jobs.flatMap((job) => {
      const together = jobs.filter((other) => other.startedAt <= job.startedAt && other.endedAt > job.startedAt);
      return together.length > max ? [{ at: job.startedAt, together }] : [];
    });
    const worst = running.sort((a, b) => b.together.length - a.together.length)[0];
    return worst
      ? [`${where} ran ${worst.together.length} instead of ${max} at ${worst.at}: ${listed(worst.together)}`]
      : [];
  });
}

function tooFrequent(
  where: string,
  groups: readonly (readonly JobTimes[])[],
  rate: QueueRateLimit | undefined,
): string[] {
  if (!rate) return [];
  const { limitPerPeriod, periodSec } = rate;
  return groups.flatMap((jobs) => {
    const sorted = [...jobs].sort((a, b) => a.startedAt - b.startedAt);
    return sorted.flatMap((job, index) => {
      const first = sorted[index - limitPerPeriod];
      if (!first || job.startedAt - first.startedAt >= periodSec * 1000) return [];
      const together = sorted.slice(index - limitPerPeriod, index + 1);
      return [
        `${where} started ${together.length} instead of ${limitPerPeriod} in ${periodSec} s: ${listed(together)}`,
      ];
    });
  });
}

function listed(jobs: readonly JobTimes[]): string {
  return jobs
    .slice(0, 12)
    .map((job) => `${job.workflowID} (process ${job.process}, ${job.startedAt} to ${job.endedAt})`)
    .join(', ');
}

export interface IdleOptions {
  /** The processes that serve the queue all the time. */
  readonly processes: readonly number[];
  readonly maxMs?: number;
}

/** Where a job could have started and none of its partition did for longer than `maxMs`. */
export function idlenessOf(jobs: readonly JobTimes[], limits: QueueSettings, options: IdleOptions): string[] {
  const { maxMs = 1000 } = options;
  return groupsOf(jobs, partitionOf).flatMap((group) => {
    const starts = new Set(group.map(({ startedAt }) => startedAt));
    let since: number | undefined;
    return instantsOf(jobs, limits).flatMap((at, index, all) => {
      const isIdle = couldStart(at, { group, jobs }, limits, options);
      if (!isIdle || starts.has(at)) since = undefined;
      if (!isIdle) return [];
      since ??= at;
      const until = all[index + 1] ?? Infinity;
      if (until - since <= maxMs) return [];
      const [from, key] = [since, group[0]?.partitionKey];
      since = until;
      return [`nothing of partition ${key} started from ${from} to ${until} although there was room and work`];
    });
  });
}

/** The times at which anything may have changed. */
function instantsOf(jobs: readonly JobTimes[], { rateLimit, partitionRateLimit }: QueueSettings): number[] {
  const periods = [rateLimit, partitionRateLimit].flatMap((rate) => (rate ? [rate.periodSec * 1000] : []));
  const times = jobs.flatMap(({ waitsFrom, startedAt, endedAt }) => [
    waitsFrom,
    startedAt,
    endedAt,
    ...periods.map((periodMs) => startedAt + periodMs),
  ]);
  return [...new Set(times)].filter(Number.isFinite).sort((a, b) => a - b);
}

/** Whether one more job of the group could start at this time. */
function couldStart(
  at: number,
  { group, jobs }: { readonly group: readonly JobTimes[]; readonly jobs: readonly JobTimes[] },
  limits: QueueSettings,
  { processes }: IdleOptions,
): boolean {
  if (!group.some((job) => job.waitsFrom <= at && at < job.startedAt)) return false;
  const runs = (job: JobTimes): boolean => job.startedAt <= at && at < job.endedAt;
  const [running, inPartition] = [jobs.filter(runs), group.filter(runs)];
  const hasRoom = (some: readonly JobTimes[], max = Infinity): boolean => some.length < max;
  const hasRate = (some: readonly JobTimes[], rate?: QueueRateLimit): boolean =>
    !rate || hasRoom(startedWithin(some, at, rate), rate.limitPerPeriod);
  return (
    hasRoom(running, limits.globalConcurrency) &&
    hasRoom(inPartition, limits.partitionConcurrency) &&
    hasRate(jobs, limits.rateLimit) &&
    hasRate(group, limits.partitionRateLimit) &&
    processes.some(
      (process) =>
        hasRoom(
          running.filter((job) => job.process === process),
          limits.workerConcurrency,
        ) &&
        hasRoom(
          inPartition.filter((job) => job.process === process),
          limits.partitionWorkerConcurrency,
        ),
    )
  );
}

function startedWithin(jobs: readonly JobTimes[], at: number, { periodSec }: QueueRateLimit): JobTimes[] {
  return jobs.filter(({ startedAt }) => startedAt <= at && startedAt > at - periodSec * 1000);
}
