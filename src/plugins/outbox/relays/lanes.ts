// Sends the messages of a relay: together where possible, and apart where one could hold up the others.
//
// Messages for one place of the target share a lane, which has one batch in flight. A batch without an answer says nothing
// about its messages: the target may be down, or one of them may be at fault. So some of them are sent alone, and suspects.ts
// tells one from the other. A message that was at fault goes alone from then on.
import { setMaxListeners } from 'node:events';
import { invariant } from '../../../kernel/base/assert.js';
import { Batcher, type Entry } from '../../../kernel/base/batcher.js';
import { DatabaseClosedError } from '../../../kernel/errors/errors.js';
import { Suspects } from './suspects.js';
import { type RelayResult, type RelayTarget, unavailable } from './target.js';

/** A message that is built and on its way out. */
export interface Outgoing {
  readonly messageID: string;
  readonly place: string;
  readonly built: unknown;
  readonly signal: AbortSignal;
}

type Sending = Entry<Outgoing, RelayResult>;

interface Silent {
  readonly entry: Sending;
  readonly error: unknown;
}

interface Lane {
  readonly batcher: Batcher<Outgoing, RelayResult>;
  /** Messages that wait or are in flight. */
  count: number;
}

/** How many messages in a row may get no answer alone before the target is taken to be down. */
const SILENT_MAX = 2;

export class Lanes {
  readonly #target: RelayTarget<unknown>;
  readonly #batch: number;
  readonly #lanes = new Map<string, Lane>();
  readonly #suspects = new Suspects();

  constructor(target: RelayTarget<unknown>, batch: number) {
    this.#target = target;
    this.#batch = batch;
  }

  /** `isAlone`: whether it may not share a batch, because it was at fault before. */
  async send(item: Outgoing, isAlone: boolean): Promise<RelayResult> {
    const name = isAlone || this.#suspects.has(ofMessage(item)) ? ofMessage(item) : ofPlace(item);
    const lane = this.#lanes.get(name) ?? this.#open();
    this.#lanes.set(name, lane);
    lane.count += 1;
    try {
      return await lane.batcher.submit(item);
    } finally {
      lane.count -= 1;
      if (lane.count === 0) this.#lanes.delete(name);
    }
  }

  #open(): Lane {
    const batcher = new Batcher<Outgoing, RelayResult>({
      itemsMax: this.#batch,
      backlogMax: Infinity,
      flush: (entries) => this.#flush(entries),
    });
    return { batcher, count: 0 };
  }

  async #flush(entries: readonly Sending[]): Promise<void> {
    const silent = await this.#attempt(entries);
    const [first] = silent;
    if (!first) return;
    const place = ofPlace(first.entry.item);
    if (this.#suspects.isAtFault(place)) return settle(silent, () => true);
    if (entries.length === 1) return this.#judge(first);
    const left = await this.#apart(silent);
    if (left.length === entries.length) this.#suspects.suspect(place);
    settle(left, ({ item }) => this.#suspects.isAtFault(ofMessage(item)));
  }

  /** It was sent alone. */
  #judge(one: Silent): void {
    const message = ofMessage(one.entry.item);
    const isAtFault = this.#suspects.isAtFault(message);
    if (!isAtFault) this.#suspects.suspect(message);
    settle([one], () => isAtFault);
  }

  /** Sends each alone, until the target seems to be down. Returns those without an answer. */
  async #apart(silent: readonly Silent[]): Promise<Silent[]> {
    const left: Silent[] = [];
    let inARow = 0;
    for (const one of silent) {
      const { item } = one.entry;
      if (inARow === SILENT_MAX || item.signal.aborted) {
        left.push(one);
        continue;
      }
      const [again] = await this.#attempt([one.entry]);
      inARow = again ? inARow + 1 : 0;
      if (!again) continue;
      this.#suspects.suspect(ofMessage(item));
      left.push(again);
    }
    return left;
  }

  /** Sends them together. Settles those that get an answer and returns the others. */
  async #attempt(entries: readonly Sending[]): Promise<Silent[]> {
    const results = await publish(this.#target, entries);
    const silent: Silent[] = [];
    for (const [index, entry] of entries.entries()) {
      const result = results[index] as RelayResult;
      if (result.kind === 'unavailable') silent.push({ entry, error: result.error });
      else {
        this.#suspects.answered(ofMessage(entry.item), ofPlace(entry.item));
        entry.resolve(result);
      }
    }
    return silent;
  }
}

/** A silence that is the fault of its message counts as an attempt. */
function settle(silent: readonly Silent[], isAtFault: (entry: Sending) => boolean): void {
  for (const { entry, error } of silent) {
    entry.resolve(isAtFault(entry) ? { kind: 'retry', error } : unavailable(error));
  }
}

function ofMessage({ messageID }: Outgoing): string {
  return `message ${messageID}`;
}

function ofPlace({ place }: Outgoing): string {
  return `place ${place}`;
}

async function publish(target: RelayTarget<unknown>, entries: readonly Sending[]): Promise<readonly RelayResult[]> {
  const { signal, dispose } = whenAllAborted(entries.map(({ item }) => item.signal));
  try {
    const results = await target.publish(
      entries.map(({ item }) => item.built),
      signal,
    );
    invariant(results.length === entries.length, 'A target has a result for each message.');
    return results;
  } catch (error) {
    return entries.map(() => unavailable(error));
  } finally {
    dispose();
  }
}

/** A shutdown aborts all of a batch; a single lost lease must not stop the others. */
function whenAllAborted(signals: readonly AbortSignal[]) {
  const controller = new AbortController();
  // A target may wait for each message of a batch by itself.
  setMaxListeners(0, controller.signal);
  const check = (): void => {
    if (signals.every(({ aborted }) => aborted)) {
      controller.abort(new DatabaseClosedError('The relay is shutting down.'));
    }
  };
  for (const signal of signals) signal.addEventListener('abort', check);
  check();
  return {
    signal: controller.signal,
    dispose: () => {
      for (const signal of signals) signal.removeEventListener('abort', check);
    },
  };
}
