// Notices a connection that died without a word, as behind a firewall that drops packets: its socket stays open, and a
// statement on it would wait for hours. A long statement looks the same from here, so another connection asks the server
// whether it is at work on it. If it is not, the silent connection is cut, and the statement fails as on any lost connection.
import { systemClock, type Timer } from '../../kernel/base/clock.js';
import type { DLogger } from '../../kernel/base/log.js';
import type { Stream } from './pg-session.js';
import { sqlState } from './postgres-errors.js';

/** How long a statement waits for an answer before the server is asked. */
const SILENCE_MS = 10_000;
/** How long until the server is asked again before a connection is cut, in parts of the silence and at most. */
const DOUBT_PART = 4;
const DOUBT_MAX_MS = 1000;
/** How long a statement may take if the server cannot be asked: a pooler in transaction mode hides its process. */
const UNKNOWN_MAX_MS = 300_000;

/** A client and the server's process behind it, if known. */
export interface Session {
  readonly stream: Stream;
  readonly backend: number | undefined;
}

export interface SilenceOptions {
  readonly silenceMs?: number;
  /** Asks the server on another connection. Resolves to the rows of the answer. */
  readonly ask: (text: string, values: readonly unknown[]) => Promise<readonly unknown[]>;
  readonly logger: DLogger;
}

export class SilenceWatch {
  readonly #options: SilenceOptions;
  readonly #silenceMs: number;

  constructor(options: SilenceOptions) {
    this.#options = options;
    this.#silenceMs = options.silenceMs ?? SILENCE_MS;
  }

  /** Passes on the answer, and cuts the connection if there is none to come. Always in real time, as the network is. */
  async guard<T>(session: Session, answer: Promise<T>): Promise<T> {
    const { stream, backend } = session;
    const startedAt = performance.now();
    let isAnswered = false;
    let progress = progressOf(stream);
    let timer: Timer;
    let isDoubted = false;
    const look = async (): Promise<void> => {
      const before = progress;
      progress = progressOf(stream);
      const isAlive = before !== progress || (await this.#isAtWork(backend, performance.now() - startedAt));
      if (isAnswered) return;
      if (!isAlive && isDoubted) return stream.destroy();
      // Once proves nothing: the statement may be on its way, or its answer may have come and not been read yet.
      isDoubted = !isAlive;
      arm();
    };
    const arm = (): void => {
      const doubtMs = Math.min(this.#silenceMs / DOUBT_PART, DOUBT_MAX_MS);
      timer = systemClock.after(isDoubted ? doubtMs : this.#silenceMs, () => void look());
    };
    arm();
    try {
      return await answer;
    } finally {
      isAnswered = true;
      timer!.cancel();
    }
  }

  async #isAtWork(backend: number | undefined, passedMs: number): Promise<boolean> {
    if (backend === undefined) return passedMs < UNKNOWN_MAX_MS;
    const { ask, logger } = this.#options;
    try {
      return (await ask(AT_WORK, [backend])).length > 0;
    } catch (error) {
      logger.debug(`Cannot ask about a silent connection: ${(error as Error).message}`);
      // With a code it is the server that refused us: it is there.
      return sqlState(error) !== undefined;
    }
  }
}

/** A session that waits for its client has nothing to do. */
const AT_WORK = `
  SELECT 1 FROM pg_catalog.pg_stat_activity
  WHERE pid = $1 AND state = 'active' AND wait_event_type IS DISTINCT FROM 'Client'`;

/** Changes when bytes come or go. */
function progressOf({ bytesRead, writableLength }: Stream): string {
  return `${bytesRead} ${writableLength}`;
}
