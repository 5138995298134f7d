// Detects dead engines sooner than their lease expires. On the same machine, by checking the process. On Postgres, each
// engine holds an advisory lock on its listening connection; a lock that stays free means that the engine is dead, even if
// its process is alive.
import { createHash } from 'node:crypto';
import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import { type Clock, sleep } from '../../kernel/base/clock.js';
import { rows, sql } from '../../kernel/sql/sql.js';
import type { Database } from '../../database/database.js';
import { metadataOf, type Peer, type Services } from './executors.sql.js';
import { isPostgres } from '../../database/postgres/is-postgres.js';
import type { PgSession } from '../../database/postgres/pg-session.js';
import type { PostgresDatabase } from '../../database/postgres/postgres-database.js';
import { lacksAdvisoryLocks, sqlState } from '../../database/postgres/postgres-errors.js';

export interface Presence {
  /** The peers that are certainly dead; the others are alive or unknown. Takes one grace period for all of them. */
  findGone(peers: readonly Peer[]): Promise<Peer[]>;
  /** Whether `findGone` can tell that the peer is dead; so if it does not, the peer is there. */
  isVisible(peer: Peer): boolean;
  /** True if the peer is certainly dead; false if it is alive or unknown. Also looks at the lock of a living process. */
  isGone(peer: Peer): Promise<boolean>;
  /** Resolves when the peer may be dead, without busy polling. Rejects if the signal aborts. */
  untilSuspected(peer: Peer, signal: AbortSignal): Promise<void>;
  /** The lock of a peer whose process is alive on this machine, for renewals of the lease to look at. */
  lockBeside?(peer: Peer): string | undefined;
  /** Whether that lock was free. */
  noteLock?(peer: Peer, isFree: boolean): void;
}

/** How often a process on this machine is checked. */
const PROCESS_POLL_MS = 250;
/** A broken connection is reopened within this time; a lock that stays free for longer means a dead engine. */
const GRACE_MS = 700;
/** The same for an engine whose process is known to be alive: then the lock is the only sign of its death. */
const LIVING_GRACE_MS = 5000;
/** How often the lock of such an engine is looked at if the lease is renewed less often. */
const LOCK_LOOK_MS = 10_000;
/** A waiting statement holds back vacuum, so it is restarted from time to time. */
const LOCK_WAIT_MS = 30_000;
/** How much later the answer may arrive. */
const LOCK_ANSWER_MS = 5_000;
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
  const { place, birth, hasLock } = metadataOf(peer);
  return { place: textOrNull(place), birth: textOrNull(birth), hasLock: hasLock === true };
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
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

export interface PresenceOptions {
  readonly clock: Clock;
  /** How often the lease is renewed. */
  readonly renewalMs?: number;
  /** Counts the sessions that have held the lock of this engine; 0 while there is none. Default: the first. */
  readonly lockSession?: () => number;
}

export function presenceOn(database: Database, options: PresenceOptions): Presence {
  const hasLocks = isPostgres(database) && database.features.hasSessions;
  return hasLocks ? new PostgresPresence(database, options) : localPresence(options.clock);
}

function localPresence(clock: Clock): Presence {
  return {
    findGone: async (peers) => peers.filter((peer) => isProcessGone(peer) === true),
    isVisible: (peer) => isProcessGone(peer) !== undefined,
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
  /** Without advisory locks on the server, only the lease can tell. */
  #hasLocks: boolean;
  /** Whether renewals of the lease are too rare to look at locks for us. */
  readonly #isLooking: boolean;
  readonly #lockSession: () => number;
  /** The peers whose locks were seen to be held since this engine has lost its session. */
  #seen: { readonly session: number; readonly ids: Set<string> } = { session: 0, ids: new Set() };
  #suspectedID: string | undefined;

  constructor(database: PostgresDatabase, { clock, renewalMs = Infinity, lockSession = () => 1 }: PresenceOptions) {
    this.#database = database;
    this.#clock = clock;
    this.#isLooking = renewalMs > LOCK_LOOK_MS;
    this.#lockSession = lockSession;
    this.#hasLocks = database.features.hasAdvisoryLocks;
  }

  async findGone(peers: readonly Peer[]): Promise<Peer[]> {
    const gone = peers.filter((peer) => isProcessGone(peer) === true);
    const elsewhere = peers.filter((peer) => isProcessGone(peer) === undefined);
    return [...gone, ...(await this.#findReleased(elsewhere, GRACE_MS))];
  }

  isVisible(peer: Peer): boolean {
    return isProcessGone(peer) !== undefined || (traitsOf(peer).hasLock && this.#hasLocks);
  }

  async isGone(peer: Peer): Promise<boolean> {
    const isGoneHere = isProcessGone(peer);
    if (isGoneHere === true) return true;
    const graceMs = isGoneHere === undefined ? GRACE_MS : LIVING_GRACE_MS;
    return (await this.#findReleased([peer], graceMs)).length > 0;
  }

  /** The peers whose lock is free now and after the grace period. */
  async #findReleased(peers: readonly Peer[], graceMs: number): Promise<Peer[]> {
    const free = await this.#findFree(peers.filter((peer) => traitsOf(peer).hasLock && this.#doesLockTell(peer)));
    if (free.length === 0) return [];
    await sleep(this.#clock, graceMs);
    return this.#findFree(free);
  }

  async #findFree(peers: readonly Peer[]): Promise<Peer[]> {
    if (peers.length === 0 || !this.#hasLocks) return [];
    const data = peers.map(({ incarnationID }) => [incarnationID, presenceKey(incarnationID)]);
    // Released at the end of the statement.
    const look = sql`
      SELECT r.id FROM ${rows('r', LOCK_COLUMNS, data)} WHERE pg_try_advisory_xact_lock_shared(r.lock_key)`;
    const found = await this.#database.read(look).catch((error: unknown) => this.#withoutLocks(error));
    const ids = new Set(found.map((row) => row['id']));
    for (const peer of peers) if (!ids.has(peer.incarnationID)) this.noteLock(peer, false);
    return peers.filter(({ incarnationID }) => ids.has(incarnationID));
  }

  /**
   * Whether a free lock means that the peer is dead. An outage frees all locks, and a peer that is blocked or far away takes
   * its own later than this engine did; so if this one has lost its session, it must have seen the lock held since.
   */
  #doesLockTell({ incarnationID }: Peer): boolean {
    const session = this.#lockSession();
    return session === 1 || (session > 1 && this.#seen.session === session && this.#seen.ids.has(incarnationID));
  }

  /** Rethrows any other error. */
  #withoutLocks(error: unknown): [] {
    if (!lacksAdvisoryLocks(error)) throw error;
    this.#hasLocks = false;
    return [];
  }

  async untilSuspected(peer: Peer, signal: AbortSignal): Promise<void> {
    if (!this.#isWatchedByLock(peer)) return localPresence(this.#clock).untilSuspected(peer, signal);
    if (isProcessGone(peer) !== undefined) return this.#untilGoneHere(peer, signal);
    return this.#untilReleased(peer, signal);
  }

  /** Without a lock, or a limit to the wait for it, only the lease can tell. */
  #isWatchedByLock(peer: Peer): boolean {
    return traitsOf(peer).hasLock && this.#hasLocks && this.#database.dialect.hasSettings;
  }

  lockBeside(peer: Peer): string | undefined {
    const isHere = this.#isWatchedByLock(peer) && isProcessGone(peer) === false;
    return isHere ? presenceKey(peer.incarnationID) : undefined;
  }

  noteLock({ incarnationID }: Peer, isFree: boolean): void {
    if (isFree) this.#suspectedID = incarnationID;
    const session = this.#lockSession();
    if (isFree || session <= 1) return;
    if (this.#seen.session !== session) this.#seen = { session, ids: new Set() };
    this.#seen.ids.add(incarnationID);
  }

  /** Looks at the process often, and at its lock now and then: statements for that add to what an idle engine sends. */
  async #untilGoneHere(peer: Peer, signal: AbortSignal): Promise<void> {
    this.#suspectedID = undefined;
    for (let passedMs = PROCESS_POLL_MS; isProcessGone(peer) !== true; passedMs += PROCESS_POLL_MS) {
      await sleep(this.#clock, PROCESS_POLL_MS, signal);
      if (this.#suspectedID === peer.incarnationID) return;
      const isDue = this.#isLooking && passedMs % LOCK_LOOK_MS === 0;
      if (isDue && (await this.#findFree([peer])).length > 0) return;
    }
  }

  async #untilReleased(peer: Peer, signal: AbortSignal): Promise<void> {
    const key = presenceKey(peer.incarnationID);
    const wait = async (session: PgSession): Promise<void> => {
      await session.ask(`SET statement_timeout = 0; SET lock_timeout = ${LOCK_WAIT_MS}`);
      await this.#findFree([peer]);
      while (!(await isLockFree(session, key))) signal.throwIfAborted();
    };
    await this.#database
      .withSession('everstep watch', wait, signal)
      .catch((error: unknown) => this.#withoutLocks(error));
  }
}

const LOCK_COLUMNS = [
  { name: 'id', type: 'text' },
  { name: 'lock_key', type: 'bigint' },
] as const;

/** Waits for the lock; false if the wait timed out and must be restarted. */
async function isLockFree(session: PgSession, key: string): Promise<boolean> {
  try {
    await session.ask('SELECT pg_advisory_xact_lock_shared($1::bigint)', [key], LOCK_WAIT_MS + LOCK_ANSWER_MS);
    return true;
  } catch (error) {
    if (sqlState(error) === LOCK_NOT_AVAILABLE) return false;
    throw error;
  }
}
