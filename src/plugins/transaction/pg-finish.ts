// Sends the last statement of a transaction and its COMMIT in one round trip. Both precede a single Sync, so the server
// skips the COMMIT if the statement fails.
import type { ClientBase } from 'pg';
import { conflict } from './failures.js';
import { StatementBatch, statementName } from '../../run/plugin.js';
import type { Value } from '../../kernel/sql/sql.js';
import type { Row } from './driver.js';

/** The session does not have the prepared statement, or has another one under its name. */
const NAME_ERRORS = new Set<unknown>(['26000', '42P05']);

/** Ends the transactions of one pool. */
export class Finisher {
  readonly #names = new Map<string, string>();
  readonly #prepared = new WeakMap<ClientBase, Set<string>>();
  readonly #finished = new WeakSet<ClientBase>();
  /** Whether to name prepared statements. A pooler may run each transaction in another session, which lacks them. */
  #usesNames = true;

  /** Runs the statement, commits, and returns what the statement did. If it rejects with an error of the statement, nothing is committed. */
  finish(client: ClientBase, text: string, values: readonly Value[]): Promise<readonly Row[]> {
    return new Promise((resolve, reject) => {
      const statements = [
        { name: this.#usesNames ? this.#nameOf(text) : '', text, values },
        { name: '', text: 'COMMIT', values: [] },
      ];
      const batch: StatementBatch = new StatementBatch(statements, this.#preparedBy(client), (error) => {
        if (error) return reject(this.#judge(error));
        this.#finished.add(client);
        resolve(batch.results[0] ?? []);
      });
      client.query(batch as never);
    });
  }

  /** Whether the transaction of the client was committed by `finish`. Asked once for each transaction. */
  hasFinished(client: ClientBase): boolean {
    return this.#finished.delete(client);
  }

  #preparedBy(client: ClientBase): Set<string> {
    let prepared = this.#prepared.get(client);
    if (!prepared) this.#prepared.set(client, (prepared = new Set()));
    return prepared;
  }

  #judge(error: Error): Error {
    if (!NAME_ERRORS.has((error as { code?: unknown }).code)) return error;
    this.#usesNames = false;
    return conflict('The statement has to be sent without a name.', { cause: error });
  }

  #nameOf(text: string): string {
    const name = this.#names.get(text) ?? statementName(text);
    this.#names.set(text, name);
    return name;
  }
}
