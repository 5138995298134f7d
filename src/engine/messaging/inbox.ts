// The receives of a run. A message is handed to the workflow at once, as the result of a step is, while its receipt is in
// flight: the receipt shares a commit with what the workflow does next. This is safe if the receipt is sure to be
// written. Only the owner of a workflow consumes its messages, so only other receives of the same run can interfere.
//
//   begun ──no other receive of the topic until a message is found──► handed over at once
//   begun ──another one meanwhile, which may find the same message──► handed over when its receipt is durable, else looks again

/** The receives of one topic in progress. */
interface Receiving {
  count: number;
  /** Whether there was more than one at a time since the first of them began. */
  isShared: boolean;
}

export class Inbox {
  readonly #topics = new Map<string, Receiving>();
  #lastReceipt: Promise<void> | undefined;

  /** Call it before any await, and `end` afterwards. */
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

  /** The receipt of a message that was handed over is in flight. */
  expect(receipt: Promise<void> | undefined): void {
    this.#lastReceipt = receipt;
    void receipt?.then(() => {
      if (this.#lastReceipt === receipt) this.#lastReceipt = undefined;
    });
  }

  /** Resolves when no message that was handed over can be found again; undefined if that is so already. */
  settled(): Promise<void> | undefined {
    // Receipts are written in order.
    return this.#lastReceipt;
  }
}
