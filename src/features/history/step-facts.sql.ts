// Checkpoints, written together with what they say in the journal.
import { nowMs, rows, type Sql, sql, table, type Value } from '../../kernel/sql/sql.js';
import {
  type Checkpoint,
  formOf,
  insertCheckpoints,
  insertCheckpointsFrom,
  insertCheckpointsOfCancelled,
} from '../../run/rows/steps.js';
import { isOwned, wasOwnedWhenCancelled } from '../../run/rows/workflows.js';
import { factColumns, type FactualWrite, factValues, hasFact } from './facts.sql.js';

const journal = table('journal');
const target = sql`${journal} (workflow_id, at, event_type, step, attempt, executor, details, owner, name, started_at, completed_at)`;
const said = sql`r.workflow_uuid, ${nowMs}, r.event_type, r.function_id, r.attempt, r.executor, r.details,
        CASE WHEN r.attempt IS NOT NULL THEN r.owner_xid END, r.function_name, r.started_at_epoch_ms,
        COALESCE(r.completed_at_epoch_ms, 0)`;

/** The keys are compared as an array: our sessions join in nested loops, which would compare all with all. */
function writeWithFacts(checkpoints: readonly Checkpoint[], mayWrite: Sql): Sql {
  const { columns, condition, toValues } = formOf(checkpoints);
  const values = checkpoints.map((checkpoint) => [...toValues(checkpoint), ...factValues(checkpoint.fact)]);
  return sql`
    WITH r AS MATERIALIZED (SELECT x.* FROM ${rows('x', [...columns, ...factColumns], values)}),
    written AS (${insertCheckpointsFrom(sql`r`, mayWrite, condition)}),
    said AS (
      INSERT INTO ${target}
      SELECT ${said}
      FROM r
      WHERE r.event_type IS NOT NULL
        AND r.function_id || ' ' || r.workflow_uuid = ANY (ARRAY(SELECT o.function_id || ' ' || o.workflow_uuid FROM written AS o)))
    SELECT workflow_uuid, function_id FROM written`;
}

/** What tells a checkpoint, and what it says. The rest is read from what was written. */
const leanColumns = [
  { name: 'workflow_uuid', type: 'text' },
  { name: 'function_id', type: 'int' },
  { name: 'function_name', type: 'text' },
  { name: 'completed_at', type: 'bigint' },
  { name: 'owner_xid', type: 'text' },
  ...factColumns,
] as const;

function leanValues({ step, owner, fact }: Checkpoint): Value[] {
  return [step.workflowID, step.stepID, step.name, step.completedAt, owner, ...factValues(fact)];
}

/** Of this very run: another may have recorded an equal one. */
function writeFacts(checkpoints: readonly Checkpoint[]): Sql {
  return sql`
    INSERT INTO ${target}
    SELECT r.workflow_uuid, ${nowMs}, r.event_type, r.function_id, r.attempt, r.executor, r.details,
      CASE WHEN r.attempt IS NOT NULL THEN r.owner_xid END, r.function_name, o.started_at_epoch_ms, COALESCE(r.completed_at, 0)
    FROM ${rows('r', leanColumns, checkpoints.filter(hasFact).map(leanValues))}
    JOIN ${table('operation_outputs')} AS o ON o.workflow_uuid = r.workflow_uuid AND o.function_id = r.function_id
      AND o.function_name = r.function_name AND o.completed_at_epoch_ms IS r.completed_at
    JOIN ${table('workflow_status')} AS w ON w.workflow_uuid = r.workflow_uuid AND w.owner_xid = r.owner_xid
    WHERE NOT EXISTS (
      SELECT 1
      FROM ${journal} AS s
      WHERE s.workflow_id = r.workflow_uuid AND s.step = r.function_id
        AND s.completed_at = COALESCE(r.completed_at, 0) AND s.event_type = r.event_type)`;
}

export const checkpointWrite: FactualWrite<Checkpoint> = {
  write: insertCheckpoints,
  writeWithFacts: (checkpoints) => writeWithFacts(checkpoints, isOwned),
  writeFacts,
};

export const checkpointOfCancelledWrite: FactualWrite<Checkpoint> = {
  write: insertCheckpointsOfCancelled,
  writeWithFacts: (checkpoints) => writeWithFacts(checkpoints, wasOwnedWhenCancelled),
  writeFacts,
};
