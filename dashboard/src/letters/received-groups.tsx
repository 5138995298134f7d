// Messages of brokers that could not become workflows, by what went wrong.
import { useQuery } from '@tanstack/react-query';
import { api, type Schemas, unwrap } from '../api/client';
import { receivedGroups, receivedLetters } from '../api/letter-queries';
import { keys } from '../api/queries';
import { useChange } from '../parts/changes';
import { visibleText } from '../parts/format';
import { ValueView } from '../parts/json-tree';
import { Failure } from '../parts/notice';
import { Time } from '../parts/time';
import { firstLine, LetterGroup } from './letter-group';

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

function ReceivedGroup({ group: { functionName, fingerprint, error, count, lastReceivedAt } }: { group: Group }) {
  const change = useChange(
    (verb: 'archive' | 'discard') =>
      unwrap(api.POST(`/receivers/bulk/${verb}`, { body: { functionName, fingerprint } })),
    keys.outboxes,
  );
  return (
    <LetterGroup
      count={count}
      target={functionName}
      failure={firstLine(error)}
      lastAt={lastReceivedAt}
      verbs={['archive', 'discard']}
      onChange={change.mutateAsync}
    >
      <Letters functionName={functionName} fingerprint={fingerprint} />
    </LetterGroup>
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
