// A workflow: what it is, why it is where it is, what happened, and what can be done about it.
import { useQuery } from '@tanstack/react-query';
import { Link, useParams } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { Workflow } from '../api/client';
import { isRefused } from '../api/client';
import { workflow as workflowQuery } from '../api/queries';
import { Page } from '../frame/frame';
import { usePageSearch } from '../frame/searches';
import { visibleText } from '../parts/format';
import { Empty, Failure, Loading } from '../parts/notice';
import { isActive } from '../parts/state';
import { Header } from './header';
import type { Tab } from './search';
import { CompareTab } from './tabs/compare-tab';
import { HistoryTab } from './tabs/history-tab';
import { MessagesTab } from './tabs/messages-tab';
import { StepsTab } from './tabs/steps-tab';
import { StreamsTab } from './tabs/streams-tab';
import { TimelineTab } from './tabs/timeline-tab';
import { TreeTab } from './tabs/tree-tab';
import { InputTab, OutputTab } from './tabs/value-tabs';
import { Why } from './why';

const LABELS: Readonly<Record<Tab, string>> = {
  timeline: 'Timeline',
  input: 'Input',
  output: 'Output',
  steps: 'Steps',
  messages: 'Messages',
  streams: 'Streams',
  tree: 'Tree',
  history: 'History',
  compare: 'Compare',
};

/** While it runs, steps are recorded without a change of the workflow's own row. */
const LIVE_MS = 2000;

export function WorkflowPage(): ReactNode {
  const { workflowID } = useParams({ from: '/workflows/$workflowID' });
  const { data, error, refetch } = useQuery({
    ...workflowQuery(workflowID),
    refetchInterval: ({ state }) => (state.data && isActive(state.data) ? LIVE_MS : false),
  });
  return (
    <Page
      title={
        <>
          <Link to="/workflows">Workflows</Link> <span className="soft">/</span> {visibleText(workflowID)}
        </>
      }
    >
      <div className="page-body">
        {isRefused(error, 404) ? (
          <Empty title="There is no such workflow.">
            <p>It may have been deleted by retention, or the ID is mistyped.</p>
            <Link to="/workflows" search={{ workflowIDPrefix: workflowID.slice(0, 8) }} className="button">
              Look for similar IDs
            </Link>{' '}
            <Link to="/retention" search={{ archived: workflowID }} className="button">
              Look into the archive
            </Link>
          </Empty>
        ) : (
          <Failure error={error} onRetry={() => void refetch()} />
        )}
        {!data && !error && <Loading />}
        {data && !isRefused(error, 404) && <Loaded key={workflowID} workflow={data} />}
      </div>
    </Page>
  );
}

function Loaded({ workflow }: { workflow: Workflow }) {
  const { tab = 'timeline' } = usePageSearch('/workflows/$workflowID');
  const tabs = (Object.keys(LABELS) as Tab[]).filter((one) => one !== 'compare' || workflow.forkedFrom !== undefined);
  return (
    <>
      <Header workflow={workflow} />
      <Why workflow={workflow} />
      <nav className="tabs" aria-label="Parts of the workflow">
        {tabs.map((one) => (
          <Link
            key={one}
            to="/workflows/$workflowID"
            params={{ workflowID: workflow.workflowID }}
            search={one === 'timeline' ? {} : { tab: one }}
            replace
            aria-current={one === tab ? 'page' : undefined}
          >
            {LABELS[one]}
          </Link>
        ))}
      </nav>
      <TabContent tab={tab} workflow={workflow} />
    </>
  );
}

function TabContent({ tab, workflow }: { tab: Tab; workflow: Workflow }) {
  switch (tab) {
    case 'timeline':
      return <TimelineTab workflow={workflow} />;
    case 'input':
      return <InputTab workflow={workflow} />;
    case 'output':
      return <OutputTab workflow={workflow} />;
    case 'steps':
      return <StepsTab workflow={workflow} />;
    case 'messages':
      return <MessagesTab workflow={workflow} />;
    case 'streams':
      return <StreamsTab workflow={workflow} />;
    case 'tree':
      return <TreeTab workflow={workflow} />;
    case 'history':
      return <HistoryTab workflow={workflow} />;
    case 'compare':
      return <CompareTab workflow={workflow} />;
  }
}
