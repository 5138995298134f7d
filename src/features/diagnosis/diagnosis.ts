// Checks a database for problems: dead executors, workflows that no process will claim, dead letters, clock skew. Each
// finding says what to do about it.
import type { WorkflowRecord } from '../../kernel/workflow/records.js';
import { IN_FLIGHT_STATUSES } from '../../kernel/workflow/status.js';
import { toWorkflowQuery } from '../listing/workflow-query.js';
import { listWorkflows } from '../listing/listing.sql.js';
import { doesServe, type ExecutorRecord, listExecutors } from '../liveness/executors.sql.js';
import type { Database } from '../../database/database.js';
import { SqliteDatabase } from '../../database/sqlite/sqlite-database.js';
import { describeBug, hasWalResetBug, REMEDY } from '../../database/sqlite/wal-reset-bug.js';
import { faultOfClock } from './clock-difference.js';
import { findPausedQueues } from '../queue/queues.sql.js';
import type { Capability } from '../../database/postgres/capabilities.js';
import { findPartitionFaults } from '../retention/partitioned-tables.sql.js';
import { readNow } from '../../database/now.js';
import { type ExplanationReason, explainWorkflow, type WorkflowExplanation } from './explain.js';
import { adviseIndexes, type OptionalIndex } from '../listing/indexes.js';
import { countWorkflows } from '../listing/listing.js';
import { type Operator, queryTimeoutMs } from '../../operator/operator.js';
import { getQueueStats, listQueueRecords, type QueueStats } from '../queue/queues.js';

/** A problem needs action; a notice does not. */
export interface Finding {
  readonly kind: 'problem' | 'notice';
  readonly subject: 'clock' | 'server' | 'indexes' | 'partitions' | 'executor' | 'queue' | 'workflow' | 'dead-letters';
  readonly message: string;
}

export interface Diagnosis {
  /** How far this process's clock is ahead of the database's. */
  readonly clockAheadMs: number;
  /** What the server has of that which Everstep uses; empty for SQLite. */
  readonly capabilities: readonly Capability[];
  readonly executors: readonly ExecutorRecord[];
  readonly queues: readonly QueueStats[];
  readonly deadLetters: number;
  /** The workflows that have waited or run longest, and why. */
  readonly oldest: readonly WorkflowExplanation[];
  readonly findings: readonly Finding[];
}

/** Workflows examined per status. */
const OLDEST = 5;
/** A workflow that was just claimed or enqueued is not stuck yet. */
const STUCK_MS = 10_000;

/** Reasons that need action: without it, the workflow stays where it is. */
const STUCK: ReadonlySet<ExplanationReason> = new Set<ExplanationReason>([
  'diverged',
  'executor-gone',
  'queue-not-served',
  'no-partition-key',
  'no-executor-of-application',
  'no-executor-of-version',
  'function-not-registered',
  'format-not-readable',
]);

/** `schema` is that of the system tables. */
export async function diagnose(operator: Operator, schema = 'dbos'): Promise<Diagnosis> {
  const { database, clock } = operator;
  const sentAt = clock.now();
  const { now } = await operator.retrying(() => readNow(database));
  const clockAheadMs = Math.round((sentAt + clock.now()) / 2 - now);
  // Loaded with `pg`, which takes long.
  const { probeCapabilities } = await import('../../database/postgres/capabilities.js');
  const capabilities = await operator.retrying(() => probeCapabilities(database, schema));
  const executors = await operator.retrying(() => listExecutors(database));
  const queues = await getQueueStats(operator);
  const deadLetters = await countWorkflows(operator, { status: 'MAX_RECOVERY_ATTEMPTS_EXCEEDED' });
  const oldest = await explainOldest(operator, now);
  const faults = await operator.retrying(() => findPartitionFaults(database));
  const findings = [
    ...faults.map((message): Finding => ({ kind: 'problem', subject: 'partitions', message })),
    ...judgeClock(clockAheadMs),
    ...judgeSqlite(database, executors),
    ...capabilities.filter(({ isAvailable }) => !isAvailable).map(lackingCapability),
    ...executors.filter(({ isLeaseOver }) => isLeaseOver).map((executor) => deadExecutor(executor, now)),
    ...(await judgeQueues(operator, queues, executors)),
    ...oldest.filter(({ reason }) => STUCK.has(reason)).map(stuckWorkflow),
    ...judgeDeadLetters(deadLetters),
    ...judgeIndexes(await adviseIndexes(operator)),
  ];
  return { clockAheadMs, capabilities, executors, queues, deadLetters, oldest, findings };
}

async function explainOldest(operator: Operator, now: number): Promise<WorkflowExplanation[]> {
  const oldest: WorkflowRecord[] = [];
  for (const status of IN_FLIGHT_STATUSES) {
    const query = toWorkflowQuery({ limit: OLDEST, loadInput: false, loadOutput: false }, operator.applicationName);
    // Not the parked ones: they may be older than all others, and nothing is wrong with them.
    const filter = { ...query.filter, states: [status] };
    const found = () => listWorkflows(operator.database, { ...query, filter }, queryTimeoutMs(operator));
    oldest.push(...(await operator.retrying(found)));
  }
  const explanations: WorkflowExplanation[] = [];
  for (const { workflowID, startedAt, updatedAt } of oldest) {
    if (now - Math.max(startedAt ?? 0, updatedAt) < STUCK_MS) continue;
    explanations.push(await explainWorkflow(operator, workflowID));
  }
  return explanations;
}

function judgeClock(clockAheadMs: number): Finding[] {
  const message = faultOfClock(clockAheadMs);
  return message === undefined ? [] : [{ kind: 'problem', subject: 'clock', message }];
}

/** Of the library of this process; the others usually have the same. */
function judgeSqlite(database: Database, executors: readonly ExecutorRecord[]): Finding[] {
  if (!(database instanceof SqliteDatabase) || !hasWalResetBug(database.library.version)) return [];
  const live = executors.filter(({ isLeaseOver }) => !isLeaseOver);
  const isShared = new Set(live.map(({ host, pid }) => `${pid} ${host}`)).size > 1;
  const message = `${describeBug(database.library)}${isShared ? ', as is the case here' : ''}. ${REMEDY}`;
  return [{ kind: isShared ? 'problem' : 'notice', subject: 'server', message }];
}

function judgeIndexes(advised: readonly OptionalIndex[]): Finding[] {
  const [first] = advised;
  if (first === undefined) return [];
  const message =
    `Lists with the filter ${advised.join(' or ')} may read much of the history, because some values are rare. ` +
    `If you often use one, build its index, such as: everstep index create ${first}`;
  return [{ kind: 'notice', subject: 'indexes', message }];
}

function lackingCapability({ name, without }: Capability): Finding {
  return { kind: 'notice', subject: 'server', message: `The server lacks ${name}, or denies them. ${without}` };
}

function deadExecutor({ executorID, host, pid, leaseUntil }: ExecutorRecord, now: number): Finding {
  const seconds = Math.round((now - leaseUntil) / 1000);
  const message =
    `The lease of executor "${executorID}" (process ${pid} on ${host}) expired ${seconds} s ago, and no other process ` +
    'has taken over its workflows. Start a process of its version.';
  return { kind: 'problem', subject: 'executor', message };
}

async function judgeQueues(
  operator: Operator,
  queues: readonly QueueStats[],
  executors: readonly ExecutorRecord[],
): Promise<Finding[]> {
  const paused = await operator.retrying(() => findPausedQueues(operator.database));
  const stored = new Set((await listQueueRecords(operator)).map(({ name }) => name));
  const live = executors.filter(({ isLeaseOver }) => !isLeaseOver);
  return queues.flatMap(({ queueName, enqueued }): Finding[] => {
    if (enqueued === 0) return [];
    if (paused.has(queueName)) {
      const message = `Queue "${queueName}" is paused with ${enqueued} workflow(s) waiting. Resume it when you are ready.`;
      return [{ kind: 'notice', subject: 'queue', message }];
    }
    if (live.some((executor) => doesServe(executor, queueName, stored.has(queueName)))) return [];
    const message =
      `${enqueued} workflow(s) wait in queue "${queueName}", but no live process serves it. ` +
      'Start one that does, or register the queue.';
    return [{ kind: 'problem', subject: 'queue', message }];
  });
}

function stuckWorkflow({ workflowID, message }: WorkflowExplanation): Finding {
  return { kind: 'problem', subject: 'workflow', message: `Workflow "${workflowID}" is stuck: ${message}` };
}

function judgeDeadLetters(count: number): Finding[] {
  if (count === 0) return [];
  const message =
    `${count} dead letter(s): workflows that were started too often without ending. ` +
    'Find out why their process dies, then resume or delete them.';
  return [{ kind: 'problem', subject: 'dead-letters', message }];
}
