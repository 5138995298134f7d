// Follows which server is the primary, by the timeline and the cluster of each connection. A promotion begins a new timeline:
// a connection with a higher one than before leads to a server that was promoted, one with a lower one to a former primary,
// which must not be written to. An upgrade, or a restore from a dump, makes a new cluster, whose timelines begin anew: a
// connection to another cluster means that the tables were moved, and the one that they were moved from is not written to.
//
// With asynchronous replication, the promoted server may lack the last commits, and so may another cluster. Before anything
// else is sent to it, a listener compares what this process remembers with what is there.
import type { DLogger } from '../../kernel/base/log.js';
import { DatabaseUnavailableError } from '../../kernel/errors/database-errors.js';
import type { Comparison } from '../database.js';

/** An expression for the timeline, null on a standby. `pg_walfile_name` fails there; a file's name begins with its timeline. */
export const TIMELINE =
  'CASE WHEN NOT pg_is_in_recovery() THEN substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END';
/** An expression that tells clusters apart. */
export const CLUSTER = '(SELECT s.system_identifier FROM pg_control_system() AS s)';
/** An expression for both: what `Timelines` take for a server. They also take a timeline alone, and null for neither. */
export const SERVER = `${CLUSTER} || '/' || ${TIMELINE}`;

type Transaction = (compare: Comparison) => Promise<() => void>;

interface Server {
  /** Undefined if the server does not tell. */
  readonly cluster: string | undefined;
  readonly timeline: number;
}

export class Timelines {
  logger: DLogger | undefined;
  /** Runs in a transaction on the promoted server. */
  onPromoted: Comparison | undefined;
  #current: Server | undefined;
  /** The server that this process is known to agree with. */
  #compared: Server | undefined;
  /** The clusters that the tables were moved from. */
  readonly #left = new Set<string>();
  #reign = new AbortController();
  #settling: Promise<void> | undefined;

  /** A connection to `host` has found it. Throws if the server must not be written to. */
  see(text: string | null, host: string): void {
    const server = serverOf(text);
    if (!server) return;
    if (!this.#current) this.#current = this.#compared = server;
    const isMoved = isElsewhere(server, this.#current);
    if (isMoved ? this.#left.has(server.cluster ?? '') : server.timeline < this.#current.timeline) {
      const reason = isMoved ? 'the tables were moved to another cluster' : 'another server was promoted';
      throw new DatabaseUnavailableError(
        `Postgres at ${host} is a former primary: ${reason}. Rebuild it as a standby. If it is the right server, restart ` +
          'this process.',
      );
    }
    if (!isMoved && server.timeline === this.#current.timeline) return;
    const lost = isMoved ? 'What was not moved to its cluster' : 'What was not replicated before its promotion';
    this.logger?.warn(`${host} is the primary now. ${lost} is lost.`);
    this.#current = server;
    this.#reign.abort();
    this.#reign = new AbortController();
  }

  /** The one to connect to; undefined if there is none. Of several clusters, the present one, or the first of the list. */
  newest<T extends { readonly server: string | null }>(found: readonly T[]): T | undefined {
    const all = found.map((one) => ({ one, server: serverOf(one.server) }));
    const cluster = this.#current ?? all[0]?.server;
    const there = all.filter(({ server }) => !isElsewhere(server, cluster));
    const candidates = there.length > 0 ? there : all.filter(({ server }) => !isElsewhere(server, all[0]?.server));
    const sorted = candidates.sort((left, right) => (right.server?.timeline ?? 0) - (left.server?.timeline ?? 0));
    return sorted[0]?.one;
  }

  /** Whether another server was promoted, or the tables were moved, since a connection found this one. */
  isFormer(text: string | null): boolean {
    const [server, current] = [serverOf(text), this.#current];
    if (!server || !current) return false;
    return isElsewhere(server, current) || server.timeline < current.timeline;
  }

  /** Aborts when another server takes the place of the present one. */
  get reign(): AbortSignal {
    return this.#reign.signal;
  }

  /** Whether a promotion was seen that the listener has not dealt with. */
  get isPending(): boolean {
    return this.#current !== this.#compared;
  }

  /** Lets the listener compare over a connection with this server, once for all that wait for it. */
  settle(text: string | null, transaction: Transaction): Promise<void> {
    if (this.isFormer(text)) throw new DatabaseUnavailableError('Another server was promoted meanwhile.');
    this.#settling ??= this.#settle(transaction).finally(() => (this.#settling = undefined));
    return this.#settling;
  }

  async #settle(transaction: Transaction): Promise<void> {
    const [{ onPromoted }, server] = [this, this.#current];
    const act = onPromoted && (await transaction(onPromoted));
    const { cluster } = this.#compared ?? {};
    if (cluster !== undefined && isElsewhere(server, this.#compared)) this.#left.add(cluster);
    this.#compared = server;
    act?.();
  }
}

/** Undefined for a standby, and for servers without timelines. */
function serverOf(text: string | null): Server | undefined {
  if (text === null) return undefined;
  const [timeline = '', cluster] = text.split('/').reverse();
  return { cluster, timeline: parseInt(timeline, 16) };
}

function isElsewhere(one: Server | undefined, other: Server | undefined): boolean {
  if (one?.cluster === undefined || other?.cluster === undefined) return false;
  return one.cluster !== other.cluster;
}
