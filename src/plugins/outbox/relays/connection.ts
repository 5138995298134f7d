// The connection that a target sends through: one that the user gave, or one that a function of theirs opens, again after it
// was lost. Opening has a time limit; a connection that arrives later is closed.
import { systemClock } from '../../../kernel/base/clock.js';
import { withTimeLimit } from '../../../kernel/base/time-limit.js';
import { OutboxRelayError } from '../../../kernel/errors/errors.js';
import { within } from './target.js';

/** A connection, or how to open one. */
export type ConnectionSource<T> = T | (() => Promise<T>);

export interface ConnectionOptions<Given, Used> {
  /** How long opening may take. */
  readonly timeoutMs: number;
  /** Prepares what was given or opened. After `lose` was called, the next use opens another. */
  readonly begin: (given: Given, lose: () => void) => Used;
  /** Closes what was opened. */
  readonly end: (given: Given) => Promise<unknown>;
}

export class Connection<Given, Used> {
  readonly #source: ConnectionSource<Given>;
  readonly #options: ConnectionOptions<Given, Used>;
  #opening: Promise<Held<Given, Used>> | undefined;

  constructor(source: ConnectionSource<Given>, options: ConnectionOptions<Given, Used>) {
    this.#source = source;
    this.#options = options;
  }

  /** Calls `work` with the connection, and with how to have another one opened: this one is closed after its last use. */
  async use<R>(signal: AbortSignal, work: (connection: Used, lose: () => void) => Promise<R>): Promise<R> {
    const held = await within(this.#hold(), this.#options.timeoutMs, signal);
    held.users += 1;
    try {
      return await work(held.used, held.lose);
    } finally {
      held.users -= 1;
      if (held.isLost && held.users === 0) void this.#end(held.given);
    }
  }

  /** Closes what was opened here. The next use opens another. */
  async close(): Promise<void> {
    const held = isOpener(this.#source) ? await this.#opening?.catch(() => undefined) : undefined;
    if (!held || held.isLost) return;
    held.isLost = true;
    this.#opening = undefined;
    await this.#end(held.given);
  }

  #hold(): Promise<Held<Given, Used>> {
    if (this.#opening) return this.#opening;
    const opening = this.#open(() => {
      if (this.#opening === opening) this.#opening = undefined;
    });
    this.#opening = opening;
    return opening;
  }

  async #open(forget: () => void): Promise<Held<Given, Used>> {
    const source = this.#source;
    const { begin } = this.#options;
    try {
      if (!isOpener(source)) return { given: source, used: begin(source, kept), lose: kept, users: 0, isLost: false };
      const given = await this.#opened(source);
      const lose = (): void => {
        if (held.isLost) return;
        held.isLost = true;
        forget();
        if (held.users === 0) void this.#end(given);
      };
      const held: Held<Given, Used> = { given, used: begin(given, lose), users: 0, isLost: false, lose };
      return held;
    } catch (error) {
      forget();
      throw error;
    }
  }

  /** One that comes after the time limit is closed: the next use has opened another by then, or will. */
  #opened(source: () => Promise<Given>): Promise<Given> {
    const { timeoutMs } = this.#options;
    const opening = Promise.resolve().then(source);
    return withTimeLimit(systemClock, timeoutMs, opening, () => {
      opening.then(
        (late) => this.#end(late),
        () => {
          // Nothing was opened.
        },
      );
      throw new OutboxRelayError(`No connection could be opened within ${timeoutMs} ms.`);
    });
  }

  async #end(given: Given): Promise<void> {
    try {
      await this.#options.end(given);
    } catch {
      // It is lost, so there is nothing left to close.
    }
  }
}

interface Held<Given, Used> {
  readonly given: Given;
  readonly used: Used;
  readonly lose: () => void;
  users: number;
  isLost: boolean;
}

/** What the user gave is all there is. */
const kept = (): void => {};

function isOpener<T>(source: ConnectionSource<T>): source is () => Promise<T> {
  return typeof source === 'function';
}
