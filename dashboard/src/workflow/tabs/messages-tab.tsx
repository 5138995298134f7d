// Messages that were sent to the workflow, and the events that it has set.
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { Workflow } from '../../api/client';
import { events as eventsQuery, messages as messagesQuery } from '../../api/queries';
import { useSession } from '../../api/session';
import { visibleText } from '../../parts/format';
import { ValueView } from '../../parts/json-tree';
import { Failure, Loading } from '../../parts/notice';
import { isActive } from '../../parts/state';
import { Time } from '../../parts/time';
import { ActionDialog } from '../actions/action-dialog';

export function MessagesTab({ workflow }: { workflow: Workflow }) {
  const refetchInterval = isActive(workflow) ? 2000 : (false as const);
  const messages = useQuery({ ...messagesQuery(workflow.workflowID), refetchInterval });
  const events = useQuery({ ...eventsQuery(workflow.workflowID), refetchInterval });
  const { isReadOnly } = useSession();
  const [isSending, setSending] = useState(false);
  const error = messages.error ?? events.error;
  if (error) return <Failure error={error} onRetry={() => void Promise.all([messages.refetch(), events.refetch()])} />;
  if (!messages.data || !events.data) return <Loading />;
  const entries = Object.entries(events.data.events);
  return (
    <>
      <section className="card panel">
        <div className="row-line">
          <h2>Messages</h2>
          <span className="spread" />
          {!isReadOnly && isActive(workflow) && (
            <button type="button" className="button" onClick={() => setSending(true)}>
              Send…
            </button>
          )}
        </div>
        {messages.data.messages.length === 0 && <p className="soft">No message was sent to it.</p>}
        {messages.data.messages.map(({ topic, message, createdAtEpochMs, consumed }, index) => (
          <div key={index} className="entry">
            <div className="row-line">
              <strong>{topic === null ? 'no topic' : visibleText(topic)}</strong>
              <span className="soft">
                <Time at={createdAtEpochMs} />
              </span>
              <span className={`state ${consumed ? 'done' : 'waiting'}`}>
                {consumed ? '✓ received' : '◷ not received yet'}
              </span>
            </div>
            <ValueView value={message} label={`Message ${index + 1}`} />
          </div>
        ))}
      </section>
      <section className="card panel">
        <h2>Events</h2>
        {entries.length === 0 && <p className="soft">It has set no event.</p>}
        {entries.map(([key, value]) => (
          <div key={key} className="entry">
            <strong>{visibleText(key)}</strong>
            <ValueView value={value} label={`Event ${key}`} />
          </div>
        ))}
      </section>
      {isSending && <ActionDialog action="message" workflow={workflow} onClose={() => setSending(false)} />}
    </>
  );
}
