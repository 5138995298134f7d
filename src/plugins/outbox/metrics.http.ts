// Metrics of the outboxes, which are in databases of the application.
import type { QueueStatistics } from './consume/statistics.js';
import type { DLogger } from '../../kernel/base/log.js';
import type { AdminOutbox } from './outbox-view.http.js';
import type { Metric } from '../../faces/http/metrics/exposition.js';

interface Counted extends QueueStatistics {
  readonly outbox: string;
}

const METRICS: readonly {
  readonly name: string;
  readonly help: string;
  readonly value: (queue: QueueStatistics) => number;
}[] = [
  { name: 'depth', help: 'Messages that wait or are in flight.', value: ({ depth }) => depth },
  { name: 'due', help: 'Messages that are due and not leased.', value: ({ due }) => due },
  { name: 'in_flight', help: 'Leased messages.', value: ({ inFlight }) => inFlight },
  { name: 'retrying', help: 'Messages that have failed at least once.', value: ({ retrying }) => retrying },
  { name: 'lag_seconds', help: 'How long the oldest message has been due.', value: ({ lagMs }) => lagMs / 1000 },
  { name: 'dead_letters', help: 'Dead letters that are not archived.', value: ({ deadLetters }) => deadLetters },
];

export async function outboxMetrics(
  outboxes: ReadonlyMap<string, AdminOutbox>,
  logger: DLogger,
): Promise<readonly Metric[]> {
  const counted: Counted[] = [];
  for (const [outbox, broker] of outboxes) {
    try {
      counted.push(...(await broker.statistics()).map((queue) => ({ outbox, ...queue })));
    } catch (error) {
      // One unreachable database must not hide the metrics of all others.
      logger.warn(`The metrics of outbox "${outbox}" are missing: ${String(error)}`);
    }
  }
  return METRICS.map(({ name, help, value }) => ({
    name: `everstep_outbox_${name}`,
    help,
    samples: counted.map((queue) => ({ labels: { outbox: queue.outbox, queue: queue.queue }, value: value(queue) })),
  }));
}
