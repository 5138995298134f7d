// What the pages read, by key. An answer in the cache is shown at once and read again in the background.
import {
  infiniteQueryOptions,
  keepPreviousData,
  MutationCache,
  QueryCache,
  QueryClient,
  queryOptions,
} from '@tanstack/react-query';
import { api, APIError, isRefused, type Schemas, unwrap, type Value } from './client';
import type { paths } from './schema';

export type WorkflowQuery = Omit<NonNullable<paths['/workflows']['get']['parameters']['query']>, 'cursor' | 'limit'>;

export const keys = {
  session: ['session'],
  lists: ['workflows'],
  overview: ['overview'],
  queues: ['queues'],
  workflow: (workflowID: string) => ['workflow', workflowID],
  schedules: ['schedules'],
  outboxes: ['outboxes'],
  executors: ['executors'],
} as const;

export const PAGE_SIZE = 100;

export function createQueryClient(): QueryClient {
  // A session that is over shows itself in whatever is asked next.
  const onError = (error: Error): void => {
    if (isRefused(error, 401)) void client.invalidateQueries({ queryKey: keys.session });
  };
  const client = new QueryClient({
    queryCache: new QueryCache({ onError }),
    mutationCache: new MutationCache({ onError }),
    defaultOptions: {
      queries: {
        staleTime: 1000,
        gcTime: 300_000,
        // A refusal stays a refusal.
        retry: (count, error) => count < 2 && !(error instanceof APIError && error.status !== undefined),
        refetchOnWindowFocus: false,
      },
    },
  });
  return client;
}

export function workflowList(query: WorkflowQuery) {
  return infiniteQueryOptions({
    queryKey: [...keys.lists, query],
    queryFn: ({ pageParam, signal }) =>
      unwrap(
        api.GET('/workflows', {
          params: { query: { sortDesc: true, ...query, limit: PAGE_SIZE, ...(pageParam && { cursor: pageParam }) } },
          signal,
        }),
      ),
    initialPageParam: '',
    getNextPageParam: (page) => page.nextCursor,
    placeholderData: keepPreviousData,
    // Patched by the event stream; see `live.ts`.
    staleTime: 5000,
    refetchOnReconnect: false,
  });
}

/** Counting more takes longer than anyone waits for; the server estimates them. */
export const EXACT_COUNT_MAX = 10_000;

/** Without order and what to load, which no count depends on. */
export function workflowCount(query: WorkflowQuery) {
  const { sortDesc, ...filters } = query;
  return queryOptions({
    queryKey: ['workflow-count', filters],
    queryFn: ({ signal }) =>
      unwrap(api.GET('/workflow-count', { params: { query: { ...filters, exactMax: EXACT_COUNT_MAX } }, signal })),
    staleTime: 10_000,
    placeholderData: keepPreviousData,
  });
}

const at = (workflowID: string) => ({ path: { workflowID } });

export function workflow(workflowID: string) {
  return queryOptions({
    queryKey: [...keys.workflow(workflowID), 'row'],
    queryFn: ({ signal }) => unwrap(api.GET('/workflows/{workflowID}', { params: at(workflowID), signal })),
  });
}

export function explanation(workflowID: string) {
  return queryOptions({
    queryKey: [...keys.workflow(workflowID), 'explanation'],
    queryFn: ({ signal }) => unwrap(api.GET('/workflows/{workflowID}/explanation', { params: at(workflowID), signal })),
  });
}

export function steps(workflowID: string) {
  return queryOptions({
    queryKey: [...keys.workflow(workflowID), 'steps'],
    queryFn: ({ signal }) =>
      unwrap(
        api.GET('/workflows/{workflowID}/steps', { params: { ...at(workflowID), query: { limit: 10_000 } }, signal }),
      ),
  });
}

/** More rows than anyone scrolls through; the history has them all. */
const ROWS_MAX = 10_000;

export function timeline(workflowID: string) {
  return queryOptions({
    queryKey: [...keys.workflow(workflowID), 'timeline'],
    queryFn: ({ signal }) =>
      unwrap(
        api.GET('/workflows/{workflowID}/timeline', {
          params: { ...at(workflowID), query: { limit: ROWS_MAX } },
          signal,
        }),
      ),
  });
}

export function history(workflowID: string) {
  return infiniteQueryOptions({
    queryKey: [...keys.workflow(workflowID), 'history'],
    queryFn: ({ pageParam, signal }) =>
      unwrap(
        api.GET('/workflows/{workflowID}/history', {
          params: {
            ...at(workflowID),
            query: { limit: 500, payloads: true, ...(pageParam && { after: pageParam }) },
          },
          signal,
        }),
      ),
    initialPageParam: '',
    getNextPageParam: ({ events }) => (events.length === 500 ? events.at(-1)?.cursor : undefined),
  });
}

export function events(workflowID: string) {
  return queryOptions({
    queryKey: [...keys.workflow(workflowID), 'events'],
    queryFn: ({ signal }) => unwrap(api.GET('/workflows/{workflowID}/events', { params: at(workflowID), signal })),
  });
}

export function messages(workflowID: string) {
  return queryOptions({
    queryKey: [...keys.workflow(workflowID), 'messages'],
    queryFn: ({ signal }) => unwrap(api.GET('/workflows/{workflowID}/messages', { params: at(workflowID), signal })),
  });
}

export function streams(workflowID: string) {
  return queryOptions({
    queryKey: [...keys.workflow(workflowID), 'streams'],
    queryFn: ({ signal }) => unwrap(api.GET('/workflows/{workflowID}/streams', { params: at(workflowID), signal })),
  });
}

/** The values of a stream, by offset. Reading them again reads those behind the known ones. */
export function streamValues(workflowID: string, key: string) {
  return queryOptions({
    queryKey: [...keys.workflow(workflowID), 'stream', key],
    queryFn: async ({ client, queryKey, signal }) => {
      const values = [...(client.getQueryData<Value[]>(queryKey) ?? [])];
      for (let after: number | null = values.length - 1; after !== null;) {
        const query = after < 0 ? { key } : { key, after };
        const page: Schemas['StreamPage'] = await unwrap(
          api.GET('/workflows/{workflowID}/stream-values', { params: { ...at(workflowID), query }, signal }),
        );
        values.push(...page.values.map(({ value }) => value));
        after = page.nextAfter;
      }
      return values;
    },
    // Large lists of values that do not change.
    structuralSharing: false,
  });
}

export function tree(workflowID: string) {
  return queryOptions({
    queryKey: [...keys.workflow(workflowID), 'tree'],
    queryFn: ({ signal }) => unwrap(api.GET('/workflows/{workflowID}/tree', { params: at(workflowID), signal })),
  });
}

/** Belongs to the second workflow, so that its changes refresh it. */
export function comparison(first: string, second: string) {
  return queryOptions({
    queryKey: [...keys.workflow(second), 'comparison', first],
    queryFn: ({ signal }) =>
      unwrap(
        api.GET('/workflows/{workflowID}/comparison', { params: { ...at(first), query: { with: second } }, signal }),
      ),
  });
}

export const queues = queryOptions({
  queryKey: [...keys.queues, 'list'],
  queryFn: ({ signal }) => unwrap(api.GET('/queues', { signal })),
});

export const queueStats = queryOptions({
  queryKey: [...keys.queues, 'stats'],
  queryFn: ({ signal }) => unwrap(api.GET('/queue-stats', { signal })),
});

export function queueDetails(name: string) {
  return queryOptions({
    queryKey: [...keys.queues, 'details', name],
    queryFn: ({ signal }) => unwrap(api.GET('/queues/{name}/details', { params: { path: { name } }, signal })),
  });
}

export const executors = queryOptions({
  queryKey: [...keys.executors, 'list'],
  queryFn: ({ signal }) => unwrap(api.GET('/executors', { signal })),
});

export const versions = queryOptions({
  queryKey: [...keys.executors, 'versions'],
  queryFn: ({ signal }) => unwrap(api.GET('/versions', { signal })),
});

export const openByVersion = queryOptions({
  queryKey: [...keys.executors, 'open'],
  queryFn: ({ signal }) =>
    unwrap(
      api.POST('/aggregates/workflows', {
        body: { groupByApplicationVersion: true, selectCount: true, status: ['PENDING', 'ENQUEUED', 'DELAYED'] },
        signal,
      }),
    ),
  staleTime: 5000,
});

export const schedules = queryOptions({
  queryKey: [...keys.schedules, 'list'],
  queryFn: ({ signal }) => unwrap(api.GET('/schedules', { signal })),
});

export function nextRuns(name: string, count: number) {
  return queryOptions({
    queryKey: [...keys.schedules, 'next', name, count],
    queryFn: ({ signal }) =>
      unwrap(api.GET('/schedules/{name}/next-runs', { params: { path: { name }, query: { count } }, signal })),
    staleTime: 30_000,
  });
}

/** Workflows that a schedule has started, the newest first. */
export function scheduleRuns(name: string) {
  return queryOptions({
    queryKey: [...keys.lists, 'schedule', name],
    queryFn: ({ signal }) =>
      unwrap(api.GET('/workflows', { params: { query: { scheduleName: [name], sortDesc: true, limit: 10 } }, signal })),
  });
}

export const info = queryOptions({
  queryKey: ['info'],
  queryFn: ({ signal }) => unwrap(api.GET('/info', { signal })),
});

export function overview(window: '1h' | '24h') {
  return queryOptions({
    queryKey: [...keys.overview, window],
    queryFn: ({ signal }) => unwrap(api.GET('/overview', { params: { query: { window } }, signal })),
    placeholderData: keepPreviousData,
    staleTime: 4000,
  });
}

export const attention = queryOptions({
  queryKey: [...keys.overview, 'attention'],
  queryFn: ({ signal }) => unwrap(api.GET('/attention', { signal })),
  staleTime: 4000,
});

export function backfillPreview(name: string, span: { start: string; end: string }) {
  return queryOptions({
    queryKey: [...keys.schedules, 'backfill', name, span],
    queryFn: ({ signal }) =>
      unwrap(api.POST('/schedules/{name}/backfill-preview', { params: { path: { name } }, body: span, signal })),
    placeholderData: keepPreviousData,
  });
}

export const health = queryOptions({
  queryKey: ['health'],
  queryFn: ({ signal }) => unwrap(api.GET('/health', { signal })),
  staleTime: 30_000,
});

export function readRetention() {
  return unwrap(api.GET('/retention'));
}

export const retention = queryOptions({ queryKey: ['retention'], queryFn: readRetention });

export function archivedWorkflow(workflowID: string) {
  return queryOptions({
    queryKey: ['archived', workflowID],
    queryFn: ({ signal }) => unwrap(api.GET('/archived-workflows/{workflowID}', { params: at(workflowID), signal })),
  });
}
