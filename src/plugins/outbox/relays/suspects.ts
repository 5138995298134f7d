// Who is at fault when a message gets no answer: the target, or the message or place itself. A first silence says nothing, and
// makes a suspect. If others get an answer after that and the suspect gets none again, it is at fault itself.

/** More are forgotten, the oldest first. */
const SUSPECTS_MAX = 10_000;

export class Suspects {
  readonly #names = new Set<string>();
  /** Whether a message has got an answer since the last silence that nobody is known to be at fault for. */
  #isUp = false;

  has(name: string): boolean {
    return this.#names.has(name);
  }

  /** A message got an answer: neither it nor its place is a suspect any more. */
  answered(...names: readonly string[]): void {
    this.#isUp = true;
    for (const name of names) this.#names.delete(name);
  }

  /** A message, or a place, got no answer. */
  suspect(name: string): void {
    this.#isUp = false;
    const [oldest] = this.#names;
    if (oldest !== undefined && this.#names.size >= SUSPECTS_MAX) this.#names.delete(oldest);
    this.#names.add(name);
  }

  /** Whether a suspect that got no answer again is at fault. */
  isAtFault(name: string): boolean {
    return this.#isUp && this.#names.has(name);
  }
}
