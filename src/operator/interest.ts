// Tells engines for which workflows this process waits, so that they notify it of their outcomes. What is waited for in one
// turn of the event loop shares notifications.
import type { Bus } from '../database/notify/bus.js';
import { topics } from '../database/notify/topics.js';

/** Below what fits into a notification. */
const BYTES_MAX = 7000;

export class Interest {
  readonly #bus: Bus;
  #workflowIDs = new Set<string>();

  constructor(bus: Bus) {
    this.#bus = bus;
  }

  announce(workflowID: string): void {
    if (!this.#bus.isNotifying) return;
    if (this.#workflowIDs.size === 0) queueMicrotask(() => this.#flush());
    this.#workflowIDs.add(workflowID);
  }

  #flush(): void {
    const workflowIDs = this.#workflowIDs;
    this.#workflowIDs = new Set();
    let batch: string[] = [];
    let bytes = 0;
    for (const workflowID of workflowIDs) {
      const size = Buffer.byteLength(JSON.stringify(workflowID)) + 1;
      if (bytes + size > BYTES_MAX && batch.length > 0) {
        this.#bus.publishElsewhere(topics.interest, batch);
        batch = [];
        bytes = 0;
      }
      batch.push(workflowID);
      bytes += size;
    }
    this.#bus.publishElsewhere(topics.interest, batch);
  }
}
