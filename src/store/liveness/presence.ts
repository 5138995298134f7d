// Detects dead engines sooner than their lease expires. On the same machine, by checking the process. On Postgres, each
// engine holds an advisory lock on its listening connection; a free lock means that the connection is gone.
import { createHash } from 'node:crypto';
import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import pg from 'pg';
import { type Clock, sleep } from '../../base/clock.js';
import { sql } from '../../sql/sql.js';
import type { Database } from '../database.js';
import type { Peer, Services } from './executors.js';
import { poolConfig } from '../postgres/postgres-config.js';
import { PostgresDatabase } from '../postgres/postgres-database.js';
import { sqlState } from '../postgres/postgres-errors.js';

export interface Presence {
  /** True if the peer's process is certainly dead; false if it is alive or unknown. */
  isGone(peer: Peer): Promise<boolean>;
  /** Resolves when the peer may be dead, without busy polling. Rejects if the signal aborts. */
  untilSuspected(peer: Peer, signal: AbortSignal): Promise<void>;
}

/** How often a process on this machine is checked. */
const PROCESS_POLL_MS = 250;
/** A broken connection is reopened within this time; a lock that stays free for longer means a dead engine. */
const GRACE_MS = 1000;
/** A waiting statement holds back vacuum, so it is restarted from time to time. */
const LOCK_WAIT_MS = 30_000;
const LOCK_NOT_AVAILABLE = '55P03';

/** The key of an engine's advisory lock. */
export function presenceKey(incarnationID: string): string {
  return createHash('sha256').update(`everstep.executor.${incarnationID}`).digest().readBigInt64BE(0).toString();
}

/** What an engine stores about its process. The names are part of the stored JSON. */
interface Traits {
  /** The boot ID and PID namespace, within which a PID is meaningful; null if unknown. */
  readonly place: string | null;
  /** The start time of the process, in case its PID is reused; null if unknown. */
  readonly birth: string | null;
  /** Whether the engine holds its advisory lock while it is alive. */
  readonly hasLock: boolean;
}

export function describePresence(hasLock: boolean, services?: Services): string {
  const traits: Traits = { place: pidNamespace(), birth: processStartTime(process.pid), hasLock };
  return JSON.stringify({ ...traits, services });
}

function traitsOf(peer: Peer): Traits {
  return peer.metadata === null ? { place: null, birth: null, hasLock: false } : (JSON.parse(peer.metadata) as Traits);
}

/** Two containers may share a host name, each with PIDs of its own. */
function pidNamespace(): string | null {
  try {
    return `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()} ${readlinkSync('/proc/self/ns/pid')}`;
  } catch {
    // Not Linux.
    return null;
  }
}

function processStartTime(pid: number): string | null {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\)/, '').trim().split(' ');
    return fields[19] ?? null;
  } catch {
    // Not Linux, or the process is dead.
    return null;
  }
}

export function presenceOn(database: Database, clock: Clock): Presence {
  if (database instanceof PostgresDatabase && !database.options.isTransactionPooler) {
    return new PostgresPresence(database, clock);
  }
  return localPresence(clock);
}

function localPresence(clock: Clock): Presence {
  return {
    isGone: async (peer) => isProcessGone(peer) === true,
    async untilSuspected(peer, signal) {
      while (isProcessGone(peer) !== true) await sleep(clock, PROCESS_POLL_MS, signal);
    },
  };
}

/** Undefined for a process on another machine or in another container. */
function isProcessGone(peer: Peer): boolean | undefined {
  if (peer.host !== hostname() || traitsOf(peer).place !== pidNamespace()) return undefined;
  try {
    process.kill(peer.pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
  const birth = processStartTime(peer.pid);
  const expected = traitsOf(peer).birth;
  return birth !== null && expected !== null && birth !== expected;
}

class PostgresPresence implements Presence {
  readonly #database: PostgresDatabase;
  readonly #clock: Clock;

  constructor(database: PostgresDatabase, clock: Clock) {
    this.#database = database;
    this.#clock = clock;
  }

  async isGone(peer: Peer): Promise<boolean> {
    const isGoneHere = isProcessGone(peer);
    if (isGoneHere !== undefined) return isGoneHere;
    if (!traitsOf(peer).hasLock || !(await this.#isFree(peer))) return false;
    await sleep(this.#clock, GRACE_MS);
    return this.#isFree(peer);
  }

  async #isFree(peer: Peer): Promise<boolean> {
    // Released at the end of the statement.
    const [row] = await this.#database.read(sql`
      SELECT pg_try_advisory_xact_lock_shared(CAST(${presenceKey(peer.incarnationID)} AS bigint)) AS is_free`);
    return row?.['is_free'] === true;
  }

  async untilSuspected(peer: Peer, signal: AbortSignal): Promise<void> {
    // On this machine, check the process. Without a lock, only the lease can tell.
    if (isProcessGone(peer) !== undefined || !traitsOf(peer).hasLock) {
      return localPresence(this.#clock).untilSuspected(peer, signal);
    }
    const client = new pg.Client({ ...poolConfig(this.#database.options), application_name: 'everstep watch' });
    client.on('error', () => {});
    const onAbort = (): void => void client.end().catch(() => {});
    try {
      await client.connect();
      signal.addEventListener('abort', onAbort, { once: true });
      await client.query(`SET lock_timeout = ${LOCK_WAIT_MS}`);
      while (!(await isLockFree(client, presenceKey(peer.incarnationID)))) signal.throwIfAborted();
    } finally {
      signal.removeEventListener('abort', onAbort);
      await client.end().catch(() => {
        // Already closed.
      });
    }
  }
}

/** Waits for the lock; false if the wait timed out and must be restarted. */
async function isLockFree(client: pg.Client, key: string): Promise<boolean> {
  try {
    await client.query('SELECT pg_advisory_xact_lock_shared($1::bigint)', [key]);
    return true;
  } catch (error) {
    if (sqlState(error) === LOCK_NOT_AVAILABLE) return false;
    throw error;
  }
}
