// Whose turn it is to start workflows of a queue that other programs serve as well, such as DBOS in another language. They poll,
// and an engine that took each slot as soon as it is free would leave none for them. So while their work waits, engines start
// about as many workflows as they do, and leave the next slot to them for as long as a poll takes. If they do not take it, they
// may be unable to, and are left less often.
//
//   alone ──their work waits──► sharing ──engines are ahead──► leaving ──they start one──► sharing
//                                                                └──they do not──► insisting ──for a while──► sharing
import type { Clock } from '../../kernel/base/clock.js';
import type { ClaimRemainder, OthersWork } from './claim-limits.sql.js';

/** How long to leave a slot, in polls, which may be late or fail at a claim of another engine. Doubles each time. */
const POLLS = 1.5;
const LEAVE_MIN_MS = 150;
const LEAVE_MAX_MS = 3000;
/** For how long to insist then, and for how many workflows. Both double each time, until they start something. */
const INSIST_MIN_MS = 2000;
const INSIST_MAX_MS = 60_000;
const INSIST_STARTS_MIN = 2;
/** After so many times it is unlikely that there is anyone: then any number may start. */
const COUNTED_TIMES = 6;

export class Turns {
  readonly #clock: Clock;
  #isContended = false;
  #leavesUntil: number | undefined;
  #insistsUntil = 0;
  /** How many workflows may start while this engine insists. */
  #insistStarts = 0;
  /** How often in a row they have left what was left to them. */
  #times = 0;
  #lookedAt = -Infinity;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether their work waits, so that no slot may be passed on without a look. */
  get isSharing(): boolean {
    return this.#isContended && !(this.isInsisting && this.#insistStarts === Infinity);
  }

  /** Whether a slot is left to them now. */
  get isLeaving(): boolean {
    return this.#leavesUntil !== undefined && this.#clock.monotonic() < this.#leavesUntil;
  }

  /** Whether to take slots whosever turn it is. */
  get isInsisting(): boolean {
    return this.#insistStarts > 0 && this.#clock.monotonic() < this.#insistsUntil;
  }

  /** True if nobody has looked for their work in the last `everyMs`, and the caller is going to. */
  shouldLook(everyMs: number): boolean {
    const now = this.#clock.monotonic();
    if (now - this.#lookedAt < everyMs) return false;
    this.#lookedAt = now;
    return true;
  }

  /** What a look has found. */
  note(others: OthersWork | undefined): void {
    this.#lookedAt = this.#clock.monotonic();
    this.#isContended = others !== undefined;
    if (others && others.spare !== null && others.spare <= 0) return;
    this.#leavesUntil = undefined;
    this.#insistStarts = 0;
    // They have started something.
    if (others) this.#times = 0;
  }

  /** What a claim got and has found. Returns how long to wait before the next one, if it is their turn. */
  noteClaim(taken: number, { hasRoom, isWaiting, others }: ClaimRemainder, pollMs: number): number | undefined {
    this.note(others);
    this.#insistStarts = Math.max(this.#insistStarts - taken, 0);
    const isTheirTurn = others !== undefined && others.spare !== null && others.spare - taken <= 0;
    if (!isTheirTurn || !isWaiting || this.isInsisting) return undefined;
    if (!hasRoom) {
      // A peer has taken the slot.
      this.#leavesUntil = undefined;
      return undefined;
    }
    const now = this.#clock.monotonic();
    this.#leavesUntil ??= now + Math.min(Math.max(POLLS * pollMs, LEAVE_MIN_MS) * 2 ** this.#times, LEAVE_MAX_MS);
    if (now < this.#leavesUntil) return this.#leavesUntil - now;
    this.#insist(now);
    return 0;
  }

  #insist(now: number): void {
    const factor = 2 ** this.#times;
    this.#leavesUntil = undefined;
    this.#insistsUntil = now + Math.min(INSIST_MIN_MS * factor, INSIST_MAX_MS);
    this.#insistStarts = this.#times < COUNTED_TIMES ? INSIST_STARTS_MIN * factor : Infinity;
    this.#times += 1;
  }
}
