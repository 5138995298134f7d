// Whether an outbox is well: messages are fetched in time, leases do not go stale, dead letters do not pile up.
import { type Duration, durationMs } from '../../kernel/base/duration.js';
import { duration, boolean, integer, optional, record } from '../../kernel/check/validation.js';
import type { OutboxDatabase } from './database.js';
import { declared, type OutboxTables } from './schema/tables.js';
import { checkSchema } from './validate/validation.js';
import { pausedTopics } from './consume/pausing.js';
import { type QueueStatistics, statisticsOf } from './consume/statistics.js';

export interface HealthOptions {
  /** How long a due message may wait. Topics that are paused may take longer. Default: 5 minutes. */
  readonly maxLag?: Duration;
  /** Default: no limit. */
  readonly maxDeadLetters?: number;
  /** Compares the schema too. Default: false. */
  readonly schema?: boolean;
}

export interface OutboxHealth {
  readonly ok: boolean;
  /** What is wrong, as sentences. */
  readonly problems: readonly string[];
  readonly queues: readonly QueueStatistics[];
  readonly paused: readonly string[];
}

const OPTIONS = record({
  maxLag: optional(duration),
  maxDeadLetters: optional(integer({ min: 0 })),
  schema: optional(boolean),
});
const LAG_MAX_MS = 300_000;

export async function healthOf(
  database: OutboxDatabase,
  tables: OutboxTables,
  options: HealthOptions,
): Promise<OutboxHealth> {
  const { maxLag = LAG_MAX_MS, maxDeadLetters = Infinity, schema = false } = OPTIONS.read(options, 'options');
  const queues = await statisticsOf(database, tables);
  const paused = await pausedTopics(database, tables);
  const problems = queues.flatMap(({ queue, lagMs, stale, deadLetters }) => [
    ...(lagMs > durationMs(maxLag) && !isPaused(paused, queue)
      ? [`"${queue}": the oldest message has been due for ${Math.round(lagMs / 1000)} seconds.`]
      : []),
    ...(stale > 0 ? [`"${queue}": ${stale} messages have been leased for too long.`] : []),
    ...(deadLetters > maxDeadLetters ? [`"${queue}": ${deadLetters} dead letters.`] : []),
  ]);
  if (schema) {
    const { findings } = await checkSchema(database, declared(tables));
    for (const { severity, object, code } of findings) if (severity === 'error') problems.push(`${object}: ${code}.`);
  }
  return { ok: problems.length === 0, problems, queues, paused };
}

/** A topic is paused with all its subscriptions. */
export function isPaused(paused: readonly string[], queue: string): boolean {
  return paused.some((topic) => queue === topic || queue.startsWith(`${topic}#`));
}
