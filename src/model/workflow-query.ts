// Queries for workflows, as users write them and as the store takes them. Users' mistakes are caught here, before any
// statement is sent.
import { InvalidQueryError, type JSONValue } from './errors/errors.js';
import { checkFields, flag, jsonPattern, oneOrMany, time, wholeNumber } from './query-values.js';
import { ACTIVE_STATUSES, StatusString, type WorkflowStatusString } from './status.js';

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
  readonly statuses?: readonly WorkflowStatusString[];
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

const FILTER_FIELDS = [
  ...Object.keys(VALUE_FILTERS),
  ...['workflowIDs', 'status', 'workflow_id_prefix', 'applicationName', 'startTime', 'endTime', 'completedAfter'],
  ...['completedBefore', 'dequeuedAfter', 'dequeuedBefore', 'queuesOnly', 'wasForkedFrom', 'isFork', 'hasParent'],
  'attributes',
];
const QUERY_FIELDS = [...FILTER_FIELDS, 'limit', 'offset', 'sortDesc', 'loadInput', 'loadOutput'];

/** Checks a query. `ownApplication` is the default for `applicationName`; null means all. */
export function toWorkflowQuery(input: GetWorkflowsInput, ownApplication: string | null): WorkflowQuery {
  checkFields('The query', input, QUERY_FIELDS);
  const { limit, offset, sortDesc, loadInput, loadOutput, ...filters } = input;
  return {
    filter: toFilter(filters, ownApplication),
    isDescending: flag('sortDesc', sortDesc) ?? false,
    limit: wholeNumber('limit', limit),
    offset: wholeNumber('offset', offset) ?? 0,
    isLoadingInput: flag('loadInput', loadInput) ?? true,
    isLoadingOutput: flag('loadOutput', loadOutput) ?? true,
  };
}

/** Checks a filter alone. */
export function toWorkflowFilter(input: WorkflowFilters, ownApplication: string | null): WorkflowFilter {
  checkFields('The filter', input, FILTER_FIELDS);
  return toFilter(input, ownApplication);
}

function toFilter(input: WorkflowFilters, ownApplication: string | null): WorkflowFilter {
  const values: Partial<Record<AskedField, readonly string[]>> = {};
  for (const [name, field] of Object.entries(VALUE_FILTERS)) {
    const wanted = oneOrMany(name, input[name as keyof typeof VALUE_FILTERS]);
    if (wanted) values[field] = wanted;
  }
  const isInQueue = flag('queuesOnly', input.queuesOnly) === true;
  const workflowIDs = oneOrMany('workflowIDs', input.workflowIDs);
  const prefixes = oneOrMany('workflow_id_prefix', input.workflow_id_prefix);
  const ownNames = ownApplication === null || (workflowIDs?.length ?? 0) > 0 ? undefined : [ownApplication];
  return {
    workflowIDs,
    // Every ID starts with the empty string.
    idPrefixes: prefixes?.includes('') ? undefined : prefixes,
    statuses: statusesOf(input, isInQueue),
    values,
    times: {
      createdAt: range('startTime', 'endTime', input),
      completedAt: range('completedAfter', 'completedBefore', input),
      startedAt: range('dequeuedAfter', 'dequeuedBefore', input),
    },
    presence: {
      queueName: isInQueue ? true : undefined,
      forkedFrom: flag('isFork', input.isFork),
      parentWorkflowID: flag('hasParent', input.hasParent),
    },
    wasForkedFrom: flag('wasForkedFrom', input.wasForkedFrom),
    attributes: jsonPattern('attributes', input.attributes),
    applicationNames: oneOrMany('applicationName', input.applicationName) ?? ownNames,
  };
}

function statusesOf({ status }: WorkflowFilters, isInQueue: boolean): readonly WorkflowStatusString[] | undefined {
  const wanted = oneOrMany('status', status) as readonly WorkflowStatusString[] | undefined;
  const unknown = wanted?.find((one) => !Object.hasOwn(StatusString, one));
  if (unknown !== undefined) {
    const known = Object.keys(StatusString).join(', ');
    throw new InvalidQueryError(`Unknown status ${JSON.stringify(unknown)}. Use one of: ${known}.`);
  }
  if (!isInQueue) return wanted && [...new Set(wanted)];
  return wanted ? ACTIVE_STATUSES.filter((one) => wanted.includes(one)) : ACTIVE_STATUSES;
}

type TimeField = 'startTime' | 'endTime' | 'completedAfter' | 'completedBefore' | 'dequeuedAfter' | 'dequeuedBefore';

function range(from: TimeField, to: TimeField, input: WorkflowFilters): TimeRange {
  return { from: time(from, input[from]), to: time(to, input[to]) };
}
