// Deletes workflows that ended some time ago, once.
import { type FormEvent, useState } from 'react';
import { api, unwrap } from '../api/client';
import { keys } from '../api/queries';
import { useChange } from '../parts/changes';
import { Confirm } from '../parts/dialog';
import { countOf } from '../parts/format';

const DAY_MS = 86_400_000;

export function CleanUp() {
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
      {deleted !== undefined && <p role="status">{countOf(deleted, 'workflow')} deleted.</p>}
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
