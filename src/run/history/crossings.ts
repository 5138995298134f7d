// Branches under `Promise.all` take numbers by time, so in a replay a branch may find the record of another. If their
// operations have the same name, arguments tell them apart: each operation that begins while others are in progress is
// recorded with a hash of its arguments.
//
// Arguments may differ from run to run without any harm, such as the time of day. So a difference alone means nothing. The
// operation is held until the replay has come to rest. The run has diverged if, meanwhile, another operation is called with
// the arguments that were recorded for this one, and the same is true of that operation's record, if it has one.
import { excerptOf } from '../../kernel/base/excerpt.js';
import type { StepRecord } from '../../kernel/workflow/records.js';

/** How much of the arguments is looked at. */
const LIMITS = { nodes: 500, characters: 10_000, depth: 10, isTree: true } as const;
/** Misfits of one run. Beyond them, arguments count as varying. */
const MISFITS_MAX = 10_000;
/** After so many turns of the event loop in which no operation was called, none will be before a held one goes on. */
const IDLE_TURNS = 20;

/** An operation that was called, and whose record has other arguments, or that has none. */
export interface Misfit {
  readonly stepID: number;
  readonly name: string;
  readonly hash: number;
  readonly recordedHash: number | null;
}

/** What it needs to know of its run. */
interface Replay {
  readonly waits: { readonly performed: number };
  readonly history?: { readonly isEmpty: boolean; readonly replaying: number } | undefined;
  readonly stopReason: Error | undefined;
}

export class Crossings {
  readonly #run: Replay;
  readonly #held = new Set<Misfit>();
  /** By the arguments with which they were called. */
  readonly #called = new Map<string, Misfit>();
  /** By the arguments that are recorded for them. */
  readonly #recorded = new Map<string, Misfit>();
  /** Names of operations whose arguments differ from run to run. */
  readonly #varying = new Set<string>();
  #rest: Promise<void> | undefined;

  constructor(run: Replay) {
    this.#run = run;
  }

  /** The misfit that the call is; undefined if it fits its record, or nothing can be said. */
  judge(call: Omit<Misfit, 'recordedHash'>, record: StepRecord | undefined): Misfit | undefined {
    const { history } = this.#run;
    // An operation without a record may have one under another number, as long as some are left.
    const recordedHash = record ? record.argumentsHash : null;
    if (recordedHash === undefined || recordedHash === call.hash || this.#varying.has(call.name)) return undefined;
    if (record ? recordedHash === null : !history || (history.isEmpty && this.#held.size === 0)) return undefined;
    return this.#called.size < MISFITS_MAX ? { ...call, recordedHash } : undefined;
  }

  /**
   * Another operation that has crossed with the misfit. Each record has to be that of a call: if one is left over, the
   * arguments vary.
   */
  findOther(misfit: Misfit): Misfit | undefined {
    const { name, hash, recordedHash } = misfit;
    this.#called.set(keyOf(name, hash), misfit);
    if (recordedHash === null) return this.#recorded.get(keyOf(name, hash));
    this.#recorded.set(keyOf(name, recordedHash), misfit);
    const seen = new Set([misfit]);
    for (let wanted: number | null = recordedHash; wanted !== null;) {
      const owner = this.#called.get(keyOf(name, wanted));
      if (!owner) return undefined;
      if (seen.has(owner)) break;
      seen.add(owner);
      wanted = owner.recordedHash;
    }
    return [...seen][1];
  }

  /** Waits until it is clear whether the misfit has crossed with another one. */
  async hold(misfit: Misfit): Promise<void> {
    this.#held.add(misfit);
    while (!this.#varying.has(misfit.name) && !this.#run.stopReason) await (this.#rest ??= this.#comeToRest());
    this.#held.delete(misfit);
  }

  /** Nothing is called any more. The held operation with the lowest number does not wait for others, so it goes on. */
  async #comeToRest(): Promise<void> {
    const { waits, history } = this.#run;
    let { performed } = waits;
    for (let turns = 0; turns < IDLE_TURNS && !this.#run.stopReason; turns += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      const isIdle = waits.performed === performed && (history?.replaying ?? 0) <= this.#held.size;
      if (!isIdle) turns = 0;
      ({ performed } = waits);
    }
    const [first] = [...this.#held].sort((a, b) => a.stepID - b.stepID);
    if (first) this.#varying.add(first.name);
    this.#rest = undefined;
  }
}

function keyOf(name: string, hash: number): string {
  return `${hash} ${name}`;
}

/** Undefined if the arguments cannot be written as text. Text that is the same in two calls tells nothing. */
export function hashOf(args: readonly unknown[]): number | undefined {
  try {
    return hash(JSON.stringify(excerptOf(args, LIMITS).value));
  } catch {
    // A bigint, or a `toJSON` that throws. The step itself may well take it.
    return undefined;
  }
}

/** FNV-1a, as a signed 4-byte integer. */
function hash(text: string): number {
  let result = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) {
    result = Math.imul(result ^ text.charCodeAt(index), 0x01000193);
  }
  return result | 0;
}
