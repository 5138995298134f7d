// Keeps a commit from taking effect after the one that repeats it. When a connection breaks during a commit, the commit may
// still be on its way: in the network, in a proxy, or in a session that waits for a lock. Executed after its repetition, it
// would undo what came later (docs/decisions/0012-late-commits.md).
//
// Every commit starts by taking the shared advisory lock of its session and checking that the session is not fenced. Before
// a database object that has lost a connection does anything else, it takes that lock exclusively and fences the session. So
// the old copy has either ended by then, or finds the fence and fails. Sessions are ours by a random key, not by the server's
// process: behind a transaction pooler each commit may have another one.
import { randomBytes } from 'node:crypto';
import type { DLogger } from '../../kernel/base/log.js';
import { DatabaseAccessError, DatabaseStatementError } from '../../kernel/errors/database-errors.js';
import { refusal } from '../../kernel/sql/refusal.js';
import { nowMs, oneOf, rows, setting, type Sql, sql, table } from '../../kernel/sql/sql.js';
import type { Row } from '../database.js';

const fences = table('fenced_sessions');
const KEY_COLUMNS = [{ name: 'session_key', type: 'bigint' }] as const;
/** How long to wait for an old copy that is being executed and cannot be terminated. */
const LOCK_TIMEOUT_MS = 5000;
/** No copy arrives later than that. */
const KEPT_MS = 86_400_000;

/** Runs the statements in one commit on a connection of the caller. */
export type Send = (statements: readonly Sql[]) => Promise<Row[][]>;

export class SessionFence {
  readonly #logger: DLogger;
  readonly #keys = new WeakMap<object, bigint>();
  readonly #lost = new Set<bigint>();
  #settling: Promise<void> | undefined;
  #isOff = false;

  constructor(logger: DLogger) {
    this.#logger = logger;
  }

  /** The statements to put at the head of a commit on this connection; empty if the server does not support them. */
  guard(client: object, settings?: Sql): Sql[] {
    if (this.#isOff) return unguarded(settings);
    const key = this.#keyOf(client);
    const lock = sql`pg_advisory_xact_lock_shared(CAST(${key} AS BIGINT))`;
    return [
      settings ? sql`SELECT ${settings}, ${lock}` : sql`SELECT ${lock}`,
      sql`
        SELECT CASE WHEN EXISTS (SELECT 1 FROM ${fences} AS f WHERE f.session_key = CAST(${key} AS BIGINT))
          THEN ${refusal} END AS refused`,
    ];
  }

  /**
   * A script to put behind the BEGIN of an interactive transaction; empty if the server does not support it. The locks of
   * the transaction keep its repetition from overtaking it. The fence ends it, if its COMMIT does not arrive.
   */
  scriptBehindBegin(client: object): string {
    return this.#isOff ? '' : `; SELECT pg_catalog.pg_advisory_xact_lock_shared(${this.#keyOf(client)})`;
  }

  #keyOf(client: object): bigint {
    let key = this.#keys.get(client);
    if (key === undefined) this.#keys.set(client, (key = randomBytes(8).readBigInt64BE()));
    return key;
  }

  /** The connection was lost during a commit. */
  onLost(client: object): void {
    const key = this.#keys.get(client);
    if (key !== undefined && !this.#isOff) this.#lost.add(key);
  }

  /** Whether a lost commit may still be executed. */
  get isPending(): boolean {
    return this.#lost.size > 0;
  }

  /** Makes sure that no lost commit is executed from now on. */
  settle(send: Send): Promise<void> {
    this.#settling ??= this.#settle(send, [...this.#lost]).finally(() => (this.#settling = undefined));
    return this.#settling;
  }

  async #settle(send: Send, keys: readonly bigint[]): Promise<void> {
    const data = keys.map((key) => [key]);
    try {
      // One that waits for a lock would keep us waiting as long.
      await send([terminateHolders(keys)]).catch((error: unknown) => this.#refuse(error));
      await send([
        sql`SELECT ${setting('lock_timeout', String(LOCK_TIMEOUT_MS))}`,
        sql`SELECT pg_advisory_xact_lock(r.session_key) FROM ${rows('r', KEY_COLUMNS, data)}`,
        sql`
          INSERT INTO ${fences} (session_key, fenced_at)
          SELECT r.session_key, ${nowMs} FROM ${rows('r', KEY_COLUMNS, data)}
          ON CONFLICT DO NOTHING`,
        sql`DELETE FROM ${fences} WHERE fenced_at < ${nowMs} - ${KEPT_MS}`,
      ]);
    } catch (error) {
      if (!this.turnOffIfUnsupported(error)) throw error;
    }
    for (const key of keys) this.#lost.delete(key);
  }

  /** A server that does not let us end a session of our own role: then we wait for it. */
  #refuse(error: unknown): void {
    if (!(error instanceof DatabaseStatementError || error instanceof DatabaseAccessError)) throw error;
    this.#logger.debug(`Cannot end a session whose connection was lost: ${error.message}`);
  }

  turnOff(): void {
    this.#isOff = true;
    this.#lost.clear();
  }

  /** Whether the error says that the server lacks what a fence needs. From then on there is none. */
  turnOffIfUnsupported(error: unknown): boolean {
    if (this.#isOff || !isUnsupported(error)) return false;
    this.turnOff();
    this.#logger.warn(`A commit that arrives late cannot be refused: ${(error as Error).message}`);
    return true;
  }
}

/** The head of a commit without a fence. */
export function unguarded(settings: Sql | undefined): Sql[] {
  return settings ? [sql`SELECT ${settings}`] : [];
}

/** Ends the sessions that execute an old copy at the moment. The lock's key is stored in two halves. */
function terminateHolders(keys: readonly bigint[]): Sql {
  return sql`
    SELECT pg_terminate_backend(l.pid)
    FROM pg_catalog.pg_locks AS l
    WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted AND l.pid <> pg_backend_pid()
      AND l.database = (SELECT d.oid FROM pg_catalog.pg_database AS d WHERE d.datname = current_database())
      AND ((CAST(l.classid AS BIGINT) << 32) | CAST(l.objid AS BIGINT)) ${oneOf(keys, 'bigint')}`;
}

/** The server has no advisory locks, or the table or a privilege on it is missing. */
function isUnsupported(error: unknown): boolean {
  if (!(error instanceof DatabaseStatementError || error instanceof DatabaseAccessError)) return false;
  const isMissing = error instanceof DatabaseAccessError || /^(42P01|42883|0A000)$/.test(error.sqlState ?? '');
  return isMissing && /fenced_sessions|advisory/.test(error.message);
}
