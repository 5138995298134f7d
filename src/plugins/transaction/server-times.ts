// The time limit of completion records, by the clock of the application's database on Postgres.
//
// A record must be written soon after a moment that precedes the check of ownership. The begin of its transaction is such a
// moment, if the check waits for it. So is any earlier answer on the same connection that contains the server's time: then
// the check need not wait, and BEGIN can go with the first statement of the function. No clock of the client is trusted in
// this: it only saves statements that would be refused.
import { type Sql, sql, type Token, type Value } from '../../kernel/sql/sql.js';
import type { Row } from './driver.js';
import { getPGErrorCode } from './failures.js';

/** A connection through a pooler may get another server, with another clock. */
const serverTime: Sql = sql`
  EXTRACT(EPOCH FROM clock_timestamp()) AS server_seconds,
  EXTRACT(EPOCH FROM pg_postmaster_start_time()) AS server_started`;

interface ServerTime {
  readonly seconds: string;
  /** Identifies the server. */
  readonly started: string;
  readonly notedAt: number;
}

const NOTHING: Sql = sql`1 AS written`;

/** A server that only speaks Postgres's protocol may lack what tells it from others. */
const UNSUPPORTED = /^(42601|42883|0A)/;

/** Leaves the transaction most of the time in which its record must be written. */
const AGE_MAX_MS = 5000;

export class ServerTimes<Client> {
  /** Clients are objects. */
  readonly #latest = new WeakMap<WeakKey, ServerTime>();
  /** The times from which the open transactions count. The others count from their begin. */
  readonly #starts = new WeakMap<WeakKey, ServerTime>();

  #isSupported = true;

  /** What a statement returns for `note`. */
  get returned(): Sql {
    return this.#isSupported ? serverTime : NOTHING;
  }

  /** Whether a statement has failed because the server cannot say its time. From then on it is not asked. */
  isUnsupported(error: unknown): boolean {
    if (!this.#isSupported || !UNSUPPORTED.test(getPGErrorCode(error) ?? '')) return false;
    this.#isSupported = false;
    return true;
  }

  /** Lets the next transaction of the client count from the server's latest answer. False if that is too old. */
  startAtLatest(client: Client): boolean {
    const latest = this.#latest.get(client as WeakKey);
    const isRecent = latest !== undefined && performance.now() - latest.notedAt < AGE_MAX_MS;
    if (isRecent) this.#starts.set(client as WeakKey, latest);
    else this.#starts.delete(client as WeakKey);
    return isRecent;
  }

  /** When the answer from which the open transaction counts was noted, on the monotonic clock. */
  startOf(client: Client): number | undefined {
    return this.#starts.get(client as WeakKey)?.notedAt;
  }

  /** Whether no more time has passed when the statement is executed. */
  isWithin(client: Client, seconds: number): Token {
    const start = this.#starts.get(client as WeakKey);
    return start ? isSoonAfterAnswer(start, seconds) : isSoonAfterBegin(seconds);
  }

  /** Notes the time in an answer. Without one, the next transaction has to begin first. */
  note(client: Client, answer: Row | undefined): void {
    this.#starts.delete(client as WeakKey);
    if (answer === undefined || !this.#isSupported) this.#latest.delete(client as WeakKey);
    else {
      this.#latest.set(client as WeakKey, {
        seconds: String(answer['server_seconds']),
        started: String(answer['server_started']),
        notedAt: performance.now(),
      });
    }
  }
}

function isSoonAfterBegin(seconds: number): Token {
  return condition(
    'soon-after-begin;',
    [
      `clock_timestamp() - transaction_timestamp() BETWEEN INTERVAL '0' AND make_interval(secs => CAST(`,
      ' AS DOUBLE PRECISION))',
    ],
    [seconds],
  );
}

function isSoonAfterAnswer(answer: ServerTime, seconds: number): Token {
  return condition(
    'soon-after-answer;',
    [
      'EXTRACT(EPOCH FROM clock_timestamp()) - CAST(',
      ' AS NUMERIC) BETWEEN 0 AND CAST(',
      ' AS DOUBLE PRECISION) AND EXTRACT(EPOCH FROM pg_postmaster_start_time()) = CAST(',
      ' AS NUMERIC)',
    ],
    [answer.seconds, seconds, answer.started],
  );
}

/** Text with bound values in between. Not a fragment of `sql`, whose shape would be computed for each record. */
function condition(shape: string, texts: readonly string[], bound: readonly Value[]): Token {
  return {
    shape,
    write(out) {
      texts.forEach((text, index) => {
        if (index > 0) out.placeholder();
        out.text(text);
      });
    },
    collect: (values) => values.push(...bound),
  };
}
