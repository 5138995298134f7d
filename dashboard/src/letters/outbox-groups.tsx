// Dead letters of an outbox that failed the same way. A group opens to its messages.
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api, type Schemas, unwrap } from '../api/client';
import { deadLetterGroups, deadLetters, keys } from '../api/queries';
import { useSession } from '../api/session';
import { useChange } from '../parts/changes';
import { Confirm } from '../parts/dialog';
import { formatCount, visibleText } from '../parts/format';
import { ValueView } from '../parts/json-tree';
import { Failure } from '../parts/notice';
import { Time } from '../parts/time';

type Group = Schemas['DeadLetterGroup'];
type Verb = 'requeue' | 'archive' | 'discard';

const ABOUT: Readonly<Record<Verb, string>> = {
  requeue: 'They are delivered again, from their first attempt on.',
  archive: 'They leave the lists, and are kept.',
  discard: 'They are deleted. This cannot be undone.',
};
const TITLES: Readonly<Record<Verb, string>> = { requeue: 'Requeue', archive: 'Archive', discard: 'Discard' };

/** The same failure on the same topic. */
function filterOf({ topic, reason, fingerprint }: Group) {
  return { topic, reason, ...(fingerprint !== null && { fingerprint }) };
}

export function OutboxGroups({ outbox }: { outbox: string }) {
  const { data, error } = useQuery(deadLetterGroups(outbox));
  if (error) return <Failure error={error} />;
  return data?.groups.map((group) => (
    <OutboxGroup key={`${group.topic} ${group.reason} ${group.fingerprint}`} outbox={outbox} group={group} />
  ));
}

function OutboxGroup({ outbox, group }: { outbox: string; group: Group }) {
  const { isReadOnly } = useSession();
  const [isOpen, setOpen] = useState(false);
  const [verb, setVerb] = useState<Verb | undefined>(undefined);
  const change = useChange(
    (chosen: Verb) =>
      unwrap(api.POST(`/outboxes/{outbox}/bulk/${chosen}`, { params: { path: { outbox } }, body: filterOf(group) })),
    keys.outboxes,
  );
  return (
    <section className="card panel" aria-label={`Dead letters of ${visibleText(group.topic)}`}>
      <div className="row-line">
        <button type="button" className="link" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          {isOpen ? '▾' : '▸'} <strong>{formatCount(group.count)}</strong> on{' '}
          <strong>{visibleText(group.topic)}</strong>: {visibleText(group.errorName ?? group.reason)}
        </button>
        <span className="soft">
          last <Time at={group.lastFailedAt} />
        </span>
        <span className="spread" />
        {!isReadOnly &&
          (['requeue', 'archive', 'discard'] as const).map((one) => (
            <button
              key={one}
              type="button"
              className={`button ${one === 'discard' ? 'danger' : ''}`}
              onClick={() => setVerb(one)}
            >
              {TITLES[one]}…
            </button>
          ))}
      </div>
      {isOpen && <Letters outbox={outbox} group={group} />}
      {verb && (
        <Confirm
          title={`${TITLES[verb]} ${formatCount(group.count)} dead letters of ${group.topic}?`}
          action={TITLES[verb]}
          count={group.count}
          isDangerous={verb === 'discard'}
          onSubmit={() => change.mutateAsync(verb)}
          onClose={() => setVerb(undefined)}
        >
          <p>{ABOUT[verb]}</p>
        </Confirm>
      )}
    </section>
  );
}

function Letters({ outbox, group }: { outbox: string; group: Group }) {
  const { topic, fingerprint } = group;
  const { data, error } = useQuery(deadLetters(outbox, { topic, ...(fingerprint !== null && { fingerprint }) }));
  if (error) return <Failure error={error} />;
  return data?.letters.map((letter) => (
    <div key={letter.id} className="entry">
      <div className="row-line">
        <span className="mono">{visibleText(letter.messageID ?? letter.id)}</span>
        <span className="soft">
          {formatCount(letter.attempts)} attempts, <Time at={letter.failedAt} />
        </span>
      </div>
      {letter.error !== null && <pre className="state error">{visibleText(letter.error).slice(0, 2000)}</pre>}
      <ValueView value={letter.body} label={`Message ${letter.id}`} />
    </div>
  ));
}
