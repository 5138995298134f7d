// Actions on selected workflows. Each names what it touches, and says afterwards how many it has changed.
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api, unwrap, type Workflow } from '../api/client';
import { keys, type WorkflowQuery } from '../api/queries';
import { useSession } from '../api/session';
import { Confirm } from '../parts/dialog';
import { formatCount } from '../parts/format';
import { useKeys } from '../frame/keys';
import { describe, type Selection } from './selection';

type Verb = 'cancel' | 'resume' | 'fork' | 'delete';

const TITLES: Readonly<Record<Verb, string>> = { cancel: 'Cancel', resume: 'Resume', fork: 'Fork', delete: 'Delete' };
const DONE: Readonly<Record<Verb, string>> = {
  cancel: 'cancelled',
  resume: 'resumed',
  fork: 'forked',
  delete: 'deleted',
};
const EXPLAINED: Readonly<Record<Verb, string>> = {
  cancel: 'Those that have ended stay as they are. A cancelled workflow can be resumed.',
  resume: 'They continue after their last checkpoint. Those with a result or an error stay as they are.',
  fork: 'A copy of each starts at the step that failed. The originals stay.',
  delete: 'They are deleted with all their data, running or not. This cannot be undone.',
};
/** What one request takes. */
const BATCH = 500;
const MATCHING_MAX = 10_000;

async function perform(verb: Verb, workflowIDs: string[]): Promise<number> {
  const answer =
    verb === 'fork'
      ? api.POST('/bulk/fork-from-failure', { body: { workflowIDs, fromLastFailure: true } })
      : api.POST(`/bulk/${verb}`, { body: { workflowIDs } });
  return (await unwrap(answer)).workflowIDs.length;
}

async function performAll(verb: Verb, workflowIDs: readonly string[]): Promise<number> {
  let changed = 0;
  for (let start = 0; start < workflowIDs.length; start += BATCH) {
    changed += await perform(verb, workflowIDs.slice(start, start + BATCH));
  }
  return changed;
}

interface BulkProps {
  readonly rows: readonly Workflow[];
  readonly query: WorkflowQuery;
  readonly selection: Selection;
  /** The row under the cursor, for keys without a selection. */
  readonly current: Workflow | undefined;
}

export function BulkBar({ rows, query, selection, current }: BulkProps) {
  const client = useQueryClient();
  const { isReadOnly } = useSession();
  const [pending, setPending] = useState<{ verb: Verb; ids: readonly string[] } | undefined>(undefined);
  const [result, setResult] = useState('');
  const ask = (verb: Verb): void => {
    const ids = selection.ids.size > 0 ? [...selection.ids] : current ? [current.workflowID] : [];
    if (!isReadOnly && ids.length > 0) setPending({ verb, ids });
  };
  useKeys({ c: () => ask('cancel'), r: () => ask('resume'), f: () => ask('fork'), Escape: () => selection.clear() });
  const submit = async (): Promise<void> => {
    if (!pending) return;
    const changed = await performAll(pending.verb, pending.ids);
    setResult(`${formatCount(changed)} of ${formatCount(pending.ids.length)} ${DONE[pending.verb]}.`);
    selection.clear();
    await client.invalidateQueries({ queryKey: keys.lists });
  };
  const count = selection.ids.size;
  return (
    <>
      {(count > 0 || result !== '') && (
        <div className="bulk" role="region" aria-label="Selection">
          {count > 0 ? (
            <>
              <strong>{formatCount(count)} selected</strong>
              {!isReadOnly &&
                (['cancel', 'resume', 'fork', 'delete'] as const).map((verb) => (
                  <button
                    key={verb}
                    type="button"
                    className={`button ${verb === 'delete' ? 'danger' : ''}`}
                    onClick={() => ask(verb)}
                  >
                    {TITLES[verb]}
                  </button>
                ))}
              <SelectMatching query={query} selection={selection} />
              <button type="button" className="button plain" onClick={selection.clear}>
                Clear
              </button>
            </>
          ) : (
            <>
              <span role="status">{result}</span>
              <button type="button" className="button plain" onClick={() => setResult('')}>
                Dismiss
              </button>
            </>
          )}
        </div>
      )}
      {pending && (
        <Confirm
          title={titleOf(pending, rows)}
          action={TITLES[pending.verb]}
          count={pending.ids.length}
          isDangerous={pending.verb === 'delete' || pending.verb === 'cancel'}
          onSubmit={submit}
          onClose={() => setPending(undefined)}
        >
          <p>{EXPLAINED[pending.verb]}</p>
        </Confirm>
      )}
    </>
  );
}

function titleOf({ verb, ids }: { verb: Verb; ids: readonly string[] }, rows: readonly Workflow[]): string {
  const wanted = new Set(ids);
  const chosen = rows.filter(({ workflowID }) => wanted.has(workflowID));
  return `${TITLES[verb]} ${describe(chosen, ids.length)}?`;
}

/** Selects what matches the filters beyond the rows that are loaded. */
function SelectMatching({ query, selection }: Pick<BulkProps, 'query' | 'selection'>) {
  const [isBusy, setBusy] = useState(false);
  const select = async (): Promise<void> => {
    setBusy(true);
    const found: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await unwrap(
        api.GET('/workflows', { params: { query: { ...query, limit: 1000, ...(cursor && { cursor }) } } }),
      );
      found.push(...page.workflows.map(({ workflowID }) => workflowID));
      cursor = page.nextCursor ?? undefined;
    } while (cursor !== undefined && found.length < MATCHING_MAX);
    selection.setAll(found.slice(0, MATCHING_MAX));
    setBusy(false);
  };
  return (
    <button
      type="button"
      className="button plain"
      disabled={isBusy}
      title={`At most ${formatCount(MATCHING_MAX)}`}
      onClick={() => void select()}
    >
      Select all that match
    </button>
  );
}
