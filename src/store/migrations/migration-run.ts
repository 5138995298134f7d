// One run of the migrations on Postgres, and what it has to expect of others that run at the same time.
import { type Clock, sleep } from '../../base/clock.js';
import type { DLogger } from '../../base/log.js';
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
}

/** One run of the migrations on a held connection. */
export interface MigrationRun extends PostgresMigrateOptions {
  readonly connection: Connection;
  readonly source: VersionSource;
  /** False when the database was empty at the start: nobody uses the tables yet. */
  readonly isOnline: boolean;
}

/** How often something is tried that another session gets in the way of. */
export const ATTEMPTS_MAX = 10;
/** Somebody else has created the same thing at the same moment. */
const LOST_RACE_STATES = new Set(['23505', '42P06', '42P07', '42701', '42710']);
/** Another session was in the way: serialization failure, deadlock, lock timeout. */
const BLOCKED_STATES = new Set(['40001', '40P01', '55P03']);
/** What two runners of an online migration can do to each other, besides: the last is "tuple concurrently updated". */
const ONLINE_STATES = new Set([...LOST_RACE_STATES, 'XX000']);

/** True when the same may well succeed the next time. */
export function isRetryable(error: unknown, { isOnline }: { readonly isOnline: boolean }): boolean {
  const state = stateOf(error);
  return BLOCKED_STATES.has(state) || (isOnline && ONLINE_STATES.has(state));
}

/** IF NOT EXISTS does not cover two sessions that create the same thing at the same moment. */
export async function ignoreLostRace(create: () => Promise<unknown>): Promise<void> {
  try {
    await create();
  } catch (error) {
    if (!LOST_RACE_STATES.has(stateOf(error))) throw error;
  }
}

/** The factor keeps runners that have met once from meeting again. */
export function sleepWithJitter(run: MigrationRun): Promise<void> {
  return sleep(run.clock, run.lockPollMs * (0.5 + Math.random()));
}

/** The SQLSTATE that the server answered, from whatever depth. */
function stateOf(error: unknown): string {
  for (let next = error; next instanceof Error; next = next.cause) {
    const state = sqlState(next);
    if (state !== undefined) return state;
  }
  return '';
}
