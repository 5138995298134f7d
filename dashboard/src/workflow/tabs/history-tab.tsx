// Everything that happened to the workflow, in order.
import { useInfiniteQuery } from '@tanstack/react-query';
import type { Schemas, Workflow } from '../../api/client';
import { history as historyQuery } from '../../api/queries';
import { formatTime, visibleText } from '../../parts/format';
import { ValueView } from '../../parts/json-tree';
import { Empty, Failure, Loading } from '../../parts/notice';
import { isActive } from '../../parts/state';

type HistoryEvent = Schemas['HistoryEvent'];

export function HistoryTab({ workflow }: { workflow: Workflow }) {
  const history = useInfiniteQuery({
    ...historyQuery(workflow.workflowID),
    refetchInterval: isActive(workflow) ? 3000 : false,
  });
  if (history.error) return <Failure error={history.error} onRetry={() => void history.refetch()} />;
  if (!history.data) return <Loading />;
  const events = history.data.pages.flatMap((page) => page.events);
  if (events.length === 0) return <Empty title="Nothing is recorded." />;
  return (
    <div className="card history">
      <ol>
        {events.map((event) => (
          <EventLine key={event.cursor} event={event} />
        ))}
      </ol>
      {history.hasNextPage && (
        <button
          type="button"
          className="button plain"
          disabled={history.isFetchingNextPage}
          onClick={() => void history.fetchNextPage()}
        >
          Load more
        </button>
      )}
    </div>
  );
}

function EventLine({ event }: { event: HistoryEvent }) {
  const details = Object.entries(event.details).filter(([, value]) => value !== null);
  const payloads = Object.entries(event.payloads ?? {});
  return (
    <li className="history-event">
      <div className="row-line">
        <time className="soft mono" dateTime={new Date(event.at).toISOString()}>
          {formatTime(event.at)}
        </time>
        <strong>{visibleText(event.type)}</strong>
        {event.step !== undefined && <span className="chip">step {event.step}</span>}
        {event.attempt !== undefined && <span className="chip">attempt {event.attempt}</span>}
        {event.executor !== undefined && <span className="soft">{visibleText(event.executor)}</span>}
        {event.actor !== undefined && <span className="soft">by {visibleText(event.actor)}</span>}
      </div>
      <div className="event-details">
        {details.map(([key, value]) => (
          <span key={key}>
            <span className="soft">{visibleText(key)}</span>{' '}
            {visibleText(typeof value === 'string' ? value : JSON.stringify(value)).slice(0, 500)}
          </span>
        ))}
      </div>
      {payloads.map(([key, value]) => (
        <details key={key}>
          <summary>{visibleText(key)}</summary>
          <ValueView value={value} label={key} />
        </details>
      ))}
    </li>
  );
}
