// Tracks the receives of a run, to decide whether a message may reach the workflow before its receipt is durable. The
// receipt then shares a commit with what the workflow does next. This is safe if nothing else can consume the message.
// Only the owner of a workflow consumes its messages, so only another receive of the same run can.
//
//   begun ──alone on its topic until it finds a message──► returns it at once
//   begun ──another receive meanwhile, which may find the same one──► returns it when its receipt is durable, or retries

/** The receives in flight on one topic. */
interface TopicReceives {
  count: number;
  /** Whether two of them have overlapped since the first began. */
  isShared: boolean;
}

export class Inbox {
  readonly #topics = new Map<string, TopicReceives>();
  #lastReceipt: Promise<void> | undefined;

  /** Call it before any await, and `end` afterwards. */
  begin(topic: string): Readonly<TopicReceives> {
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

  /** The receipt of a message that the workflow already has is in flight. */
  trackReceipt(receipt: Promise<void> | undefined): void {
    this.#lastReceipt = receipt;
    void receipt?.then(() => {
      if (this.#lastReceipt === receipt) this.#lastReceipt = undefined;
    });
  }

  /** Resolves when no message that the workflow already has can be found again; undefined if none can now. */
  receiptsSettled(): Promise<void> | undefined {
    // Receipts are written in order.
    return this.#lastReceipt;
  }
}
