// A run of the migrations on Postgres, and how it deals with concurrent runs.
import { type Clock, sleep } from '../../kernel/base/clock.js';
import type { DLogger } from '../../kernel/base/log.js';
import type { StoredCode } from '../../kernel/sql/sql.js';
import type { Connection } from '../database.js';
import { sqlState } from '../postgres/postgres-errors.js';
import type { VersionSource } from './versions.js';

export interface PostgresMigrateOptions {
  readonly schema: string;
  readonly useListenNotify: boolean;
  readonly logger: DLogger;
  readonly clock: Clock;
  readonly lockPollMs: number;
  readonly lockTimeoutMs: number;
  readonly onApplied?: () => void;
}

/** A run of the migrations on a held connection. */
export interface MigrationRun extends PostgresMigrateOptions {
  readonly connection: Connection;
  readonly source: VersionSource;
  /** False if the database was empty at the start, so that the tables are not in use. */
  readonly isOnline: boolean;
  /** What the server refuses to store. */
  readonly refused: ReadonlySet<StoredCode>;
}

/** Attempts at an operation that other sessions interfere with. */
export const ATTEMPTS_MAX = 10;
/** Another session created the same object at the same time. */
const LOST_RACE_STATES = new Set(['23505', '42P06', '42P07', '42701', '42710']);
/** Another session interfered: serialization failure, deadlock, lock timeout. */
const BLOCKED_STATES = new Set(['40001', '40P01', '55P03']);
/** Further conflicts of two runners of an online migration; the last is "tuple concurrently updated". */
const ONLINE_STATES = new Set([...LOST_RACE_STATES, 'XX000']);

export function isRetryable(error: unknown, { isOnline }: { readonly isOnline: boolean }): boolean {
  const state = stateOf(error);
  return BLOCKED_STATES.has(state) || (isOnline && ONLINE_STATES.has(state));
}

/** IF NOT EXISTS still fails if two sessions create the same object at the same time. */
export async function ignoreLostRace(create: () => Promise<unknown>): Promise<void> {
  try {
    await create();
  } catch (error) {
    if (!isLostRace(error)) throw error;
  }
}

export function isLostRace(error: unknown): boolean {
  return LOST_RACE_STATES.has(stateOf(error));
}

/** The jitter keeps runners that collided once from colliding again. */
export function sleepWithJitter(run: MigrationRun): Promise<void> {
  return sleep(run.clock, run.lockPollMs * (0.5 + Math.random()));
}

/** The SQLSTATE of the error or of one of its causes. */
export function stateOf(error: unknown): string {
  for (let next = error; next instanceof Error; next = next.cause) {
    const state = sqlState(next);
    if (state !== undefined) return state;
  }
  return '';
}
