// Rows of the journal that belong to no write of a run, and those that a rewind keeps. What writes say about themselves is in
// `facts.ts`; rows about changes of state come from triggers.
import { type Dialect, nowMs, rows, type Sql, sql, table } from '../../kernel/sql/sql.js';
import { TableColumns } from '../../database/columns.js';
import type { Executor } from '../../database/database.js';
import { isOwned } from '../../run/rows/workflows.js';

/** An event of a run that none of its writes stands for. */
export interface JournalEntry {
  readonly workflowID: string;
  /** The owner token of the run. The event is only written while the run owns its workflow. */
  readonly owner: string;
  readonly eventType: string;
  readonly step: number | null;
  readonly attempt: number | null;
  readonly executor: string | null;
  /** A JSON object. */
  readonly details: string | null;
  /** When the checkpoint was completed that the event belongs to, if it does. */
  readonly completedAt: number | null;
  /** Unique in the workflow, so that a repeated commit does not repeat the event. */
  readonly key: string;
}

const entryColumns = new TableColumns<JournalEntry>([
  ['workflowID', 'workflow_uuid', 'text'],
  ['owner', 'owner_xid', 'text'],
  ['eventType', 'event_type', 'text'],
  ['step', 'step', 'int'],
  ['attempt', 'attempt', 'int'],
  ['executor', 'executor', 'text'],
  ['details', 'details', 'json'],
  ['completedAt', 'completed_at', 'bigint'],
  ['key', 'key', 'text'],
]);

const journal = table('journal');

/**
 * True if the workflow has no row of the key. A unique index refuses a second one, but only within a partition if the journal
 * has any.
 */
function isNew(workflowID: Sql, key: Sql): Sql {
  return sql`NOT EXISTS (SELECT 1 FROM ${journal} AS s WHERE s.workflow_id = ${workflowID} AND s.key = ${key})`;
}

/** Writes the events of runs that own their workflows. */
export function insertEntries(entries: readonly JournalEntry[]): Sql {
  const data = entries.map((entry) => entryColumns.toValues(entry));
  return sql`
    INSERT INTO ${journal} (workflow_id, at, event_type, step, attempt, executor, details, completed_at, key)
    SELECT r.workflow_uuid, ${nowMs}, r.event_type, r.step, r.attempt, r.executor, r.details, r.completed_at, r.key
    FROM ${rows('r', entryColumns.columns, data)}
    WHERE ${isOwned} AND ${isNew(sql`r.workflow_uuid`, sql`r.key`)}
    ON CONFLICT DO NOTHING`;
}

/**
 * Copies the events of an ended workflow that follow from other tables, before its steps from `startStep` on are deleted, and
 * the values of those that are stored.
 */
export function keepHistory(executor: Pick<Executor, 'dialect'>, workflowID: string, startStep: number): Sql[] {
  return [keepDerived(executor, workflowID, startStep), keepPayloads(executor, workflowID, startStep)];
}

function keepPayloads({ dialect }: Pick<Executor, 'dialect'>, workflowID: string, startStep: number): Sql {
  const none = dialect.name === 'postgres' ? sql`'{}'::JSONB` : sql`'{}'`;
  return sql`
    INSERT INTO ${journal} (workflow_id, at, event_type, details, key)
    SELECT h.workflow_id, ${nowMs}, 'PayloadKept', ${detailsIn(dialect)}, 'payload:' || h.seq
    FROM (
      SELECT s.workflow_id, s.seq, ${none} AS details, s.payload_name, s.payload
      FROM ${table('history')} AS s
      WHERE s.workflow_id = ${workflowID} AND s.seq IS NOT NULL AND s.payload_name IN ('result', 'error')
        AND (s.step IS NULL OR s.step >= ${startStep})) AS h
    WHERE ${isNew(sql`h.workflow_id`, sql`'payload:' || h.seq`)}
    ON CONFLICT DO NOTHING`;
}

function keepDerived({ dialect }: Pick<Executor, 'dialect'>, workflowID: string, startStep: number): Sql {
  return sql`
    INSERT INTO ${journal} (workflow_id, at, event_type, step, attempt, executor, details, key)
    SELECT h.workflow_id, h.at, h.event_type, h.step, h.attempt, h.executor,
      ${detailsIn(dialect)}, h.key
    FROM ${table('history')} AS h
    WHERE h.workflow_id = ${workflowID} AND h.seq IS NULL
      AND (h.step >= ${startStep} OR h.phase = 2 OR h.event_type IN ('AttemptStarted', 'SignalReceived'))
      AND ${isNew(sql`h.workflow_id`, sql`h.key`)}
    ORDER BY h.phase, h.at, h.step, h.part
    ON CONFLICT DO NOTHING`;
}

function detailsIn(dialect: Dialect): Sql {
  if (dialect.name === 'sqlite') return sqliteDetails;
  // Without the function, values are kept as the text that is stored.
  return dialect.refused?.has('functions') ? plainDetails : postgresDetails;
}

const postgresDetails = postgresDetailsWith(sql`${table('everstep_json')}(h.payload)`);
const plainDetails = postgresDetailsWith(sql`to_jsonb(h.payload)`);

function postgresDetailsWith(value: Sql): Sql {
  return sql`COALESCE(h.details, '{}'::JSONB) || CASE
        WHEN h.payload_name IS NULL THEN '{}'::JSONB
        ELSE jsonb_build_object(h.payload_name, ${value}) END`;
}

const sqliteDetails = sql`CASE
        WHEN h.payload_name IS NULL THEN h.details
        ELSE json_set(COALESCE(h.details, '{}'), '$.' || h.payload_name, json(CASE
          WHEN NOT json_valid(h.payload) THEN json_quote(h.payload)
          WHEN h.payload -> '$.__dbos_serializer' IS NOT NULL THEN h.payload -> '$.json'
          ELSE COALESCE(h.payload, 'null') END)) END`;
