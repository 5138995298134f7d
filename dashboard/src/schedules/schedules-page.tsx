// Schedules: when each fires next, how the last runs ended, and what can be done about it.
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';
import { api, type Schemas, unwrap } from '../api/client';
import { keys, nextRuns, scheduleRuns, schedules as schedulesQuery } from '../api/queries';
import { useSession } from '../api/session';
import { Page } from '../frame/frame';
import { usePageSearch } from '../frame/searches';
import { useChange } from '../parts/changes';
import { Confirm } from '../parts/dialog';
import { visibleText } from '../parts/format';
import { Empty, Failure, Loading } from '../parts/notice';
import { RowActions } from '../parts/row-actions';
import { STATES } from '../parts/state';
import { Time } from '../parts/time';
import { Backfill } from './backfill';
import { CalendarStrip } from './calendar-strip';
import { ScheduleForm } from './schedule-form';

export type Schedule = Schemas['Schedule'];

export function SchedulesPage(): ReactNode {
  const { data, error, refetch } = useQuery(schedulesQuery);
  const { isReadOnly } = useSession();
  const { schedule: openName } = usePageSearch('/schedules');
  const navigate = useNavigate();
  const [isCreating, setCreating] = useState(false);
  const open = data?.schedules.find(({ scheduleName }) => scheduleName === openName);
  const create = !isReadOnly && (
    <button type="button" className="button" onClick={() => setCreating(true)}>
      New schedule…
    </button>
  );
  return (
    <Page title="Schedules" extra={create}>
      <div className="page-body">
        <Failure error={error} onRetry={() => void refetch()} />
        {!data && !error && <Loading />}
        {data?.schedules.length === 0 && (
          <Empty title="There is no schedule yet.">
            <p>Create one here, or in your application:</p>
            <pre>
              {"await DBOS.createSchedule({ scheduleName: 'nightly', workflowFn: report, schedule: '0 3 * * *' });"}
            </pre>
          </Empty>
        )}
        {data && data.schedules.length > 0 && (
          <>
            <CalendarStrip schedules={data.schedules} />
            <ScheduleTable schedules={data.schedules} />
          </>
        )}
        {open && (
          <section className="card panel" aria-label={`Schedule ${visibleText(open.scheduleName)}`}>
            <div className="row-line">
              <h2>{visibleText(open.scheduleName)}</h2>
              <span className="spread" />
              <button
                type="button"
                className="button plain"
                aria-label="Close the panel"
                onClick={() => void navigate({ to: '/schedules', search: {} })}
              >
                ×
              </button>
            </div>
            <NextRuns name={open.scheduleName} />
          </section>
        )}
        {isCreating && <ScheduleForm onClose={() => setCreating(false)} />}
      </div>
    </Page>
  );
}

function NextRuns({ name }: { name: string }) {
  const { data, error } = useQuery(nextRuns(name, 10));
  if (error) return <Failure error={error} />;
  return (
    <div className="row-line">
      <span className="soft">Next</span>
      {data?.nextRuns.map((at) => (
        <span key={at} className="chip">
          <Time at={Date.parse(at)} />
        </span>
      ))}
    </div>
  );
}

function ScheduleTable({ schedules }: { schedules: readonly Schedule[] }) {
  return (
    <div className="table-scroll tall">
      <table>
        <thead>
          <tr>
            <th scope="col">Schedule</th>
            <th scope="col">Workflow</th>
            <th scope="col">Cron</th>
            <th scope="col">Last fired</th>
            <th scope="col">Last outcomes</th>
            <th scope="col">
              <span className="hidden-text">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {schedules.map((schedule) => (
            <ScheduleRow key={schedule.scheduleId} schedule={schedule} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function ScheduleRow({ schedule }: { schedule: Schedule }) {
  const { scheduleName, workflowName, schedule: cron, cronTimezone, status, lastFiredAt } = schedule;
  return (
    <tr>
      <td>
        <Link to="/schedules" search={{ schedule: scheduleName }}>
          {visibleText(scheduleName)}
        </Link>{' '}
        {status === 'PAUSED' && <span className="chip">paused</span>}
      </td>
      <td>{visibleText(workflowName)}</td>
      <td>
        <code>{visibleText(cron)}</code> <span className="soft">{visibleText(cronTimezone ?? 'UTC')}</span>
      </td>
      <td>{lastFiredAt === null ? <span className="soft">never</span> : <Time at={Date.parse(lastFiredAt)} />}</td>
      <td>
        <Outcomes name={scheduleName} />
      </td>
      <td className="number">
        <ScheduleActions schedule={schedule} />
      </td>
    </tr>
  );
}

/** The last runs as shapes, oldest first. */
function Outcomes({ name }: { name: string }) {
  const { data } = useQuery(scheduleRuns(name));
  return (
    <span className="outcomes">
      {[...(data?.workflows ?? [])].reverse().map(({ workflowID, status }) => (
        <Link
          key={workflowID}
          to="/workflows/$workflowID"
          params={{ workflowID }}
          className={`state ${STATES[status].tone}`}
          title={`${STATES[status].word}: ${visibleText(workflowID)}`}
          aria-label={`${STATES[status].word}: ${visibleText(workflowID)}`}
        >
          {STATES[status].glyph}
        </Link>
      ))}
    </span>
  );
}

function ScheduleActions({ schedule }: { schedule: Schedule }) {
  const { scheduleName: name, status } = schedule;
  const call = (verb: 'pause' | 'resume' | 'trigger') => (): Promise<unknown> =>
    unwrap(api.POST(`/schedules/{name}/${verb}`, { params: { path: { name } } }));
  return (
    <RowActions
      subject={name}
      actions={[
        { label: 'Trigger now', act: call('trigger') },
        status === 'PAUSED' ? { label: 'Resume', act: call('resume') } : { label: 'Pause', act: call('pause') },
        { label: 'Backfill…', dialog: (onClose) => <Backfill schedule={schedule} onClose={onClose} /> },
        { label: 'Edit…', dialog: (onClose) => <ScheduleForm schedule={schedule} onClose={onClose} /> },
        {
          label: 'Delete…',
          isDangerous: true,
          dialog: (onClose) => <DeleteSchedule name={name} onClose={onClose} />,
        },
      ]}
      stale={[keys.schedules, keys.lists]}
    />
  );
}

function DeleteSchedule({ name, onClose }: { name: string; onClose: () => void }) {
  const remove = useChange(
    () => unwrap(api.DELETE('/schedules/{name}', { params: { path: { name } } })),
    keys.schedules,
  );
  return (
    <Confirm
      title={`Delete schedule ${name}?`}
      action="Delete"
      isDangerous
      onSubmit={() => remove.mutateAsync(undefined)}
      onClose={onClose}
    >
      <p>It fires no more. Workflows that it has started stay.</p>
    </Confirm>
  );
}
