// Why the workflow is where it is, in the words of the server, with the action that helps.
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import type { Workflow } from '../api/client';
import { explanation } from '../api/queries';
import { useSession } from '../api/session';
import { visibleText } from '../parts/format';
import { isActive } from '../parts/state';
import { ActionDialog, type ActionName } from './actions/action-dialog';

/** The action for a reason; a queue's reasons lead to the queue. */
const HELPS: Readonly<Record<string, { action: ActionName; label: string }>> = {
  failed: { action: 'fork', label: 'Fork…' },
  cancelled: { action: 'resume', label: 'Resume…' },
  'dead-lettered': { action: 'resume', label: 'Resume…' },
  delayed: { action: 'delay', label: 'Change the delay…' },
  'waiting-its-turn': { action: 'priority', label: 'Set the priority…' },
};
const QUEUE_REASONS = new Set([
  'paused',
  'queue-not-served',
  'concurrency',
  'worker-concurrency',
  'rate-limit',
  'partition-concurrency',
  'partition-worker-concurrency',
  'partition-rate-limit',
]);
const EXECUTOR_REASONS = new Set(['executor-gone', 'no-executor-of-version', 'no-executor-of-application']);

export function Why({ workflow }: { workflow: Workflow }) {
  const { isReadOnly } = useSession();
  const [open, setOpen] = useState<ActionName | undefined>(undefined);
  const { data } = useQuery({
    ...explanation(workflow.workflowID),
    refetchInterval: isActive(workflow) ? 5000 : false,
    enabled: workflow.status !== 'SUCCESS',
  });
  if (!data || workflow.status === 'SUCCESS') return null;
  const help = HELPS[data.reason];
  const { queueName } = workflow;
  return (
    <section className="why" aria-label="Why">
      <span className="why-title">Why</span>
      <span className="why-text">{visibleText(data.message)}</span>
      {help && !isReadOnly && (
        <button type="button" className="button" onClick={() => setOpen(help.action)}>
          {help.label}
        </button>
      )}
      {QUEUE_REASONS.has(data.reason) && queueName !== undefined && (
        <Link to="/queues" search={{ queue: queueName }} className="button">
          Open the queue
        </Link>
      )}
      {EXECUTOR_REASONS.has(data.reason) && (
        <Link to="/executors" className="button">
          Executors
        </Link>
      )}
      {open && <ActionDialog action={open} workflow={workflow} onClose={() => setOpen(undefined)} />}
    </section>
  );
}
