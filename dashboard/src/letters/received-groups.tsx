// Messages of brokers that could not become workflows, by what went wrong.
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api, type Schemas, unwrap } from '../api/client';
import { keys, receivedGroups, receivedLetters } from '../api/queries';
import { useSession } from '../api/session';
import { useChange } from '../parts/changes';
import { Confirm } from '../parts/dialog';
import { formatCount, visibleText } from '../parts/format';
import { ValueView } from '../parts/json-tree';
import { Failure } from '../parts/notice';
import { Time } from '../parts/time';

type Group = Schemas['ReceivedGroup'];

export function ReceivedGroups() {
  const { data, error } = useQuery(receivedGroups);
  if (error) return <Failure error={error} />;
  if (!data || data.groups.length === 0) return null;
  return (
    <section className="stack" aria-label="Dead letters of receivers">
      <h2>Dead letters of receivers</h2>
      {data.groups.map((group) => (
        <ReceivedGroup key={`${group.functionName} ${group.fingerprint}`} group={group} />
      ))}
    </section>
  );
}

function ReceivedGroup({ group }: { group: Group }) {
  const { functionName, fingerprint, error, count, lastReceivedAt } = group;
  const { isReadOnly } = useSession();
  const [isOpen, setOpen] = useState(false);
  const [verb, setVerb] = useState<'archive' | 'discard' | undefined>(undefined);
  const change = useChange(
    (chosen: 'archive' | 'discard') =>
      unwrap(api.POST(`/receivers/bulk/${chosen}`, { body: { functionName, fingerprint } })),
    keys.outboxes,
  );
  return (
    <div className="card panel">
      <div className="row-line">
        <button type="button" className="link" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          {isOpen ? '▾' : '▸'} <strong>{formatCount(count)}</strong> for <strong>{visibleText(functionName)}</strong>:{' '}
          {visibleText(error).slice(0, 200)}
        </button>
        <span className="soft">
          last <Time at={lastReceivedAt} />
        </span>
        <span className="spread" />
        {!isReadOnly && (
          <>
            <button type="button" className="button" onClick={() => setVerb('archive')}>
              Archive…
            </button>
            <button type="button" className="button danger" onClick={() => setVerb('discard')}>
              Discard…
            </button>
          </>
        )}
      </div>
      {isOpen && <Letters functionName={functionName} fingerprint={fingerprint} />}
      {verb && (
        <Confirm
          title={`${verb === 'archive' ? 'Archive' : 'Discard'} ${formatCount(count)} dead letters of ${functionName}?`}
          action={verb === 'archive' ? 'Archive' : 'Discard'}
          count={count}
          isDangerous={verb === 'discard'}
          onSubmit={() => change.mutateAsync(verb)}
          onClose={() => setVerb(undefined)}
        >
          <p>
            {verb === 'archive' ? 'They leave the lists, and are kept.' : 'They are deleted. This cannot be undone.'}
          </p>
        </Confirm>
      )}
    </div>
  );
}

function Letters({ functionName, fingerprint }: { functionName: string; fingerprint: string }) {
  const { data, error } = useQuery(receivedLetters({ functionName, fingerprint }));
  if (error) return <Failure error={error} />;
  return data?.letters.map((letter) => (
    <div key={letter.id} className="entry">
      <div className="row-line">
        <span className="mono">{visibleText(letter.id)}</span>
        <span className="soft">
          <Time at={letter.receivedAt} />
        </span>
      </div>
      <ValueView value={letter.message} label={`Message ${letter.id}`} />
    </div>
  ));
}
