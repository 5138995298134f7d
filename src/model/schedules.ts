// Schedules: what is kept of them, and the rules that they obey.
import { parseCron } from './cron/cron.js';
import type { TimeZones } from './cron/cron-time-zone.js';
import { filledName, integer, oneOf } from './validation/validation.js';

/** What happens when the run before is still active: begin another one, leave this one out, or cancel that one. */
export type ScheduleOverlap = 'allow' | 'skip' | 'cancelPrevious';

/** A schedule's row, with the settings that only Everstep has. */
export interface ScheduleRecord {
  readonly scheduleID: string;
  readonly scheduleName: string;
  readonly workflowName: string;
  readonly workflowClassName: string | null;
  readonly schedule: string;
  readonly status: string;
  /** A text of the configured serializer. */
  readonly context: string;
  /** An ISO time, as the shared tables have it. */
  readonly lastFiredAt: string | null;
  readonly automaticBackfill: boolean;
  readonly cronTimezone: string | null;
  readonly queueName: string | null;
  readonly applicationName: string | null;
  readonly overlap: ScheduleOverlap;
  readonly jitterMs: number;
}

const overlapCheck = oneOf<ScheduleOverlap>(['allow', 'skip', 'cancelPrevious']);
const jitterCheck = integer({ max: 86_400_000 });

/** Throws if a schedule with these fields could not be kept. */
export function checkSchedule(
  fields: Pick<ScheduleRecord, 'scheduleName' | 'schedule' | 'cronTimezone' | 'overlap' | 'jitterMs'>,
  zones?: TimeZones,
): void {
  const { scheduleName, schedule, cronTimezone, overlap, jitterMs } = fields;
  filledName.read(scheduleName, 'scheduleName');
  parseCron(schedule, { timeZone: cronTimezone, zones });
  overlapCheck.read(overlap, 'overlap');
  jitterCheck.read(jitterMs, 'jitterMs');
}

/** The ID of the workflow of an occurrence. It is the same whoever fires it, so that it is fired once. */
export function occurrenceID(scheduleName: string, dueAt: number): string {
  return `sched-${scheduleName}-${new Date(dueAt).toISOString()}`;
}

/** How much later than due an occurrence is fired: spread over the jitter, and the same in every process. */
export function jitterOf(scheduleName: string, dueAt: number, jitterMs: number): number {
  if (jitterMs === 0) return 0;
  // FNV-1a: even enough, and without state.
  let hash = 0x811c9dc5;
  for (const character of occurrenceID(scheduleName, dueAt)) {
    hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 0x01000193) >>> 0;
  }
  return hash % (jitterMs + 1);
}
