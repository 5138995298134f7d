// Translates a filter of workflows to SQL conditions on `w`.
import { FAILED_STATUSES, type StoredState, WAITING_STATUSES } from '../../kernel/workflow/status.js';
import type { AskedField, TimeRange, WorkflowFilter } from './workflow-query.js';
import { containsJSON, endOfPrefix, type JSONObject, startsWith } from '../../kernel/sql/matching.js';
import { oneOf, type Sql, sql, textConstants } from '../../kernel/sql/sql.js';
import { isParkedWithoutQueue, storedState } from '../parking/parked.sql.js';
import { INTERNAL_QUEUE } from '../queue/queue.js';
import { hasFailed, isListedAsWaiting } from '../../run/rows/states.js';

const VALUE_COLUMNS: Readonly<Record<AskedField, Sql>> = {
  name: sql`w.name`,
  authenticatedUser: sql`w.authenticated_user`,
  applicationVersion: sql`w.application_version`,
  executorID: sql`w.executor_id`,
  queueName: sql`w.queue_name`,
  forkedFrom: sql`w.forked_from`,
  parentWorkflowID: sql`w.parent_workflow_id`,
  scheduleName: sql`w.schedule_name`,
};

const TIME_COLUMNS: Readonly<Record<keyof WorkflowFilter['times'], Sql>> = {
  createdAt: sql`w.created_at`,
  completedAt: sql`w.completed_at`,
  startedAt: sql`w.started_at_epoch_ms`,
};

const workflowID = { alias: 'w', name: 'workflow_uuid' };
const attributes = { alias: 'w', name: 'attributes' };

/**
 * How IDs are compared with a prefix. Hidden keeps a common prefix from being looked up in an index. Ranged bounds the IDs
 * too, in databases that compare by bytes: with a collation such as C.UTF-8, Postgres does not derive the bounds itself.
 */
export type PrefixComparison = 'plain' | 'hidden' | 'ranged';

/**
 * The filter in disjoint parts, for what has no order. Several states that have indexes of their own are read one by one:
 * their rows are few among those that have ended.
 */
export function partsOf(filter: WorkflowFilter): readonly [WorkflowFilter, ...WorkflowFilter[]] {
  const { states: [first, ...others] = [] } = filter;
  if (first === undefined || ![first, ...others].every(isIndexed)) return [filter];
  return [{ ...filter, states: [first] }, ...others.map((state) => ({ ...filter, states: [state] }))];
}

/** The conditions, all of which must hold. */
export function conditionsOf(filter: WorkflowFilter, prefixes: PrefixComparison = 'plain'): Sql[] {
  const conditions: Sql[] = [];
  if (filter.workflowIDs) conditions.push(sql`w.workflow_uuid ${oneOf(filter.workflowIDs)}`);
  if (filter.idPrefixes) conditions.push(either(filter.idPrefixes.map((one) => hasPrefix(one, prefixes))));
  if (filter.states) conditions.push(hasState(filter.states));
  for (const [field, column] of Object.entries(VALUE_COLUMNS) as [AskedField, Sql][]) {
    const values = filter.values[field];
    if (values) conditions.push(isOneOf(column, values));
    // The exact condition of the optional index, if there is one.
    if (values?.length === 1) conditions.push(sql`CASE WHEN ${column} IS NULL THEN FALSE ELSE TRUE END`);
  }
  for (const [field, column] of Object.entries(TIME_COLUMNS) as [keyof WorkflowFilter['times'], Sql][]) {
    conditions.push(...within(column, filter.times[field]));
  }
  for (const [field, isThere] of Object.entries(filter.presence) as [AskedField, boolean | undefined][]) {
    const column = VALUE_COLUMNS[field];
    if (isThere !== undefined) conditions.push(isThere ? sql`${column} IS NOT NULL` : sql`${column} IS NULL`);
  }
  if (filter.presence.queueName || filter.values.queueName?.includes(INTERNAL_QUEUE)) {
    conditions.push(sql`NOT ${isParkedWithoutQueue('w')}`);
  }
  if (filter.wasForkedFrom !== undefined) conditions.push(sql`w.was_forked_from = ${filter.wasForkedFrom}`);
  if (filter.attributes !== undefined) {
    // The exact condition of the partial index.
    const pattern = filter.attributes as JSONObject;
    conditions.push(sql`w.attributes IS NOT NULL AND ${containsJSON(attributes, pattern)}`);
  }
  if (filter.applicationNames) conditions.push(isOfApplication('w', filter.applicationNames));
  return conditions;
}

function hasPrefix(prefix: string, comparison: PrefixComparison): Sql {
  const starts = sql`${startsWith({ ...workflowID, isHidden: comparison === 'hidden' }, prefix)}`;
  if (comparison !== 'ranged') return starts;
  const end = endOfPrefix(prefix);
  const isBelow = end === undefined ? sql`` : sql`AND w.workflow_uuid < ${end}`;
  return sql`(${starts} AND w.workflow_uuid >= ${prefix} ${isBelow})`;
}

const WAITING_STATES: readonly StoredState[] = [...WAITING_STATUSES, 'PARKED'];

/** Whether the rows in this state have an index. */
function isIndexed(state: StoredState): boolean {
  return state === 'PENDING' || isOneOfStates(FAILED_STATUSES, state) || isOneOfStates(WAITING_STATES, state);
}

function isOneOfStates(states: readonly StoredState[], state: StoredState): boolean {
  return states.includes(state);
}

/** One state is the exact condition of its partial index, if it has one. */
function hasState(states: readonly StoredState[]): Sql {
  const [only] = states;
  if (!only || states.length > 1) return hasAnyOf(states);
  if (isOneOfStates(WAITING_STATES, only))
    return sql`${storedState('w')} = ${textConstants([only])} AND ${isListedAsWaiting('w')}`;
  const isOnly = sql`w.status = ${textConstants([only])}`;
  return isOneOfStates(FAILED_STATUSES, only) ? sql`${isOnly} AND ${hasFailed('w')}` : isOnly;
}

function hasAnyOf(states: readonly StoredState[]): Sql {
  const statuses = [...new Set(states.map((state) => (state === 'PARKED' ? 'DELAYED' : state)))];
  const isStored = sql`w.status ${oneOf(statuses)}`;
  // Both kinds of delayed rows, or none of them.
  if (states.includes('PARKED') === states.includes('DELAYED')) return isStored;
  return sql`${isStored} AND ${storedState('w')} ${oneOf(states)}`;
}

export function whereOf(conditions: readonly Sql[]): Sql {
  const [first, ...rest] = conditions;
  return first ? rest.reduce((all, one) => sql`${all} AND ${one}`, sql`WHERE ${first}`) : sql``;
}

/** A single value uses `=`: an index returns its rows in order, which it cannot for several values. */
export function isOneOf(column: Sql, values: readonly string[]): Sql {
  const [only] = values;
  return only !== undefined && values.length === 1 ? sql`${column} = ${only}` : sql`${column} ${oneOf(values)}`;
}

export function within(column: Sql, { from, to }: TimeRange): Sql[] {
  return [
    ...(from === undefined ? [] : [sql`${column} >= CAST(${from} AS BIGINT)`]),
    ...(to === undefined ? [] : [sql`${column} <= CAST(${to} AS BIGINT)`]),
  ];
}

/** True for rows of these applications and for those without one. */
export function isOfApplication(alias: 'w' | 'o', applicationNames: readonly string[]): Sql {
  const column = alias === 'w' ? sql`w.application_name` : sql`o.application_name`;
  return sql`(${isOneOf(column, applicationNames)} OR ${column} IS NULL)`;
}

export function either(conditions: readonly Sql[]): Sql {
  const [first, ...rest] = conditions;
  return first ? sql`(${rest.reduce((all, one) => sql`${all} OR ${one}`, first)})` : sql`FALSE`;
}
