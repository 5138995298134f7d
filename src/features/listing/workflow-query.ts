// Queries for workflows, as users write them and as the store takes them. Users' mistakes are caught here, before any
// statement is sent.
import type { JSONValue } from '../../kernel/errors/errors.js';
import {
  ACTIVE_STATUSES,
  StatusString,
  type StoredState,
  statesSeenAs,
  type WorkflowStatusString,
} from '../../kernel/workflow/status.js';
import {
  anything,
  asArray,
  boolean,
  type Check,
  integer,
  nullish,
  oneOf,
  oneOrMany,
  parseTimestamp,
  readJSONPattern,
  lenientRecord,
  record,
  string,
  timestamp,
} from '../../kernel/check/validation.js';

type OneOrMany<T> = T | readonly T[];

/** Selects workflows. All given fields must match; of a list, one value must. An empty list matches none. */
export interface WorkflowFilters {
  readonly workflowIDs?: readonly string[];
  readonly workflowName?: OneOrMany<string>;
  readonly status?: OneOrMany<WorkflowStatusString>;
  readonly authenticatedUser?: OneOrMany<string>;
  readonly applicationVersion?: OneOrMany<string>;
  readonly executorId?: OneOrMany<string>;
  readonly workflow_id_prefix?: OneOrMany<string>;
  readonly queueName?: OneOrMany<string>;
  readonly forkedFrom?: OneOrMany<string>;
  readonly parentWorkflowID?: OneOrMany<string>;
  readonly scheduleName?: OneOrMany<string>;
  /** These applications, and workflows without one. By default this application, or any if IDs are given. */
  readonly applicationName?: OneOrMany<string>;
  /** Created at this time or later, in RFC 3339, such as `2026-01-31T12:00:00Z`. */
  readonly startTime?: string;
  /** Created at this time or earlier. */
  readonly endTime?: string;
  readonly completedAfter?: string;
  readonly completedBefore?: string;
  readonly dequeuedAfter?: string;
  readonly dequeuedBefore?: string;
  /** Only workflows in a queue: enqueued, delayed or running. */
  readonly queuesOnly?: boolean;
  /** Whether others were forked from it. */
  readonly wasForkedFrom?: boolean;
  /** Whether it was forked from another. */
  readonly isFork?: boolean;
  readonly hasParent?: boolean;
  /** Workflows whose attributes contain these, as Postgres' `@>` defines it. */
  readonly attributes?: Readonly<Record<string, unknown>>;
}

export interface GetWorkflowsInput extends WorkflowFilters {
  readonly limit?: number;
  readonly offset?: number;
  /** Newest first. */
  readonly sortDesc?: boolean;
  /** False omits `input`. */
  readonly loadInput?: boolean;
  /** False omits `output` and `error`. */
  readonly loadOutput?: boolean;
}

/** Fields that are filtered by value. */
export type AskedField =
  | 'name'
  | 'authenticatedUser'
  | 'applicationVersion'
  | 'executorID'
  | 'queueName'
  | 'forkedFrom'
  | 'parentWorkflowID'
  | 'scheduleName';

/** Both ends are inclusive. */
export interface TimeRange {
  readonly from?: number;
  readonly to?: number;
}

/** A checked filter. Undefined fields match everything. */
export interface WorkflowFilter {
  readonly workflowIDs?: readonly string[];
  readonly idPrefixes?: readonly string[];
  /** Of the rows: a pending workflow may be parked. */
  readonly states?: readonly StoredState[];
  readonly values: Readonly<Partial<Record<AskedField, readonly string[]>>>;
  readonly times: Readonly<Record<'createdAt' | 'completedAt' | 'startedAt', TimeRange>>;
  /** Whether the field must be present or absent. */
  readonly presence: Readonly<Partial<Record<'queueName' | 'forkedFrom' | 'parentWorkflowID', boolean>>>;
  readonly wasForkedFrom?: boolean;
  readonly attributes?: JSONValue;
  /** Workflows of these applications, and those without one. */
  readonly applicationNames?: readonly string[];
}

/** Which of the matching workflows to load, and which fields. */
export interface WorkflowQuery {
  readonly filter: WorkflowFilter;
  readonly isDescending: boolean;
  readonly limit?: number;
  readonly offset: number;
  readonly isLoadingInput: boolean;
  readonly isLoadingOutput: boolean;
}

const VALUE_FILTERS = {
  workflowName: 'name',
  authenticatedUser: 'authenticatedUser',
  applicationVersion: 'applicationVersion',
  executorId: 'executorID',
  queueName: 'queueName',
  forkedFrom: 'forkedFrom',
  parentWorkflowID: 'parentWorkflowID',
  scheduleName: 'scheduleName',
} as const satisfies Partial<Record<keyof WorkflowFilters, AskedField>>;

// A value that is null was not asked for: JSON has no undefined.
const texts = nullish(oneOrMany(string()));
const time = nullish(timestamp);
const flag = nullish(boolean);

const FILTERS = {
  workflowIDs: texts,
  workflowName: texts,
  status: nullish(oneOrMany(oneOf(Object.values(StatusString)))),
  authenticatedUser: texts,
  applicationVersion: texts,
  executorId: texts,
  workflow_id_prefix: texts,
  queueName: texts,
  forkedFrom: texts,
  parentWorkflowID: texts,
  scheduleName: texts,
  applicationName: texts,
  startTime: time,
  endTime: time,
  completedAfter: time,
  completedBefore: time,
  dequeuedAfter: time,
  dequeuedBefore: time,
  queuesOnly: flag,
  wasForkedFrom: flag,
  isFork: flag,
  hasParent: flag,
  attributes: nullish(anything),
} satisfies Record<keyof WorkflowFilters, Check<unknown>>;

// What acts on workflows must not act on all because of a misspelt filter.
const filterCheck = record(FILTERS);
const queryCheck = lenientRecord({
  ...FILTERS,
  limit: nullish(integer()),
  offset: nullish(integer()),
  sortDesc: flag,
  loadInput: flag,
  loadOutput: flag,
} satisfies Record<keyof GetWorkflowsInput, Check<unknown>>);

/** Checks a query. `ownApplication` is the default for `applicationName`; null means all. */
export function toWorkflowQuery(input: GetWorkflowsInput, ownApplication: string | null): WorkflowQuery {
  queryCheck.read(input, 'filter');
  return {
    filter: toFilter(input, ownApplication),
    isDescending: input.sortDesc ?? false,
    limit: input.limit ?? undefined,
    offset: input.offset ?? 0,
    isLoadingInput: input.loadInput ?? true,
    isLoadingOutput: input.loadOutput ?? true,
  };
}

/** Checks a filter alone. */
export function toWorkflowFilter(input: WorkflowFilters, ownApplication: string | null): WorkflowFilter {
  filterCheck.read(input, 'filter');
  return toFilter(input, ownApplication);
}

function toFilter(input: WorkflowFilters, ownApplication: string | null): WorkflowFilter {
  const values: Partial<Record<AskedField, readonly string[]>> = {};
  for (const [name, field] of Object.entries(VALUE_FILTERS)) {
    const wanted = asArray(input[name as keyof typeof VALUE_FILTERS]);
    if (wanted) values[field] = wanted;
  }
  const isInQueue = input.queuesOnly === true;
  const workflowIDs = asArray(input.workflowIDs);
  const prefixes = asArray(input.workflow_id_prefix);
  const ownNames = ownApplication === null || (workflowIDs?.length ?? 0) > 0 ? undefined : [ownApplication];
  return {
    workflowIDs,
    // Every ID starts with the empty string.
    idPrefixes: prefixes?.includes('') ? undefined : prefixes,
    states: statusesOf(input, isInQueue)?.flatMap(statesSeenAs),
    values,
    times: {
      createdAt: range(input.startTime, input.endTime),
      completedAt: range(input.completedAfter, input.completedBefore),
      startedAt: range(input.dequeuedAfter, input.dequeuedBefore),
    },
    presence: {
      queueName: isInQueue ? true : undefined,
      forkedFrom: input.isFork ?? undefined,
      parentWorkflowID: input.hasParent ?? undefined,
    },
    wasForkedFrom: input.wasForkedFrom ?? undefined,
    attributes: input.attributes == null ? undefined : readJSONPattern(input.attributes, 'filter.attributes'),
    applicationNames: asArray(input.applicationName) ?? ownNames,
  };
}

function statusesOf({ status }: WorkflowFilters, isInQueue: boolean): readonly WorkflowStatusString[] | undefined {
  const wanted = asArray(status);
  if (!isInQueue) return wanted && [...new Set(wanted)];
  return wanted ? ACTIVE_STATUSES.filter((one) => wanted.includes(one)) : ACTIVE_STATUSES;
}

/** The range between two checked times. */
export function range(from: string | null | undefined, to: string | null | undefined): TimeRange {
  return { from: from == null ? undefined : parseTimestamp(from), to: to == null ? undefined : parseTimestamp(to) };
}
