// The occurrences of a cron expression in a span of time.
import { parseCron } from './cron/cron.js';

/** The occurrences after the start and before the end, at most `limit`. */
export function occurrencesBetween(
  { schedule, cronTimezone }: { readonly schedule: string; readonly cronTimezone?: string | null },
  { start, end }: { readonly start: Date; readonly end: Date },
  limit: number,
): Date[] {
  const dates: Date[] = [];
  for (const dueAt of parseCron(schedule, { timeZone: cronTimezone }).between(start.getTime(), end.getTime())) {
    if (dates.length === limit) break;
    dates.push(new Date(dueAt));
  }
  return dates;
}
