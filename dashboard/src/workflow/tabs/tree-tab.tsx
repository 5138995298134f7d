// The family of a workflow: its parents up to the first, its children, and theirs.
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useMemo } from 'react';
import type { Schemas, Workflow } from '../../api/client';
import { tree as treeQuery } from '../../api/queries';
import { visibleText } from '../../parts/format';
import { Failure, Loading } from '../../parts/notice';
import { isActive, State } from '../../parts/state';
import { Duration } from '../../parts/time';

type Member = Schemas['FamilyMember'];

export function TreeTab({ workflow }: { workflow: Workflow }) {
  const { workflowID } = workflow;
  const { data, error, refetch } = useQuery({
    ...treeQuery(workflowID),
    refetchInterval: isActive(workflow) ? 3000 : false,
  });
  const depths = useMemo(() => depthsOf(data?.workflows ?? []), [data]);
  if (error) return <Failure error={error} onRetry={() => void refetch()} />;
  if (!data) return <Loading />;
  return (
    <section className="card panel tree" aria-label="Tree">
      <ol>
        {data.workflows.map((member) => (
          <Line
            key={member.workflowID}
            member={member}
            depth={depths.get(member.workflowID) ?? 0}
            isSelf={member.workflowID === workflowID}
          />
        ))}
      </ol>
      {data.workflows.length === 1 && <p className="soft">It has no parent and no children.</p>}
      {data.isTruncated && (
        <Link to="/workflows" search={{ parentWorkflowID: workflowID }}>
          There are more: all children in the list
        </Link>
      )}
    </section>
  );
}

/** How deep each member is. Parents come before their children. */
export function depthsOf(members: readonly Pick<Member, 'workflowID' | 'parentWorkflowID'>[]): Map<string, number> {
  const depths = new Map<string, number>();
  for (const { workflowID, parentWorkflowID } of members) {
    depths.set(workflowID, parentWorkflowID === null ? 0 : (depths.get(parentWorkflowID) ?? -1) + 1);
  }
  return depths;
}

function Line({ member, depth, isSelf }: { member: Member; depth: number; isSelf: boolean }) {
  const { workflowID, workflowName, status, createdAt, dequeuedAt, completedAt } = member;
  return (
    <li className="tree-line" style={{ paddingLeft: depth * 24 }}>
      {depth > 0 && (
        <span className="soft" aria-hidden="true">
          └
        </span>
      )}
      <State status={status} />
      <Link to="/workflows/$workflowID" params={{ workflowID }} search={{ tab: 'tree' }} className="ellipsis">
        {visibleText(workflowName)} <span className="mono soft">{visibleText(workflowID)}</span>
      </Link>
      <span className="soft">
        <Duration from={dequeuedAt ?? createdAt} to={completedAt ?? undefined} />
      </span>
      {isSelf && <span className="chip accent">this workflow</span>}
    </li>
  );
}
