// Executors and versions: who lives, what each runs, and which version new workflows go to.
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { api, type Schemas, unwrap } from '../api/client';
import { executors as executorsQuery, keys, openByVersion, versions as versionsQuery } from '../api/queries';
import { useSession } from '../api/session';
import { Page } from '../frame/frame';
import { useChange } from '../parts/changes';
import { Confirm } from '../parts/dialog';
import { formatCount, visibleText } from '../parts/format';
import { Empty, Failure, Loading } from '../parts/notice';
import { Time } from '../parts/time';

type Executor = Schemas['Executor'];

export function ExecutorsPage() {
  const { data, error, refetch } = useQuery({ ...executorsQuery, refetchInterval: 5000 });
  return (
    <Page title="Executors and versions">
      <div className="page-body">
        <Failure error={error} onRetry={() => void refetch()} />
        {!data && !error && <Loading />}
        {data?.executors.length === 0 && (
          <Empty title="No process runs workflows.">
            <p>Workflows wait until an application calls DBOS.launch().</p>
          </Empty>
        )}
        {data && data.executors.length > 0 && <Executors executors={data.executors} />}
        <Versions />
      </div>
    </Page>
  );
}

function Executors({ executors }: { executors: readonly Executor[] }) {
  return (
    <section className="stack">
      <h2>Executors</h2>
      <div className="table-scroll">
        <table>
          <thead>
            <tr>
              <th scope="col">Executor</th>
              <th scope="col">State</th>
              <th scope="col">Version</th>
              <th scope="col">Process</th>
              <th scope="col">Queues</th>
              <th scope="col">Workflows</th>
              <th scope="col">
                <span className="hidden-text">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {executors.map((executor) => (
              <ExecutorRow key={executor.incarnationID} executor={executor} />
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function ExecutorRow({ executor }: { executor: Executor }) {
  const { executorID, isAlive, applicationVersion, host, pid, listenQueues, functions = [] } = executor;
  const { isReadOnly } = useSession();
  const recover = useChange(
    () => unwrap(api.POST('/executors/{executorID}/recover', { params: { path: { executorID } } })),
    keys.executors,
    keys.lists,
  );
  return (
    <tr>
      <td>
        <Link to="/workflows" search={{ executorId: executorID, status: 'PENDING' }} className="mono">
          {visibleText(executorID)}
        </Link>
      </td>
      <td>
        <span className={`state ${isAlive ? 'done' : 'error'}`}>{isAlive ? '✓ alive' : '✕ silent'}</span>
      </td>
      <td className="mono">{visibleText(applicationVersion.slice(0, 12))}</td>
      <td className="soft">
        {visibleText(host)}:{pid}
      </td>
      <td>{listenQueues ? visibleText(listenQueues.join(', ')) : 'all'}</td>
      <td title={visibleText(functions.join('\n'))}>{formatCount(functions.length)}</td>
      <td className="number">
        {!isAlive && !isReadOnly && (
          <button
            type="button"
            className="button"
            disabled={recover.isPending}
            onClick={() => recover.mutate(undefined)}
          >
            Recover
          </button>
        )}
        <Failure error={recover.error} />
      </td>
    </tr>
  );
}

function Versions() {
  const { data, error } = useQuery(versionsQuery);
  const open = useQuery(openByVersion);
  const { isReadOnly } = useSession();
  const [chosen, setChosen] = useState<string | undefined>(undefined);
  const setLatest = useChange(
    (versionName: string) => unwrap(api.PUT('/versions/latest', { body: { versionName } })),
    keys.executors,
  );
  if (error) return <Failure error={error} />;
  if (!data || data.versions.length === 0) return null;
  const counts = new Map(open.data?.aggregates.map(({ group, count }) => [group['application_version'], count ?? 0]));
  return (
    <section className="stack">
      <h2>Versions</h2>
      <div className="table-scroll">
        <table>
          <thead>
            <tr>
              <th scope="col">Version</th>
              <th scope="col">Launched</th>
              <th scope="col" className="number">
                Open workflows
              </th>
              <th scope="col">
                <span className="hidden-text">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {data.versions.map(({ versionId, versionName, createdAt }, index) => (
              <tr key={versionId}>
                <td className="mono">
                  {visibleText(versionName)} {index === 0 && <span className="chip accent">latest</span>}
                </td>
                <td>
                  <Time at={createdAt} />
                </td>
                <td className="number">
                  <Link
                    to="/workflows"
                    search={{ applicationVersion: versionName, status: ['PENDING', 'ENQUEUED', 'DELAYED'] }}
                  >
                    {formatCount(counts.get(versionName) ?? 0)}
                  </Link>
                </td>
                <td className="number">
                  {index > 0 && !isReadOnly && (
                    <button type="button" className="button" onClick={() => setChosen(versionName)}>
                      Make latest…
                    </button>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {chosen !== undefined && (
        <Confirm
          title={`Make version ${chosen} the latest?`}
          action="Make latest"
          onSubmit={() => setLatest.mutateAsync(chosen)}
          onClose={() => setChosen(undefined)}
        >
          <p>New workflows without a version go to it. Running ones stay with their own.</p>
        </Confirm>
      )}
    </section>
  );
}
