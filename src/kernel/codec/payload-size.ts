// Large values slow down every commit, replay and list, so they are warned of, and refused above a limit.
import { SerializationError } from '../errors/errors.js';

const LARGE_BYTES = 10_000_000;
/** Warnings are remembered by where the value comes from, up to this many. */
const WARNINGS_MAX = 200;
/** No character takes more bytes than this. */
const BYTES_PER_UNIT_MAX = 3;

export interface PayloadOptions {
  /** Default: no limit. */
  readonly maxBytes?: number;
  readonly warn?: (message: string) => void;
}

export class PayloadGuard {
  readonly #options: PayloadOptions;
  readonly #threshold: number;
  readonly #warned = new Set<string>();

  constructor(options: PayloadOptions) {
    this.#options = options;
    this.#threshold = Math.min(LARGE_BYTES, options.maxBytes ?? Infinity);
  }

  check(text: string, path: readonly string[]): void {
    if (text.length * BYTES_PER_UNIT_MAX <= this.#threshold) return;
    const { maxBytes = Infinity, warn } = this.#options;
    const what = path.length === 0 ? 'A value' : `The value of ${path.join('.')}`;
    // Counting the bytes of a large text takes long.
    if (text.length * BYTES_PER_UNIT_MAX <= maxBytes && this.#isWarned(what)) return;
    const bytes = Buffer.byteLength(text);
    if (bytes <= this.#threshold) return;
    if (bytes > maxBytes) {
      throw new SerializationError(
        `${what} takes ${bytes} bytes, and maxPayloadBytes allows ${maxBytes}. Store it elsewhere and pass a reference.`,
      );
    }
    if (this.#isWarned(what)) return;
    this.#warned.add(what);
    warn?.(
      `${what} takes ${(bytes / 1e6).toFixed(1)} MB. Each replay and each list reads it again. ` +
        'Store it elsewhere and pass a reference, or set maxPayloadBytes to refuse such values.',
    );
  }

  #isWarned(what: string): boolean {
    return this.#warned.has(what) || this.#warned.size >= WARNINGS_MAX;
  }
}
