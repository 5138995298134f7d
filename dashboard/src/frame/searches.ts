// What the query of each page's URL may hold. The router and the pages read it by the same table, and the router's types
// check every link against it.
import { useRouterState } from '@tanstack/react-router';
import { useMemo } from 'react';
import { readOverviewSearch } from '../overview/search';
import { readQueuesSearch } from '../queues/search';
import { readRetentionSearch } from '../retention/search';
import { readSchedulesSearch } from '../schedules/search';
import { readWorkflowSearch } from '../workflow/search';
import { readListSearch } from '../workflows/filters';
import { parseSearch } from './location';

export const SEARCHES = {
  '/': readOverviewSearch,
  '/workflows': readListSearch,
  '/workflows/$workflowID': readWorkflowSearch,
  '/queues': readQueuesSearch,
  '/schedules': readSchedulesSearch,
  '/retention': readRetentionSearch,
} as const;

type Searches = typeof SEARCHES;

/**
 * The query of a page, without what makes no sense: the same object until the URL changes. The router's own hook keeps
 * parameters that the page does not know.
 */
export function usePageSearch<P extends keyof Searches>(page: P): ReturnType<Searches[P]> {
  const text = useRouterState({ select: ({ location }) => location.searchStr });
  // The compiler does not see that the result belongs to the page.
  return useMemo(() => SEARCHES[page](parseSearch(text)) as ReturnType<Searches[P]>, [page, text]);
}
