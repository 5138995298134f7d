// A schedule in the scheduler's memory: when it is due next, and which occurrences it has missed.
import { type Cron, parseCron } from './cron/cron.js';
import type { TimeZones } from './cron/cron-time-zone.js';
import { jitterOf, type ScheduleRecord } from './schedule.js';
import type { UserFunction, WorkflowRegistration } from '../../run/registration/registry.js';

/** A schedule defined in code, by a decorator or a registration. */
export interface CodeSchedule {
  /** The function or its wrapper. */
  readonly fn: UserFunction;
  readonly crontab: string;
  readonly queueName?: string;
  /** Whether to fire occurrences that were missed while no process was running. */
  readonly automaticBackfill: boolean;
}

/** A code schedule with its registered function. */
export interface RegisteredCodeSchedule extends CodeSchedule {
  readonly registration: WorkflowRegistration;
}

export type ScheduleSource =
  | { readonly kind: 'stored'; readonly record: ScheduleRecord }
  | { readonly kind: 'code'; readonly schedule: RegisteredCodeSchedule };

/** How many missed occurrences are backfilled: the latest ones. */
const MISSED_MAX = 1000;
const FIRST_WINDOW_MS = 60_000;

export class ScheduleEntry {
  readonly name: string;
  source: ScheduleSource;
  readonly #cron: Cron;
  /** All occurrences up to this time have been handled. */
  #doneUntil: number;
  #nextDueAt: number | undefined;

  constructor(name: string, source: ScheduleSource, { zones, doneUntil }: { zones: TimeZones; doneUntil: number }) {
    this.name = name;
    this.source = source;
    this.#cron =
      source.kind === 'stored'
        ? parseCron(source.record.schedule, { timeZone: source.record.cronTimezone, zones })
        : parseCron(source.schedule.crontab, { zones });
    this.#doneUntil = doneUntil;
    this.#nextDueAt = this.#cron.next(doneUntil);
  }

  /** The time of the next occurrence; undefined if there is none. */
  get dueAt(): number | undefined {
    return this.#nextDueAt;
  }

  /** When to fire the next occurrence; undefined if there is none. */
  get fireAt(): number | undefined {
    return this.#nextDueAt === undefined ? undefined : this.#nextDueAt + this.#jitter(this.#nextDueAt);
  }

  #jitter(dueAt: number): number {
    return this.source.kind === 'stored' ? jitterOf(this.name, dueAt, this.source.record.jitterMs) : 0;
  }

  /** The occurrences to fire now, oldest first, and whether older ones were dropped because there are too many. */
  due(now: number): { readonly times: number[]; readonly dropped: boolean } {
    // Search backwards from now, in growing windows: a schedule that fires every second may have missed a year.
    for (let windowMs = FIRST_WINDOW_MS; ; windowMs *= 2) {
      const from = Math.max(this.#doneUntil, now - windowMs);
      const times = this.#readyOf([...this.#cron.between(from, now + 1)], now);
      if (from === this.#doneUntil && times.length <= MISSED_MAX) return { times, dropped: false };
      if (times.length >= MISSED_MAX) return { times: times.slice(-MISSED_MAX), dropped: true };
    }
  }

  /** Those before the first whose jitter has not elapsed: occurrences fire in order, so that none is skipped. */
  #readyOf(times: number[], now: number): number[] {
    const waiting = times.findIndex((dueAt) => dueAt + this.#jitter(dueAt) > now);
    return waiting === -1 ? times : times.slice(0, waiting);
  }

  /** Occurrences up to this one have been handled. */
  advanceTo(dueAt: number): void {
    this.#doneUntil = dueAt;
    this.#nextDueAt = this.#cron.next(dueAt);
  }
}
