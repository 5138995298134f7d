// What the interface knows about itself, and the cleaning up that can be started from here.
import { useQuery } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { api, unwrap } from '../api/client';
import { info as infoQuery, keys } from '../api/queries';
import { useSession } from '../api/session';
import { Page } from '../frame/frame';
import { useChange } from '../parts/changes';
import { Confirm } from '../parts/dialog';
import { formatCount, visibleText } from '../parts/format';
import { Failure, Loading } from '../parts/notice';
import { Health } from './health';
import { Retention } from './retention';

export function SettingsPage() {
  const { data, error, refetch } = useQuery(infoQuery);
  const { isReadOnly } = useSession();
  const facts: readonly (readonly [string, string | null | undefined])[] = [
    ['Everstep', data?.version],
    ['Database', data?.database],
    ['Application', data?.applicationName],
    ['Version of this process', data?.applicationVersion],
    ['Executor of this process', data?.executorID],
  ];
  return (
    <Page title="Settings">
      <div className="page-body">
        <Failure error={error} onRetry={() => void refetch()} />
        {!data && !error && <Loading rows={4} />}
        {data && (
          <section className="card panel" aria-label="This interface">
            <h2>This interface</h2>
            <dl className="facts column">
              {facts.map(([name, value]) => (
                <div key={name} className="fact">
                  <dt>{name}</dt>
                  <dd className="mono">{visibleText(value ?? '–')}</dd>
                </div>
              ))}
            </dl>
          </section>
        )}
        <Health />
        <Retention />
        {!isReadOnly && <CleanUp />}
      </div>
    </Page>
  );
}

const DAY_MS = 86_400_000;

function CleanUp() {
  const [days, setDays] = useState('30');
  const [isAsking, setAsking] = useState(false);
  const [deleted, setDeleted] = useState<number | undefined>(undefined);
  const collect = useChange(async () => {
    const body = { cutoffEpochTimestampMs: Date.now() - Number(days) * DAY_MS };
    setDeleted((await unwrap(api.POST('/maintenance/garbage-collect', { body }))).workflows);
  }, keys.lists);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    setAsking(true);
  };
  return (
    <section className="card panel" aria-label="Clean up">
      <h2>Clean up</h2>
      <form className="row-line" onSubmit={submit}>
        <label className="check">
          Delete workflows that ended more than
          <input
            className="field days"
            type="number"
            min="0"
            required
            value={days}
            onChange={({ target }) => setDays(target.value)}
          />
          days ago
        </label>
        <button type="submit" className="button danger">
          Delete…
        </button>
      </form>
      {deleted !== undefined && <p role="status">{formatCount(deleted)} workflows deleted.</p>}
      {isAsking && (
        <Confirm
          title={`Delete workflows that ended more than ${days} days ago?`}
          action="Delete"
          isDangerous
          onSubmit={() => collect.mutateAsync(undefined)}
          onClose={() => setAsking(false)}
        >
          <p>They are deleted with all their data. Active ones stay. This cannot be undone.</p>
        </Confirm>
      )}
    </section>
  );
}
