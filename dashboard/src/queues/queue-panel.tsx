// One queue: its limits, which can be changed while it is in use, and its partitions, the largest first.
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { api, unwrap } from '../api/client';
import { keys, queueDetails } from '../api/queries';
import { useSession } from '../api/session';
import { useChange } from '../parts/changes';
import { formatCount, formatDuration, visibleText } from '../parts/format';
import { Failure } from '../parts/notice';
import type { Queue, QueueStats } from './queues-page';

const LIMITS = [
  ['globalConcurrency', 'Running at once, in all processes'],
  ['workerConcurrency', 'Running at once, in each process'],
  ['partitionConcurrency', 'Running at once, in each partition'],
  ['partitionWorkerConcurrency', 'In each partition of each process'],
] as const;

interface QueuePanelProps {
  readonly name: string;
  readonly queue: Queue | undefined;
  readonly onClose: () => void;
}

export function QueuePanel({ name, queue, onClose }: QueuePanelProps) {
  return (
    <section className="card panel" aria-label={`Queue ${visibleText(name)}`}>
      <div className="row-line">
        <h2>{visibleText(name)}</h2>
        <span className="spread" />
        <button type="button" className="button plain" aria-label="Close the panel" onClick={onClose}>
          ×
        </button>
      </div>
      {queue?.isInMemory && <p className="soft">It is defined in the code of this process. Change its limits there.</p>}
      {queue && !queue.isInMemory && <Limits queue={queue} />}
      {!queue && <p className="soft">No process has registered it, so its workflows wait.</p>}
      <Details name={name} />
    </section>
  );
}

type Draft = Readonly<Record<string, string>>;

function Limits({ queue }: { queue: Queue }) {
  const { isReadOnly } = useSession();
  const [draft, setDraft] = useState<Draft>(() => draftOf(queue));
  const save = useChange(
    () => unwrap(api.PATCH('/queues/{name}', { params: { path: { name: queue.name } }, body: bodyOf(draft) })),
    keys.queues,
  );
  const field = (key: string, label: string) => (
    <label key={key} className="line">
      {label}
      <input
        className="field"
        type="number"
        min="1"
        placeholder="no limit"
        disabled={isReadOnly}
        value={draft[key] ?? ''}
        onChange={({ target }) => setDraft({ ...draft, [key]: target.value })}
      />
    </label>
  );
  return (
    <form
      className="limits"
      onSubmit={(event) => {
        event.preventDefault();
        save.mutate(undefined);
      }}
    >
      {LIMITS.filter(([key]) => !key.startsWith('partition') || queue.partitionQueue === true).map(([key, label]) =>
        field(key, label),
      )}
      {field('limitPerPeriod', 'Started in a period')}
      {field('periodSec', 'Length of the period, in seconds')}
      {!isReadOnly && (
        <div className="row-line">
          <button type="submit" className="button primary" disabled={save.isPending}>
            Save limits
          </button>
          {save.isSuccess && <span role="status">Saved. Processes use them from their next claim on.</span>}
        </div>
      )}
      <Failure error={save.error} />
    </form>
  );
}

function draftOf({ rateLimit, ...queue }: Queue): Draft {
  const numbers = LIMITS.map(([key]) => [key, queue[key]?.toString() ?? ''] as const);
  return {
    ...Object.fromEntries(numbers),
    limitPerPeriod: rateLimit?.limitPerPeriod.toString() ?? '',
    periodSec: rateLimit?.periodSec.toString() ?? '',
  };
}

/** An empty field removes the limit. */
export function bodyOf(draft: Draft) {
  const numberIn = (key: string): number | null => (draft[key] ? Number(draft[key]) : null);
  const limitPerPeriod = numberIn('limitPerPeriod');
  const periodSec = numberIn('periodSec');
  return {
    globalConcurrency: numberIn('globalConcurrency'),
    workerConcurrency: numberIn('workerConcurrency'),
    partitionConcurrency: numberIn('partitionConcurrency'),
    partitionWorkerConcurrency: numberIn('partitionWorkerConcurrency'),
    rateLimit: limitPerPeriod === null || periodSec === null ? null : { limitPerPeriod, periodSec },
  };
}

function Details({ name }: { name: string }) {
  const { data, error } = useQuery(queueDetails(name));
  if (error) return <Failure error={error} />;
  if (!data) return null;
  const { claimedPerMinute, executors, partitions, partitionCount } = data;
  return (
    <>
      <p>
        {claimedPerMinute.toLocaleString('en', { maximumFractionDigits: 1 })} started a minute
        {executors.map(({ executorID, running }) => (
          <Link
            key={executorID}
            to="/workflows"
            search={{ queueName: name, executorId: executorID, status: 'PENDING' }}
            className="chip"
          >
            {visibleText(executorID)}: {formatCount(running)} running
          </Link>
        ))}
      </p>
      {partitions.length > 0 && <Partitions partitions={partitions} count={partitionCount} />}
    </>
  );
}

function Partitions({ partitions, count }: { partitions: readonly QueueStats[]; count: number }) {
  return (
    <div className="table-scroll">
      <table>
        <thead>
          <tr>
            <th scope="col">
              Partition{count > partitions.length && `, the largest ${partitions.length} of ${formatCount(count)}`}
            </th>
            <th scope="col" className="number">
              Waiting
            </th>
            <th scope="col" className="number">
              Oldest
            </th>
            <th scope="col" className="number">
              Running
            </th>
          </tr>
        </thead>
        <tbody>
          {partitions.map(({ partitionKey, enqueued, running, oldestWaitMs }) => (
            <tr key={partitionKey}>
              <td className="mono">{visibleText(partitionKey ?? '')}</td>
              <td className="number">{formatCount(enqueued)}</td>
              <td className="number">{oldestWaitMs !== null && formatDuration(oldestWaitMs)}</td>
              <td className="number">{formatCount(running)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
