// Which dead letters a call is about.
import { meantConditions } from '../../../features/dead-letter/dead-letters.js';
import {
  array,
  boolean,
  Check,
  date,
  number,
  oneOf as oneOfNames,
  optional,
  record,
  string,
} from '../../../kernel/check/validation.js';
import { oneOf, type Sql, sql } from '../../../kernel/sql/sql.js';
import { atTime, text } from '../tokens.js';
import { topicName } from '../topic.js';

export interface DeadLetterFilter {
  readonly ids?: readonly string[];
  /** The topic; with `#` and its name for those of one subscription. */
  readonly topic?: string;
  readonly reason?: string;
  /** A group of equal failures, from `groups`. */
  readonly fingerprint?: string;
  /** Failed at or after this time: a date, or epoch milliseconds. */
  readonly since?: Date | number;
  /** Failed before this time. */
  readonly before?: Date | number;
  /** Archived ones only, or both kinds. Default: false. */
  readonly archived?: boolean | 'both';
}

/** A filter that says so if it means everything. */
export interface ChangeFilter extends DeadLetterFilter {
  readonly all?: true;
}

const time = new Check<Date | number>({
  wants: 'a Date or epoch milliseconds',
  find: (value) => (typeof value === 'number' ? number() : date).find(value),
});
const id = new Check<string>({
  wants: 'the ID of a dead letter',
  find: (value) =>
    typeof value === 'string' && /^\d{1,18}$/.test(value)
      ? undefined
      : { at: '', says: 'must be the ID of a dead letter', got: { value } },
});
export const FILTER_FIELDS = {
  ids: optional(array(id)),
  topic: optional(topicName),
  reason: optional(string({ min: 1 })),
  fingerprint: optional(string({ min: 1 })),
  since: optional(time),
  before: optional(time),
  archived: optional(
    new Check<boolean | 'both'>({
      wants: 'true, false or both',
      find: (value) => (typeof value === 'boolean' ? boolean : oneOfNames(['both'])).find(value),
    }),
  ),
};
const CHANGE = record({ ...FILTER_FIELDS, all: optional(boolean) });

/** Refuses a filter that matches everything by accident. */
export function readChangeFilter(filter: ChangeFilter): DeadLetterFilter {
  return meantConditions(CHANGE.read(filter, 'filter'));
}

/** The condition for rows `d`. */
export function matches(filter: DeadLetterFilter): Sql {
  const { ids, topic, reason, fingerprint, since, before, archived = false } = filter;
  const conditions: Sql[] = [];
  if (ids) conditions.push(sql`d.id ${oneOf(ids, 'bigint')}`);
  if (topic !== undefined) conditions.push(sql`d.queue = ${text(topic)}`);
  if (reason !== undefined) conditions.push(sql`d.failure_reason = ${text(reason)}`);
  if (fingerprint !== undefined) conditions.push(sql`d.error_fingerprint = ${text(fingerprint)}`);
  if (since !== undefined) conditions.push(sql`d.failed_at >= ${atTime(Number(since))}`);
  if (before !== undefined) conditions.push(sql`d.failed_at < ${atTime(Number(before))}`);
  if (archived !== 'both') conditions.push(archived ? sql`d.archived_at IS NOT NULL` : sql`d.archived_at IS NULL`);
  return conditions.reduce((all, condition) => sql`${all} AND ${condition}`, sql`TRUE`);
}
