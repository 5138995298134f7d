// The connection that a target sends through: one that the user gave, or one that a function of theirs opens, again after it
// was lost.
import { within } from './target.js';

/** A connection, or how to open one. */
export type ConnectionSource<T> = T | (() => Promise<T>);

export interface ConnectionOptions<Given, Used> {
  /** How long opening may take. */
  readonly timeoutMs: number;
  /** Prepares what was given or opened. After `lose` was called, the next use opens another. */
  readonly begin: (given: Given, lose: () => void) => Used;
}

export class Connection<Given, Used> {
  readonly #source: ConnectionSource<Given>;
  readonly #options: ConnectionOptions<Given, Used>;
  #opening: Promise<Used> | undefined;

  constructor(source: ConnectionSource<Given>, options: ConnectionOptions<Given, Used>) {
    this.#source = source;
    this.#options = options;
  }

  async use<R>(signal: AbortSignal, work: (connection: Used) => Promise<R>): Promise<R> {
    this.#opening ??= this.#open();
    return work(await within(this.#opening, this.#options.timeoutMs, signal));
  }

  async #open(): Promise<Used> {
    const source = this.#source;
    const { begin } = this.#options;
    const forget = (): void => {
      if (isOpener(source)) this.#opening = undefined;
    };
    try {
      return begin(isOpener(source) ? await source() : source, forget);
    } catch (error) {
      forget();
      throw error;
    }
  }
}

function isOpener<T>(source: ConnectionSource<T>): source is () => Promise<T> {
  return typeof source === 'function';
}
