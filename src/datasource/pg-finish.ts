// The last statement of a transaction and its COMMIT in one round trip. Both are sent before a single Sync: if the
// statement fails, the server skips the COMMIT.
import type { ClientBase } from 'pg';
import { conflict } from './failures.js';
import { StatementBatch, statementName } from '../engine/plugin.js';
import type { Value } from '../sql/sql.js';

type Internals = ClientBase & { readonly connection?: { readonly bind?: unknown }; readonly pipeline?: boolean };

/** Whether the client is one whose protocol we can speak. */
export function canFinish(client: ClientBase): boolean {
  const { connection, pipeline } = client as Internals;
  return typeof connection?.bind === 'function' && pipeline !== true;
}

/** The server does not know the statement, or knows another one, under its name. */
const NAME_TROUBLE = new Set<unknown>(['26000', '42P05']);

/** Ends transactions of one pool. */
export class Finisher {
  readonly #names = new Map<string, string>();
  readonly #prepared = new WeakMap<ClientBase, Set<string>>();
  /** A pooler between here and the server may lead each transaction to another session, which lacks the statement. */
  #hasNames = true;

  /** Runs the statement and commits. If it rejects with an error of the statement, nothing was committed. */
  async finish(client: ClientBase, text: string, values: readonly Value[]): Promise<void> {
    try {
      await this.#send(client, text, values);
    } catch (error) {
      if (!NAME_TROUBLE.has((error as { code?: unknown }).code)) throw error;
      this.#hasNames = false;
      // As a conflict, so that the transaction is run again.
      throw conflict('The statement has to be sent without a name.', { cause: error });
    }
  }

  #send(client: ClientBase, text: string, values: readonly Value[]): Promise<void> {
    const prepared = this.#prepared.get(client) ?? new Set();
    this.#prepared.set(client, prepared);
    return new Promise((resolve, reject) => {
      const statements = [
        { name: this.#hasNames ? this.#nameOf(text) : '', text, values },
        { name: '', text: 'COMMIT', values: [] },
      ];
      const batch = new StatementBatch(statements, prepared, (error) => (error ? reject(error) : resolve()));
      client.query(batch as never);
    });
  }

  #nameOf(text: string): string {
    const name = this.#names.get(text) ?? statementName(text);
    this.#names.set(text, name);
    return name;
  }
}
