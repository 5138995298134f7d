// Writes when stored schedules fire next, for the view of timers. Only what has changed, while nothing is due, and no error
// of it matters.
import { type ScheduleTimer, upsertScheduleTimers } from './schedule-timers.sql.js';
import type { Runtime } from '../../run/runtime.js';
import type { ScheduleEntry } from './schedule-entry.run.js';

const ROWS_MAX = 500;

export class ShownTimers {
  readonly #runtime: Runtime;
  /** When each fires next as far as written, by the ID of the schedule. */
  #written = new Map<string, number>();

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  async show(entries: readonly ScheduleEntry[], signal: AbortSignal): Promise<void> {
    const { database, logger } = this.#runtime;
    const timers = entries.flatMap(timerOf);
    const changed = timers.filter(({ scheduleID, fireAt }) => this.#written.get(scheduleID) !== fireAt);
    try {
      for (let from = 0; from < changed.length && !signal.aborted; from += ROWS_MAX) {
        await database.run(upsertScheduleTimers(changed.slice(from, from + ROWS_MAX)));
      }
      this.#written = new Map(timers.map(({ scheduleID, fireAt }) => [scheduleID, fireAt]));
    } catch (error) {
      logger.debug(`Cannot write when schedules fire next: ${String(error)}`);
    }
  }
}

function timerOf({ source, dueAt, fireAt }: ScheduleEntry): ScheduleTimer[] {
  if (source.kind !== 'stored' || dueAt === undefined || fireAt === undefined) return [];
  return [{ scheduleID: source.record.scheduleID, dueAt, fireAt }];
}
