// Starts and outcomes of workflows, written together with what they say in the journal.
import { idents, nowMs, rows, type Sql, sql, table } from '../../sql/sql.js';
import {
  finishIfOwned,
  finishIfOwnedFrom,
  insertColumns,
  insertValues,
  insertWorkflows,
  insertWorkflowsFrom,
  type NewWorkflow,
  type Outcome,
  outcomeColumns,
} from '../runs/workflows.js';
import { factColumns, type FactualWrite, factValues } from './facts.js';

const journal = table('journal');
const workflows = table('workflow_status');

const startColumns = [...insertColumns, ...factColumns, { name: 'end_event_type', type: 'text' }] as const;
const passedStart = idents(
  startColumns.map(({ name }) => name),
  'x',
);

function startValues(starts: readonly NewWorkflow[]) {
  return starts.map((start) => [
    ...insertValues(start),
    ...factValues(start.fact),
    start.outcome?.fact?.eventType ?? null,
  ]);
}

const startTarget = sql`${journal} (workflow_id, at, event_type, attempt, executor, details, owner, started_at, completed_at)`;
const startSaid = sql`SELECT r.workflow_uuid, ${nowMs}, r.event_type, r.attempt, r.executor, r.details, r.owner_xid, NULL, NULL`;
/** The outcome of a workflow that was created with it. */
const endSaid = sql`SELECT r.workflow_uuid, ${nowMs}, r.end_event_type, NULL, r.executor, NULL, r.owner_xid, 0, 0`;

function writeStartsWithFacts(starts: readonly NewWorkflow[]): Sql {
  const isWritten = sql`r.creator_xid = ANY (ARRAY(SELECT o.creator_xid FROM written AS o))`;
  return sql`
    WITH r AS MATERIALIZED (SELECT ${passedStart} FROM ${rows('x', startColumns, startValues(starts))}),
    written AS (${insertWorkflowsFrom(sql`r`, starts)}),
    said AS (
      INSERT INTO ${startTarget}
      ${startSaid}
      FROM r
      WHERE r.event_type IS NOT NULL AND ${isWritten}
      UNION ALL
      ${endSaid}
      FROM r
      WHERE r.end_event_type IS NOT NULL AND ${isWritten})
    SELECT creator_xid, workflow_deadline_epoch_ms FROM written`;
}

function writeStartFacts(starts: readonly NewWorkflow[]): Sql {
  const isNew = (type: Sql): Sql => sql`NOT EXISTS (
      SELECT 1 FROM ${journal} AS s WHERE s.workflow_id = r.workflow_uuid AND s.step IS NULL AND s.event_type = ${type})`;
  return sql`
    INSERT INTO ${startTarget}
    ${startSaid}
    FROM ${rows('r', startColumns, startValues(starts))}
    JOIN ${workflows} AS w ON w.workflow_uuid = r.workflow_uuid AND w.creator_xid = r.creator_xid
    WHERE r.event_type IS NOT NULL AND ${isNew(sql`r.event_type`)}
    UNION ALL
    ${endSaid}
    FROM ${rows('r', startColumns, startValues(starts))}
    JOIN ${workflows} AS w ON w.workflow_uuid = r.workflow_uuid AND w.creator_xid = r.creator_xid
    WHERE r.end_event_type IS NOT NULL AND ${isNew(sql`r.end_event_type`)}`;
}

export const startWrite: FactualWrite<NewWorkflow> = {
  write: insertWorkflows,
  writeWithFacts: writeStartsWithFacts,
  writeFacts: writeStartFacts,
};

const endColumns = [...outcomeColumns.columns, ...factColumns];

function endValues(outcomes: readonly Outcome[]) {
  return outcomes.map((outcome) => [...outcomeColumns.toValues(outcome), ...factValues(outcome.fact)]);
}

const endTarget = sql`${journal} (workflow_id, at, event_type, attempt, executor, details, owner, started_at, completed_at)`;

function finishWithFacts(outcomes: readonly Outcome[]): Sql {
  const source = rows('r', endColumns, endValues(outcomes));
  return sql`
    WITH written AS (
      ${finishIfOwnedFrom(source)}, r.event_type, r.attempt, r.executor, r.details, r.owner, w.created_at, w.completed_at),
    said AS (
      INSERT INTO ${endTarget}
      SELECT o.workflow_uuid, ${nowMs}, o.event_type, o.attempt, o.executor, o.details, o.owner, o.created_at, o.completed_at
      FROM written AS o
      WHERE o.event_type IS NOT NULL)
    SELECT workflow_uuid FROM written`;
}

function writeEndFacts(outcomes: readonly Outcome[]): Sql {
  return sql`
    INSERT INTO ${endTarget}
    SELECT r.target_id, ${nowMs}, r.event_type, r.attempt, r.executor, r.details, r.owner, w.created_at, w.completed_at
    FROM ${rows('r', endColumns, endValues(outcomes))}
    JOIN ${workflows} AS w ON w.workflow_uuid = r.target_id AND w.owner_xid = r.owner AND w.status = r.status
    WHERE r.event_type IS NOT NULL AND NOT EXISTS (
      SELECT 1
      FROM ${journal} AS s
      WHERE s.workflow_id = r.target_id AND s.step IS NULL AND s.owner = r.owner AND s.event_type = r.event_type)`;
}

export const outcomeWrite: FactualWrite<Outcome> = {
  write: finishIfOwned,
  writeWithFacts: finishWithFacts,
  writeFacts: writeEndFacts,
};
