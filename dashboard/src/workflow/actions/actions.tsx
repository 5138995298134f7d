// The buttons of a workflow. Those that make no sense in its state are left out.
import { useState } from 'react';
import { apiURL, type Workflow } from '../../api/client';
import { useSession } from '../../api/session';
import { useKeys } from '../../frame/keys';
import { Menu } from '../../parts/menu';
import { isActive } from '../../parts/state';
import { ActionDialog, type ActionName } from './action-dialog';

export function Actions({ workflow }: { workflow: Workflow }) {
  const { isReadOnly } = useSession();
  const [open, setOpen] = useState<ActionName | undefined>(undefined);
  const canCancel = isActive(workflow);
  const canResume = workflow.status === 'CANCELLED' || workflow.status === 'MAX_RECOVERY_ATTEMPTS_EXCEEDED';
  const isWaiting = workflow.status === 'ENQUEUED' || workflow.status === 'DELAYED';
  const ask = (action: ActionName, isAllowed = true): void => {
    if (!isReadOnly && isAllowed) setOpen(action);
  };
  useKeys({ c: () => ask('cancel', canCancel), r: () => ask('resume', canResume), f: () => ask('fork') });
  const exportURL = `${apiURL}/export?${new URLSearchParams({ workflowID: workflow.workflowID, exportChildren: 'true' })}`;
  return (
    <div className="row-line actions">
      {!isReadOnly && canCancel && (
        <button type="button" className="button danger" onClick={() => ask('cancel')}>
          Cancel…
        </button>
      )}
      {!isReadOnly && canResume && (
        <button type="button" className="button primary" onClick={() => ask('resume')}>
          Resume…
        </button>
      )}
      {!isReadOnly && (
        <button type="button" className="button" onClick={() => ask('fork')}>
          Fork…
        </button>
      )}
      <Menu label="⋯" title="More actions">
        {!isReadOnly && (
          <>
            <button type="button" onClick={() => ask('message')} disabled={!canCancel}>
              Send a message…
            </button>
            <button type="button" onClick={() => ask('restart')}>
              Restart…
            </button>
            <button type="button" onClick={() => ask('rewind')} disabled={canCancel}>
              Rewind…
            </button>
            <button type="button" onClick={() => ask('priority')} disabled={!canCancel}>
              Set the priority…
            </button>
            <button type="button" onClick={() => ask('delay')} disabled={!isWaiting}>
              Set the delay…
            </button>
            <button type="button" onClick={() => ask('attributes')}>
              Edit attributes…
            </button>
          </>
        )}
        <a href={exportURL} download={`${workflow.workflowID}.ndjson`}>
          Export
        </a>
        {!isReadOnly && (
          <button type="button" className="danger" onClick={() => ask('delete')}>
            Delete…
          </button>
        )}
      </Menu>
      {open && <ActionDialog action={open} workflow={workflow} onClose={() => setOpen(undefined)} />}
    </div>
  );
}
