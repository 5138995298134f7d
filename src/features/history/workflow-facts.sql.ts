// Starts and outcomes of workflows, written together with what they say in the journal.
import { idents, nowMs, rows, type Sql, sql, table, type Value } from '../../kernel/sql/sql.js';
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
} from '../../run/rows/workflows.js';
import { factColumns, type FactualWrite, factValues, hasFact } from './facts.sql.js';

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
const endSaid = (type: Sql): Sql =>
  sql`SELECT r.workflow_uuid, ${nowMs}, ${type}, NULL, r.executor, NULL, r.owner_xid, 0, 0`;

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
      ${endSaid(sql`r.end_event_type`)}
      FROM r
      WHERE r.end_event_type IS NOT NULL AND ${isWritten})
    SELECT creator_xid, workflow_deadline_epoch_ms FROM written`;
}

/** What tells a start, and what it says. */
const leanStartColumns = [
  { name: 'workflow_uuid', type: 'text' },
  { name: 'creator_xid', type: 'text' },
  { name: 'owner_xid', type: 'text' },
  ...factColumns,
] as const;

function leanStart({ workflowID, creator, owner, fact }: NewWorkflow): Value[] {
  return [workflowID, creator, owner, ...factValues(fact)];
}

function leanEnd({ workflowID, creator, owner, fact, outcome }: NewWorkflow): Value[] {
  return [workflowID, creator, owner, outcome?.fact?.eventType ?? null, fact?.executor ?? null, null, null];
}

/** What starts and outcomes `r` say, of workflows that were created by them and have not said it. */
function sayStarts(said: Sql, data: readonly (readonly Value[])[]): Sql {
  return sql`
    ${said}
    FROM ${rows('r', leanStartColumns, data)}
    JOIN ${workflows} AS w ON w.workflow_uuid = r.workflow_uuid AND w.creator_xid = r.creator_xid
    WHERE NOT EXISTS (
      SELECT 1 FROM ${journal} AS s WHERE s.workflow_id = r.workflow_uuid AND s.step IS NULL AND s.event_type = r.event_type)`;
}

function writeStartFacts(starts: readonly NewWorkflow[]): Sql {
  const begun = sayStarts(startSaid, starts.filter(hasFact).map(leanStart));
  const ended = starts.filter(({ outcome }) => outcome !== undefined && hasFact(outcome)).map(leanEnd);
  return ended.length === 0
    ? sql`INSERT INTO ${startTarget} ${begun}`
    : sql`INSERT INTO ${startTarget} ${begun} UNION ALL ${sayStarts(endSaid(sql`r.event_type`), ended)}`;
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

const leanEndColumns = [
  { name: 'target_id', type: 'text' },
  { name: 'owner', type: 'text' },
  { name: 'status', type: 'text' },
  ...factColumns,
] as const;

function writeEndFacts(outcomes: readonly Outcome[]): Sql {
  const said = outcomes
    .filter(hasFact)
    .map(({ workflowID, owner, status, fact }) => [workflowID, owner, status, ...factValues(fact)]);
  return sql`
    INSERT INTO ${endTarget}
    SELECT r.target_id, ${nowMs}, r.event_type, r.attempt, r.executor, r.details, r.owner, w.created_at, w.completed_at
    FROM ${rows('r', leanEndColumns, said)}
    JOIN ${workflows} AS w ON w.workflow_uuid = r.target_id AND w.owner_xid = r.owner AND w.status = r.status
    WHERE NOT EXISTS (
      SELECT 1
      FROM ${journal} AS s
      WHERE s.workflow_id = r.target_id AND s.step IS NULL AND s.owner = r.owner AND s.event_type = r.event_type)`;
}

export const outcomeWrite: FactualWrite<Outcome> = {
  write: finishIfOwned,
  writeWithFacts: finishWithFacts,
  writeFacts: writeEndFacts,
};
