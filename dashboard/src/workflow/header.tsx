// The head of a workflow's page: its name and state, the facts about it, and the actions.
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { Workflow } from '../api/client';
import { Copy } from '../parts/copy';
import { formatCount, formatDuration, visibleText } from '../parts/format';
import { isActive, State } from '../parts/state';
import { Duration, Time } from '../parts/time';
import { waitsText } from '../parts/waits';
import { Actions } from './actions/actions';

export function Header({ workflow }: { workflow: Workflow }) {
  return (
    <header className="workflow-head">
      <div className="row-line">
        <strong className="workflow-name">{visibleText(workflow.workflowName)}</strong>
        <Copy text={workflow.workflowID} />
        <State status={workflow.status} waits={workflow.waitingFor} />
        <span className="soft">
          <Lasting workflow={workflow} />
        </span>
        <span className="spread" />
        <Actions workflow={workflow} />
      </div>
      <Facts workflow={workflow} />
    </header>
  );
}

function Lasting({ workflow: { status, createdAt, dequeuedAt, completedAt } }: { workflow: Workflow }) {
  const from = dequeuedAt ?? createdAt;
  return <Duration from={from} to={isActive({ status }) ? undefined : (completedAt ?? from)} />;
}

function Facts({ workflow }: { workflow: Workflow }) {
  const { createdAt, completedAt, recoveryAttempts, executorId, applicationVersion, queueName, priority } = workflow;
  const { queuePartitionKey, deduplicationID, authenticatedUser, scheduleName, parentWorkflowID, forkedFrom } =
    workflow;
  const { timeoutMS, deadlineEpochMS, delayUntilEpochMS, attributes, applicationName, workflowClassName } = workflow;
  const { waitingFor } = workflow;
  const until = waitingFor?.[0]?.until;
  const id = (workflowID: string): ReactNode => (
    <Link to="/workflows/$workflowID" params={{ workflowID }} className="mono">
      {visibleText(workflowID)}
    </Link>
  );
  return (
    <dl className="facts">
      <Fact name="created" value={<Time at={createdAt} />} />
      <Fact name="ended" value={completedAt !== undefined && <Time at={completedAt} />} />
      <Fact name="attempt" value={recoveryAttempts !== undefined && formatCount(Math.max(1, recoveryAttempts))} />
      <Fact name="executor" value={text(executorId)} />
      <Fact name="version" value={text(applicationVersion)} />
      <Fact name="class" value={text(workflowClassName)} />
      <Fact
        name="queue"
        value={
          queueName !== undefined && (
            <Link to="/queues" search={{ queue: queueName }}>
              {visibleText(queueName)}
            </Link>
          )
        }
      />
      <Fact name="partition" value={text(queuePartitionKey)} />
      <Fact name="priority" value={priority !== 0 && formatCount(priority)} />
      <Fact name="deduplication" value={text(deduplicationID)} />
      <Fact
        name="due"
        value={delayUntilEpochMS !== undefined && isActive(workflow) && <Time at={delayUntilEpochMS} />}
      />
      <Fact name="waits for" value={waitsText(waitingFor)} />
      <Fact name="at the latest" value={until !== undefined && <Time at={until} />} />
      <Fact name="timeout" value={timeoutMS !== undefined && formatDuration(timeoutMS)} />
      <Fact name="deadline" value={deadlineEpochMS !== undefined && <Time at={deadlineEpochMS} />} />
      <Fact name="application" value={text(applicationName)} />
      <Fact name="user" value={text(authenticatedUser)} />
      <Fact name="schedule" value={text(scheduleName)} />
      <Fact name="parent" value={parentWorkflowID !== undefined && id(parentWorkflowID)} />
      <Fact name="forked from" value={forkedFrom !== undefined && id(forkedFrom)} />
      <Fact
        name="attributes"
        value={attributes && <code>{visibleText(JSON.stringify(attributes).slice(0, 300))}</code>}
      />
    </dl>
  );
}

function text(value: string | undefined): ReactNode {
  return value !== undefined && value !== '' && visibleText(value);
}

function Fact({ name, value }: { name: string; value: ReactNode }) {
  if (value === false || value === undefined || value === '') return null;
  return (
    <div className="fact">
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}
