// Workflows that retention has archived: found by ID, looked at, and brought back.
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { type FormEvent, useRef, useState } from 'react';
import { api, isRefused, unwrap } from '../api/client';
import { archivedWorkflow, keys } from '../api/queries';
import { useSession } from '../api/session';
import { usePageSearch } from '../frame/searches';
import { useChange } from '../parts/changes';
import { Confirm } from '../parts/dialog';
import { countOf, visibleText } from '../parts/format';
import { ValueView } from '../parts/json-tree';
import { Failure, Loading } from '../parts/notice';
import { isState, State } from '../parts/state';
import { Time } from '../parts/time';

export function Archive({ isConfigured }: { isConfigured: boolean }) {
  const { archived = '' } = usePageSearch('/retention');
  const navigate = useNavigate();
  const input = useRef<HTMLInputElement>(null);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const workflowID = input.current?.value.trim() ?? '';
    void navigate({ to: '/retention', search: workflowID === '' ? {} : { archived: workflowID } });
  };
  return (
    <section className="card panel" aria-label="Archive">
      <h2>Archive</h2>
      {isConfigured ? (
        <>
          <form className="row-line" onSubmit={submit}>
            <label className="check">
              Workflow ID
              <input key={archived} ref={input} className="field" required defaultValue={archived} />
            </label>
            <button type="submit" className="button">
              Look up
            </button>
          </form>
          {archived !== '' && <Archived key={archived} workflowID={archived} />}
        </>
      ) : (
        <>
          <p className="soft">None is configured: what retention deletes is gone. Set one in your application:</p>
          <pre>
            {"DBOS.setConfig({ name: 'shop', retention: { completed: '30 days' }, archive: fileArchive('/backup') });"}
          </pre>
        </>
      )}
    </section>
  );
}

/** What is shown apart, as exports name it. */
interface Exported {
  readonly workflow_status: { readonly name?: unknown; readonly status?: unknown; readonly completed_at?: unknown };
  readonly operation_outputs: readonly unknown[];
}

function Archived({ workflowID }: { workflowID: string }) {
  const { data, error } = useQuery(archivedWorkflow(workflowID));
  const { isReadOnly } = useSession();
  const [isAsking, setAsking] = useState(false);
  const restore = useChange(() => restoreWorkflow(data), keys.lists, keys.workflow(workflowID));
  if (isRefused(error, 404)) return <p role="status">The archive has no workflow {visibleText(workflowID)}.</p>;
  if (error) return <Failure error={error} />;
  if (!data) return <Loading rows={2} />;
  // The types of the interface leave open what an export holds.
  const { workflow_status: columns, operation_outputs: steps } = data as Exported;
  const { name, status, completed_at: endedAt } = columns;
  return (
    <div className="entry">
      <div className="row-line">
        {isState(status) && <State status={status} />}
        <b>{visibleText(typeof name === 'string' ? name : 'unnamed')}</b>
        <span className="soft">
          {countOf(steps.length, 'step')}
          {typeof endedAt === 'number' && ', '}
          {typeof endedAt === 'number' && (
            <>
              ended <Time at={endedAt} />
            </>
          )}
        </span>
        <span className="spread" />
        {restore.isSuccess ? (
          <span role="status">
            Restored.{' '}
            <Link to="/workflows/$workflowID" params={{ workflowID }}>
              Open it
            </Link>
          </span>
        ) : (
          !isReadOnly && (
            <button type="button" className="button" onClick={() => setAsking(true)}>
              Restore…
            </button>
          )
        )}
      </div>
      <ValueView value={{ json: data, isExact: true }} label={`Archived workflow ${visibleText(workflowID)}`} />
      {isAsking && (
        <Confirm
          title={`Restore workflow ${workflowID}?`}
          action="Restore"
          onSubmit={() => restore.mutateAsync(undefined)}
          onClose={() => setAsking(false)}
        >
          <p>It comes back with all its data, as it ended. Retention deletes it again when it is due.</p>
        </Confirm>
      )}
    </div>
  );
}

/** An import of one line. */
function restoreWorkflow(exported: unknown) {
  return unwrap(
    api.POST('/import', {
      body: `${JSON.stringify(exported)}\n`,
      bodySerializer: (text: string) => text,
      headers: { 'content-type': 'application/x-ndjson' },
    }),
  );
}
