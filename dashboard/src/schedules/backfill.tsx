// Starts the occurrences that were missed in a span of time, after showing which those are.
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api, unwrap } from '../api/client';
import { backfillPreview, keys } from '../api/queries';
import { useChange } from '../parts/changes';
import { Confirm } from '../parts/dialog';
import { formatCount, formatTime } from '../parts/format';
import { Failure } from '../parts/notice';
import type { Schedule } from './schedules-page';

const SHOWN = 5;

export function Backfill({ schedule, onClose }: { schedule: Schedule; onClose: () => void }) {
  const [start, setStart] = useState(() => localTime(Date.now() - 86_400_000));
  const [end, setEnd] = useState(() => localTime(Date.now()));
  const name = schedule.scheduleName;
  const isSpan = Date.parse(start) < Date.parse(end);
  const span = isSpan ? { start: new Date(start).toISOString(), end: new Date(end).toISOString() } : undefined;
  const preview = useQuery({ ...backfillPreview(name, span ?? { start, end }), enabled: isSpan });
  const change = useChange(
    async () => span && unwrap(api.POST('/schedules/{name}/backfill', { params: { path: { name } }, body: span })),
    keys.schedules,
    keys.lists,
  );
  const count = preview.data?.count ?? 0;
  return (
    <Confirm
      title={`Backfill schedule ${name}`}
      action={count === 0 ? 'Start' : `Start ${formatCount(count)}`}
      count={count}
      onSubmit={() => change.mutateAsync(undefined)}
      onClose={onClose}
    >
      <label className="line">
        After
        <input
          className="field"
          type="datetime-local"
          step="1"
          value={start}
          onChange={({ target }) => setStart(target.value)}
        />
      </label>
      <label className="line">
        Before
        <input
          className="field"
          type="datetime-local"
          step="1"
          value={end}
          onChange={({ target }) => setEnd(target.value)}
        />
      </label>
      <Failure error={preview.error} />
      {preview.data && (
        <div role="status">
          <p>{formatCount(count)} occurrences. Those that ran already are not started again.</p>
          <ul className="soft">
            {preview.data.occurrences.slice(0, SHOWN).map((at) => (
              <li key={at}>{formatTime(Date.parse(at))}</li>
            ))}
            {count > SHOWN && <li>…</li>}
          </ul>
        </div>
      )}
    </Confirm>
  );
}

/** A time as an input of the browser wants it: local, without a zone. */
function localTime(at: number): string {
  const date = new Date(at);
  return new Date(at - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}
