// The lanes of the group writer. Items of one run are written in order: after one that waits, the later ones wait as well,
// and after one that failed, none is written but the outcome. Items of different lanes do not affect each other.
import { type Item, writerOf } from './write-group.js';

/** The run that an item belongs to, by workflow and token. Runs of one claim share their token, so it is not enough. */
export function laneOf(item: Item): string {
  if (item.kind === 'start') return laneKey(item.start.workflowID, item.start.owner ?? item.start.creator);
  const writer = writerOf(item);
  if (writer) return laneKey(writer.workflowID, writer.owner);
  // Only a message can come from outside a run. Messages to one workflow keep their order.
  return item.kind === 'send' ? laneKey(item.send.sending.message.destinationID, '') : '';
}

function laneKey(workflowID: string, owner: string): string {
  return `${owner} ${workflowID}`;
}

/** Failed runs to remember. They are few, and only those with items in the backlog matter. */
const BROKEN_MAX = 1000;

/** The runs of which an item could not be written, and why. */
export class BrokenLanes {
  readonly #errors = new Map<string, unknown>();

  /** Remembers that the item failed. Nothing follows a start or an outcome that would have to be refused. */
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
