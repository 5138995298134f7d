// Sends the BEGIN of a transaction with the first statement of its function, in one round trip. It works on the connection
// of a `pg` client, below its queue: the function has an ordinary client, and may use it in any way.
//
//   deferred ──a message of the extended protocol──► joined: BEGIN goes in front of it, before the same Sync
//       │ └────a simple query that can be one──────► joined, the query as messages of the extended protocol
//       │ └────any other simple query──────────────► ahead: the query is held until BEGIN is answered
//       └──nothing is sent──► dropped: there is no transaction
//
// A failed BEGIN must not let a statement through, which would commit by itself. Before one Sync the server skips what
// follows a failure; the rest of the queue is kept off by closing the connection.
import type { ClientBase } from 'pg';
import type { ProtocolConnection } from '../../run/plugin.js';

type Write = (chunk: Uint8Array, ...rest: unknown[]) => boolean;
type Emit = (event: string, ...values: unknown[]) => boolean;
type Phase = 'deferred' | 'joined' | 'ahead' | 'begun' | 'dropped' | 'failed';

type Connection = Omit<ProtocolConnection, 'stream'> & {
  readonly stream: ProtocolConnection['stream'] & { write: Write };
  emit: Emit;
  query(text: string): void;
};
type Internals = ClientBase & { readonly connection?: Partial<Connection>; readonly pipeline?: boolean };

/** Whether we can use the wire protocol of the client: a `pg` client in JavaScript, without pipelining. */
export function hasProtocol(client: ClientBase): boolean {
  const { connection, pipeline } = client as Internals;
  return typeof connection?.bind === 'function' && pipeline !== true;
}

/** Answers to BEGIN, which the client must not see. */
const JOINED_ANSWERS = ['parseComplete', 'bindComplete', 'commandComplete'];
const AHEAD_ANSWERS = ['commandComplete', 'readyForQuery'];
/** After a failure the client sees only that the connection has ended. */
const END_EVENTS = new Set(['end', 'error']);

const SIMPLE_QUERY = 'Q'.charCodeAt(0);
/** The type of a message and its length come before its content. */
const HEAD_BYTES = 5;
const JOINABLE_BYTES_MAX = 65_536;
/**
 * One statement that answers the same in both protocols. Not several in one text, nor COPY, nor a `$1` without a value, which
 * fails differently.
 */
const JOINABLE = /^\s*(?:SELECT|INSERT|UPDATE|DELETE|MERGE|WITH|VALUES)\b[^;$]*;?\s*$/i;

export class DeferredBegin {
  readonly #connection: Connection;
  readonly #text: string;
  readonly #write: Write;
  readonly #emit: Emit;
  #phase: Phase = 'deferred';
  /** Answers to BEGIN that are still to come. */
  #awaited: string[] = [];
  /** What was written behind BEGIN before it was answered. */
  #held: Parameters<Write>[] = [];
  #failure: Error | undefined;

  /** The client must be idle, and `hasProtocol`. */
  constructor(client: ClientBase, text: string) {
    this.#connection = (client as Internals).connection as Connection;
    this.#text = text;
    const { stream } = this.#connection;
    this.#write = stream.write;
    this.#emit = this.#connection.emit;
    stream.write = (...args) => this.#onWrite(args);
  }

  /** Why BEGIN failed. The connection is closed then. */
  get failure(): Error | undefined {
    return this.#failure;
  }

  /** Forgets BEGIN if nothing was sent. False if there is a transaction to end. */
  drop(): boolean {
    if (this.#phase === 'deferred') {
      this.#phase = 'dropped';
      this.#connection.stream.write = this.#write;
    }
    return this.#phase === 'dropped';
  }

  #onWrite(args: Parameters<Write>): boolean {
    if (this.#phase === 'ahead') {
      this.#held.push(args);
      return true;
    }
    const [chunk] = args;
    this.#connection.stream.write = this.#write;
    this.#connection.emit = (event, ...values) => this.#onAnswer(event, values);
    if (chunk[0] !== SIMPLE_QUERY) this.#join(() => this.#passOn(args));
    else {
      const text = joinableText(chunk);
      if (text === undefined) this.#sendAhead(args);
      else this.#join(() => this.#sendExtended(text));
    }
    return true;
  }

  #join(sendFirst: () => void): void {
    const connection = this.#connection;
    this.#phase = 'joined';
    this.#awaited = [...JOINED_ANSWERS];
    connection.stream.cork?.();
    connection.parse({ name: '', text: this.#text, types: [] });
    connection.bind({ portal: '', statement: '', values: [], binary: false });
    connection.execute({ portal: '', rows: 0 });
    sendFirst();
    connection.stream.uncork?.();
  }

  #sendExtended(text: string): void {
    const connection = this.#connection;
    connection.parse({ name: '', text, types: [] });
    connection.bind({ portal: '', statement: '', values: [], binary: false });
    connection.describe({ type: 'P', name: '' });
    connection.execute({ portal: '', rows: 0 });
    connection.sync();
  }

  #sendAhead(args: Parameters<Write>): void {
    this.#phase = 'ahead';
    this.#awaited = [...AHEAD_ANSWERS];
    this.#held = [args];
    this.#connection.query(this.#text);
    this.#connection.stream.write = (...later) => this.#onWrite(later);
  }

  #passOn(args: Parameters<Write>): void {
    this.#write.apply(this.#connection.stream, args);
  }

  #onAnswer(event: string, values: unknown[]): boolean {
    const connection = this.#connection;
    if (this.#phase === 'failed' && !END_EVENTS.has(event)) return true;
    if (event === 'errorMessage') {
      this.#phase = 'failed';
      this.#failure = values[0] as Error;
      connection.stream.destroy();
      return true;
    }
    if (event !== this.#awaited[0]) return this.#emit.call(connection, event, ...values);
    this.#awaited.shift();
    if (this.#awaited.length === 0) this.#onBegun();
    return true;
  }

  #onBegun(): void {
    const { stream } = this.#connection;
    this.#phase = 'begun';
    this.#connection.emit = this.#emit;
    stream.write = this.#write;
    for (const args of this.#held) this.#passOn(args);
    this.#held = [];
  }
}

/** The text of a simple query that can go the same way as BEGIN. */
function joinableText(chunk: Uint8Array): string | undefined {
  if (chunk.length > JOINABLE_BYTES_MAX) return undefined;
  const text = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length).toString('utf8', HEAD_BYTES, chunk.length - 1);
  return JOINABLE.test(text) ? text : undefined;
}
