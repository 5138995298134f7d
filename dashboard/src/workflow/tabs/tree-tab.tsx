// The family of a workflow: its parents up to the first, and its children, level by level.
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import type { Workflow } from '../../api/client';
import { children as childrenQuery, workflow as workflowQuery } from '../../api/queries';
import { visibleText } from '../../parts/format';
import { Failure } from '../../parts/notice';
import { State } from '../../parts/state';
import { Duration } from '../../parts/time';

const PARENTS_MAX = 20;

export function TreeTab({ workflow }: { workflow: Workflow }) {
  return (
    <section className="card panel tree" aria-label="Tree">
      <Ancestors workflow={workflow} depth={0} />
      <Node workflow={workflow} isOpen isSelf />
    </section>
  );
}

function Ancestors({ workflow, depth }: { workflow: Workflow; depth: number }) {
  const { parentWorkflowID = '' } = workflow;
  const { data } = useQuery({ ...workflowQuery(parentWorkflowID), enabled: parentWorkflowID !== '' });
  if (parentWorkflowID === '' || depth >= PARENTS_MAX) return null;
  return (
    <>
      {data && <Ancestors workflow={data} depth={depth + 1} />}
      <div className="tree-line">
        <span className="soft">parent</span>
        {data ? <Line workflow={data} /> : <span className="mono">{visibleText(parentWorkflowID)}</span>}
      </div>
    </>
  );
}

interface NodeProps {
  readonly workflow: Workflow;
  readonly isOpen?: boolean;
  readonly isSelf?: boolean;
}

function Node({ workflow, isOpen: isOpenFirst = false, isSelf = false }: NodeProps) {
  const [isOpen, setOpen] = useState(isOpenFirst);
  const { data, error } = useQuery({ ...childrenQuery(workflow.workflowID), enabled: isOpen });
  return (
    <div className="tree-node">
      <div className="tree-line">
        <button
          type="button"
          className="link"
          aria-expanded={isOpen}
          aria-label={`Children of ${visibleText(workflow.workflowID)}`}
          onClick={() => setOpen(!isOpen)}
        >
          {isOpen ? '▾' : '▸'}
        </button>
        <Line workflow={workflow} />
        {isSelf && <span className="chip accent">this workflow</span>}
      </div>
      {isOpen && (
        <div className="tree-children">
          <Failure error={error} />
          {data?.workflows.length === 0 && <span className="soft">no children</span>}
          {data?.workflows.map((child) => (
            <Node key={child.workflowID} workflow={child} />
          ))}
          {data && data.nextCursor !== null && (
            <Link to="/workflows" search={{ parentWorkflowID: workflow.workflowID }}>
              All children in the list
            </Link>
          )}
        </div>
      )}
    </div>
  );
}

function Line({ workflow }: { workflow: Workflow }) {
  const { workflowID, workflowName, status, createdAt, completedAt } = workflow;
  return (
    <>
      <State status={status} />
      <Link to="/workflows/$workflowID" params={{ workflowID }} search={{ tab: 'tree' }} className="ellipsis">
        {visibleText(workflowName)} <span className="mono soft">{visibleText(workflowID)}</span>
      </Link>
      <span className="soft">
        <Duration from={createdAt} to={completedAt} />
      </span>
    </>
  );
}
