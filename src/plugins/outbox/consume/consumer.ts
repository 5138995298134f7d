// What consumers of an outbox share.
import { type BackoffPolicy, backoffMs } from '../../../kernel/base/backoff.js';
import type { Clock } from '../../../kernel/base/clock.js';
import type { Deadline } from '../../../kernel/base/time-limit.js';
import type { DLogger } from '../../../kernel/base/log.js';
import type { OutboxDatabase } from '../database.js';
import type { ErrorRenderer } from '../dead-letters/failure.js';
import type { DlqTable, OutboxTable, StateTable } from '../schema/tables.js';

export interface ConsumerHost {
  readonly clock: Clock;
  readonly logger: DLogger;
  readonly database: OutboxDatabase;
  readonly table: OutboxTable;
  readonly dlqTable: DlqTable | undefined;
  readonly stateTable: StateTable | undefined;
  readonly renderError: ErrorRenderer | undefined;
  /** The longest time between two looks at the table, if nothing is known to be due. */
  readonly pollMs: number;
}

/** Serves one queue, or those of a pattern, from `start` to `stop`. */
export interface Consumer {
  readonly queue: string;
  /** Whether it serves this queue too. */
  serves?(queue: string): boolean;
  start(): void;
  /** There may be something to do, in this queue or in any. */
  wake(queue?: string): void;
  /** Resolves when it has stopped, and at the deadline at the latest: its database may not answer. */
  stop(deadline: Deadline): Promise<void>;
}

const BLOCKED: BackoffPolicy = { firstMs: 20, maxMs: 1000, rate: 2, jitter: 0.2 };

/**
 * The pause after looks in a row that found rows due, yet got none: they are locked, behind another of their key, or the
 * topic is paused.
 */
export function blockedMs(looks: number): number {
  return backoffMs(BLOCKED, looks);
}

type Sweep = (signal: AbortSignal) => Promise<number | undefined>;

/** Logs the first of several failures in a row. Without a table, for example, nothing would be delivered silently. */
export function reported({ logger }: ConsumerHost, queue: string, sweep: Sweep): Sweep {
  let isFailing = false;
  return async (signal) => {
    try {
      const delayMs = await sweep(signal);
      isFailing = false;
      return delayMs;
    } catch (error) {
      if (!isFailing && !signal.aborted) {
        logger.warn(`Messages of "${queue}" cannot be fetched, and will be tried again: ${String(error)}`);
      }
      isFailing = true;
      throw error;
    }
  };
}
