// The completion table: outcomes of steps, each written in the step's own transaction. Its primary key lets only one of
// two concurrent owners commit a step.
import type { MaybePromise } from '../../kernel/codec/maybe-promise.js';
import { DBOSInitializationError, DBOSStepAlreadyRecordedError } from '../../kernel/errors/errors.js';
import type { Durability, KeptOutcome, RecordedWorkflow, TransactionStep } from '../../run/plugin.js';
import { postgresDialect } from '../../kernel/sql/postgres-dialect.js';
import { refusal } from '../../kernel/sql/refusal.js';
import { type Dialect, nowMs, render, type Sql, sql, table, type Token } from '../../kernel/sql/sql.js';
import { sqliteDialect } from '../../kernel/sql/sqlite-dialect.js';
import type { Row, TransactionDriver } from './driver.js';
import { conflict, isMissingTable } from './failures.js';
import { writeLast } from './last-statement.js';
import { OpenTransaction } from './open-transaction.js';
import { decodeOutcome, encodeOutput, encodeThrown, type RecordedStep } from './outcomes.js';
import { ServerTimes } from './server-times.js';
import { isRecordOf, MARK_HEAD_LENGTH, MARK_START, systemIDIn } from './record-mark.js';

const completions = table('transaction_completion');

/** Where the outcomes of transaction steps are recorded, so that each commits once. */
export interface OutcomeStore<Client> {
  /** The recorded outcome of the step, if any. */
  find(step: TransactionStep): Promise<KeptOutcome | undefined>;
  /**
   * Passes the barrier and checks ownership. Called when a transaction has begun and awaited before its record; throws
   * if the transaction must not commit. Without it, the barrier comes before the transaction. No promise: it may commit.
   */
  readonly prepare?: ((step: TransactionStep, client: Client) => MaybePromise<void>) | undefined;
  /** Whether the transaction must have begun before `prepare` is called. Default: no. */
  mustBegin?(client: Client): boolean;
  /**
   * Records the value of the step in its own transaction. Returns where it is durable once that has committed. Throws
   * if there is a record, or the workflow is lost.
   */
  record(step: TransactionStep, transaction: OpenTransaction<Client>, value: unknown): Promise<Durability>;
  /** Records the step's error, after its transaction was rolled back. Throws like `record`. */
  recordError(step: TransactionStep, error: unknown): Promise<Durability>;
}

/** How soon after the start of its transaction a record must be written. Much less than records are kept. */
const RECORD_WITHIN_SECONDS = 20;
/** If their workflow has ended, older records were left behind by a dead process. */
const OLD_MS = 120_000;
/** A transaction that has lasted this long must check ownership after its record instead. */
const LONG_MS = 10_000;

export class CompletionTable<Client> implements OutcomeStore<Client> {
  readonly prepare: OutcomeStore<Client>['prepare'];
  readonly #driver: TransactionDriver<Client>;
  readonly #dialect: Dialect;
  readonly #recordWithinSeconds: number;
  /** The records of earlier workflows with the same ID, in the way of these steps. */
  readonly #stale = new WeakMap<TransactionStep, string>();
  readonly #times = new ServerTimes<Client>();

  constructor(
    driver: TransactionDriver<Client>,
    schemaName: string,
    { recordWithinSeconds = RECORD_WITHIN_SECONDS } = {},
  ) {
    this.#driver = driver;
    this.#recordWithinSeconds = recordWithinSeconds;
    // On SQLite, an open transaction may hold the lock that the barrier waits for.
    this.prepare =
      driver.dialect === 'postgres'
        ? (step, client) => step.assertCommitAllowed(this.#times.startOf(client))
        : undefined;
    this.#dialect = driver.dialect === 'postgres' ? postgresDialect({ schema: schemaName }) : sqliteDialect();
  }

  /** The time limit of a record starts before ownership is checked: with the transaction, or at an earlier answer. */
  mustBegin(client: Client): boolean {
    return !this.#times.startAtLatest(client);
  }

  async find(step: TransactionStep): Promise<KeptOutcome | undefined> {
    const { workflowID, stepID } = step;
    const statement = sql`
      SELECT output, error
      FROM ${completions}
      WHERE workflow_id = ${workflowID} AND function_num = ${stepID}`;
    const [row] = await this.#driver.transact({ readOnly: true }, (client) => this.#run(client, statement));
    this.#stale.delete(step);
    if (!row) return undefined;
    const text = row['error'] ?? row['output'];
    if (typeof text === 'string' && !isRecordOf(step, text)) {
      this.#stale.set(step, text);
      return undefined;
    }
    return { outcome: await decodeOutcome(step, row), durability: 'recorded' };
  }

  async record(step: TransactionStep, transaction: OpenTransaction<Client>, value: unknown): Promise<Durability> {
    return this.#insert(step, transaction, { output: await encodeOutput(step, value), error: null });
  }

  async recordError(step: TransactionStep, error: unknown): Promise<Durability> {
    const record = { output: null, error: encodeThrown(step, error) };
    await step.barrier();
    return this.#driver.transact({ mustBegin: (client) => this.mustBegin(client) }, async (client) => {
      const transaction = new OpenTransaction(client, step.runtime.clock);
      await this.prepare?.(step, client);
      return this.#insert(step, transaction, record);
    });
  }

  /**
   * If a workflow has two owners, the primary key lets one of them commit the step. This must hold until no former owner
   * can commit any more, although records are deleted when the workflow has ended. So a transaction takes one of two
   * paths:
   *
   * - Ownership was checked after the transaction had begun, or after an earlier answer of the database, and the database
   *   accepts the record only soon after that, by its own clock. Records that a concurrent owner may conflict with are kept longer than that.
   * - Ownership is checked after the record is written. From then on a new owner blocks on the key.
   */
  async #insert(
    step: TransactionStep,
    { client, ageMs }: OpenTransaction<Client>,
    record: Required<RecordedStep>,
  ): Promise<Durability> {
    const { workflowID, stepID } = step;
    const stale = this.#stale.get(step);
    // In the same transaction: a former owner of the earlier workflow must never find the key free.
    if (stale !== undefined) await this.#run(client, deletionOf(step, stale));
    const isSoon = this.prepare !== undefined && ageMs < LONG_MS;
    const isWritten = isSoon
      ? await this.#insertSoon(step, client, record)
      : (await this.#run(client, insertion(step, record))).length > 0;
    if (!isWritten) throw new DBOSStepAlreadyRecordedError(workflowID, stepID);
    if (!isSoon) await step.assertOwned();
    return 'recorded';
  }

  async #insertSoon(step: TransactionStep, client: Client, record: Required<RecordedStep>): Promise<boolean> {
    const isInTime = this.#times.isWithin(client, this.#recordWithinSeconds);
    const statement = render(insertIf(isInTime, step, record, this.#times.returned), this.#dialect);
    try {
      const written = await writeLast(this.#driver, client, statement);
      this.#times.note(client, written?.[0]);
      return written !== undefined;
    } catch (error) {
      if (!this.#times.isUnsupported(error)) throw this.#explain(error);
      throw conflict('The record has to be written without the time of the server.', { cause: error });
    }
  }

  /** Workflows with old records, after an ID. */
  async list(afterID: string, max: number): Promise<RecordedWorkflow[]> {
    const statement = sql`
      SELECT workflow_id, MIN(substr(COALESCE(output, error), 1, CAST(${MARK_HEAD_LENGTH} AS INTEGER))) AS head
      FROM ${completions}
      WHERE workflow_id > ${afterID} AND created_at < ${nowMs} - ${OLD_MS}
      GROUP BY workflow_id
      ORDER BY workflow_id
      LIMIT ${max}`;
    const found = await this.#driver.transact({ readOnly: true }, (client) => this.#run(client, statement));
    return found.map((row) => ({
      workflowID: String(row['workflow_id']),
      systemID: systemIDIn(String(row['head'])),
    }));
  }

  async deleteFrom(workflowID: string, startStep: number, beforeCommit?: () => Promise<void>): Promise<void> {
    const statement = sql`
      DELETE FROM ${completions}
      WHERE workflow_id = ${workflowID} AND function_num >= ${startStep}`;
    await this.#delete(statement, beforeCommit);
  }

  /** Deletes the records that do not say which workflow they belong to, from a step on. */
  async deleteUnmarked(
    workflowIDs: readonly string[],
    startStep: number,
    beforeCommit: () => Promise<void>,
  ): Promise<void> {
    const statement = sql`
      DELETE FROM ${completions}
      WHERE workflow_id ${oneOfJSON(workflowIDs)} AND function_num >= ${startStep}
        AND substr(COALESCE(output, error, ''), 1, CAST(${MARK_START.length} AS INTEGER)) <> ${MARK_START}`;
    await this.#delete(statement, beforeCommit);
  }

  async deleteAll(workflowIDs: readonly string[], beforeCommit: () => Promise<void>): Promise<void> {
    const statement = sql`
      DELETE FROM ${completions}
      WHERE workflow_id ${oneOfJSON(workflowIDs)}`;
    await this.#delete(statement, beforeCommit);
  }

  async #delete(statement: Sql, beforeCommit?: () => Promise<void>): Promise<void> {
    await this.#driver.transact({}, async (client) => {
      await this.#run(client, statement);
      await beforeCommit?.();
    });
  }

  async #run(client: Client, statement: Sql): Promise<readonly Row[]> {
    const { text, values } = render(statement, this.#dialect);
    try {
      return await this.#driver.query(client, text, values);
    } catch (error) {
      throw this.#explain(error);
    }
  }

  #explain(error: unknown): unknown {
    if (!isMissingTable(error)) return error;
    return new DBOSInitializationError(
      `The table ${this.#dialect.table('transaction_completion')} does not exist in the application's database. ` +
        'Call initializeDBOSSchema of the data source, or launch with runMigrations.',
      error as Error,
    );
  }
}

/** Deletes the record of the step if it is still this one. */
function deletionOf({ workflowID, stepID }: TransactionStep, text: string): Sql {
  return sql`
    DELETE FROM ${completions}
    WHERE workflow_id = ${workflowID} AND function_num = ${stepID} AND COALESCE(error, output) = ${text}`;
}

function insertion({ workflowID, stepID }: TransactionStep, { output, error }: Required<RecordedStep>): Sql {
  return sql`
    INSERT INTO ${completions} (workflow_id, function_num, output, error)
    VALUES (${workflowID}, ${stepID}, ${output}, ${error})
    ON CONFLICT (workflow_id, function_num) DO NOTHING
    RETURNING workflow_id`;
}

/** Fails if the condition does not hold, or there is a record. Postgres only. */
function insertIf(
  condition: Token,
  { workflowID, stepID }: TransactionStep,
  { output, error }: Required<RecordedStep>,
  returned: Sql,
): Sql {
  return sql`
    INSERT INTO ${completions} (workflow_id, function_num, output, error)
    VALUES (
      ${workflowID},
      CASE WHEN ${condition} THEN CAST(${stepID} AS INTEGER) ELSE ${refusal} END,
      ${output},
      ${error})
    RETURNING ${returned}`;
}

/** `IN (…)` with one bound JSON text, which every client can bind. */
function oneOfJSON(list: readonly string[]): Token {
  return {
    shape: 'any-json;',
    write(out) {
      const isPostgres = out.dialect.name === 'postgres';
      out.text(isPostgres ? 'IN (SELECT json_array_elements_text(' : 'IN (SELECT value FROM json_each(');
      out.placeholder();
      out.text(isPostgres ? '::text::json))' : '))');
    },
    collect: (values) => values.push(JSON.stringify(list)),
  };
}
