// The steps as a table, each with its outcome.
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useVirtualizer } from '@tanstack/react-virtual';
import { useRef, useState } from 'react';
import type { Schemas, Workflow } from '../../api/client';
import { steps as stepsQuery } from '../../api/queries';
import { formatDuration, visibleText } from '../../parts/format';
import { ValueView } from '../../parts/json-tree';
import { Empty, Failure, Loading } from '../../parts/notice';
import { isActive } from '../../parts/state';

type Step = Schemas['Step'];

export function StepsTab({ workflow }: { workflow: Workflow }) {
  const { data, error, refetch } = useQuery({
    ...stepsQuery(workflow.workflowID),
    refetchInterval: isActive(workflow) ? 2000 : false,
  });
  if (error) return <Failure error={error} onRetry={() => void refetch()} />;
  if (!data) return <Loading />;
  if (data.steps.length === 0) return <Empty title="No step is recorded." />;
  return <StepList steps={data.steps} />;
}

function StepList({ steps }: { steps: readonly Step[] }) {
  const scroller = useRef<HTMLDivElement>(null);
  const [open, setOpen] = useState<ReadonlySet<number>>(new Set());
  const virtual = useVirtualizer({
    count: steps.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => 32,
    overscan: 10,
  });
  const toggle = (id: number): void => {
    const next = new Set(open);
    if (!next.delete(id)) next.add(id);
    setOpen(next);
  };
  return (
    <div className="card scroll-list" ref={scroller} tabIndex={0} role="group" aria-label="Steps">
      <ol className="list-rows" style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map(({ index, start }) => {
          const step = steps[index];
          if (!step) return null;
          const isOpen = open.has(step.functionID);
          return (
            <li
              key={step.functionID}
              data-index={index}
              ref={virtual.measureElement}
              className="step-item"
              style={{ transform: `translateY(${start}px)` }}
            >
              <StepLine step={step} isOpen={isOpen} onToggle={() => toggle(step.functionID)} />
              {isOpen && <StepValues step={step} />}
            </li>
          );
        })}
      </ol>
    </div>
  );
}

function StepLine({ step, isOpen, onToggle }: { step: Step; isOpen: boolean; onToggle: () => void }) {
  const { functionID, name, error, childWorkflowID, startedAtEpochMs: from, completedAtEpochMs: to } = step;
  return (
    <div className="step-line">
      <span className="soft number">{functionID}</span>
      <button type="button" className="link ellipsis" aria-expanded={isOpen} onClick={onToggle}>
        <span aria-hidden="true">{isOpen ? '▾' : '▸'}</span> {visibleText(name)}
      </button>
      {childWorkflowID !== null && (
        <Link to="/workflows/$workflowID" params={{ workflowID: childWorkflowID }} className="mono ellipsis">
          {visibleText(childWorkflowID)}
        </Link>
      )}
      <span className="spread" />
      <span className={`state ${error ? 'error' : 'done'}`}>
        {error ? '✕ error' : to === undefined ? '' : '✓ done'}
      </span>
      <span className="number step-time">{from !== undefined && to !== undefined && formatDuration(to - from)}</span>
    </div>
  );
}

function StepValues({ step: { error, output } }: { step: Step }) {
  return (
    <div className="step-values">
      {error && <ValueView value={error} label="Error" />}
      {output && <ValueView value={output} label="Output" />}
    </div>
  );
}
