// Looks over the shoulder of a receiver, and lets parts of it fail.
import type { Adapter, ConsumerOptions, Source } from '../../../src/plugins/receiver/adapter.js';

/** Counts, and resolves for whoever waits for a number to be reached. */
export class Tally {
  readonly #waiting: { readonly count: number; readonly resolve: () => void }[] = [];
  count = 0;

  add(by = 1): void {
    this.count += by;
    const reached = this.#waiting.filter(({ count }) => count <= this.count);
    for (const one of reached) {
      this.#waiting.splice(this.#waiting.indexOf(one), 1);
      one.resolve();
    }
  }

  reach(count: number): Promise<void> {
    if (this.count >= count) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push({ count, resolve }));
  }
}

export class Spy {
  readonly connections = new Tally();
  readonly fetched = new Tally();
  readonly acknowledged = new Tally();
  readonly rejected = new Tally();
  readonly batchSizes: number[] = [];
  /** Called before messages are acknowledged; may throw, as if the process had ended there. */
  beforeAcknowledge: () => void = () => {};

  watch<Message, Options extends ConsumerOptions<Message>>(
    adapter: Adapter<Message, Options>,
  ): Adapter<Message, Options> {
    return {
      ...adapter,
      connect: async (options, context) => {
        const source = await adapter.connect(options, context);
        this.connections.add();
        return this.#watchSource(source);
      },
    };
  }

  #watchSource<Message>(source: Source<Message>): Source<Message> {
    return {
      fetch: async (max, signal) => {
        const messages = await source.fetch(max, signal);
        if (messages.length > 0) this.batchSizes.push(messages.length);
        this.fetched.add(messages.length);
        return messages;
      },
      acknowledge: async (messages) => {
        this.beforeAcknowledge();
        await source.acknowledge(messages);
        this.acknowledged.add(messages.length);
      },
      reject: async (message, error) => {
        await source.reject?.(message, error);
        this.rejected.add();
      },
      positionAfter: source.positionAfter && ((messages) => source.positionAfter?.(messages)),
      close: () => source.close(),
    };
  }
}
