// The system database on Postgres, through `pg`. A write is one round trip and one commit for any number of statements.
import { recognizeCopies } from '../../kernel/base/copies.js';
import { deferred } from '../../kernel/base/deferred.js';
import { silentLogger } from '../../kernel/base/log.js';
import {
  CommitUnknownError,
  DatabaseClosedError,
  DatabaseStatementError,
  EverstepTablesMissingError,
} from '../../kernel/errors/database-errors.js';
import { DBOSQueryTimeoutError } from '../../kernel/errors/errors.js';
import { postgresDialect } from '../../kernel/sql/postgres-dialect.js';
import { type Dialect, type Lacking, type Sql, sql } from '../../kernel/sql/sql.js';
import type {
  CommitOptions,
  Comparison,
  Connection,
  ConnectionUse,
  Database,
  Executor,
  ObserveOptions,
  Row,
  ServerFeatures,
  TransactionOptions,
} from '../database.js';
import { type Client, type ClientSource, setUp } from './client-source.js';
import { Hosts } from './hosts.js';
import { type PgSession, withSession } from './pg-session.js';
import { poolConfig } from './postgres-config.js';
import { isConnectionLost, isReadOnly, type Phase, translatePostgresError } from './postgres-errors.js';
import { clientSource, ownSetup, poolSizeOf, type PostgresOptions } from './postgres-options.js';
import type { ServerFeature } from './server-probe.js';
import { SessionFence, unguarded } from './session-fence.js';
import { SilenceWatch } from './silence.js';
import { type Following, rethrowIfLost, StatementSender } from './statement-sender.js';
import { ALL_SCANS, commitSettings, observeSettings } from './settings.js';
import { describePostgresURL } from './postgres-url.js';
import { Timelines } from './timelines.js';

const QUERY_CANCELED = '57014';
/** A write to an empty table that stands for a missing one, an unknown table, an unknown column. */
const LACKING_STATES = new Set(['42601', '42P01', '42703']);
/** Only if it is: a trigger or a function may have raised the error in one that is not. */
const END_READ_ONLY_SESSION = sql`
  SELECT pg_terminate_backend(pg_backend_pid())
  WHERE current_setting('transaction_read_only') = 'on'`;

export class PostgresDatabase implements Database {
  static {
    recognizeCopies(this, 'PostgresDatabase');
  }

  readonly dialect: Dialect;
  /** Host, port and name of the database, for logs and errors. */
  readonly where: string;
  readonly options: PostgresOptions;
  readonly features: ServerFeatures;
  readonly commitsMax: number;
  readonly #source: ClientSource;
  readonly #fence: SessionFence;
  readonly #timelines: Timelines;
  readonly #sender: StatementSender;
  #inUse = 0;
  #isClosed = false;
  #onUnused: (() => void) | undefined;

  constructor(options: PostgresOptions) {
    const hosts = options.hosts ?? Hosts.of(options.url);
    this.options = { ...options, hosts };
    this.where = describePostgresURL(options.url);
    const has = (feature: ServerFeature): boolean => !options.lacking?.has(feature);
    this.features = {
      hasAdvisoryLocks: has('advisory locks'),
      hasNotifications: has('notifications'),
      hasSkipLocked: has('SKIP LOCKED'),
      hasSessions: !options.isTransactionPooler,
    };
    this.commitsMax = Math.max(1, poolSizeOf(options) >> 1);
    this.dialect = postgresDialect({
      schema: options.schema ?? 'dbos',
      now: options.now,
      hasSettings: has('session settings'),
      hasSkipLocked: this.features.hasSkipLocked,
    });
    const { pool, logger = silentLogger, messageBytesMax, silenceMs } = options;
    this.#timelines = hosts?.timelines ?? new Timelines();
    this.#timelines.logger = logger;
    const source = clientSource(this.options, this.#timelines);
    this.#source = source;
    this.#fence = new SessionFence(logger);
    if (!this.features.hasAdvisoryLocks) this.#fence.turnOff();
    // Cached plans are only safe in sessions with our settings. Elsewhere the settings are made for each commit, and
    // statements are planned each time.
    const hasOwnSessions = this.features.hasSessions && (pool === undefined || pool === 'none');
    this.#sender = new StatementSender({
      dialect: this.dialect,
      where: this.where,
      silence: new SilenceWatch({
        ask: (text, values) =>
          this.withSession('everstep probe', async (session) => (await session.ask(text, values)).rows),
        logger,
        silenceMs,
      }),
      hasOwnSessions,
      isPreparing: hasOwnSessions && pool === undefined,
      messageBytesMax,
      backendOf: (client) => source.backendOf(client),
      isFormer: (client) => this.#timelines.isFormer(source.serverOf(client)),
    });
  }

  async run(statement: Sql): Promise<Row[]> {
    return (await this.#commit([statement], {}))[0] ?? [];
  }

  async read(statement: Sql): Promise<Row[]> {
    return (await this.#withClient((client) => this.#sender.send(client, [statement], 'read')))[0] ?? [];
  }

  async observe(statement: Sql, options: ObserveOptions): Promise<Row[]> {
    const startedAt = performance.now();
    try {
      // Unnamed, so that it is planned for its values and no plan is cached. The settings end with the commit.
      const sent = this.#withClient((client) =>
        this.#sender.send(client, [observeSettings(options), statement], 'read', { isNamed: false }),
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
      const following = this.#sender.follow(client, afterCommit);
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
    { options, following }: { readonly options: CommitOptions; readonly following?: Following },
  ): Promise<Row[][]> {
    const settings = commitSettings(options);
    const guard = options.mayBeLate ? unguarded(settings) : this.#fence.guard(client, settings);
    try {
      const results = await this.#sender.send(client, [...guard, ...statements], 'write', { following });
      return results.slice(guard.length);
    } catch (error) {
      // Before the caller learns of it: it may repeat the commit at once.
      this.#noteLoss(client, error);
      throw this.#explain(error);
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

  /**
   * Sets up a connection beside the pool that is kept. Throws if its server must not be written to, and closes it when
   * another server takes its place.
   */
  async admit(session: PgSession): Promise<void> {
    await setUp(session, { setup: ownSetup(this.options), timelines: this.#timelines, where: this.where });
    this.reign.addEventListener('abort', () => void session.end(), { once: true, signal: session.lost });
  }

  get reign(): AbortSignal {
    return this.#timelines.reign;
  }

  /** Runs `body` on a connection beside the pool. An abort cuts it. */
  withSession<T>(name: string, body: (session: PgSession) => Promise<T>, signal?: AbortSignal): Promise<T> {
    return withSession({ ...poolConfig(this.options), application_name: name }, body, signal);
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
        while (this.#fence.isPending)
          await this.#fence.settle((statements) => this.#sender.send(client, statements, 'read'));
        while (this.#timelines.isPending)
          await this.#timelines.settle(this.#source.serverOf(client), (compare) =>
            this.#connection(client).transaction(compare),
          );
        const result = await body(client);
        this.#source.release(client, false);
        return result;
      } catch (error) {
        this.#noteLoss(client, error);
        if (isReadOnly(error)) await this.#endReadOnlySession(client);
        const { destroyed: isDestroyed = false } = client.connection.stream;
        this.#source.release(client, isDestroyed || isConnectionLost(error) || isReadOnly(error));
        throw this.#explain(error);
      }
    } finally {
      this.#inUse -= 1;
      if (this.#inUse === 0) this.#onUnused?.();
    }
  }

  onPromoted(compare: Comparison): void {
    this.#timelines.onPromoted = compare;
  }

  /** Declares what the database lacks because only DBOS has migrated it. */
  lack(lacking: Lacking): void {
    this.dialect.lacking = lacking;
    this.#fence.turnOff();
  }

  #explain(error: unknown): unknown {
    if (!this.dialect.lacking || !(error instanceof DatabaseStatementError)) return error;
    if (!LACKING_STATES.has(error.sqlState ?? '')) return error;
    return new EverstepTablesMissingError(this.where, { cause: error });
  }

  #noteLoss(client: Client, error: unknown): void {
    if (error instanceof CommitUnknownError) this.#fence.onLost(client);
  }

  /** A pooler would keep it and hand it out again, although new sessions may be writable by then. */
  async #endReadOnlySession(client: Client): Promise<void> {
    const ended = this.#sender.send(client, [END_READ_ONLY_SESSION], 'read', { isNamed: false });
    // Its end arrives as an error. If the server refuses to end it, the next attempt may get another one.
    await ended.catch(() => {});
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
    const send = async (statement: Sql, phase: Phase, isInside = false): Promise<Row[]> =>
      (await this.#sender.send(client, [statement], phase, { isInside }))[0] ?? [];
    const script = (text: string, phase: Phase): Promise<void> => this.#sender.script(client, text, phase);
    const inTransaction: Connection = {
      dialect: this.dialect,
      run: (statement) => send(statement, 'read', true),
      script: (text) => script(text, 'read'),
      transaction: (body) => body(inTransaction),
    };
    return {
      dialect: this.dialect,
      run: (statement) => send(statement, 'write'),
      script: (text) => script(text, 'write'),
      transaction: async (body, { isSnapshot = false } = {}) => {
        await this.#begin(client, `BEGIN ISOLATION LEVEL ${isSnapshot ? 'REPEATABLE READ' : 'READ COMMITTED'}`);
        const result = await body(inTransaction).catch(async (error: unknown) => {
          await this.#sender.rollBack(client);
          throw error;
        });
        await script('COMMIT', 'write');
        return result;
      },
    };
  }

  async #begin(client: Client, begin: string): Promise<void> {
    try {
      await this.#sender.script(client, begin + this.#fence.scriptBehindBegin(client), 'read');
    } catch (error) {
      await this.#sender.rollBack(client);
      if (!this.#fence.turnOffIfUnsupported(error)) throw error;
      await this.#sender.script(client, begin, 'read');
    }
  }
}
