// Metrics for frequent scraping. All are cheap: counts of active workflows, read from partial indexes on active rows, and
// state of the process.
import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import { LIBRARY_VERSION } from '../../../kernel/base/version.js';
import { getQueueStats, listQueueRecords, type QueueStats } from '../../../features/queue/queues.js';
import { listPeers } from '../../../features/liveness/executors.sql.js';
import { countUnqueued, NO_WORK, type UnqueuedCounts } from '../../../features/queue/queue-stats.sql.js';
import { exposition, type Metric, type Sample } from './exposition.js';
import type { Environment } from '../http/route.js';
import { outboxMetrics } from '../../../plugins/outbox/metrics.http.js';
import { localEngine, type StoreOperator } from '../source.js';

const NANOSECONDS = 1e9;

/** Event loop delay, measured from the first scrape on. */
export class EventLoop {
  #delays: ReturnType<typeof monitorEventLoopDelay> | undefined;
  #last = performance.eventLoopUtilization();

  /** Delays since the last call. */
  takeDelays(): Sample[] {
    if (!this.#delays) {
      this.#delays = monitorEventLoopDelay({ resolution: 20 });
      this.#delays.enable();
      return [];
    }
    const samples = [
      { labels: { quantile: '0.5' }, value: this.#delays.percentile(50) / NANOSECONDS },
      { labels: { quantile: '0.99' }, value: this.#delays.percentile(99) / NANOSECONDS },
      { labels: { quantile: '1' }, value: this.#delays.max / NANOSECONDS },
    ];
    const isMeasured = this.#delays.count > 0;
    this.#delays.reset();
    return isMeasured ? samples : [];
  }

  /** Utilization since the last call. */
  sinceLastCall(): ReturnType<typeof performance.eventLoopUtilization> {
    const last = this.#last;
    this.#last = performance.eventLoopUtilization();
    return performance.eventLoopUtilization(this.#last, last);
  }

  stop(): void {
    this.#delays?.disable();
    this.#delays = undefined;
  }
}

export async function metricsText(
  operator: StoreOperator,
  { source, feed, outboxes }: Environment,
  eventLoop: EventLoop,
): Promise<string> {
  const { database, applicationName } = operator;
  const queues = await countQueues(operator);
  const unqueued = await operator.retrying(() => countUnqueued(database, applicationName));
  const peers = await operator.retrying(() => listPeers(database));
  const engine = localEngine(source);
  const labels = { version: LIBRARY_VERSION, database: database.dialect.name, application: applicationName ?? '' };
  return exposition([
    { name: 'everstep_info', help: 'Library version, database and application.', samples: [{ labels, value: 1 }] },
    ...workflowMetrics(queues, unqueued),
    {
      name: 'everstep_executors',
      help: 'Processes that run workflows on this database.',
      samples: [{ value: peers.filter(({ isLeaseOver }) => !isLeaseOver).length }],
    },
    {
      name: 'everstep_runs',
      help: 'Workflows running in this process.',
      samples: engine ? [{ value: engine.runCount }] : [],
    },
    {
      name: 'everstep_event_loop_lag_seconds',
      help: 'Event loop delay of this process since the last scrape.',
      samples: eventLoop.takeDelays(),
    },
    connectionMetric(operator),
    {
      name: 'everstep_event_clients',
      help: 'Clients of the event stream in this process.',
      samples: [{ value: feed.subscriberCount }],
    },
    ...(await outboxMetrics(outboxes, operator.logger)),
  ]);
}

/** Includes registered queues that are empty. */
async function countQueues(operator: StoreOperator): Promise<QueueStats[]> {
  const counted = await getQueueStats(operator);
  const names = new Set(counted.map(({ queueName }) => queueName));
  const empty = (await listQueueRecords(operator)).filter(({ name }) => !names.has(name));
  return [...counted, ...empty.map(({ name }) => ({ queueName: name, ...NO_WORK }))];
}

function workflowMetrics(queues: readonly QueueStats[], unqueued: UnqueuedCounts): Metric[] {
  const byStatus = queues.flatMap(({ queueName, enqueued, delayed, running, parked }) =>
    Object.entries({ ENQUEUED: enqueued, DELAYED: delayed, PENDING: running + parked }).map(([status, value]) => ({
      labels: { status, queue: queueName },
      value,
    })),
  );
  const parked = queues.map(({ queueName, parked: value }) => ({ labels: { queue: queueName }, value }));
  const oldest = queues.flatMap(({ queueName, oldestWaitMs }) =>
    oldestWaitMs === null ? [] : [{ labels: { queue: queueName }, value: oldestWaitMs / 1000 }],
  );
  return [
    {
      name: 'everstep_workflows',
      help: 'Active workflows by status and queue. Workflows called directly have no queue.',
      samples: [...byStatus, { labels: { status: 'PENDING', queue: '' }, value: unqueued.running + unqueued.parked }],
    },
    {
      name: 'everstep_parked_workflows',
      help: 'Those of the pending workflows that wait out of memory, by queue.',
      samples: [...parked, { labels: { queue: '' }, value: unqueued.parked }],
    },
    {
      name: 'everstep_queue_oldest_wait_seconds',
      help: 'Age of the oldest enqueued workflow.',
      samples: oldest,
    },
  ];
}

function connectionMetric({ database }: StoreOperator): Metric {
  const use = database.connectionUse?.();
  return {
    name: 'everstep_database_connections',
    help: 'Pooled connections of this process, and calls waiting for one.',
    samples: use
      ? [
          { labels: { state: 'in_use' }, value: use.open - use.idle },
          { labels: { state: 'idle' }, value: use.idle },
          { labels: { state: 'waited_for' }, value: use.waiting },
        ]
      : [],
  };
}
