// The last statement of a transaction and its COMMIT in one round trip. Both are sent before a single Sync: if the
// statement fails, the server skips the COMMIT. It plugs into `pg` the way its cursors do.
import type { ClientBase } from 'pg';
import type { Value } from '../sql/sql.js';

/** The part of pg's protocol connection that is used. */
interface ProtocolConnection {
  readonly stream: { cork?(): void; uncork?(): void };
  parse(message: { name: string; text: string; types: readonly number[] }): void;
  bind(message: { portal: string; statement: string; values: readonly unknown[]; binary: boolean }): void;
  execute(message: { portal: string; rows: number }): void;
  sync(): void;
}

type Internals = ClientBase & { readonly connection?: Partial<ProtocolConnection>; readonly pipeline?: boolean };

/** Whether the client is one whose protocol we can speak. */
export function canFinish(client: ClientBase): boolean {
  const { connection, pipeline } = client as Internals;
  return typeof connection?.bind === 'function' && pipeline !== true;
}

/** Runs the statement and commits. If it rejects with an error of the statement, nothing was committed. */
export function finishPG(client: ClientBase, text: string, values: readonly Value[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const finish = new Finish(text, values, (error) => (error ? reject(error) : resolve()));
    client.query(finish as never);
  });
}

class Finish {
  readonly #statements: readonly (readonly [text: string, values: readonly Value[]])[];
  readonly #onDone: (error?: Error) => void;

  constructor(text: string, values: readonly Value[], onDone: (error?: Error) => void) {
    this.#statements = [
      [text, values],
      ['COMMIT', []],
    ];
    this.#onDone = onDone;
  }

  submit(connection: ProtocolConnection): void {
    connection.stream.cork?.();
    for (const [text, values] of this.#statements) {
      connection.parse({ name: '', text, types: [] });
      const bound = values.map((value) => (value === null || typeof value === 'string' ? value : String(value)));
      connection.bind({ portal: '', statement: '', values: bound, binary: false });
      connection.execute({ portal: '', rows: 0 });
    }
    connection.sync();
    connection.stream.uncork?.();
  }

  handleDataRow(): void {
    // What the statement gives is known: it fails, or it has written.
  }

  handleCommandComplete(): void {
    // Two of them come; the end tells.
  }

  handleError(error: Error): void {
    this.#onDone(error);
  }

  handleReadyForQuery(): void {
    this.#onDone();
  }
}
