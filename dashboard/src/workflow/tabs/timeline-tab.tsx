// The timeline with the panel of the row that is open.
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { useMemo, useState } from 'react';
import type { Workflow } from '../../api/client';
import { steps as stepsQuery, timeline as timelineQuery } from '../../api/queries';
import { useSession } from '../../api/session';
import { formatDuration, formatTime, visibleText } from '../../parts/format';
import { ValueView } from '../../parts/json-tree';
import { Empty, Failure, Loading } from '../../parts/notice';
import { isActive } from '../../parts/state';
import { Time } from '../../parts/time';
import { usePageSearch } from '../../frame/searches';
import { ActionDialog } from '../actions/action-dialog';
import { type TimelineRow, timelineOf } from '../timeline/rows';
import { TimelineView } from '../timeline/timeline';

const LIVE_MS = 2000;

export function TimelineTab({ workflow }: { workflow: Workflow }) {
  const { workflowID } = workflow;
  const { row: openKey } = usePageSearch('/workflows/$workflowID');
  const navigate = useNavigate();
  const refetchInterval = isActive(workflow) ? LIVE_MS : (false as const);
  const { data, error, refetch } = useQuery({ ...timelineQuery(workflowID), refetchInterval });
  const timeline = useMemo(() => data && timelineOf(workflow, data), [workflow, data]);
  if (error) return <Failure error={error} onRetry={() => void refetch()} />;
  if (!timeline) return <Loading />;
  if (timeline.rows.length === 0) {
    return (
      <Empty title="Nothing is recorded yet.">
        <p>{isActive(workflow) ? 'Steps appear here when they end.' : 'This workflow had no steps.'}</p>
      </Empty>
    );
  }
  const open = timeline.rows.find(({ key }) => key === openKey);
  const onOpen = (key: string | undefined): void =>
    void navigate({
      to: '/workflows/$workflowID',
      params: { workflowID },
      search: key === undefined ? {} : { row: key },
      replace: true,
    });
  return (
    <TimelineView
      timeline={timeline}
      openKey={open?.key}
      onOpen={onOpen}
      panel={open && <RowPanel key={open.key} row={open} workflow={workflow} onClose={() => onOpen(undefined)} />}
    />
  );
}

interface RowPanelProps {
  readonly row: TimelineRow;
  readonly workflow: Workflow;
  readonly onClose: () => void;
}

function RowPanel({ row, workflow, onClose }: RowPanelProps) {
  const { isReadOnly } = useSession();
  const [isForking, setForking] = useState(false);
  const { step, ticks, childID, from, to, dueAt } = row;
  return (
    <section className="card panel" aria-label={`Details of ${visibleText(row.label)}`}>
      <div className="row-line">
        <strong>{visibleText(row.label)}</strong>
        <span className="soft">
          {step !== undefined && `step ${step}`}
          {ticks.length > 0 && `, ${ticks.length + 1} attempts`}
          {to !== undefined && `, ${formatDuration(to - from)}`}
        </span>
        <span className="spread" />
        {step !== undefined && !isReadOnly && (
          <button type="button" className="button" onClick={() => setForking(true)}>
            Fork from here
          </button>
        )}
        <button type="button" className="button plain" aria-label="Close the panel" onClick={onClose}>
          ×
        </button>
      </div>
      <p className="soft">
        {formatTime(from)} {to === undefined ? 'until now' : `– ${formatTime(to)}`}
        {dueAt !== undefined && to === undefined && (
          <>
            , ends by itself <Time at={dueAt} />
          </>
        )}
      </p>
      {childID !== undefined && (
        <p>
          Child{' '}
          <Link to="/workflows/$workflowID" params={{ workflowID: childID }} className="mono">
            {visibleText(childID)}
          </Link>
        </p>
      )}
      {ticks.map(({ at, attempt, error }) => (
        <p key={attempt} className="attempt-line">
          <span className="state error">✕ attempt {attempt}</span> {visibleText(error).slice(0, 2000)}{' '}
          <span className="soft">
            <Time at={at} />
          </span>
        </p>
      ))}
      {step !== undefined && to !== undefined && <Outcome workflowID={workflow.workflowID} step={step} />}
      {isForking && (
        <ActionDialog
          action="fork"
          workflow={workflow}
          initial={{ step: String(step) }}
          onClose={() => setForking(false)}
        />
      )}
    </section>
  );
}

function Outcome({ workflowID, step }: { workflowID: string; step: number }) {
  const { data, error } = useQuery(stepsQuery(workflowID));
  const found = data?.steps.find(({ functionID }) => functionID === step);
  return (
    <>
      <Failure error={error} />
      {found?.error && <ValueView value={found.error} label="Error" />}
      {found?.output && <ValueView value={found.output} label="Output" />}
    </>
  );
}
