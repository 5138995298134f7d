// The receives of a run. A message is handed to the workflow at once, as the result of a step is, while its receipt is on
// the way to disk: the receipt shares a commit with what the workflow does next. This needs the certainty that the receipt
// will be written. Only the run that owns a workflow consumes its messages, so what is left are other receives of the run.
//
//   begun ──no other receive of the topic until a message is found──► handed over at once
//   begun ──another one meanwhile, which may find the same message──► handed over when its receipt is durable, else looks again

/** The receives of one topic that are under way. */
interface Receiving {
  count: number;
  /** Whether there was more than one at a time since the first of them began. */
  isShared: boolean;
}

export class Inbox {
  readonly #topics = new Map<string, Receiving>();
  #lastReceipt: Promise<void> | undefined;

  /** To be called before any await; `end` follows. */
  begin(topic: string): Readonly<Receiving> {
    const receiving = this.#topics.get(topic) ?? { count: 0, isShared: false };
    receiving.count += 1;
    if (receiving.count > 1) receiving.isShared = true;
    this.#topics.set(topic, receiving);
    return receiving;
  }

  end(topic: string): void {
    const receiving = this.#topics.get(topic);
    if (!receiving) return;
    receiving.count -= 1;
    if (receiving.count === 0) this.#topics.delete(topic);
  }

  /** A receipt is on its way, of a message that was handed over. */
  expect(receipt: Promise<void> | undefined): void {
    this.#lastReceipt = receipt;
    void receipt?.then(() => {
      if (this.#lastReceipt === receipt) this.#lastReceipt = undefined;
    });
  }

  /** Resolves when no message that was handed over can be found any more; undefined when that is so already. */
  settled(): Promise<void> | undefined {
    // Receipts are written in their order.
    return this.#lastReceipt;
  }
}
