// How the CLI shows queues: settings, pause state and backlog.
import type { Operator } from '../../operator/operator.js';
import { getQueueStats, listQueueRecords, type QueueStats } from './queues.js';
import { type QueueSettings, toQueueParameters } from './queue.js';
import { findPausedQueues } from './queues.sql.js';
import { NO_WORK } from './queue-stats.sql.js';
import type { Output } from '../../faces/cli/command.js';
import { notFound } from '../../faces/cli/failure.js';
import { sanitize, type RenderContext } from '../../faces/cli/render-context.js';
import { type Column, formatFields } from '../../faces/cli/table.js';
import { formatDuration, formatMoment } from '../../faces/cli/time.js';

/** A queue with its backlog. An in-memory queue has no settings here. */
interface QueueView extends Omit<QueueStats, 'partitionKey'> {
  readonly isRegistered: boolean;
  readonly pausedAt: number | null;
  readonly applicationName: string | null;
  readonly settings: QueueSettings;
}

export async function viewQueues(operator: Operator): Promise<QueueView[]> {
  const records = new Map((await listQueueRecords(operator)).map((record) => [record.name, record]));
  const stats = new Map((await getQueueStats(operator)).map((one) => [one.queueName, one]));
  const paused = await operator.retrying(() => findPausedQueues(operator.database));
  const names = [...new Set([...records.keys(), ...stats.keys(), ...paused.keys()])].sort();
  return names.map((queueName) => {
    const record = records.get(queueName);
    return {
      ...NO_WORK,
      ...stats.get(queueName),
      queueName,
      isRegistered: record !== undefined,
      pausedAt: paused.get(queueName) ?? null,
      applicationName: record?.applicationName ?? null,
      settings: record ? toQueueParameters(record) : {},
    };
  });
}

export async function requireQueue(operator: Operator, name: string): Promise<QueueView> {
  const found = (await viewQueues(operator)).find(({ queueName }) => queueName === name);
  if (!found) throw notFound(`Queue "${name}" not found in the database. See: everstep queue list`);
  return found;
}

export const QUEUE_COLUMNS: readonly Column<QueueView>[] = [
  { title: 'QUEUE', text: (row) => row.queueName, isShortenable: true },
  {
    title: 'STATE',
    text: (row) => stateOf(row),
    colour: (row) => (row.pausedAt === null ? undefined : 'yellow'),
  },
  { title: 'WAITING', text: (row) => row.enqueued, isRight: true },
  { title: 'DELAYED', text: (row) => row.delayed, isRight: true, rank: 3 },
  { title: 'RUNNING', text: (row) => row.running, isRight: true },
  { title: 'PARKED', text: (row) => row.parked || '', isRight: true, rank: 3 },
  {
    title: 'OLDEST WAIT',
    text: (row) => (row.oldestWaitMs === null ? '' : formatDuration(row.oldestWaitMs)),
    isRight: true,
    rank: 2,
  },
  { title: 'LIMITS', text: (row) => limitsText(row.settings), isShortenable: true, rank: 1 },
  { title: 'APPLICATION', text: (row) => row.applicationName, rank: 4 },
];

function stateOf({ pausedAt, isRegistered }: QueueView): string {
  if (pausedAt !== null) return 'paused';
  return isRegistered ? 'active' : 'in memory';
}

function limitsText(settings: QueueSettings): string {
  const rate = (limit: QueueSettings['rateLimit']): string => `${limit?.limitPerPeriod} per ${limit?.periodSec} s`;
  const { globalConcurrency, workerConcurrency, rateLimit } = settings;
  const { partitionConcurrency, partitionWorkerConcurrency, partitionRateLimit } = settings;
  return [
    globalConcurrency !== undefined && `${globalConcurrency} at once`,
    workerConcurrency !== undefined && `${workerConcurrency} per process`,
    rateLimit !== undefined && rate(rateLimit),
    settings.partitionQueue && 'partitioned',
    partitionConcurrency !== undefined && `${partitionConcurrency} per partition`,
    partitionWorkerConcurrency !== undefined && `${partitionWorkerConcurrency} per partition and process`,
    partitionRateLimit !== undefined && `${rate(partitionRateLimit)} per partition`,
    settings.releaseSlotWhileParked && 'slots released while parked',
  ]
    .filter((limit) => typeof limit === 'string')
    .join(', ');
}

function viewText(rendering: RenderContext, view: QueueView): string {
  const { settings, pausedAt } = view;
  return formatFields(rendering, [
    ['queue', sanitize(view.queueName), 'bold'],
    ['state', stateOf(view), pausedAt === null ? undefined : 'yellow'],
    ['paused', pausedAt === null ? undefined : formatMoment(pausedAt, rendering.now)],
    ['waiting', view.enqueued],
    ['delayed', view.delayed],
    ['running', view.running],
    ['parked', view.parked || undefined],
    ['oldest wait', view.oldestWaitMs === null ? undefined : formatDuration(view.oldestWaitMs)],
    ['limits', limitsText(settings)],
    [
      'polls',
      settings.minPollingIntervalMs === undefined
        ? undefined
        : `every ${formatDuration(settings.minPollingIntervalMs)}`,
    ],
    ['application', view.applicationName === null ? undefined : sanitize(view.applicationName)],
  ]);
}

export function viewOutput(view: QueueView): Output & { readonly json: object } {
  return {
    json: view,
    text: (rendering) => viewText(rendering, view),
  };
}
