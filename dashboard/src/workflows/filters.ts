// The filters of the list: what the API filters by, how each is written in the URL, and how people name it.
import type { WorkflowState } from '../api/client';
import type { WorkflowQuery } from '../api/queries';
import { ALL_STATES } from '../parts/state';

/** `texts` may have several values, `flag` is yes or no, `time` a moment, `json` an object. */
type Kind = 'texts' | 'flag' | 'time' | 'json';

export interface Filter {
  readonly key: Exclude<keyof WorkflowQuery, 'status' | 'sortDesc' | 'loadInput' | 'loadOutput'>;
  readonly label: string;
  readonly kind: Kind;
  readonly hint?: string;
}

export const FILTERS: readonly Filter[] = [
  { key: 'workflowName', label: 'name', kind: 'texts' },
  { key: 'queueName', label: 'queue', kind: 'texts' },
  { key: 'workflowIDPrefix', label: 'ID begins with', kind: 'texts' },
  { key: 'workflowID', label: 'ID', kind: 'texts' },
  { key: 'executorId', label: 'executor', kind: 'texts' },
  { key: 'applicationVersion', label: 'version', kind: 'texts' },
  { key: 'applicationName', label: 'application', kind: 'texts' },
  { key: 'authenticatedUser', label: 'user', kind: 'texts' },
  { key: 'scheduleName', label: 'schedule', kind: 'texts' },
  { key: 'parentWorkflowID', label: 'parent', kind: 'texts' },
  { key: 'forkedFrom', label: 'forked from', kind: 'texts' },
  { key: 'attributes', label: 'attributes', kind: 'json', hint: '{"customer": "c-17"}' },
  { key: 'hasParent', label: 'has a parent', kind: 'flag' },
  { key: 'isFork', label: 'is a fork', kind: 'flag' },
  { key: 'wasForkedFrom', label: 'was forked', kind: 'flag' },
  { key: 'queuesOnly', label: 'on a queue', kind: 'flag' },
  { key: 'startTime', label: 'created after', kind: 'time' },
  { key: 'endTime', label: 'created before', kind: 'time' },
  { key: 'dequeuedAfter', label: 'started after', kind: 'time' },
  { key: 'dequeuedBefore', label: 'started before', kind: 'time' },
  { key: 'completedAfter', label: 'ended after', kind: 'time' },
  { key: 'completedBefore', label: 'ended before', kind: 'time' },
];

export const SPANS = {
  '15m': { label: 'last 15 minutes', ms: 900_000 },
  '1h': { label: 'last hour', ms: 3_600_000 },
  '24h': { label: 'last day', ms: 86_400_000 },
  '7d': { label: 'last week', ms: 604_800_000 },
} as const;

export type Span = keyof typeof SPANS;

export type ListSearch = { readonly [K in Filter['key']]?: string | string[] } & {
  readonly status?: string | string[];
  readonly last?: Span;
  readonly order?: 'oldest';
};

/** What the URL says, without what makes no sense. */
export function readListSearch(search: Record<string, unknown>): ListSearch {
  const found: Record<string, unknown> = {};
  for (const { key } of FILTERS) {
    const texts = textsOf(search[key]);
    if (texts.length > 0) found[key] = texts.length === 1 ? texts[0] : texts;
  }
  const states = statesOf(search['status']);
  if (states.length > 0) found['status'] = states.length === 1 ? states[0] : states;
  if (typeof search['last'] === 'string' && search['last'] in SPANS) found['last'] = search['last'];
  if (search['order'] === 'oldest') found['order'] = 'oldest';
  return found;
}

export function textsOf(value: unknown): string[] {
  const values = Array.isArray(value) ? (value as unknown[]) : [value];
  return values.filter((one): one is string => typeof one === 'string' && one !== '');
}

export function statesOf(value: unknown): WorkflowState[] {
  return textsOf(value).filter((one): one is WorkflowState => (ALL_STATES as string[]).includes(one));
}

/** The query for the API. `now` is what a span counts back from. */
export function toQuery(search: ListSearch, now: number): WorkflowQuery {
  const query: Record<string, unknown> = {};
  for (const { key, kind } of FILTERS) {
    const [first, ...more] = textsOf(search[key]);
    if (first === undefined) continue;
    query[key] = kind === 'texts' ? [first, ...more] : kind === 'flag' ? first === 'true' : first;
  }
  const states = statesOf(search.status);
  if (states.length > 0) query['status'] = states;
  if (search.last && query['startTime'] === undefined) {
    query['startTime'] = new Date(now - SPANS[search.last].ms).toISOString();
  }
  if (search.order === 'oldest') query['sortDesc'] = false;
  return query;
}

/** The active filters as chips; the state and the span have their own menus. */
export function chipsOf(search: ListSearch): readonly { filter: Filter; value: string }[] {
  return FILTERS.flatMap((filter) => textsOf(search[filter.key]).map((value) => ({ filter, value })));
}

/** The search with one value more. */
export function withFilter(search: ListSearch, { key, kind }: Filter, value: string): ListSearch {
  const before = kind === 'texts' ? textsOf(search[key]).filter((one) => one !== value) : [];
  const values = [...before, value];
  return { ...search, [key]: values.length === 1 ? values[0] : values };
}

export function withoutFilter(search: ListSearch, { key }: Filter, value: string): ListSearch {
  const left = textsOf(search[key]).filter((one) => one !== value);
  return { ...search, [key]: left };
}
