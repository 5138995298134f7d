// Why the workflow is where it is, in the words of the server, with the action that helps.
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import type { Schemas, Workflow } from '../api/client';
import { explanation } from '../api/queries';
import { useSession } from '../api/session';
import { visibleText } from '../parts/format';
import { isActive } from '../parts/state';
import { ActionDialog, type ActionName } from './actions/action-dialog';

type Explanation = Schemas['Explanation'];
type Remedy = NonNullable<Explanation['action']>['kind'];

const DIALOGS: Readonly<Partial<Record<Remedy, { action: ActionName; label: string }>>> = {
  fork: { action: 'fork', label: 'Fork…' },
  resume: { action: 'resume', label: 'Resume…' },
  'start-now': { action: 'delay', label: 'Change the delay…' },
  'send-message': { action: 'message', label: 'Send…' },
  'set-priority': { action: 'priority', label: 'Set the priority…' },
};
const AT_QUEUE: ReadonlySet<Remedy> = new Set(['resume-queue', 'register-queue', 'change-queue']);
const AT_EXECUTORS: ReadonlySet<Remedy> = new Set(['recover-executor', 'start-executor']);

export function Why({ workflow }: { workflow: Workflow }) {
  const { data } = useQuery({
    ...explanation(workflow.workflowID),
    refetchInterval: isActive(workflow) ? 5000 : false,
    enabled: workflow.status !== 'SUCCESS',
  });
  if (!data || workflow.status === 'SUCCESS') return null;
  return (
    <section className="why" aria-label="Why">
      <span className="why-title">Why</span>
      <span className="why-text">{visibleText(data.message)}</span>
      {data.action && <Help workflow={workflow} explanation={data} action={data.action} />}
    </section>
  );
}

interface HelpProps {
  readonly workflow: Workflow;
  readonly explanation: Explanation;
  readonly action: NonNullable<Explanation['action']>;
}

function Help({ workflow, explanation: { details }, action: { kind, label } }: HelpProps) {
  const { isReadOnly } = useSession();
  const [isOpen, setOpen] = useState(false);
  const dialog = DIALOGS[kind];
  const { queueName } = workflow;
  if (dialog) {
    if (isReadOnly) return null;
    return (
      <>
        <button type="button" className="button" title={label} onClick={() => setOpen(true)}>
          {dialog.label}
        </button>
        {isOpen && (
          <ActionDialog
            action={dialog.action}
            workflow={workflow}
            initial={kind === 'send-message' ? { topic: awaitedTopic(details) } : {}}
            onClose={() => setOpen(false)}
          />
        )}
      </>
    );
  }
  if (AT_QUEUE.has(kind) && queueName !== undefined) {
    return (
      <Link to="/queues" search={{ queue: queueName }} className="button" title={label}>
        Open the queue
      </Link>
    );
  }
  if (!AT_EXECUTORS.has(kind)) return null;
  return (
    <Link to="/executors" className="button" title={label}>
      Executors
    </Link>
  );
}

/** The topic of the message that it waits for. */
function awaitedTopic(details: unknown): string {
  const { waitsFor = [] } = (details ?? {}) as { waitsFor?: readonly { kind?: string; topic?: string | null }[] };
  return waitsFor.find(({ kind }) => kind === 'message')?.topic ?? '';
}
