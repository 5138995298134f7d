// The system database on Postgres, through `pg`. A write is one round trip and one commit for any number of statements.
// Statements are prepared once per connection, under names derived from their text.
import type pg from 'pg';
import { type Clock, systemClock } from '../../base/clock.js';
import { deferred } from '../../base/deferred.js';
import { type DLogger, silentLogger } from '../../base/log.js';
import { CommitUnknownError, DatabaseClosedError, DatabaseStatementError } from '../../model/errors/database-errors.js';
import { DBOSQueryTimeoutError } from '../../model/errors/errors.js';
import { postgresDialect } from '../../sql/postgres-dialect.js';
import { type Dialect, render, type Sql } from '../../sql/sql.js';
import type {
  CommitOptions,
  Connection,
  ConnectionUse,
  Database,
  Executor,
  ObserveOptions,
  Row,
  TransactionOptions,
} from '../database.js';
import { type Client, type ClientSource, freshClients, pooledClients, sharedClients } from './client-source.js';
import { type ConnectionOptions, describePostgresURL, parsePostgresURL, poolConfig } from './postgres-config.js';
import { MESSAGE_BYTES_MAX, refuseTooLarge } from './message-size.js';
import { isConnectionLost, isReadOnly, type Phase, translatePostgresError } from './postgres-errors.js';
import { SessionFence } from './session-fence.js';
import { BACKEND_LOOKUP, plannerSettings, type SessionOptions, sessionSetup } from './session-settings.js';
import { SilenceWatch } from './silence.js';
import { type FollowingBatch, type PreparedStatement, StatementBatch, statementName } from './statement-batch.js';
import { ALL_SCANS, commitSettings, observeSettings } from './transaction-settings.js';

export interface PostgresOptions extends ConnectionOptions, Pick<SessionOptions, 'idleTransactionTimeoutMs'> {
  /** The schema that holds the system tables. */
  readonly schema?: string;
  /** The caller's pool, which we never end; or `none` for a new connection per operation. */
  readonly pool?: pg.Pool | 'none';
  readonly clock?: Clock;
  /** Replaces the database clock, for tests that control time. */
  readonly now?: () => number;
  readonly logger?: DLogger;
  /** The longest message that the server takes; tests lower it. */
  readonly messageBytesMax?: number;
  /** How long a statement waits for an answer before the server is asked whether it is at work on it. */
  readonly silenceMs?: number;
}

const STATEMENT_NAMES_MAX = 1000;
const QUERY_CANCELED = '57014';

export class PostgresDatabase implements Database {
  readonly dialect: Dialect;
  /** Host, port and name of the database, for logs and errors. */
  readonly where: string;
  readonly options: PostgresOptions;
  readonly #source: ClientSource;
  readonly #fence: SessionFence;
  readonly #silence: SilenceWatch;
  /**
   * Cached plans are only safe in sessions with our settings. Elsewhere the settings are made for each commit, and statements
   * are planned each time.
   */
  readonly #hasOwnSessions: boolean;
  readonly #names = new Map<string, string>();
  readonly #preparedNames = new WeakMap<object, Set<string>>();
  #inUse = 0;
  #isClosed = false;
  #onUnused: (() => void) | undefined;

  constructor(options: PostgresOptions) {
    this.options = options;
    this.where = describePostgresURL(options.url);
    this.dialect = postgresDialect({ schema: options.schema ?? 'dbos', now: options.now });
    this.#hasOwnSessions = !options.isTransactionPooler && (options.pool === undefined || options.pool === 'none');
    this.#source = clientSource(options);
    const { logger = silentLogger, silenceMs } = options;
    this.#fence = new SessionFence(logger);
    this.#silence = new SilenceWatch({ config: poolConfig(options), logger, silenceMs });
  }

  async run(statement: Sql): Promise<Row[]> {
    return (await this.#commit([statement], {}))[0] ?? [];
  }

  async read(statement: Sql): Promise<Row[]> {
    return (await this.#withClient((client) => this.#send(client, [statement], 'read')))[0] ?? [];
  }

  async observe(statement: Sql, options: ObserveOptions): Promise<Row[]> {
    const startedAt = performance.now();
    try {
      // Unnamed, so that it is planned for its values and no plan is cached. The settings end with the commit.
      const sent = this.#withClient((client) =>
        this.#send(client, [observeSettings(options), statement], 'read', { isNamed: false }),
      );
      return (await sent)[1] ?? [];
    } catch (error) {
      // A role's own limit may have stopped it earlier, while the session was set up.
      const isTimeUp = options.timeoutMs > 0 && performance.now() - startedAt >= options.timeoutMs;
      if (error instanceof DatabaseStatementError && error.sqlState === QUERY_CANCELED && isTimeUp) {
        throw new DBOSQueryTimeoutError(options.timeoutMs, { cause: error });
      }
      throw error;
    }
  }

  commit(statements: readonly Sql[], options: CommitOptions = {}): Promise<Row[][]> {
    return this.#commit(statements, options);
  }

  async #commit(statements: readonly Sql[], options: CommitOptions): Promise<Row[][]> {
    try {
      return await this.#commitGuarded(statements, options);
    } catch (error) {
      if (!this.#fence.turnOffIfUnsupported(error)) throw error;
      return this.#commitGuarded(statements, options);
    }
  }

  #commitGuarded(statements: readonly Sql[], options: CommitOptions): Promise<Row[][]> {
    const { afterCommit } = options;
    if (!afterCommit) return this.#withClient((client) => this.#sendCommit(client, statements, { options }));
    const committed = deferred<Row[][]>();
    const both = this.#withClient(async (client) => {
      const following = this.#follow(client, afterCommit);
      const sent = this.#sendCommit(client, statements, { options, following });
      void sent.then(
        (results) => committed.resolve(results),
        (error: unknown) => committed.reject(error),
      );
      // The client is busy until both are done.
      await sent.catch(rethrowIfLost).finally(() => following.done());
    });
    both.catch((error: unknown) => committed.reject(error));
    return committed.promise;
  }

  async #sendCommit(
    client: Client,
    statements: readonly Sql[],
    { options, following }: { readonly options: CommitOptions; readonly following?: FollowingBatch },
  ): Promise<Row[][]> {
    const guard = this.#fence.guard(client, commitSettings(options));
    try {
      const results = await this.#send(client, [...guard, ...statements], 'write', { following });
      return results.slice(guard.length);
    } catch (error) {
      // Before the caller learns of it: it may repeat the commit at once.
      this.#noteLoss(client, error);
      throw error;
    }
  }

  transaction<T>(body: (tx: Executor) => Promise<T>, { scans, ...options }: TransactionOptions = {}): Promise<T> {
    return this.exclusive((connection) =>
      connection.transaction(async (tx) => {
        if (scans === 'all') await tx.run(ALL_SCANS);
        return body(tx);
      }, options),
    );
  }

  exclusive<T>(body: (connection: Connection) => Promise<T>): Promise<T> {
    return this.#withClient((client) => body(this.#connection(client)));
  }

  connectionUse(): ConnectionUse | undefined {
    return this.#source.use?.();
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    if (this.#inUse > 0) await new Promise<void>((resolve) => (this.#onUnused = resolve));
    await this.#source.end();
  }

  async #withClient<T>(body: (client: Client) => Promise<T>): Promise<T> {
    if (this.#isClosed) throw new DatabaseClosedError(`This process has closed its connection to ${this.where}.`);
    this.#inUse += 1;
    try {
      const client = await this.#acquire();
      try {
        while (this.#fence.isPending) await this.#fence.settle((statements) => this.#send(client, statements, 'read'));
        const result = await body(client);
        this.#source.release(client, false);
        return result;
      } catch (error) {
        this.#noteLoss(client, error);
        this.#source.release(client, isConnectionLost(error) || isReadOnly(error));
        throw error;
      }
    } finally {
      this.#inUse -= 1;
      if (this.#inUse === 0) this.#onUnused?.();
    }
  }

  #noteLoss(client: Client, error: unknown): void {
    if (error instanceof CommitUnknownError) this.#fence.onLost(client);
  }

  async #acquire(): Promise<Client> {
    try {
      return await this.#source.acquire();
    } catch (error) {
      throw translatePostgresError(error, 'connect', this.where);
    }
  }

  #connection(client: Client): Connection {
    // A connection lost in an open transaction means that nothing was stored; only COMMIT is in doubt.
    const send = async (statement: Sql, phase: Phase): Promise<Row[]> =>
      (await this.#send(client, [statement], phase))[0] ?? [];
    const script = (text: string, phase: Phase): Promise<void> => this.#script(client, text, phase);
    const inTransaction: Connection = {
      dialect: this.dialect,
      run: (statement) => send(statement, 'read'),
      script: (text) => script(text, 'read'),
      transaction: (body) => body(inTransaction),
    };
    return {
      dialect: this.dialect,
      run: (statement) => send(statement, 'write'),
      script: (text) => script(text, 'write'),
      transaction: async (body, { isSnapshot = false } = {}) => {
        await this.#begin(client, isSnapshot ? 'BEGIN ISOLATION LEVEL REPEATABLE READ' : 'BEGIN');
        const result = await body(inTransaction).catch(async (error: unknown) => {
          await this.#rollBack(client);
          throw error;
        });
        await script('COMMIT', 'write');
        return result;
      },
    };
  }

  async #begin(client: Client, begin: string): Promise<void> {
    try {
      await this.#script(client, begin + this.#fence.scriptBehindBegin(client), 'read');
    } catch (error) {
      await this.#rollBack(client);
      if (!this.#fence.turnOffIfUnsupported(error)) throw error;
      await this.#script(client, begin, 'read');
    }
  }

  async #rollBack(client: Client): Promise<void> {
    try {
      await this.#guard(client, client.query('ROLLBACK'));
    } catch {
      // The connection is lost, and the transaction with it. Report the original error.
    }
  }

  async #script(client: Client, text: string, phase: Phase): Promise<void> {
    try {
      const result = (await this.#guard(client, client.query(text))) as { command?: string };
      if (text === 'COMMIT' && result.command === 'ROLLBACK') {
        throw new DatabaseStatementError(
          'The transaction was rolled back: one of its statements failed and the error was caught.',
          { sqlState: '25P02' },
        );
      }
    } catch (error) {
      throw translatePostgresError(error, phase, this.where);
    }
  }

  /** A statement to send with the next batch. `done` resolves when it no longer needs the client. */
  #follow(client: Client, statement: Sql): FollowingBatch & { done(): Promise<void> } {
    const ended = deferred<void>();
    let isQueued = false;
    const batch = new StatementBatch([this.#prepare(statement, true)], this.#namesKnownTo(client), (error) => {
      if (error) ended.reject(translatePostgresError(error, 'read', this.where));
      else ended.resolve();
    });
    return {
      batch,
      queue() {
        isQueued = true;
        client.query(batch);
      },
      // A broken client does not send anything, and never answers.
      done: async () => (isQueued ? this.#guard(client, ended.promise).catch(rethrowIfLost) : undefined),
    };
  }

  async #send(client: Client, statements: readonly Sql[], phase: Phase, options: SendOptions = {}): Promise<Row[][]> {
    const { isNamed = true, following } = options;
    const settings = this.#hasOwnSessions ? [] : [plannerSettings];
    const prepared = [...settings, ...statements].map((statement) => this.#prepare(statement, isNamed));
    refuseTooLarge(prepared, this.options.messageBytesMax ?? MESSAGE_BYTES_MAX);
    try {
      const answer = new Promise<Row[][]>((resolve, reject) => {
        const onDone = (error: Error | undefined): void => (error ? reject(error) : resolve(batch.results));
        const batch = new StatementBatch(prepared, this.#namesKnownTo(client), onDone, following);
        client.query(batch);
      });
      return (await this.#guard(client, answer)).slice(settings.length);
    } catch (error) {
      throw translatePostgresError(error, phase, this.where);
    }
  }

  #guard<T>(client: Client, answer: Promise<T>): Promise<T> {
    return this.#silence.guard({ stream: client.connection.stream, backend: this.#source.backendOf(client) }, answer);
  }

  #prepare(statement: Sql, isNamed: boolean): PreparedStatement {
    const { text, values } = render(statement, this.dialect);
    const isPrepared = isNamed && this.#hasOwnSessions && this.options.pool === undefined;
    return { name: isPrepared ? this.#nameOf(text) : '', text, values };
  }

  #nameOf(text: string): string {
    let name = this.#names.get(text);
    if (name === undefined) {
      if (this.#names.size >= STATEMENT_NAMES_MAX) this.#names.clear();
      name = statementName(text);
      this.#names.set(text, name);
    }
    return name;
  }

  #namesKnownTo(client: Client): Set<string> {
    let names = this.#preparedNames.get(client);
    if (!names) this.#preparedNames.set(client, (names = new Set()));
    return names;
  }
}

interface SendOptions {
  readonly isNamed?: boolean;
  /** Goes on the same way, as a commit of its own. */
  readonly following?: FollowingBatch;
}

function clientSource(options: PostgresOptions): ClientSource {
  const { clock = systemClock, logger = silentLogger, isTransactionPooler } = options;
  if (options.pool && options.pool !== 'none') return sharedClients(options.pool, { clock, setup: BACKEND_LOOKUP });
  const startupOptions = parsePostgresURL(options.url).searchParams.get('options') ?? '';
  const setup = isTransactionPooler ? undefined : sessionSetup({ ...options, startupOptions });
  if (options.pool === 'none') return freshClients(poolConfig(options), setup);
  return pooledClients(poolConfig(options), { clock, setup }, (error) => {
    logger.debug(`An idle database connection was lost: ${error.message}`);
  });
}

/** For statements whose own failure is reported elsewhere or ignored. */
function rethrowIfLost(error: unknown): void {
  if (isConnectionLost(error)) throw error;
}
