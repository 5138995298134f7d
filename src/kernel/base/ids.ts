// Identifiers are version 7 UUIDs: they sort by creation, so rows created together share index pages. Random keys would
// touch one page each.
import { randomFillSync } from 'node:crypto';

/** Random bytes are drawn in bulk: a call per identifier would cost more than everything else. */
const POOL_BYTES = 4096;
const RANDOM_BYTES = 8;

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));

class IDGenerator {
  readonly #pool = new Uint8Array(POOL_BYTES);
  #used = POOL_BYTES;
  #milliseconds = 0;
  #sequence = 0;

  /** 48 bits of time, 12 of sequence within the millisecond, 62 of randomness. */
  next(): string {
    if (this.#used + RANDOM_BYTES > POOL_BYTES) {
      randomFillSync(this.#pool);
      this.#used = 0;
    }
    this.#advance();
    const time = this.#milliseconds.toString(16).padStart(12, '0');
    const sequence = (0x7000 + this.#sequence).toString(16);
    const random = (index: number): string => HEX[this.#pool[this.#used + index] ?? 0] ?? '';
    const variant = HEX[((this.#pool[this.#used] ?? 0) & 0x3f) | 0x80] ?? '';
    const id =
      `${time.slice(0, 8)}-${time.slice(8)}-${sequence}-${variant}${random(1)}-` +
      `${random(2)}${random(3)}${random(4)}${random(5)}${random(6)}${random(7)}`;
    this.#used += RANDOM_BYTES;
    return id;
  }

  /** The sequence restarts each millisecond. If it overflows or the clock goes back, our time runs ahead of the clock. */
  #advance(): void {
    const now = Date.now();
    if (now > this.#milliseconds) {
      this.#milliseconds = now;
      this.#sequence = 0;
    } else if (this.#sequence < 0xfff) {
      this.#sequence += 1;
    } else {
      this.#milliseconds += 1;
      this.#sequence = 0;
    }
  }
}

const generator = new IDGenerator();

/** A fresh identifier for a workflow, message, token or row. */
export function newID(): string {
  return generator.next();
}
