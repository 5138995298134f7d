// How a step runs in a transaction, once for all adapters.
//
//   look up what is recorded (if the step may have run before) ──found──► hand it over
//   run the body in a transaction, and check meanwhile that the run still owns the workflow
//     ──► record its value in the same transaction ──► commit ──► done
//     another owner has recorded the step, a conflict, the connection lost ──► retry, beginning with the look-up
//     any other error of the body ──► rolled back ──► record the error ──► done
//     the run no longer owns the workflow ──► rolled back ──► the run stops
//
// A first run looks nothing up: the key of the record reveals a concurrent owner. Once it is unclear what has happened,
// such as after a COMMIT whose answer was lost, it looks first.
import { type BackoffPolicy, backoffMs } from '../base/backoff.js';
import { type Clock, sleep, systemClock } from '../base/clock.js';
import { withTimeLimit } from '../base/time-limit.js';
import { DBOSError, DBOSInitializationError } from '../model/errors/errors.js';
import {
  type Durability,
  inClient,
  type KeptOutcome,
  type StepOutcome,
  type StepTransactionHandler,
  type TransactionStep,
} from '../engine/plugin.js';
import {
  CREATE_TABLE_SQLITE,
  FIND_TABLE_SQLITE,
  migrateDataSourcePG,
  verifyDataSourcePG,
} from './completion-schema.js';
import { CompletionTable, type Ledger } from './completion-table.js';
import { type PGTransactionConfig, type TransactionDriver, transactionOptionsOf } from './driver.js';
import { conflict, isClosed, isConflict, isConnectionFailure, isOwnFault, shouldRetry } from './failures.js';
import { OpenTransaction } from './open-transaction.js';
import { SharedLedger } from './shared-ledger.js';

export interface HandlerOptions<Client> {
  readonly name: string;
  /** The kind of data source, for people. */
  readonly dsType: string;
  /** Whom the client of a transaction belongs to. */
  readonly owner: object;
  readonly driver: TransactionDriver<Client>;
  readonly schemaName: string;
  readonly runMigrations: boolean;
}

/** Failed attempts in a row before a warning is logged. */
const SILENT_ATTEMPTS = 5;
const POLICY: BackoffPolicy = { firstMs: 1, rate: 1.5, maxMs: 2000, jitter: 0.5 };

/** How long an open transaction, which may hold locks, waits for the system database. */
const PATIENCE_MS = 1000;

/** Waits with a time limit. A transaction that exceeds it is rolled back, and run again after the wait. */
async function briefly(clock: Clock, ready: Promise<void>): Promise<void> {
  await withTimeLimit(clock, PATIENCE_MS, ready, () => {
    throw conflict(`The system database did not answer within ${PATIENCE_MS / 1000} s.`);
  });
}

export class TransactionHandler<Client> implements StepTransactionHandler {
  readonly name: string;
  readonly dsType: string;
  readonly #options: HandlerOptions<Client>;
  readonly #completions: CompletionTable<Client>;
  readonly #shared: SharedLedger<Client>;

  constructor(options: HandlerOptions<Client>) {
    this.name = options.name;
    this.dsType = options.dsType;
    this.#options = options;
    this.#completions = new CompletionTable(options.driver, options.schemaName);
    this.#shared = new SharedLedger(options.driver, this.#completions);
  }

  /** Connects, and makes sure that the completion table exists. */
  async initialize(): Promise<void> {
    const { driver, schemaName, runMigrations } = this.#options;
    try {
      await driver.open();
      if (driver.dialect === 'sqlite') return await this.#initializeSqlite();
      await driver.transact({}, async (client) => {
        const exec = (text: string) => driver.query(client, text, []);
        if (runMigrations) await migrateDataSourcePG(exec, schemaName);
        else await verifyDataSourcePG(exec, schemaName, this.name);
      });
    } catch (error) {
      if (error instanceof DBOSError) throw error;
      throw new DBOSInitializationError(this.#whyUnusable(error), error as Error);
    }
  }

  /** Looks first: creating the table takes the write lock, which another process may hold for long. */
  async #initializeSqlite(): Promise<void> {
    const { driver, runMigrations } = this.#options;
    const found = await driver.transact({ readOnly: true }, (client) => driver.query(client, FIND_TABLE_SQLITE, []));
    if (found.length > 0) return;
    if (runMigrations) await driver.transact({}, (client) => driver.query(client, CREATE_TABLE_SQLITE, []));
    else throw new DBOSInitializationError(this.#whyUnusable('runMigrations is false'));
  }

  #whyUnusable(error: unknown): string {
    const which = `${this.dsType} "${this.name}"`;
    const reason = error instanceof Error ? error.message : String(error);
    if (isConnectionFailure(error))
      return `${which} cannot reach its database: ${reason}. Check that it runs, and its URL.`;
    return (
      `${which} could neither find nor create its table transaction_completion: ${reason}. ` +
      `Call ${this.dsType}.initializeDBOSSchema with a role that may create tables.`
    );
  }

  destroy(): Promise<void> {
    return this.#options.driver.close();
  }

  deleteCheckpoints(workflowID: string, startStep: number, beforeCommit?: () => Promise<void>): Promise<void> {
    return this.#completions.deleteFrom(workflowID, startStep, beforeCommit);
  }

  listRecorded(afterID: string, max: number): Promise<string[]> {
    return this.#completions.list(afterID, max);
  }

  deleteCheckpointsOfAll(workflowIDs: readonly string[], beforeCommit: () => Promise<void>): Promise<void> {
    return this.#completions.deleteAll(workflowIDs, beforeCommit);
  }

  /** Outside of workflows. In a workflow the engine calls `performTransaction`. */
  async invokeTransactionFunction<This, Args extends unknown[], Return>(
    config: unknown,
    target: This,
    func: (this: This, ...args: Args) => Promise<Return>,
    ...args: Args
  ): Promise<Return> {
    const options = transactionOptionsOf(config);
    const body = async (): Promise<Return> => func.apply(target, args);
    const { outcome } = await this.#untilSettled(undefined, () => this.#attempt(options, body));
    if (outcome.kind === 'error') throw outcome.error;
    return outcome.value as Return;
  }

  async performTransaction(step: TransactionStep, config: unknown, body: () => Promise<unknown>): Promise<KeptOutcome> {
    const options = transactionOptionsOf(config);
    if (!options.readOnly) return this.#runRecorded(step, options, body);
    await step.barrier();
    return this.#untilSettled(step, () => this.#attempt(options, body));
  }

  async #runRecorded(
    step: TransactionStep,
    options: PGTransactionConfig,
    body: () => Promise<unknown>,
  ): Promise<KeptOutcome> {
    let isRepeated = false;
    return this.#untilSettled(step, async () => {
      const ledger: Ledger<Client> = (await this.#isShared(step)) ? this.#shared : this.#completions;
      if (isRepeated || !ledger.prepare) await step.barrier();
      const found = isRepeated || !step.isFirstRun ? await ledger.find(step) : undefined;
      if (found) return found;
      isRepeated = true;
      const kept = await this.#attempt(options, body, { step, ledger });
      const { outcome } = kept;
      return outcome.kind === 'value' ? kept : { outcome, durability: await ledger.recordError(step, outcome.error) };
    });
  }

  /** Repeats until there is an outcome. */
  async #untilSettled(step: TransactionStep | undefined, attempt: () => Promise<KeptOutcome>): Promise<KeptOutcome> {
    for (let failures = 1; ; failures += 1) {
      try {
        return await attempt();
      } catch (error) {
        if (!shouldRetry(error, { isStep: step !== undefined })) throw error;
        if (failures === SILENT_ATTEMPTS) {
          step?.runtime.logger.warn(
            `Data source "${this.name}" tries "${step.name}" again until it works: ${String(error)}`,
          );
        }
        const delayMs = backoffMs(POLICY, failures);
        await (step ? step.waitToRetry(delayMs) : sleep(systemClock, delayMs));
      }
    }
  }

  /** One transaction. Errors of the body are an outcome; an error that may be retried is thrown. */
  async #attempt(
    options: PGTransactionConfig,
    body: () => Promise<unknown>,
    recording?: { readonly step: TransactionStep; readonly ledger: Ledger<Client> },
  ): Promise<KeptOutcome> {
    let failed: StepOutcome | undefined;
    try {
      return await this.#options.driver.transact(options, async (client) => {
        const record = recording && this.#beginRecord(client, recording);
        const outcome = await this.#callBody(client, body);
        if (outcome.kind === 'error') {
          failed = outcome;
          throw outcome.error;
        }
        return { outcome, durability: record ? await record(outcome.value) : 'none' };
      });
    } catch (error) {
      // Some clients throw that the rollback failed instead of what led to it.
      if (failed) return { outcome: failed, durability: 'none' };
      if (isOwnFault(error)) return { outcome: { kind: 'error', error }, durability: 'none' };
      if (error instanceof DBOSError || isConflict(error) || isConnectionFailure(error)) throw error;
      return { outcome: { kind: 'error', error }, durability: 'none' };
    }
  }

  /** Begins to prepare the record, beside the body. The returned function writes it. */
  #beginRecord(
    client: Client,
    { step, ledger }: { readonly step: TransactionStep; readonly ledger: Ledger<Client> },
  ): (value: unknown) => Promise<Durability> {
    const { clock } = step.runtime;
    const transaction = new OpenTransaction(client, clock);
    const ready = ledger.prepare?.(step);
    // Awaited after the body. If the body fails first, it does not matter.
    ready?.catch(() => {});
    return async (value) => {
      if (ready) await briefly(clock, ready);
      return ledger.record(step, transaction, value);
    };
  }

  async #callBody(client: Client, body: () => Promise<unknown>): Promise<StepOutcome> {
    try {
      return { kind: 'value', value: await inClient(this.#options.owner, client, body) };
    } catch (error) {
      if (isConflict(error)) throw error;
      // The body may have lost a connection to something else than the database.
      if (isConnectionFailure(error) && (isClosed(error) || (await this.#isGone(client)))) throw error;
      return { kind: 'error', error };
    }
  }

  async #isGone(client: Client): Promise<boolean> {
    try {
      await this.#options.driver.query(client, 'SELECT 1', []);
      return false;
    } catch (error) {
      return isConnectionFailure(error);
    }
  }

  /** Asked outside of the step's transaction, which a failed query would break. */
  #isShared(step: TransactionStep): Promise<boolean> {
    const { driver } = this.#options;
    return step.joined.isPossible(this, (text, values) =>
      driver
        .transact({ readOnly: true }, (client) => driver.query(client, text, values))
        .catch((error: unknown) => {
          if (isConnectionFailure(error) || isConflict(error)) throw error;
          // A database that refuses the query is not the system database.
          return [];
        }),
    );
  }
}
