// What the page of outboxes and dead letters reads.
import { queryOptions } from '@tanstack/react-query';
import { api, unwrap } from './client';
import { keys } from './queries';

export const outboxes = queryOptions({
  queryKey: [...keys.outboxes, 'list'],
  queryFn: ({ signal }) => unwrap(api.GET('/outboxes', { signal })),
});

export function outboxStatistics(outbox: string) {
  return queryOptions({
    queryKey: [...keys.outboxes, outbox, 'statistics'],
    queryFn: ({ signal }) => unwrap(api.GET('/outboxes/{outbox}/statistics', { params: { path: { outbox } }, signal })),
    // Reads the whole table of the messages.
    staleTime: 15_000,
  });
}

export function deadLetterGroups(outbox: string) {
  return queryOptions({
    queryKey: [...keys.outboxes, outbox, 'groups'],
    queryFn: ({ signal }) =>
      unwrap(api.GET('/outboxes/{outbox}/dead-letter-groups', { params: { path: { outbox } }, signal })),
  });
}

export function deadLetter(outbox: string, id: string) {
  return queryOptions({
    queryKey: [...keys.outboxes, outbox, 'letter', id],
    queryFn: ({ signal }) =>
      unwrap(api.GET('/outboxes/{outbox}/dead-letters/{id}', { params: { path: { outbox, id } }, signal })),
    // Its error never changes.
    staleTime: Infinity,
  });
}

export function deadLetters(outbox: string, filter: { fingerprint?: string; reason?: string; topic?: string }) {
  return queryOptions({
    queryKey: [...keys.outboxes, outbox, 'letters', filter],
    queryFn: ({ signal }) =>
      unwrap(
        api.GET('/outboxes/{outbox}/dead-letters', {
          params: { path: { outbox }, query: { ...filter, limit: 50 } },
          signal,
        }),
      ),
  });
}

export const receivedGroups = queryOptions({
  queryKey: [...keys.outboxes, 'received', 'groups'],
  queryFn: ({ signal }) => unwrap(api.GET('/receivers/dead-letter-groups', { signal })),
});

export function receivedLetters(filter: { fingerprint: string; functionName: string }) {
  return queryOptions({
    queryKey: [...keys.outboxes, 'received', 'letters', filter],
    queryFn: ({ signal }) =>
      unwrap(api.GET('/receivers/dead-letters', { params: { query: { ...filter, limit: 50 } }, signal })),
  });
}
