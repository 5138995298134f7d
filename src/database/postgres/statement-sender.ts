// Sends statements through a client of `pg`, in batches of one round trip, and translates what the server answers. They are
// prepared once per connection, under names derived from their text.
import { deferred } from '../../kernel/base/deferred.js';
import {
  CommitUnknownError,
  DatabaseStatementError,
  DatabaseUnavailableError,
} from '../../kernel/errors/database-errors.js';
import { type Dialect, render, type Sql } from '../../kernel/sql/sql.js';
import type { Row } from '../database.js';
import type { Client, ClientSource } from './client-source.js';
import { MESSAGE_BYTES_MAX, refuseTooLarge } from './message-size.js';
import { isConnectionLost, type Phase, translatePostgresError } from './postgres-errors.js';
import { foreignIsolation, foreignSettings } from './settings.js';
import type { SilenceWatch } from './silence.js';
import { type FollowingBatch, type PreparedStatement, StatementBatch, statementName } from './statement-batch.js';

export interface StatementSenderOptions extends Pick<ClientSource, 'backendOf'> {
  /** Whether the client leads to a server that is not the primary any more. */
  readonly isFormer: (client: Client) => boolean;
  readonly dialect: Dialect;
  /** Host, port and name of the database, for errors. */
  readonly where: string;
  readonly silence: SilenceWatch;
  /** Whether sessions have our settings. If not, they are made for each batch. */
  readonly hasOwnSessions: boolean;
  /** Whether statements are prepared under names. */
  readonly isPreparing: boolean;
  readonly messageBytesMax?: number;
}

/** A statement that goes with a batch. `done` resolves when it no longer needs the client. */
export interface Following extends FollowingBatch {
  done(): Promise<void>;
}

interface SendOptions {
  readonly isNamed?: boolean;
  /** Whether a transaction is open. */
  readonly isInside?: boolean;
  /** Goes on the same way, as a commit of its own. */
  readonly following?: FollowingBatch;
}

const STATEMENT_NAMES_MAX = 1000;

export class StatementSender {
  readonly #options: StatementSenderOptions;
  readonly #names = new Map<string, string>();
  readonly #preparedNames = new WeakMap<object, Set<string>>();

  constructor(options: StatementSenderOptions) {
    this.#options = options;
  }

  /** Ends the transaction, if the connection stands. */
  async rollBack(client: Client): Promise<void> {
    try {
      await this.#guard(client, client.query('ROLLBACK'));
    } catch {
      // The connection is lost, and the transaction with it. Report the original error.
    }
  }

  /** Runs the text of any number of statements. */
  async script(client: Client, text: string, phase: Phase): Promise<void> {
    const result = (await this.#answer(client, client.query(text), phase)) as { command?: string };
    if (text === 'COMMIT' && result.command === 'ROLLBACK') {
      throw new DatabaseStatementError(
        'The transaction was rolled back: one of its statements failed and the error was caught.',
        { sqlState: '25P02' },
      );
    }
  }

  /** A statement to send with the next batch. `done` resolves when it no longer needs the client. */
  follow(client: Client, statement: Sql): Following {
    const ended = deferred<void>();
    let isQueued = false;
    const batch = new StatementBatch([this.#prepare(statement, true)], this.#namesKnownTo(client), (error) => {
      if (error) ended.reject(translatePostgresError(error, 'read', this.#options.where));
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

  /** Sends the statements as one batch, which commits on its own outside a transaction. */
  async send(client: Client, statements: readonly Sql[], phase: Phase, options: SendOptions = {}): Promise<Row[][]> {
    const { isNamed = true, following } = options;
    const settings = this.#settings(options);
    const prepared = [...settings, ...statements].map((statement) => this.#prepare(statement, isNamed));
    refuseTooLarge(prepared, this.#options.messageBytesMax ?? MESSAGE_BYTES_MAX);
    const answer = new Promise<Row[][]>((resolve, reject) => {
      const onDone = (error: Error | undefined): void => (error ? reject(error) : resolve(batch.results));
      const batch = new StatementBatch(prepared, this.#namesKnownTo(client), onDone, following);
      client.query(batch);
    });
    return (await this.#answer(client, answer, phase)).slice(settings.length);
  }

  #settings({ isInside = false }: SendOptions): Sql[] {
    const { dialect, hasOwnSessions } = this.#options;
    if (hasOwnSessions) return [];
    return isInside || !dialect.hasSettings ? [foreignSettings] : [foreignIsolation, foreignSettings];
  }

  /** A former primary answers what the present one does not know. */
  async #answer<T>(client: Client, answer: Promise<T>, phase: Phase): Promise<T> {
    const [ended] = await Promise.allSettled([this.#guard(client, answer)]);
    const { isFormer, where } = this.#options;
    if (isFormer(client)) {
      const message = `Postgres at ${where} answered after another server was promoted. The answer does not count.`;
      throw phase === 'write' ? new CommitUnknownError(message) : new DatabaseUnavailableError(message);
    }
    if (ended.status === 'fulfilled') return ended.value;
    throw translatePostgresError(ended.reason, phase, where);
  }

  #guard<T>(client: Client, answer: Promise<T>): Promise<T> {
    return this.#options.silence.guard(
      { stream: client.connection.stream, backend: this.#options.backendOf(client) },
      answer,
    );
  }

  #prepare(statement: Sql, isNamed: boolean): PreparedStatement {
    const { text, values } = render(statement, this.#options.dialect);
    const isPrepared = isNamed && this.#options.isPreparing;
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

/** For statements whose own failure is reported elsewhere or ignored. */
export function rethrowIfLost(error: unknown): void {
  if (isConnectionLost(error)) throw error;
}
