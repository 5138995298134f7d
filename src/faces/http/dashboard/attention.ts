// What needs attention, the most harmful first. Each item has a reason, and says which page shows more.
import { utcText } from '../../../kernel/base/clock.js';
import { ReceivedLetters } from '../../../features/dead-letter/received-letters.js';
import { getQueueStats, listQueueRecords, type QueueStats } from '../../../features/queue/queues.js';
import { groupFailures } from '../../../features/listing/failures.js';
import { countWorkflows } from '../../../features/listing/listing.js';
import { countOpenWork } from '../../../features/listing/open-work.sql.js';
import { doesServe, type ExecutorRecord, listExecutors } from '../../../features/liveness/executors.sql.js';
import { findPausedQueues } from '../../../features/queue/queues.sql.js';
import type { StoreOperator } from '../source.js';
import type { AdminOutbox } from '../../../plugins/outbox/outbox-view.http.js';
import { migrationsDue } from './schema.js';

export const HARMS = ['high', 'medium', 'low'] as const;
export const ATTENTION_KINDS = [
  'migrations-due',
  'dead-letters',
  'outbox-dead-letters',
  'receiver-dead-letters',
  'silent-executor',
  'unserved-queue',
  'stranded-version',
  'failing-function',
  'paused-queue',
] as const;
export const PAGES = ['workflows', 'queues', 'executors', 'outboxes', 'receivers', 'settings'] as const;

export interface AttentionItem {
  readonly kind: (typeof ATTENTION_KINDS)[number];
  readonly title: string;
  readonly count: number;
  /** Why it needs attention, and what to do. */
  readonly reason: string;
  readonly harm: (typeof HARMS)[number];
  readonly link: { readonly page: (typeof PAGES)[number]; readonly query: Readonly<Record<string, string>> };
}

const DAY_MS = 24 * 60 * 60 * 1000;
const LETTERS_MAX = 100;
const ERROR_SHOWN = 200;

type Outboxes = ReadonlyMap<string, AdminOutbox>;

export async function findAttention(operator: StoreOperator, outboxes: Outboxes): Promise<AttentionItem[]> {
  const { database } = operator;
  const executors = await operator.retrying(() => listExecutors(database));
  const items = [
    ...(await migrationItems(operator)),
    ...(await deadLetterItems(operator)),
    ...(await outboxItems(operator, outboxes)),
    ...(await receiverItems(operator)),
    ...executors.filter(({ isLeaseOver }) => isLeaseOver).map(silentExecutor),
    ...(await queueItems(operator, executors, await getQueueStats(operator))),
    ...(await versionItems(operator, executors)),
    ...(await failingFunctions(operator)),
  ];
  return items.sort((a, b) => HARMS.indexOf(a.harm) - HARMS.indexOf(b.harm) || b.count - a.count);
}

async function migrationItems(operator: StoreOperator): Promise<AttentionItem[]> {
  const count = await migrationsDue(operator);
  if (count === 0) return [];
  const reason = 'The tables are older than this release. Run: everstep migrate';
  return [{ kind: 'migrations-due', title: 'Migrations', count, reason, harm: 'high', link: page('settings') }];
}

async function deadLetterItems(operator: StoreOperator): Promise<AttentionItem[]> {
  const status = 'MAX_RECOVERY_ATTEMPTS_EXCEEDED';
  const count = await countWorkflows(operator, { status });
  if (count === 0) return [];
  const reason =
    'These workflows were started too often without ending. Find out why their process dies, then resume them.';
  return [
    { kind: 'dead-letters', title: 'Dead letters', count, reason, harm: 'high', link: page('workflows', { status }) },
  ];
}

async function outboxItems({ logger }: StoreOperator, outboxes: Outboxes): Promise<AttentionItem[]> {
  const items: AttentionItem[] = [];
  for (const [outbox, broker] of outboxes) {
    try {
      for (const { queue, deadLetters: count } of await broker.statistics()) {
        if (count === 0) continue;
        const reason = 'These messages failed until their attempts were used up. Fix the cause, then requeue them.';
        const link = page('outboxes', { outbox, topic: queue });
        items.push({ kind: 'outbox-dead-letters', title: `${outbox}: ${queue}`, count, reason, harm: 'high', link });
      }
    } catch (error) {
      // One unreachable database must not hide everything else.
      logger.warn(`The dead letters of outbox "${outbox}" are missing: ${String(error)}`);
    }
  }
  return items;
}

async function receiverItems(operator: StoreOperator): Promise<AttentionItem[]> {
  const { letters } = await operator.retrying(() => new ReceivedLetters(operator).list({ limit: LETTERS_MAX }));
  const counts = new Map<string, number>();
  for (const { functionName } of letters) counts.set(functionName, (counts.get(functionName) ?? 0) + 1);
  const reason =
    'These messages could not become workflows. Requeue them in the process that receives, or discard them.';
  return [...counts].map(([functionName, count]) => ({
    kind: 'receiver-dead-letters',
    title: functionName,
    count,
    reason,
    harm: 'high',
    link: page('receivers', { functionName }),
  }));
}

function silentExecutor({ executorID, host, pid, leaseUntil }: ExecutorRecord): AttentionItem {
  const reason =
    `The lease of process ${pid} on ${host} expired at ${utcText(leaseUntil)}, and no other process has ` +
    'taken over its workflows. Start a process of its version.';
  return { kind: 'silent-executor', title: executorID, count: 1, reason, harm: 'high', link: page('executors') };
}

async function queueItems(
  operator: StoreOperator,
  executors: readonly ExecutorRecord[],
  queues: readonly QueueStats[],
): Promise<AttentionItem[]> {
  const waiting = queues.filter(({ enqueued }) => enqueued > 0);
  if (waiting.length === 0) return [];
  const paused = await operator.retrying(() => findPausedQueues(operator.database));
  const stored = new Set((await listQueueRecords(operator)).map(({ name }) => name));
  const live = executors.filter(({ isLeaseOver }) => !isLeaseOver);
  return waiting.flatMap(({ queueName, enqueued: count }): AttentionItem[] => {
    const item = { title: queueName, count, link: page('queues', { queueName }) };
    if (paused.has(queueName)) {
      return [
        { ...item, kind: 'paused-queue', reason: 'The queue is paused. Resume it when you are ready.', harm: 'low' },
      ];
    }
    if (live.some((executor) => doesServe(executor, queueName, stored.has(queueName)))) return [];
    const reason = 'No live process serves the queue. Start one that does, or register the queue.';
    return [{ ...item, kind: 'unserved-queue', reason, harm: 'high' }];
  });
}

/** Versions with work left that no live process runs. */
async function versionItems(operator: StoreOperator, executors: readonly ExecutorRecord[]): Promise<AttentionItem[]> {
  const work = await operator.retrying(() => countOpenWork(operator.database, operator.applicationName));
  const live = executors.filter(({ isLeaseOver }) => !isLeaseOver);
  return work.flatMap(
    ({ applicationName, applicationVersion: version, enqueued, delayed, running }): AttentionItem[] => {
      const isRun = live.some(
        (one) =>
          one.applicationVersion === version && (applicationName === null || one.applicationName === applicationName),
      );
      if (version === null || isRun) return [];
      const reason =
        'No live process runs this version, but workflows of it are left. Start one, or fork the workflows to another version.';
      const link = page('workflows', { applicationVersion: version });
      const count = enqueued + delayed + running;
      return [{ kind: 'stranded-version', title: version, count, reason, harm: 'medium', link }];
    },
  );
}

/** The failures of the last day, by function and kind of error. */
async function failingFunctions(operator: StoreOperator): Promise<AttentionItem[]> {
  const since = Math.floor(operator.databaseClock.now()) - DAY_MS;
  const startTime = new Date(since).toISOString();
  return (await groupFailures(operator, since)).map(({ name, error, count }) => ({
    kind: 'failing-function',
    title: name,
    count,
    reason: error.length > ERROR_SHOWN ? `${error.slice(0, ERROR_SHOWN)}…` : error,
    harm: 'medium',
    link: page('workflows', { workflowName: name, status: 'ERROR', startTime }),
  }));
}

function page(
  name: AttentionItem['link']['page'],
  query: Readonly<Record<string, string>> = {},
): AttentionItem['link'] {
  return { page: name, query };
}
