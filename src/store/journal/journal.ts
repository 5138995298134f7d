// Rows of the journal that runs write, as a part of the commits of the group writer: an event is there if and only if what
// it describes is. Rows about changes of state come from triggers (migration 16).
import { lock, nowMs, rows, type Sql, sql, table } from '../../sql/sql.js';
import { TableColumns } from '../columns.js';
import type { Executor } from '../database.js';
import { isPending } from '../runs/states.js';

/** An event of a run. */
export interface JournalEntry {
  readonly workflowID: string;
  /** What must have happened, in the same commit or an earlier attempt at it, for the event to be written. */
  readonly guard: 'created' | 'recorded' | 'ended' | 'owned';
  /** The creator token for `created`; otherwise the owner token. */
  readonly token: string;
  /** The name of the checkpoint for `recorded`, the status for `ended`. */
  readonly subject: string | null;
  /** The number of the checkpoint, for `recorded`. */
  readonly subjectStep: number | null;
  /** When the checkpoint was completed, for `recorded`. */
  readonly completedAt: number | null;
  readonly eventType: string;
  readonly step: number | null;
  readonly attempt: number | null;
  readonly executor: string | null;
  /** A JSON object. */
  readonly details: string | null;
  /** Unique in the workflow, so that a repeated commit does not repeat the event. */
  readonly key: string;
}

const entryColumns = new TableColumns<JournalEntry>([
  ['workflowID', 'workflow_id', 'text'],
  ['guard', 'guard', 'text'],
  ['token', 'token', 'text'],
  ['subject', 'subject', 'text'],
  ['subjectStep', 'subject_step', 'int'],
  ['completedAt', 'completed_at', 'bigint'],
  ['eventType', 'event_type', 'text'],
  ['step', 'step', 'int'],
  ['attempt', 'attempt', 'int'],
  ['executor', 'executor', 'text'],
  ['details', 'details', 'json'],
  ['key', 'key', 'text'],
]);

const journal = table('journal');
const workflows = table('workflow_status');
const steps = table('operation_outputs');

/** Writes the events whose effects were made. */
export function insertEntries(entries: readonly JournalEntry[]): Sql {
  const data = entries.map((entry) => entryColumns.toValues(entry));
  // Values are compared, because the planner would hash the whole tables for EXISTS without a lock.
  return sql`
    INSERT INTO ${journal} (workflow_id, at, event_type, step, attempt, executor, details, key)
    SELECT r.workflow_id, ${nowMs}, r.event_type, r.step, r.attempt, r.executor, r.details, r.key
    FROM ${rows('r', entryColumns.columns, data)}
    WHERE CASE r.guard
      WHEN 'recorded' THEN r.token = (
        SELECT w.owner_xid
        FROM ${steps} AS o
        JOIN ${workflows} AS w ON w.workflow_uuid = o.workflow_uuid
        WHERE o.workflow_uuid = r.workflow_id AND o.function_id = r.subject_step AND o.function_name = r.subject
          AND o.completed_at_epoch_ms = r.completed_at)
      WHEN 'created' THEN r.token = (
        SELECT w.creator_xid FROM ${workflows} AS w WHERE w.workflow_uuid = r.workflow_id)
      WHEN 'ended' THEN r.token = (
        SELECT w.owner_xid FROM ${workflows} AS w WHERE w.workflow_uuid = r.workflow_id AND w.status = r.subject)
      ELSE EXISTS (
        SELECT 1
        FROM ${workflows} AS w
        WHERE w.workflow_uuid = r.workflow_id AND w.owner_xid = r.token AND ${isPending('w')}
        ${lock('share', 'w')})
      END
    ON CONFLICT DO NOTHING`;
}

/** Copies the events of an ended workflow that follow from other tables, before its steps from `startStep` on are deleted. */
export function keepDerived({ dialect }: Pick<Executor, 'dialect'>, workflowID: string, startStep: number): Sql {
  return sql`
    INSERT INTO ${journal} (workflow_id, at, event_type, step, attempt, executor, details, key)
    SELECT h.workflow_id, h.at, h.event_type, h.step, h.attempt, h.executor,
      ${dialect.name === 'postgres' ? postgresDetails : sqliteDetails}, h.key
    FROM ${table('history')} AS h
    WHERE h.workflow_id = ${workflowID} AND h.seq IS NULL
      AND (h.step >= ${startStep} OR h.phase = 2 OR h.event_type IN ('AttemptStarted', 'SignalReceived'))
    ORDER BY h.phase, h.at, h.step, h.part
    ON CONFLICT DO NOTHING`;
}

const postgresDetails = sql`COALESCE(h.details, '{}'::JSONB) || CASE
        WHEN h.payload_name IS NULL THEN '{}'::JSONB
        ELSE jsonb_build_object(h.payload_name, ${table('everstep_json')}(h.payload)) END`;

const sqliteDetails = sql`CASE
        WHEN h.payload_name IS NULL THEN h.details
        ELSE json_set(COALESCE(h.details, '{}'), '$.' || h.payload_name, json(CASE
          WHEN NOT json_valid(h.payload) THEN json_quote(h.payload)
          WHEN h.payload -> '$.__dbos_serializer' IS NOT NULL THEN h.payload -> '$.json'
          ELSE COALESCE(h.payload, 'null') END)) END`;
