// The completion table: the outcomes of steps, each written in the step's own transaction. Its key lets only one of two
// concurrent owners commit a step.
import { DBOSInitializationError, DBOSStepAlreadyRecordedError } from '../model/errors/errors.js';
import type { Durability, KeptOutcome, TransactionStep } from '../engine/plugin.js';
import { postgresDialect } from '../sql/postgres-dialect.js';
import { refusal } from '../sql/refusal.js';
import { type Dialect, nowMs, render, type Sql, sql, table, type Token } from '../sql/sql.js';
import { sqliteDialect } from '../sql/sqlite-dialect.js';
import type { Row, TransactionDriver } from './driver.js';
import { isMissingTable } from './failures.js';
import { writeLast } from './last-statement.js';
import { OpenTransaction } from './open-transaction.js';
import { decodeOutcome, encodeOutput, encodeThrown, type RecordedStep } from './outcomes.js';

const completions = table('transaction_completion');

/** Where the outcome of a step is recorded, so that it happens once. */
export interface Ledger<Client> {
  /** What is recorded of the step. */
  find(step: TransactionStep): Promise<KeptOutcome | undefined>;
  /**
   * Started when a transaction has begun, and awaited before its record: the barrier, and the check of ownership. Throws
   * if the transaction must not commit. Without it, the barrier comes before the transaction.
   */
  readonly prepare?: ((step: TransactionStep) => Promise<void>) | undefined;
  /**
   * Records the value of the step in its own transaction, and says how durable it is once that has committed. Throws if
   * there is a record, or the workflow is lost.
   */
  record(step: TransactionStep, transaction: OpenTransaction<Client>, value: unknown): Promise<Durability>;
  /** Records that the step has failed, after its transaction was rolled back. Throws as `record` does. */
  recordError(step: TransactionStep, error: unknown): Promise<Durability>;
}

/** How soon after the beginning of its transaction a record must be written. Far less than records are kept. */
const RECORD_WITHIN_SECONDS = 20;
/** Older records were left behind, if their workflow has ended. */
const OLD_MS = 120_000;
/** A transaction that has lasted so long does not rely on that. */
const LONG_MS = 10_000;

export class CompletionTable<Client> implements Ledger<Client> {
  readonly prepare: Ledger<Client>['prepare'];
  readonly #driver: TransactionDriver<Client>;
  readonly #dialect: Dialect;
  readonly #recordWithinSeconds: number;

  constructor(
    driver: TransactionDriver<Client>,
    schemaName: string,
    { recordWithinSeconds = RECORD_WITHIN_SECONDS } = {},
  ) {
    this.#driver = driver;
    this.#recordWithinSeconds = recordWithinSeconds;
    // On SQLite, an open transaction would hold the lock that the barrier waits for.
    this.prepare = driver.dialect === 'postgres' ? (step) => step.assertCommitAllowed() : undefined;
    this.#dialect = driver.dialect === 'postgres' ? postgresDialect({ schema: schemaName }) : sqliteDialect();
  }

  async find(step: TransactionStep): Promise<KeptOutcome | undefined> {
    const { workflowID, stepID } = step;
    const statement = sql`
      SELECT output, error
      FROM ${completions}
      WHERE workflow_id = ${workflowID} AND function_num = ${stepID}`;
    const [row] = await this.#driver.transact({ readOnly: true }, (client) => this.#run(client, statement));
    return row && { outcome: await decodeOutcome(step, row), durability: 'recorded' };
  }

  async record(step: TransactionStep, transaction: OpenTransaction<Client>, value: unknown): Promise<Durability> {
    return this.#insert(step, transaction, { output: await encodeOutput(step, value), error: null });
  }

  async recordError(step: TransactionStep, error: unknown): Promise<Durability> {
    const record = { output: null, error: encodeThrown(error) };
    await step.barrier();
    return this.#driver.transact({}, async (client) => {
      const transaction = new OpenTransaction(client, step.runtime.clock);
      await this.prepare?.(step);
      return this.#insert(step, transaction, record);
    });
  }

  /**
   * Of two owners of a workflow, the key of the record lets one do the step. That must hold until no former owner can
   * commit any more, although records are removed when the workflow has ended. So a transaction takes one of two paths:
   *
   * - Ownership was checked after the transaction had begun, and the database, by its own clock, accepts the record only
   *   soon after that beginning. Records that a concurrent owner may run into are kept longer than that.
   * - Ownership is checked after the record. From then on a new owner waits at the key.
   */
  async #insert(
    step: TransactionStep,
    { client, ageMs }: OpenTransaction<Client>,
    record: Required<RecordedStep>,
  ): Promise<Durability> {
    const { workflowID, stepID } = step;
    const isSoon = this.prepare !== undefined && ageMs < LONG_MS;
    const statement = isSoon ? insertWithin(this.#recordWithinSeconds, step, record) : insertion(step, record);
    const isWritten = isSoon
      ? await this.#explained(() => writeLast(this.#driver, client, render(statement, this.#dialect)))
      : (await this.#run(client, statement)).length > 0;
    if (!isWritten) throw new DBOSStepAlreadyRecordedError(workflowID, stepID);
    if (!isSoon) await step.assertOwned();
    return 'recorded';
  }

  /** The workflows after an ID that have old records. */
  async list(afterID: string, max: number): Promise<string[]> {
    const statement = sql`
      SELECT DISTINCT workflow_id
      FROM ${completions}
      WHERE workflow_id > ${afterID} AND created_at < ${nowMs} - ${OLD_MS}
      ORDER BY workflow_id
      LIMIT ${max}`;
    const found = await this.#driver.transact({ readOnly: true }, (client) => this.#run(client, statement));
    return found.map((row) => String(row['workflow_id']));
  }

  /** Deletes the records of a workflow from a step on. */
  async deleteFrom(workflowID: string, startStep: number, beforeCommit?: () => Promise<void>): Promise<void> {
    const statement = sql`
      DELETE FROM ${completions}
      WHERE workflow_id = ${workflowID} AND function_num >= ${startStep}`;
    await this.#delete(statement, beforeCommit);
  }

  /** Deletes all records of the workflows. */
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

  #run(client: Client, statement: Sql): Promise<readonly Row[]> {
    const { text, values } = render(statement, this.#dialect);
    return this.#explained(() => this.#driver.query(client, text, values));
  }

  async #explained<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (!isMissingTable(error)) throw error;
      throw new DBOSInitializationError(
        `The table ${this.#dialect.table('transaction_completion')} does not exist in the application's database. ` +
          'Call initializeDBOSSchema of the data source, or launch with runMigrations.',
        error as Error,
      );
    }
  }
}

function insertion({ workflowID, stepID }: TransactionStep, { output, error }: Required<RecordedStep>): Sql {
  return sql`
    INSERT INTO ${completions} (workflow_id, function_num, output, error)
    VALUES (${workflowID}, ${stepID}, ${output}, ${error})
    ON CONFLICT (workflow_id, function_num) DO NOTHING
    RETURNING workflow_id`;
}

/** The same, which fails if it is too late by the clock of the database, or there is a record. Postgres only. */
function insertWithin(
  seconds: number,
  { workflowID, stepID }: TransactionStep,
  { output, error }: Required<RecordedStep>,
): Sql {
  return sql`
    INSERT INTO ${completions} (workflow_id, function_num, output, error)
    VALUES (
      ${workflowID},
      CASE WHEN clock_timestamp() - transaction_timestamp()
        BETWEEN INTERVAL '0' AND make_interval(secs => CAST(${seconds} AS DOUBLE PRECISION))
      THEN CAST(${stepID} AS INTEGER) ELSE ${refusal} END,
      ${output},
      ${error})`;
}

/** One of the values, in a form that every client can bind. */
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
