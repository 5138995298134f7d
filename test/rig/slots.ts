// Slots of an engine that workflows have taken which do not exist.
import type { SlotHolder, Slots } from '../../src/run/slots.js';

let count = 0;

/** Takes slots. The returned function gives them up. */
export function occupy(slots: Slots, wanted: number, place: Partial<SlotHolder> = {}): () => void {
  const holders = Array.from({ length: wanted }, (): SlotHolder => {
    count += 1;
    return { workflowID: `occupant-${count}`, owner: 'me.1', queueName: 'elsewhere', partitionKey: null, ...place };
  });
  for (const holder of holders) slots.fill(holder);
  return () => {
    for (const holder of holders) slots.release(holder);
  };
}
