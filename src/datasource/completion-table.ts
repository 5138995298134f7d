// The completion table: which steps of which workflows are done, written in the transactions that they are done in. Its
// key lets only one of two twins commit.
import { DBOSInitializationError, DBOSStepAlreadyRecordedError } from '../model/errors.js';
import type { TransactionOutcome, TransactionStep } from '../engine/plugin.js';
import { postgresDialect } from '../sql/postgres-dialect.js';
import { type Dialect, render, type Sql, sql, table, type Token } from '../sql/sql.js';
import { sqliteDialect } from '../sql/sqlite-dialect.js';
import type { Row, TransactionDriver } from './driver.js';
import { isMissingTable } from './failures.js';
import { decodeOutcome, encodeOutput, encodeThrown, type RecordedStep } from './outcomes.js';

const completions = table('transaction_completion');

/** Where the outcome of a step is recorded, so that it happens once. */
export interface Ledger<Client> {
  /** What is recorded of the step. */
  find(step: TransactionStep): Promise<TransactionOutcome | undefined>;
  /** Records the value of the step in its own transaction. Throws if there is a record, or the workflow is lost. */
  record(step: TransactionStep, client: Client, value: unknown): Promise<void>;
  /** The transaction is durable. */
  onCommitted(step: TransactionStep): void;
  /** Records that the step has failed, after its transaction was rolled back. Throws as `record` does. */
  recordError(step: TransactionStep, error: unknown): Promise<void>;
}

export class CompletionTable<Client> implements Ledger<Client> {
  readonly #driver: TransactionDriver<Client>;
  readonly #dialect: Dialect;

  constructor(driver: TransactionDriver<Client>, schemaName: string) {
    this.#driver = driver;
    this.#dialect = driver.dialect === 'postgres' ? postgresDialect({ schema: schemaName }) : sqliteDialect();
  }

  async find(step: TransactionStep): Promise<TransactionOutcome | undefined> {
    const { workflowID, stepID } = step;
    const statement = sql`
      SELECT output, error
      FROM ${completions}
      WHERE workflow_id = ${workflowID} AND function_num = ${stepID}`;
    const [row] = await this.#driver.transact({ readOnly: true }, (client) => this.#run(client, statement));
    return row && decodeOutcome(step, row);
  }

  async record(step: TransactionStep, client: Client, value: unknown): Promise<void> {
    await this.#insert(step, client, { output: await encodeOutput(step, value), error: null });
  }

  onCommitted(): void {
    // What is to be known stands in the table.
  }

  async recordError(step: TransactionStep, error: unknown): Promise<void> {
    const record = { output: null, error: encodeThrown(error) };
    await this.#driver.transact({}, (client) => this.#insert(step, client, record));
  }

  /**
   * The look at the ownership comes after the record. From there on a new owner waits at the key until this transaction
   * has ended, so that it cannot do the step as well, end the workflow, and have its record removed before.
   */
  async #insert(step: TransactionStep, client: Client, { output, error }: Required<RecordedStep>): Promise<void> {
    const { workflowID, stepID } = step;
    const written = await this.#run(
      client,
      sql`
      INSERT INTO ${completions} (workflow_id, function_num, output, error)
      VALUES (${workflowID}, ${stepID}, ${output}, ${error})
      ON CONFLICT (workflow_id, function_num) DO NOTHING
      RETURNING workflow_id`,
    );
    if (written.length === 0) throw new DBOSStepAlreadyRecordedError(workflowID, stepID);
    await step.assertOwned();
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

  async #run(client: Client, statement: Sql): Promise<readonly Row[]> {
    const { text, values } = render(statement, this.#dialect);
    try {
      return await this.#driver.query(client, text, values);
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
