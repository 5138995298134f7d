// A row of the list. One line on a wide screen, two on a phone.
import { Link } from '@tanstack/react-router';
import type { Workflow } from '../api/client';
import { Copy } from '../parts/copy';
import { visibleText } from '../parts/format';
import { State } from '../parts/state';
import { Duration, Time } from '../parts/time';
import { waitsText } from '../parts/waits';

interface WorkflowRowProps {
  readonly row: Workflow;
  readonly top: number;
  readonly height: number;
  readonly isCurrent: boolean;
  readonly isSelected: boolean;
  readonly onToggle: () => void;
}

export function WorkflowRow({ row, top, height, isCurrent, isSelected, onToggle }: WorkflowRowProps) {
  return (
    <li
      className={`list-row list-grid ${isCurrent ? 'current' : ''} ${isSelected ? 'selected' : ''}`}
      style={{ transform: `translateY(${top}px)`, height }}
      data-id={row.workflowID}
    >
      <input
        type="checkbox"
        aria-label={`Select ${visibleText(row.workflowID)}`}
        checked={isSelected}
        onChange={onToggle}
      />
      <State status={row.status} waits={row.waitingFor} />
      <Link
        to="/workflows/$workflowID"
        params={{ workflowID: row.workflowID }}
        className="ellipsis row-name"
        title={visibleText(row.workflowName)}
      >
        {visibleText(row.workflowName)}
        {row.waitingFor && <span className="soft"> waits for {waitsText(row.waitingFor)}</span>}
      </Link>
      <span className="row-id">
        <Copy text={row.workflowID}>
          <span className="mono ellipsis" title={visibleText(row.workflowID)}>
            {visibleText(row.workflowID)}
          </span>
        </Copy>
      </span>
      <span className="number row-time">
        <Span row={row} />
      </span>
      <span className="ellipsis soft cell-queue">{visibleText(row.queueName ?? '')}</span>
      <span className="ellipsis soft cell-executor">{visibleText(row.executorId ?? '')}</span>
      <span className="soft number cell-detail">
        <Time at={row.createdAt} />
      </span>
    </li>
  );
}

/** How long it ran or has been running, or when it is due. */
function Span({ row }: { row: Workflow }) {
  const { status, createdAt, dequeuedAt, completedAt, delayUntilEpochMS } = row;
  if (status === 'DELAYED' && delayUntilEpochMS !== undefined) return <Time at={delayUntilEpochMS} />;
  if (status === 'ENQUEUED') return <Duration from={createdAt} />;
  return <Duration from={dequeuedAt ?? createdAt} to={status === 'PENDING' ? undefined : (completedAt ?? createdAt)} />;
}
