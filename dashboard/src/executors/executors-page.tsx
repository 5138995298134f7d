// Executors and versions: who lives, what each runs, and which version new workflows go to.
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';
import { api, type Schemas, unwrap } from '../api/client';
import { executors as executorsQuery, keys, openByVersion, versions as versionsQuery } from '../api/queries';
import { Page } from '../frame/frame';
import { useChange } from '../parts/changes';
import { Confirm } from '../parts/dialog';
import { countOf, formatCount, visibleText } from '../parts/format';
import { Empty, Failure, Loading } from '../parts/notice';
import { RowActions } from '../parts/row-actions';
import { Time } from '../parts/time';

type Executor = Schemas['Executor'];

export function ExecutorsPage(): ReactNode {
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
  // Beside the table: the row of a dead executor may leave it.
  const [recovered, setRecovered] = useState<number | undefined>(undefined);
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
              <th scope="col">Functions</th>
              <th scope="col" className="number">
                Running
              </th>
              <th scope="col">
                <span className="hidden-text">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {executors.map((executor) => (
              <ExecutorRow key={executor.incarnationID} executor={executor} onRecovered={setRecovered} />
            ))}
          </tbody>
        </table>
      </div>
      {recovered !== undefined && <p role="status">Put back {countOf(recovered, 'workflow')}.</p>}
    </section>
  );
}

async function recover(executorID: string, onRecovered: (count: number) => void): Promise<void> {
  const { workflowIDs } = await unwrap(
    api.POST('/executors/{executorID}/recover', { params: { path: { executorID } } }),
  );
  onRecovered(workflowIDs.length);
}

interface ExecutorRowProps {
  readonly executor: Executor;
  readonly onRecovered: (count: number) => void;
}

function ExecutorRow({ executor, onRecovered }: ExecutorRowProps) {
  const { executorID, isAlive, applicationVersion, host, pid, listenQueues, functions = [], running } = executor;
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
      <td className="number">{formatCount(running)}</td>
      <td className="number">
        <RowActions
          subject={executorID}
          actions={isAlive ? [] : [{ label: 'Recover', act: () => recover(executorID, onRecovered) }]}
          stale={[keys.executors, keys.lists]}
        />
      </td>
    </tr>
  );
}

function Versions() {
  const { data, error } = useQuery(versionsQuery);
  const open = useQuery(openByVersion);
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
                  <RowActions
                    subject={versionName}
                    actions={
                      index === 0
                        ? []
                        : [
                            {
                              label: 'Make latest…',
                              dialog: (onClose) => <MakeLatest versionName={versionName} onClose={onClose} />,
                            },
                          ]
                    }
                    stale={[keys.executors]}
                  />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function MakeLatest({ versionName, onClose }: { versionName: string; onClose: () => void }) {
  const setLatest = useChange(() => unwrap(api.PUT('/versions/latest', { body: { versionName } })), keys.executors);
  return (
    <Confirm
      title={`Make version ${versionName} the latest?`}
      action="Make latest"
      onSubmit={() => setLatest.mutateAsync(undefined)}
      onClose={onClose}
    >
      <p>New workflows without a version go to it. Running ones stay with their own.</p>
    </Confirm>
  );
}
