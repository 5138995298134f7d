// What becomes of a message whose handler failed, and how that is written.
import type { DLogger } from '../../base/log.js';
import { type ErrorRenderer, toFailure } from '../dead-letters/failure.js';
import type { Lease } from './leases.js';
import type { FetchedRow } from './message.js';
import { hasCode, type Outcome, type RetryAfter, type Unroutable } from './outcomes.js';
import type { Settlement } from './settling.js';
import type { RetryStrategy } from './strategies.js';

export interface Failed {
  readonly error: unknown;
  readonly startedAt: number;
  readonly retry: RetryStrategy;
  readonly logger: DLogger;
}

export function outcomeOf(row: FetchedRow, failed: Failed): Outcome {
  const { error } = failed;
  if (hasCode(error, 'OUTBOX_REJECT')) {
    return { kind: 'dead', reason: (error as Partial<Unroutable>).reason ?? 'rejected', error };
  }
  if (hasCode(error, 'OUTBOX_RETRY_AFTER')) return { kind: 'retry', delayMs: (error as RetryAfter).delayMs };
  const delayMs = delayAfter(row, failed);
  return delayMs === undefined ? { kind: 'dead', reason: 'retry_terminal', error } : { kind: 'retry', delayMs };
}

function delayAfter(
  { attempts, firstAttemptAt, messageID, queue }: FetchedRow,
  { error, startedAt, retry, logger }: Failed,
): number | undefined {
  const failed = { attempts: attempts + 1, firstAttemptAt: firstAttemptAt ?? startedAt, lastAttemptAt: startedAt };
  try {
    return retry({ ...failed, error });
  } catch (strategyError) {
    logger.error(
      `The retry strategy failed for message "${messageID}" of "${queue}", so it becomes a dead letter: ${String(strategyError)}`,
    );
    return undefined;
  }
}

export interface Writing {
  readonly startedAt: number;
  /** Whether the handler ran. */
  readonly isAttempt: boolean;
  readonly renderError: ErrorRenderer | undefined;
}

export function toSettlement(
  { row, token }: Lease,
  outcome: Outcome,
  { startedAt, isAttempt, renderError }: Writing,
): Settlement {
  const held = { id: row.id, token };
  switch (outcome.kind) {
    case 'done':
    case 'release':
      return { ...outcome, ...held };
    case 'retry':
      return { kind: 'retry', ...held, delayMs: outcome.delayMs, startedAt };
    case 'dead': {
      const failure = toFailure(outcome.error, renderError);
      return { kind: 'dead', ...held, reason: outcome.reason, failure, isAttempt };
    }
  }
}
