// Runs several prepared statements on one connection in one round trip and one commit. They are pipelined with a single
// Sync at the end, which makes them one implicit transaction: each sees the effects of those before it, and a failure undoes
// them all. It plugs into `pg` as its cursors do.
import { createHash } from 'node:crypto';
import { invariant } from '../../kernel/base/assert.js';
import type { Value } from '../../kernel/sql/sql.js';
import type { Row } from '../database.js';
import type { Stream } from './pg-session.js';

/** A statement ready to send. `name` is empty if named statements may not be used. */
export interface PreparedStatement {
  readonly name: string;
  readonly text: string;
  readonly values: readonly Value[];
}

/** A statement's name. It depends only on the text, so all users of the connection agree on it. */
export function statementName(text: string): string {
  return `everstep_${createHash('sha256').update(text).digest('hex').slice(0, 32)}`;
}

/** The part of pg's protocol connection that we use. */
export interface ProtocolConnection {
  readonly stream: Stream & { cork?(): void; uncork?(): void };
  parse(message: { name: string; text: string; types: readonly number[] }): void;
  bind(message: { portal: string; statement: string; values: readonly unknown[]; binary: boolean }): void;
  describe(message: { type: 'P' | 'S'; name: string }): void;
  execute(message: { portal: string; rows: number }): void;
  close(message: { type: 'P' | 'S'; name: string }): void;
  sync(): void;
}

interface WiredStatement extends Omit<PreparedStatement, 'values'> {
  readonly values: readonly (string | Buffer | null)[];
}

interface FieldDescription {
  readonly name: string;
  readonly dataTypeID: number;
}

/** A batch that is a commit of its own, right behind another one. */
export interface FollowingBatch {
  readonly batch: StatementBatch;
  /** Queues the batch at the client, which then only waits for the responses. */
  queue(): void;
}

export class StatementBatch {
  readonly results: Row[][];
  readonly #statements: readonly WiredStatement[];
  readonly #preparedNames: Set<string>;
  readonly #onDone: (error: Error | undefined) => void;
  readonly #following: FollowingBatch | undefined;
  #isWritten = false;
  #current = 0;
  #fields: readonly FieldDescription[] = [];
  /** A row without values, made for the first row of a statement. */
  #blank: Record<string, unknown> | undefined;

  /**
   * `preparedNames` are the statements that this connection knows already; it is added to on success. `following` is
   * written in one go with this batch.
   */
  constructor(
    statements: readonly PreparedStatement[],
    preparedNames: Set<string>,
    onDone: (error: Error | undefined) => void,
    following?: FollowingBatch,
  ) {
    // Not while they are written: a value that cannot be converted would leave the connection with half of a request.
    this.#statements = statements.map((statement) => ({ ...statement, values: statement.values.map(toWire) }));
    this.#preparedNames = preparedNames;
    this.#onDone = onDone;
    this.#following = following;
    this.results = statements.map(() => []);
  }

  /** Returns why it could not be written, as `pg` wants it. What is left of the connection is not used again. */
  submit(connection: ProtocolConnection): Error | undefined {
    if (this.#isWritten) return undefined;
    const { stream } = connection;
    try {
      stream.cork?.();
      this.#write(connection);
      if (this.#following) this.#following.batch.#write(connection);
      stream.uncork?.();
    } catch (error) {
      stream.destroy();
      return error as Error;
    }
    this.#following?.queue();
    return undefined;
  }

  #write(connection: ProtocolConnection): void {
    this.#isWritten = true;
    const sent = new Set<string>();
    for (const { name, text, values } of this.#statements) {
      if (name === '' || !(this.#preparedNames.has(name) || sent.has(name))) {
        // An earlier failure may have left the name on the server; closing an unknown name is harmless.
        if (name !== '') connection.close({ type: 'S', name });
        connection.parse({ name, text, types: [] });
        sent.add(name);
      }
      connection.bind({ portal: '', statement: name, values, binary: false });
      connection.describe({ type: 'P', name: '' });
      connection.execute({ portal: '', rows: 0 });
    }
    connection.sync();
  }

  handleRowDescription(message: { fields: readonly FieldDescription[] }): void {
    this.#fields = message.fields;
    this.#blank = undefined;
  }

  handleDataRow(message: { fields: readonly (string | null)[] }): void {
    // A copy of a row that has all keys takes a fraction of the memory: an object to which keys are added is enlarged
    // many times.
    const row = { ...(this.#blank ??= blankRow(this.#fields)) };
    for (let index = 0; index < this.#fields.length; index += 1) {
      const { name, dataTypeID } = this.#fields[index] as FieldDescription;
      const text = message.fields[index] ?? null;
      if (text !== null) row[name] = parseText(text, dataTypeID);
    }
    this.results[this.#current]?.push(row);
  }

  handleCommandComplete(): void {
    this.#current += 1;
    this.#fields = [];
  }

  handleEmptyQuery(): void {
    this.handleCommandComplete();
  }

  handleError(error: Error): void {
    this.#onDone(error);
  }

  handleReadyForQuery(): void {
    for (const { name } of this.#statements) if (name !== '') this.#preparedNames.add(name);
    this.#onDone(undefined);
  }
}

function blankRow(fields: readonly FieldDescription[]): Record<string, unknown> {
  return Object.fromEntries(fields.map(({ name }) => [name, null]));
}

/** By type OID. Other types are returned as text. */
function parseText(text: string, dataTypeID: number): unknown {
  switch (dataTypeID) {
    case 16:
      return text === 't';
    case 20:
    case 21:
    case 23:
    case 26:
    case 700:
    case 701:
      return Number(text);
    default:
      return text;
  }
}

function toWire(value: Value): string | Buffer | null {
  if (value === null || typeof value === 'string') return value;
  if (value instanceof Uint8Array) return Buffer.isBuffer(value) ? value : Buffer.from(value);
  invariant(typeof value !== 'object', 'Only primitives are bound.');
  return String(value);
}
