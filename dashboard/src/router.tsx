// The pages by path. Filters, order and open panels are in the query of the URL, so that every view can be linked to.
import {
  createRootRouteWithContext,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Outlet,
} from '@tanstack/react-router';
import type { QueryClient } from '@tanstack/react-query';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useEffect } from 'react';
import { pagesPath } from './api/client';
import { live } from './api/live';
import { session } from './api/session';
import { Frame, Page } from './frame/frame';
import { parseSearch, stringifySearch } from './frame/location';
import { Login } from './frame/login';
import { SEARCHES } from './frame/searches';
import { Empty, Failure } from './parts/notice';
import { ExecutorsPage } from './executors/executors-page';
import { LettersPage } from './letters/letters-page';
import { QueuesPage } from './queues/queues-page';
import { SchedulesPage } from './schedules/schedules-page';
import { RetentionPage } from './retention/retention-page';
import { SettingsPage } from './settings/settings-page';
import { WorkflowsPage } from './workflows/workflows-page';
import { WorkflowPage } from './workflow/workflow-page';

const root = createRootRouteWithContext<{ client: QueryClient }>()({
  component: Root,
  notFoundComponent: () => (
    <Page title="Not found">
      <Empty title="There is no such page." />
    </Page>
  ),
});

function Root(): ReactNode {
  const { data, error, refetch } = useQuery(session);
  const client = useQueryClient();
  const isAuthenticated = data?.isAuthenticated === true;
  useEffect(() => (isAuthenticated ? live.start(client) : undefined), [client, isAuthenticated]);
  if (data && !isAuthenticated) return <Login />;
  if (data) {
    return (
      <Frame session={data}>
        <Outlet />
      </Frame>
    );
  }
  return error ? (
    <main className="page-body">
      <Failure error={error} onRetry={() => void refetch()} />
    </main>
  ) : null;
}

const getParentRoute = (): typeof root => root;

const workflowsRoute = createRoute({
  getParentRoute,
  path: '/workflows',
  validateSearch: SEARCHES['/workflows'],
  component: WorkflowsPage,
});

const workflowRoute = createRoute({
  getParentRoute,
  path: '/workflows/$workflowID',
  validateSearch: SEARCHES['/workflows/$workflowID'],
  component: WorkflowPage,
});

const queuesRoute = createRoute({
  getParentRoute,
  path: '/queues',
  validateSearch: SEARCHES['/queues'],
  component: QueuesPage,
});

const schedulesRoute = createRoute({
  getParentRoute,
  path: '/schedules',
  validateSearch: SEARCHES['/schedules'],
  component: SchedulesPage,
});

const overviewRoute = createRoute({
  getParentRoute,
  path: '/',
  validateSearch: SEARCHES['/'],
  // Its charts need a library that no other page needs.
  component: lazyRouteComponent(() => import('./overview/overview-page'), 'OverviewPage'),
});

const outboxRoute = createRoute({ getParentRoute, path: '/outbox', component: LettersPage });
const executorsRoute = createRoute({ getParentRoute, path: '/executors', component: ExecutorsPage });
const settingsRoute = createRoute({ getParentRoute, path: '/settings', component: SettingsPage });

const retentionRoute = createRoute({
  getParentRoute,
  path: '/retention',
  validateSearch: SEARCHES['/retention'],
  component: RetentionPage,
});

// Routes created within the list would lose their types, and links would not be checked.
const routes = root.addChildren([
  overviewRoute,
  workflowsRoute,
  workflowRoute,
  queuesRoute,
  schedulesRoute,
  outboxRoute,
  executorsRoute,
  retentionRoute,
  settingsRoute,
]);

export function createPages(client: QueryClient) {
  return createRouter({
    routeTree: routes,
    basepath: pagesPath,
    context: { client },
    parseSearch,
    stringifySearch,
    defaultPreload: false,
    scrollRestoration: false,
  });
}

declare module '@tanstack/react-router' {
  interface Register {
    router: ReturnType<typeof createPages>;
  }
}
