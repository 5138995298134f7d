// Explains the status of a workflow, such as why it has not started: as text for people and data for programs.
import { utcText } from '../../kernel/base/clock.js';
import { functionKey, instanceKey } from '../../kernel/workflow/function-key.js';
import { limitsOf, type Limits, type QueueLimits, INTERNAL_QUEUE } from '../queue/queue.js';
import type { WorkflowRecord } from '../../kernel/workflow/records.js';
import { asSeen } from '../parking/parked.sql.js';
import { findRemainder } from '../queue/claims.sql.js';
import type { Database } from '../../database/database.js';
import { doesServe, listPeers, type Peer, servicesOf } from '../liveness/executors.sql.js';
import { findPausedQueues, findQueue } from '../queue/queues.sql.js';
import { countAhead, countQueues } from '../queue/queue-stats.sql.js';
import { listVersions } from '../version/versions.sql.js';
import { findCancellations } from '../history/cancellations.sql.js';
import { isDivergedToken, isEngineToken } from '../../run/rows/owner-tokens.js';
import { findWorkflows } from '../../run/rows/workflows.js';
import type { Operator } from '../../operator/operator.js';
import { explainParked } from '../parking/explain-parked.js';
import { explainWaiting } from '../parking/explain-waiting.js';

export type ExplanationReason =
  | 'not-found'
  | 'succeeded'
  | 'failed'
  | 'cancelled'
  | 'dead-lettered'
  | 'running'
  | 'waiting'
  | 'diverged'
  | 'executor-gone'
  | 'run-by-another-library'
  | 'delayed'
  | 'parked'
  | 'paused'
  | 'queue-not-served'
  | 'no-partition-key'
  | 'no-executor-of-application'
  | 'no-executor-of-version'
  | 'function-not-registered'
  | 'format-not-readable'
  | 'concurrency'
  | 'worker-concurrency'
  | 'rate-limit'
  | 'partition-concurrency'
  | 'partition-worker-concurrency'
  | 'partition-rate-limit'
  | 'waiting-its-turn'
  | 'about-to-start';

export interface WorkflowExplanation {
  readonly workflowID: string;
  /** Null if the workflow does not exist. */
  readonly status: WorkflowRecord['status'] | null;
  readonly reason: ExplanationReason;
  /** An explanation for people. */
  readonly message: string;
  /** The numbers and names behind it. */
  readonly details: Readonly<Record<string, unknown>>;
}

type Finding = Omit<WorkflowExplanation, 'workflowID' | 'status'>;

const AHEAD_MAX = 100_000;
const ADOPTING = 'take over what it left: everstep migrate --adopt';

/** Explains the workflow's status, and what to do about it. */
export function explainWorkflow(operator: Operator, workflowID: string): Promise<WorkflowExplanation> {
  return operator.retrying(() => explain(operator, workflowID));
}

async function explain(operator: Operator, workflowID: string): Promise<WorkflowExplanation> {
  const { database } = operator;
  const [workflow] = await findWorkflows(database, [workflowID]);
  if (!workflow) {
    const message = `Workflow "${workflowID}" not found.`;
    return { workflowID, status: null, reason: 'not-found', message, details: {} };
  }
  const finding =
    workflow.status === 'ENQUEUED' ? await explainQueued(operator, workflow) : await explainOther(operator, workflow);
  return { workflowID, status: asSeen(workflow).status, ...finding };
}

async function explainOther(operator: Operator, workflow: WorkflowRecord): Promise<Finding> {
  const { database } = operator;
  const { completedAt, recoveryAttempts } = workflow;
  switch (workflow.status) {
    case 'SUCCESS':
      return found('succeeded', `It ended ${at(completedAt)} with a result.`, { completedAt });
    case 'ERROR':
      return found('failed', `It ended ${at(completedAt)} with an error. Fork it to retry.`, { completedAt });
    case 'CANCELLED':
      return explainCancelled(database, workflow);
    case 'MAX_RECOVERY_ATTEMPTS_EXCEEDED':
      return found(
        'dead-lettered',
        `It was started ${recoveryAttempts} times without ending, so it became a dead letter ${at(completedAt)}. ` +
          'Find out why its process dies, then resume it.',
        { recoveryAttempts, completedAt },
      );
    case 'DELAYED':
      return (await explainParked(database, workflow)) ?? explainDelayed(workflow);
    default:
      return explainRunning(operator, workflow);
  }
}

function explainDelayed({ delayUntil }: WorkflowRecord): Finding {
  return found('delayed', `It is delayed until ${time(delayUntil)}.`, { delayUntil });
}

async function explainCancelled(database: Database, { workflowID, completedAt }: WorkflowRecord): Promise<Finding> {
  const cancellation = (await findCancellations(database, [workflowID])).get(workflowID);
  const { isTimeout = false, reason = null, actor = null } = cancellation ?? {};
  const what = isTimeout ? 'It timed out' : 'It was cancelled';
  const who = actor === null ? '' : ` by ${actor}`;
  const why = reason === null ? '' : ` (${reason})`;
  return found('cancelled', `${what} ${at(completedAt)}${who}${why}. Resume it to continue.`, {
    completedAt,
    ...(cancellation && { isTimeout }),
    ...(reason !== null && { reason }),
    ...(actor !== null && { actor }),
  });
}

async function explainRunning(operator: Operator, workflow: WorkflowRecord): Promise<Finding> {
  const { owner, executorID, startedAt, applicationVersion } = workflow;
  const details = { executorID, startedAt };
  // Processes of other libraries are not listed.
  if (!isEngineToken(owner)) {
    return found(
      'run-by-another-library',
      `Another library, such as DBOS, has run it on executor "${executorID}" of version "${applicationVersion}" since ` +
        `${time(startedAt)}. If that process has ended, ${ADOPTING}.`,
      { ...details, applicationVersion },
    );
  }
  const peers = await listPeers(operator.database);
  const isAlive = peers.some((peer) => !peer.isLeaseOver && owner.startsWith(`${peer.incarnationID}.`));
  if (isAlive) {
    if (isDivergedToken(owner)) return explainDiverged(workflow);
    const waiting = await explainWaiting(operator, workflow);
    if (waiting) return waiting;
    return found('running', `It has been running on executor "${executorID}" since ${time(startedAt)}.`, details);
  }
  const message =
    `It was claimed by executor "${executorID}", whose process is dead. Any live process of version ` +
    `"${applicationVersion}" will take it over.`;
  return found('executor-gone', message, details);
}

function explainDiverged({ executorID, applicationVersion }: WorkflowRecord): Finding {
  const message =
    `Its code on executor "${executorID}" does something else than its history says, so it was stopped; the log there says ` +
    `where. A process of version "${applicationVersion}" that starts tries again. Deploy code that fits, fork it from a step ` +
    'before the change, or cancel it.';
  return found('diverged', message, { executorID, applicationVersion });
}

async function explainQueued(operator: Operator, workflow: WorkflowRecord): Promise<Finding> {
  const { database } = operator;
  const queueName = workflow.queueName ?? '';
  const pausedAt = (await findPausedQueues(database)).get(queueName);
  if (pausedAt !== undefined) {
    return found('paused', `Queue "${queueName}" has been paused since ${time(pausedAt)}. Resume the queue.`, {
      queueName,
      pausedAt,
    });
  }
  const record = await findQueue(database, queueName);
  const isStored = record !== null || queueName === INTERNAL_QUEUE;
  const limits = operator.memoryLimits?.(queueName) ?? (record ? limitsOf(record) : undefined);
  if (limits?.partition && workflow.queuePartitionKey === null) {
    return found(
      'no-partition-key',
      `Queue "${queueName}" is partitioned, but the workflow has no partition key. Resume it into another queue.`,
      { queueName },
    );
  }
  const engines = (await listPeers(database)).filter((peer) => !peer.isLeaseOver);
  const serving = engines.filter((peer) => doesServe(peer, queueName, isStored));
  const missing = await explainMissing(database, workflow, { engines, serving, isStored });
  if (missing) return missing;
  return (await explainLimits(database, workflow, limits, serving)) ?? explainPosition(database, workflow);
}

interface Engines {
  readonly engines: readonly Peer[];
  readonly serving: readonly Peer[];
  readonly isStored: boolean;
}

/** No live process can claim the workflow. */
async function explainMissing(
  database: Database,
  workflow: WorkflowRecord,
  { serving, isStored }: Engines,
): Promise<Finding | undefined> {
  const { applicationName, queueName } = workflow;
  if (serving.length === 0) {
    const cause = isStored ? 'No live process claims from it' : 'It is not registered';
    return found('queue-not-served', `No process serves queue "${queueName}". ${cause}.`, {
      queueName,
      isRegistered: isStored,
    });
  }
  const ofApplication = serving.filter((peer) => applicationName === null || peer.applicationName === applicationName);
  if (ofApplication.length === 0) {
    const message = `No live process of application "${applicationName}" serves queue "${queueName}".`;
    return found('no-executor-of-application', message, { applicationName, queueName });
  }
  const [latest] = await listVersions(database, applicationName ?? ofApplication[0]?.applicationName ?? '');
  const version = workflow.applicationVersion ?? latest?.versionName;
  const ofVersion = ofApplication.filter((peer) => peer.applicationVersion === version);
  if (ofVersion.length === 0) {
    const running = [...new Set(ofApplication.map((peer) => peer.applicationVersion))];
    return found(
      'no-executor-of-version',
      `No live process of version "${version}" serves queue "${queueName}"; the running versions are ${quoted(running)}. ` +
        'Start a process of that version, or fork the workflow to another.' +
        (isCreatedElsewhere(workflow) ? ` If DBOS was to run it and has ended, ${ADOPTING}.` : ''),
      { version, running, queueName },
    );
  }
  return explainUnregistered(workflow, ofVersion, version);
}

/** DBOS's tokens are random UUIDs, or missing. */
function isCreatedElsewhere({ creator }: WorkflowRecord): boolean {
  return creator === null || /^.{8}-.{4}-4/.test(creator);
}

/** The processes that could claim the workflow lack its function or instance. */
function explainUnregistered(
  { name, className, configName, serialization }: WorkflowRecord,
  engines: readonly Peer[],
  version: string | undefined,
): Finding | undefined {
  const key = functionKey(className, name);
  const details = { workflowName: name, className, configName, version };
  const having = engines.filter((peer) => servicesOf(peer)?.functions.includes(key) ?? true);
  if (having.length === 0) {
    const message = `No live process of version "${version}" has a workflow "${className === null ? name : `${className}.${name}`}" registered.`;
    return found('function-not-registered', message, details);
  }
  if (serialization !== null && !having.some((peer) => servicesOf(peer)?.formats?.includes(serialization) ?? true)) {
    const message = `No live process of version "${version}" can read its format "${serialization}". It is left to a program that can.`;
    return found('format-not-readable', message, { ...details, serialization });
  }
  if (!configName) return undefined;
  const instance = instanceKey(className, configName);
  if (having.some((peer) => servicesOf(peer)?.instances.includes(instance) ?? true)) return undefined;
  const message = `No live process of version "${version}" has an instance "${configName}" of class "${className}".`;
  return found('function-not-registered', message, details);
}

async function explainLimits(
  database: Database,
  workflow: WorkflowRecord,
  limits: QueueLimits | undefined,
  serving: readonly Peer[],
): Promise<Finding | undefined> {
  if (!limits) return undefined;
  const { queueName, queuePartitionKey: partitionKey } = workflow;
  const partition =
    limits.partition && partitionKey !== null ? { key: partitionKey, limits: limits.partition } : undefined;
  const left = await findRemainder(database, { queueName: queueName ?? '', whole: limits.whole, partition });
  const count = { queueNames: [queueName ?? ''], applicationName: null };
  const running = async (isByPartition: boolean): Promise<number> => {
    const stats = await countQueues(database, { ...count, isByPartition });
    return stats.find((one) => !isByPartition || one.partitionKey === partitionKey)?.running ?? 0;
  };
  const scopes = [
    { prefix: '' as const, of: limits.whole, hasRoom: left.hasRoom, waitMs: left.waitMs, isByPartition: false },
    ...(partition
      ? [
          {
            prefix: 'partition-' as const,
            of: partition.limits,
            hasRoom: left.hasPartitionRoom,
            waitMs: left.partitionWaitMs,
            isByPartition: true,
          },
        ]
      : []),
  ];
  for (const { prefix, of, hasRoom, waitMs, isByPartition } of scopes) {
    const scope = isByPartition ? `partition "${partitionKey}" of queue "${queueName}"` : `queue "${queueName}"`;
    if (!hasRoom) {
      const reason = waitMs === null ? (`${prefix}concurrency` as const) : (`${prefix}rate-limit` as const);
      return found(reason, limitMessage(scope, of, waitMs), { queueName, partitionKey, ...of, waitMs });
    }
    const { workerConcurrency } = of;
    if (workerConcurrency !== null && (await running(isByPartition)) >= workerConcurrency * serving.length) {
      return found(
        `${prefix}worker-concurrency`,
        `All ${serving.length} process(es) serving ${scope} are at its worker concurrency of ${workerConcurrency}.`,
        { queueName, partitionKey, workerConcurrency, processes: serving.length },
      );
    }
  }
  return undefined;
}

function limitMessage(scope: string, { concurrency, rate }: Limits, waitMs: number | null): string {
  if (waitMs === null) return `All ${concurrency} concurrency slot(s) of ${scope} are in use.`;
  return (
    `The rate limit of ${scope} is ${rate?.max} workflow(s) per ${(rate?.periodMs ?? 0) / 1000} s. ` +
    `The next one may start in ${Math.ceil(waitMs / 100) / 10} s.`
  );
}

async function explainPosition(database: Database, workflow: WorkflowRecord): Promise<Finding> {
  const ahead = await countAhead(database, workflow.workflowID, AHEAD_MAX);
  const details = { queueName: workflow.queueName, ahead };
  if (ahead === 0) return found('about-to-start', 'It is next in the queue and about to start.', details);
  return found(
    'waiting-its-turn',
    `${ahead}${ahead === AHEAD_MAX ? ' or more' : ''} workflow(s) are ahead of it in the queue.`,
    details,
  );
}

function found(reason: ExplanationReason, message: string, details: Record<string, unknown>): Finding {
  return { reason, message, details };
}

function time(epochMs: number | null): string {
  return epochMs === null ? 'an unknown time' : utcText(epochMs);
}

function at(epochMs: number | null): string {
  return `at ${time(epochMs)}`;
}

function quoted(names: readonly (string | null)[]): string {
  return names.map((name) => `"${name}"`).join(', ');
}
