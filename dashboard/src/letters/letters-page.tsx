// Outboxes and dead letters: topics, failures grouped by error, and what to do with the messages.
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { outboxes as outboxesQuery, outboxStatistics } from '../api/letter-queries';
import { workflowCount } from '../api/queries';
import { Page } from '../frame/frame';
import { formatCount, formatDuration, visibleText } from '../parts/format';
import { Empty, Failure, Loading } from '../parts/notice';
import { OutboxGroups } from './outbox-groups';
import { ReceivedGroups } from './received-groups';

export function LettersPage(): ReactNode {
  const { data, error, refetch } = useQuery(outboxesQuery);
  return (
    <Page title="Outbox and dead letters">
      <div className="page-body">
        <Failure error={error} onRetry={() => void refetch()} />
        {!data && !error && <Loading />}
        <DeadWorkflows />
        {data?.outboxes.map((outbox) => (
          <Outbox key={outbox} outbox={outbox} />
        ))}
        <ReceivedGroups />
        {data?.outboxes.length === 0 && (
          <Empty title="No outbox is shown here.">
            <p>Pass the broker to the interface, and its topics and dead letters appear:</p>
            <pre>{'createAdmin({ source: DBOS, token, outboxes: { orders: broker } });'}</pre>
          </Empty>
        )}
      </div>
    </Page>
  );
}

function DeadWorkflows() {
  const { data } = useQuery(workflowCount({ status: ['MAX_RECOVERY_ATTEMPTS_EXCEEDED'] }));
  if (!data || data.count === 0) return null;
  return (
    <div className="notice">
      <span className="state dead">☠ dead letter</span>
      <span>{formatCount(data.count)} workflows were recovered too often.</span>
      <Link to="/workflows" search={{ status: 'MAX_RECOVERY_ATTEMPTS_EXCEEDED' }} className="button">
        Show them
      </Link>
    </div>
  );
}

function Outbox({ outbox }: { outbox: string }) {
  const { data, error, refetch } = useQuery(outboxStatistics(outbox));
  return (
    <section className="stack" aria-label={`Outbox ${visibleText(outbox)}`}>
      <h2>Outbox {visibleText(outbox)}</h2>
      <Failure error={error} onRetry={() => void refetch()} />
      {data && data.queues.length === 0 && <p className="soft">It has no messages.</p>}
      {data && data.queues.length > 0 && (
        <div className="table-scroll">
          <table>
            <thead>
              <tr>
                <th scope="col">Topic</th>
                {['Waiting', 'Due', 'In flight', 'Retrying', 'Lag', 'Dead letters'].map((title) => (
                  <th key={title} scope="col" className="number">
                    {title}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {data.queues.map(({ queue, depth, due, inFlight, retrying, lagMs, deadLetters }) => (
                <tr key={queue}>
                  <td>{visibleText(queue)}</td>
                  <td className="number">{formatCount(depth)}</td>
                  <td className="number">{formatCount(due)}</td>
                  <td className="number">{formatCount(inFlight)}</td>
                  <td className="number">{formatCount(retrying)}</td>
                  <td className="number">{formatDuration(lagMs)}</td>
                  <td className="number">{formatCount(deadLetters)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      <OutboxGroups outbox={outbox} />
    </section>
  );
}
