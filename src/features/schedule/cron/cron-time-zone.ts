// Offsets of a time zone and their transitions. They come from the runtime's formatter, which is called as little as
// possible: a call takes microseconds, and schedules ask for every occurrence.
import { InvalidTimeZoneError } from '../../../kernel/errors/errors-schedule.js';

const DAY_MS = 86_400_000;
/**
 * A block is assumed to have at most one transition: the closest ones of any zone since 1970 are a week apart (Brazil,
 * October 2000). It is also longer than the time that any transition repeats, which is a day at most.
 */
const BLOCK_MS = 6 * DAY_MS;
const BLOCKS_MAX = 1000;

/** A span of constant offset. Local times are milliseconds, read as UTC. */
export interface Span {
  readonly start: number;
  readonly end: number;
  /** Local time less UTC. */
  readonly offset: number;
  /**
   * The first local time that no clock had shown before the start. It is later than the local time of the start where
   * clocks were put back, and earlier where they were put forward.
   */
  readonly unseen: number;
}

export interface TimeZone {
  readonly name: string;
  /** The span that contains an instant. It may end without a transition. */
  spanAt(instant: number): Span;
}

const UTC: TimeZone = {
  name: 'UTC',
  spanAt: () => ({ start: -Infinity, end: Infinity, offset: 0, unseen: -Infinity }),
};

/** A cache of zones. Share one among all schedules of a process. */
export class TimeZones {
  readonly #zones = new Map<string, TimeZone>();

  /** The zone of an IANA name, case-insensitive; UTC without one. Throws if the runtime does not know it. */
  get(name: string | null | undefined): TimeZone {
    if (name === undefined || name === null || name === '') return UTC;
    const key = name.toLowerCase();
    const known = this.#zones.get(key);
    if (known !== undefined) return known;
    const zone = openZone(name);
    this.#zones.set(key, zone);
    return zone;
  }
}

function openZone(name: string): TimeZone {
  const formatter = createFormatter(name);
  const canonicalName = formatter.resolvedOptions().timeZone;
  return canonicalName === 'UTC' ? UTC : new FormattedTimeZone(canonicalName, formatter);
}

function createFormatter(timeZone: string): Intl.DateTimeFormat {
  try {
    return new Intl.DateTimeFormat('en-US', {
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
      hourCycle: 'h23',
      timeZone,
    });
  } catch (error) {
    throw new InvalidTimeZoneError(timeZone, { cause: error });
  }
}

/** A block and its transition. Without one, a transition at the end changes nothing. */
interface Block {
  readonly changeAt: number;
  readonly before: number;
  readonly after: number;
}

class FormattedTimeZone implements TimeZone {
  readonly #blocks = new Map<number, Block>();

  readonly #formatter: Intl.DateTimeFormat;

  constructor(
    readonly name: string,
    formatter: Intl.DateTimeFormat,
  ) {
    this.#formatter = formatter;
  }

  spanAt(instant: number): Span {
    const index = Math.floor(instant / BLOCK_MS);
    const start = index * BLOCK_MS;
    const { changeAt, before, after } = this.#block(index);
    if (instant >= changeAt) {
      return { start: changeAt, end: start + BLOCK_MS, offset: after, unseen: changeAt + before };
    }
    // The time repeated by the previous block's transition may reach into this one.
    const previous = this.#block(index - 1);
    const unseen = Math.max(start + before, previous.changeAt + previous.before);
    return { start, end: changeAt, offset: before, unseen };
  }

  #block(index: number): Block {
    const known = this.#blocks.get(index);
    if (known !== undefined) return known;
    const start = index * BLOCK_MS;
    const end = start + BLOCK_MS;
    const before = this.#blocks.get(index - 1)?.after ?? this.#offsetAt(start);
    const after = this.#blocks.get(index + 1)?.before ?? this.#offsetAt(end);
    const changeAt = before === after ? end : this.#findChange(start, end, before);
    const block = { changeAt, before, after };
    if (this.#blocks.size >= BLOCKS_MAX) this.#blocks.clear();
    this.#blocks.set(index, block);
    return block;
  }

  /** The first second whose offset differs from the start's. */
  #findChange(start: number, end: number, before: number): number {
    let low = start;
    let high = end;
    while (high - low > 1000) {
      const middle = low + Math.floor((high - low) / 2000) * 1000;
      if (this.#offsetAt(middle) === before) low = middle;
      else high = middle;
    }
    return high;
  }

  #offsetAt(instant: number): number {
    const [month, day, year, hour, minute, second] = this.#formatter.format(instant).match(/\d+/g)!.map(Number);
    return Date.UTC(year!, month! - 1, day, hour, minute, second) - instant;
  }
}
