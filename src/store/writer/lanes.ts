// The lanes of the group writer. Items of one run are written in order: after one that waits, the later ones wait as well,
// and after one that failed, none is written but the outcome. Items of different lanes do not affect each other, except that
// an outcome comes before the items of the run that has got its slot.
import { type Item, writerOf } from './write-group.js';

/** The run that an item belongs to, by workflow and token. Runs of one claim share their token, so it is not enough. */
export function laneOf(item: Item): string {
  if (item.kind === 'start') return laneKey(item.start.workflowID, item.start.owner ?? item.start.creator);
  const writer = writerOf(item);
  if (writer) return laneKey(writer.workflowID, writer.owner);
  // Only a message can come from outside a run. Messages to one workflow keep their order.
  return item.kind === 'send' ? laneKey(item.send.sending.message.destinationID, '') : '';
}

/** The lanes in which later items wait for this one. The first writes of a successor follow the outcome that made room. */
export function lanesOf(item: Item): string[] {
  const successor = item.kind === 'outcome' ? item.refill?.successor : undefined;
  return successor ? [laneOf(item), laneKey(successor.workflowID, successor.owner)] : [laneOf(item)];
}

function laneKey(workflowID: string, owner: string): string {
  return `${owner} ${workflowID}`;
}

/** Failed runs to remember. They are few, and only those with items in the backlog matter. */
const BROKEN_MAX = 1000;

/** The runs of which an item could not be written, and why. */
export class BrokenLanes {
  readonly #errors = new Map<string, unknown>();

  /** Remembers that the item failed. A start or outcome has no successors to refuse. */
  add(item: Item, error: unknown): void {
    if (item.kind === 'start' || item.kind === 'outcome' || !writerOf(item)) return;
    this.#errors.set(laneOf(item), error);
    const [oldest] = this.#errors.keys();
    if (oldest !== undefined && this.#errors.size > BROKEN_MAX) this.#errors.delete(oldest);
  }

  /** The error of an earlier item of the same run. Undefined for its outcome, which ends the run. */
  errorFor(item: Item): unknown {
    if (this.#errors.size === 0) return undefined;
    const lane = laneOf(item);
    const error = this.#errors.get(lane);
    if (item.kind !== 'outcome') return error;
    this.#errors.delete(lane);
    return undefined;
  }
}
