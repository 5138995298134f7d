// A buffer between a client that pushes messages and a loop that takes them in batches.
import { type Deferred, deferred } from '../../kernel/base/deferred.js';

export class Mailbox<Message> {
  readonly #capacity: number;
  readonly #messages: Message[] = [];
  #failure: Error | undefined;
  #arrival: Deferred<void> | undefined;
  #room: Deferred<void> | undefined;

  /** `capacity` only limits `put`. */
  constructor(capacity = Infinity) {
    this.#capacity = capacity;
  }

  push(message: Message): void {
    this.#messages.push(message);
    this.#arrival?.resolve();
  }

  /** Adds a message, and resolves when there is room for the next. */
  async put(message: Message): Promise<void> {
    this.push(message);
    if (this.#messages.length < this.#capacity || this.#failure) return;
    this.#room ??= deferred<void>();
    await this.#room.promise;
  }

  /** No more messages will arrive. Once the buffer is empty, `take` throws the error. */
  fail(error: Error): void {
    this.#failure ??= error;
    this.#arrival?.resolve();
    this.#room?.resolve();
  }

  /** Waits for a message and takes all that have arrived, up to `max`. */
  async take(max: number, signal: AbortSignal): Promise<Message[]> {
    while (this.#messages.length === 0) {
      if (this.#failure) throw this.#failure;
      signal.throwIfAborted();
      await this.#arrived(signal);
    }
    const taken = this.#messages.splice(0, max);
    if (this.#messages.length < this.#capacity) {
      this.#room?.resolve();
      this.#room = undefined;
    }
    return taken;
  }

  /** Takes everything that is left. */
  drain(): Message[] {
    return this.#messages.splice(0);
  }

  async #arrived(signal: AbortSignal): Promise<void> {
    const arrival = (this.#arrival ??= deferred<void>());
    const onAbort = (): void => arrival.resolve();
    signal.addEventListener('abort', onAbort, { once: true });
    await arrival.promise;
    signal.removeEventListener('abort', onAbort);
    this.#arrival = undefined;
    // Let messages that arrive together be taken together.
    await new Promise((resolve) => setImmediate(resolve));
  }
}
