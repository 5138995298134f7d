// Where the application's database is the system database, a step is recorded by its checkpoint: it joins the transaction,
// guarded by ownership, and no further record is needed.
import { DBOSStepAlreadyRecordedError } from '../model/errors.js';
import type { TransactionOutcome, TransactionStep } from '../engine/plugin.js';
import type { CompletionTable, Ledger } from './completion-table.js';
import type { TransactionDriver } from './driver.js';

const NOTHING_WRITTEN = 'everstep wrote nothing';

/** The statement as one that fails if it writes no row, so that the COMMIT behind it is skipped. */
function failingIfNone(text: string): string {
  return `WITH written AS (${text})
    SELECT CASE WHEN COUNT(*) = 1 THEN 1 ELSE ('${NOTHING_WRITTEN}: ' || COUNT(*))::int END FROM written`;
}

export class SharedLedger<Client> implements Ledger<Client> {
  readonly #driver: TransactionDriver<Client>;
  readonly #completions: CompletionTable<Client>;

  constructor(driver: TransactionDriver<Client>, completions: CompletionTable<Client>) {
    this.#driver = driver;
    this.#completions = completions;
  }

  /** A record in the completion table is one of an earlier run that did not know the database to be shared. */
  async find(step: TransactionStep): Promise<TransactionOutcome | undefined> {
    await step.assertOwned();
    return (await step.findCheckpoint()) ?? (await this.#completions.find(step));
  }

  async record(step: TransactionStep, client: Client, value: unknown): Promise<void> {
    const { text, values } = await step.joined(value);
    if (!this.#driver.finish) {
      if ((await this.#driver.query(client, text, values)).length === 1) return;
      throw new DBOSStepAlreadyRecordedError(step.workflowID, step.stepID);
    }
    try {
      await this.#driver.finish(client, failingIfNone(text), values);
    } catch (error) {
      if (!String((error as Error).message).includes(NOTHING_WRITTEN)) throw error;
      throw new DBOSStepAlreadyRecordedError(step.workflowID, step.stepID, { cause: error });
    }
  }

  onCommitted(step: TransactionStep): void {
    step.onJoined();
  }

  async recordError(): Promise<void> {
    // The engine writes the checkpoint of a failed step.
  }
}
