// Dead letters of an outbox by failure. Each can be edited before it is delivered again.
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api, type Schemas, unwrap } from '../api/client';
import { deadLetter, deadLetterGroups, deadLetters } from '../api/letter-queries';
import { keys } from '../api/queries';
import { useSession } from '../api/session';
import { useChange } from '../parts/changes';
import { Dialog } from '../parts/dialog';
import { countOf, visibleText } from '../parts/format';
import { parseJSON } from '../parts/json-text';
import { ValueView } from '../parts/json-tree';
import { Failure } from '../parts/notice';
import { Time } from '../parts/time';
import { firstLine, LetterGroup, type LetterVerb } from './letter-group';

type Group = Schemas['DeadLetterGroup'];
type Letter = Schemas['DeadLetter'];

/** No event tells of an outbox, which is in another database. */
const REFRESH_MS = 10_000;

/** The same failure on the same topic. */
function filterOf({ topic, reason, fingerprint }: Group) {
  return { topic, reason, ...(fingerprint !== null && { fingerprint }) };
}

export function OutboxGroups({ outbox }: { outbox: string }) {
  const { data, error } = useQuery({ ...deadLetterGroups(outbox), refetchInterval: REFRESH_MS });
  if (error) return <Failure error={error} />;
  return data?.groups.map((group) => (
    <OutboxGroup key={`${group.topic} ${group.reason} ${group.fingerprint}`} outbox={outbox} group={group} />
  ));
}

function OutboxGroup({ outbox, group }: { outbox: string; group: Group }) {
  const { topic, reason, errorName, count, lastFailedAt, sampleID } = group;
  const { data: sample } = useQuery(deadLetter(outbox, sampleID));
  const change = useChange(
    (verb: LetterVerb) =>
      unwrap(api.POST(`/outboxes/{outbox}/bulk/${verb}`, { params: { path: { outbox } }, body: filterOf(group) })),
    keys.outboxes,
  );
  return (
    <LetterGroup
      count={count}
      target={topic}
      failure={firstLine(sample?.error ?? errorName ?? reason)}
      lastAt={lastFailedAt}
      verbs={['requeue', 'archive', 'discard']}
      onChange={change.mutateAsync}
    >
      <Letters outbox={outbox} group={group} />
    </LetterGroup>
  );
}

function Letters({ outbox, group }: { outbox: string; group: Group }) {
  const { data, error } = useQuery(deadLetters(outbox, filterOf(group)));
  if (error) return <Failure error={error} />;
  return data?.letters.map((letter) => <LetterEntry key={letter.id} outbox={outbox} letter={letter} />);
}

function LetterEntry({ outbox, letter }: { outbox: string; letter: Letter }) {
  const { id, messageID, attempts, failedAt, error, body } = letter;
  const { isReadOnly } = useSession();
  const [isEditing, setEditing] = useState(false);
  return (
    <div className="entry">
      <div className="row-line">
        <span className="mono">{visibleText(messageID ?? id)}</span>
        <span className="soft">
          {countOf(attempts, 'attempt')}, <Time at={failedAt} />
        </span>
        <span className="spread" />
        {/* What is not all there would be lost. */}
        {!isReadOnly && body.isTruncated !== true && (
          <button type="button" className="button" onClick={() => setEditing(true)}>
            Edit and requeue…
          </button>
        )}
      </div>
      {error !== null && <pre className="state error">{visibleText(error).slice(0, 2000)}</pre>}
      <ValueView value={body} label={`Message ${id}`} />
      {isEditing && <EditDialog outbox={outbox} letter={letter} onClose={() => setEditing(false)} />}
    </div>
  );
}

function EditDialog({ outbox, letter, onClose }: { outbox: string; letter: Letter; onClose: () => void }) {
  const { id, messageID, topic, body } = letter;
  const [text, setText] = useState(() => JSON.stringify(body.json, undefined, 2) ?? '');
  const change = useChange(
    async () =>
      unwrap(
        api.POST('/outboxes/{outbox}/dead-letters/{id}/requeue', {
          params: { path: { outbox, id } },
          body: { body: parseJSON(text) },
        }),
      ),
    keys.outboxes,
  );
  return (
    <Dialog
      title={`Edit ${messageID ?? id} of ${topic}`}
      action="Requeue"
      isDisabled={text.trim() === ''}
      onSubmit={() => change.mutateAsync(undefined)}
      onClose={onClose}
    >
      <p className="soft">It is delivered again with this body, from its first attempt on.</p>
      {!body.isExact && <p className="soft">The body is not plain JSON. What you see is its nearest form.</p>}
      <label className="line">
        Body, as JSON
        <textarea
          className="field"
          spellCheck={false}
          required
          value={text}
          onChange={({ target }) => setText(target.value)}
        />
      </label>
    </Dialog>
  );
}
