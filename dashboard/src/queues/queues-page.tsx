// Queues: how much waits, for how long, who works on it, and the limits that hold it back.
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { api, type Schemas, unwrap } from '../api/client';
import { keys, queues as queuesQuery, queueStats } from '../api/queries';
import { Page } from '../frame/frame';
import { usePageSearch } from '../frame/searches';
import { formatCount, formatDuration, visibleText } from '../parts/format';
import { Empty, Failure, Loading } from '../parts/notice';
import { RowActions } from '../parts/row-actions';
import { QueuePanel } from './queue-panel';

export type Queue = Schemas['Queue'];
export type QueueStats = Schemas['QueueStats'];

/** Queues that were registered, and those that only have workflows on them. */
export function joinQueues(
  queues: readonly Queue[],
  stats: readonly QueueStats[],
): readonly { name: string; queue: Queue | undefined; stats: QueueStats | undefined }[] {
  const names = new Set([...queues.map(({ name }) => name), ...stats.map(({ queueName }) => queueName)]);
  const joined = [...names].map((name) => ({
    name,
    queue: queues.find((one) => one.name === name),
    stats: stats.find(({ queueName }) => queueName === name),
  }));
  return joined.sort((a, b) => (b.stats?.enqueued ?? 0) - (a.stats?.enqueued ?? 0) || a.name.localeCompare(b.name));
}

export function QueuesPage(): ReactNode {
  const list = useQuery(queuesQuery);
  const stats = useQuery(queueStats);
  const { queue: openName } = usePageSearch('/queues');
  const navigate = useNavigate();
  const error = list.error ?? stats.error;
  const rows = list.data && stats.data ? joinQueues(list.data.queues, stats.data.queues) : undefined;
  const open = rows?.find(({ name }) => name === openName);
  return (
    <Page title="Queues">
      <div className="page-body">
        <Failure error={error} onRetry={() => void Promise.all([list.refetch(), stats.refetch()])} />
        {!rows && !error && <Loading />}
        {rows?.length === 0 && (
          <Empty title="There is no queue yet.">
            <p>Register one, and enqueue workflows on it:</p>
            <pre>{"await DBOS.registerQueue('mail', { workerConcurrency: 5 });"}</pre>
          </Empty>
        )}
        {rows && rows.length > 0 && (
          <div className="table-scroll">
            <table>
              <thead>
                <tr>
                  <th scope="col">Queue</th>
                  <th scope="col" className="number">
                    Waiting
                  </th>
                  <th scope="col" className="number">
                    Oldest
                  </th>
                  <th scope="col" className="number">
                    Delayed
                  </th>
                  <th scope="col" className="number">
                    Running
                  </th>
                  <th scope="col">Limits</th>
                  <th scope="col">
                    <span className="hidden-text">Actions</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {rows.map((row) => (
                  <QueueRow key={row.name} {...row} isOpen={row.name === openName} />
                ))}
              </tbody>
            </table>
          </div>
        )}
        {open && (
          <QueuePanel
            key={open.name}
            name={open.name}
            queue={open.queue}
            onClose={() => void navigate({ to: '/queues', search: {} })}
          />
        )}
      </div>
    </Page>
  );
}

interface QueueRowProps {
  readonly name: string;
  readonly queue: Queue | undefined;
  readonly stats: QueueStats | undefined;
  readonly isOpen: boolean;
}

function setPaused(name: string, isPaused: boolean): Promise<unknown> {
  return unwrap(api.POST(`/queues/{name}/${isPaused ? 'pause' : 'resume'}`, { params: { path: { name } } }));
}

function QueueRow({ name, queue, stats, isOpen }: QueueRowProps) {
  const isPaused = queue?.isPaused === true;
  return (
    <tr aria-selected={isOpen}>
      <td>
        <Link to="/queues" search={{ queue: name }} aria-current={isOpen ? 'true' : undefined}>
          {visibleText(name)}
        </Link>{' '}
        {isPaused && <span className="chip">paused</span>}
        {!queue && <span className="chip">not registered</span>}
      </td>
      <td className="number">
        <Link to="/workflows" search={{ queueName: name, status: 'ENQUEUED' }}>
          {formatCount(stats?.enqueued ?? 0)}
        </Link>
      </td>
      <td className="number">{stats && stats.oldestWaitMs !== null && formatDuration(stats.oldestWaitMs)}</td>
      <td className="number">{formatCount(stats?.delayed ?? 0)}</td>
      <td className="number">
        <Link to="/workflows" search={{ queueName: name, status: 'PENDING' }}>
          {formatCount(stats?.running ?? 0)}
          {stats && stats.parked > 0 && <span className="soft"> + {formatCount(stats.parked)} parked</span>}
        </Link>
      </td>
      <td>{queue ? limitsText(queue) : ''}</td>
      <td className="number">
        <RowActions
          subject={name}
          actions={[{ label: isPaused ? 'Resume' : 'Pause', act: () => setPaused(name, !isPaused) }]}
          stale={[keys.queues]}
        />
      </td>
    </tr>
  );
}

function limitsText({ globalConcurrency, workerConcurrency, rateLimit, partitionQueue, ...rest }: Queue): string {
  const parts = [
    globalConcurrency !== undefined && `${formatCount(globalConcurrency)} at once`,
    workerConcurrency !== undefined && `${formatCount(workerConcurrency)} a process`,
    rateLimit && `${formatCount(rateLimit.limitPerPeriod)} in ${rateLimit.periodSec} s`,
    partitionQueue === true && 'partitioned',
    rest.priorityEnabled === true && 'priorities',
  ].filter((part) => typeof part === 'string');
  return parts.length === 0 ? 'none' : parts.join(', ');
}
