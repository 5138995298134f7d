// Schedules: their records and validation.
import { parseCron } from './cron/cron.js';
import type { TimeZones } from './cron/cron-time-zone.js';
import { filledName, integer, oneOf } from '../../kernel/check/validation.js';

/** What to do if the previous run is still active: start another one, skip this one, or cancel the previous one. */
export type ScheduleOverlap = 'allow' | 'skip' | 'cancelPrevious';

/** A schedule's row, with Everstep's own settings. */
export interface ScheduleRecord {
  readonly scheduleID: string;
  readonly scheduleName: string;
  readonly workflowName: string;
  readonly workflowClassName: string | null;
  readonly schedule: string;
  readonly status: string;
  /** Text of the configured serializer. */
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

/** Throws if the fields are invalid. */
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

/** The workflow ID of an occurrence. It is the same in every process, so that the occurrence fires once. */
export function occurrenceID(scheduleName: string, dueAt: number): string {
  return `${OCCURRENCE_PREFIX}${scheduleName}-${new Date(dueAt).toISOString()}`;
}

/** What the IDs of all occurrences begin with. */
export const OCCURRENCE_PREFIX = 'sched-';

/**
 * How long an occurrence counts as fired by its row alone, which is not collected so soon. After that, the last one that was
 * fired decides.
 */
export const OCCURRENCE_KEPT_MS = 600_000;

/** The delay of an occurrence: spread over the jitter, and the same in every process. */
export function jitterOf(scheduleName: string, dueAt: number, jitterMs: number): number {
  if (jitterMs === 0) return 0;
  // FNV-1a.
  let hash = 0x811c9dc5;
  for (const character of occurrenceID(scheduleName, dueAt)) {
    hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 0x01000193) >>> 0;
  }
  return hash % (jitterMs + 1);
}
