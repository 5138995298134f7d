// The protocol of transaction steps, once for all adapters.
//
//   look up what is recorded (if the step may have run before) ──found──► replay it
//   run the body in a transaction, and look beside it whether the workflow is still this run's
//     ──► record its value in the same transaction ──► commit ──► done
//     a twin has recorded the step, a conflict with others, the connection lost ──► again, from the look-up
//     any other error of the body ──► rolled back ──► record the error ──► done
//     the workflow is no longer this run's ──► rolled back ──► the run stops
//
// A first run looks nothing up: the key of the record tells it of a twin. After any doubt, such as a COMMIT whose answer
// was lost, it looks first.
import { type BackoffPolicy, backoffMs } from '../base/backoff.js';
import { type Clock, sleep, systemClock } from '../base/clock.js';
import { deferred } from '../base/deferred.js';
import { DBOSError, DBOSInitializationError } from '../model/errors/errors.js';
import {
  currentTransaction,
  type DataSourceTransactionHandler,
  inClient,
  type TransactionOutcome,
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
import { conflict, isClosed, isConflict, isConnectionFailure, isOwnFault, isPassing } from './failures.js';
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

/** Attempts that fail in a row before the log speaks up. */
const SILENT_ATTEMPTS = 5;
const POLICY: BackoffPolicy = { firstMs: 1, rate: 1.5, maxMs: 2000, jitter: 0.5 };

/** How long an open transaction, which may hold locks, waits for the system database. */
const PATIENCE_MS = 1000;

/** Waits, but not for long. The transaction is rolled back then, and run again after the wait. */
async function briefly(clock: Clock, ready: Promise<void>): Promise<void> {
  const settled = deferred<void>();
  const timer = clock.after(PATIENCE_MS, () =>
    settled.reject(conflict(`The system database did not answer within ${PATIENCE_MS / 1000} s.`)),
  );
  ready.then(
    () => settled.resolve(),
    (error: unknown) => settled.reject(error),
  );
  try {
    await settled.promise;
  } finally {
    timer.cancel();
  }
}

export class TransactionHandler<Client> implements DataSourceTransactionHandler {
  readonly name: string;
  readonly dsType: string;
  readonly waitsForBarrier = true;
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

  /** Connects, and sees to it that the completion table is there. */
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

  /** Looks first: to create the table takes the lock, which somebody else may hold for long. */
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

  async invokeTransactionFunction<This, Args extends unknown[], Return>(
    config: unknown,
    target: This,
    func: (this: This, ...args: Args) => Promise<Return>,
    ...args: Args
  ): Promise<Return> {
    const options = transactionOptionsOf(config);
    const body = async (): Promise<Return> => func.apply(target, args);
    const step = currentTransaction();
    const outcome =
      step && !options.readOnly
        ? await this.#runRecorded(step, options, body)
        : await this.#runPlain(step, options, body);
    if (outcome.kind === 'error') throw outcome.error;
    return outcome.value as Return;
  }

  /** Outside of workflows, and for what changes nothing. */
  async #runPlain(
    step: TransactionStep | undefined,
    options: PGTransactionConfig,
    body: () => Promise<unknown>,
  ): Promise<TransactionOutcome> {
    step?.leaveNoRecord();
    await step?.barrier();
    return this.#untilSettled(step, () => this.#attempt(options, body));
  }

  async #runRecorded(
    step: TransactionStep,
    options: PGTransactionConfig,
    body: () => Promise<unknown>,
  ): Promise<TransactionOutcome> {
    let isRepeated = false;
    return this.#untilSettled(step, async () => {
      const ledger: Ledger<Client> = (await this.#isShared(step)) ? this.#shared : this.#completions;
      if (isRepeated || !ledger.prepare) await step.barrier();
      const found = isRepeated || !step.isFirstRun ? await ledger.find(step) : undefined;
      if (found) return found;
      isRepeated = true;
      const outcome = await this.#attempt(options, body, { step, ledger });
      if (outcome.kind === 'error') await ledger.recordError(step, outcome.error);
      return outcome;
    });
  }

  /** Repeats until there is an outcome. Outside of workflows only conflicts are worth it: nobody waits there for long. */
  async #untilSettled(
    step: TransactionStep | undefined,
    attempt: () => Promise<TransactionOutcome>,
  ): Promise<TransactionOutcome> {
    for (let failures = 1; ; failures += 1) {
      step?.check();
      try {
        return await attempt();
      } catch (error) {
        step?.check();
        if (!isConflict(error) && !(step && (isConnectionFailure(error) || isPassing(error)))) throw error;
        step?.onRepeated();
        if (failures === SILENT_ATTEMPTS) {
          step?.logger.warn(`Data source "${this.name}" keeps retrying "${step.name}": ${String(error)}`);
        }
        await sleep(step?.clock ?? systemClock, backoffMs(POLICY, failures), step?.signal);
      }
    }
  }

  /** One transaction. Errors of the body are an outcome; whatever may be tried again is thrown. */
  async #attempt(
    options: PGTransactionConfig,
    body: () => Promise<unknown>,
    record?: { readonly step: TransactionStep; readonly ledger: Ledger<Client> },
  ): Promise<TransactionOutcome> {
    let failed: TransactionOutcome | undefined;
    try {
      const value = await this.#options.driver.transact(options, async (client) => {
        record?.step.onBegun();
        const ready = record?.ledger.prepare?.(record.step);
        // Heeded after the body; a body that fails first leaves nobody to hear of it.
        ready?.catch(() => {});
        const result = await this.#callBody(client, body);
        if (result.kind === 'error') {
          failed = result;
          throw result.error;
        }
        if (record && ready) await briefly(record.step.clock, ready);
        await record?.ledger.record(record.step, client, result.value);
        return result.value;
      });
      record?.ledger.onCommitted(record.step);
      return { kind: 'value', value };
    } catch (error) {
      // Some clients throw that the rollback failed instead of what led to it.
      if (failed) return failed;
      record?.step.check();
      if (isOwnFault(error)) return { kind: 'error', error };
      if (error instanceof DBOSError || isConflict(error) || isConnectionFailure(error)) throw error;
      return { kind: 'error', error };
    }
  }

  async #callBody(client: Client, body: () => Promise<unknown>): Promise<TransactionOutcome> {
    try {
      return { kind: 'value', value: await inClient(this.#options.owner, client, body) };
    } catch (error) {
      if (isConflict(error)) throw error;
      // The body may have talked to others than the database, and lost the connection to them.
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

  /** Asked apart from the step's transaction, which a failed question would spoil. */
  #isShared(step: TransactionStep): Promise<boolean> {
    const { driver } = this.#options;
    return step.isSharedWith(this, (text, values) =>
      driver
        .transact({ readOnly: true }, (client) => driver.query(client, text, values))
        .catch((error: unknown) => {
          if (isConnectionFailure(error) || isConflict(error)) throw error;
          // Whatever refuses the question is not the system database.
          return [];
        }),
    );
  }
}
