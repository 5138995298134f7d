// Schedules: when each fires next, how the last runs ended, and what can be done about it.
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { api, type Schemas, unwrap } from '../api/client';
import { keys, nextRuns, scheduleRuns, schedules as schedulesQuery } from '../api/queries';
import { useSession } from '../api/session';
import { Page } from '../frame/frame';
import { useLocationSearch } from '../frame/location';
import { useChange } from '../parts/changes';
import { Confirm } from '../parts/dialog';
import { visibleText } from '../parts/format';
import { Menu } from '../parts/menu';
import { Empty, Failure, Loading } from '../parts/notice';
import { STATES } from '../parts/state';
import { Time } from '../parts/time';
import { Backfill } from './backfill';
import { CalendarStrip } from './calendar-strip';
import { ScheduleForm } from './schedule-form';

export interface SchedulesSearch {
  readonly schedule?: string;
}

export function readSchedulesSearch(search: Record<string, unknown>): SchedulesSearch {
  return typeof search['schedule'] === 'string' ? { schedule: search['schedule'] } : {};
}

export type Schedule = Schemas['Schedule'];

export function SchedulesPage() {
  const { data, error, refetch } = useQuery(schedulesQuery);
  const { isReadOnly } = useSession();
  const { schedule: openName } = useLocationSearch(readSchedulesSearch);
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
  const { isReadOnly } = useSession();
  const [open, setOpen] = useState<'edit' | 'backfill' | 'delete' | undefined>(undefined);
  const name = schedule.scheduleName;
  const params = { path: { name } };
  const change = useChange(
    (verb: 'pause' | 'resume' | 'trigger') => unwrap(api.POST(`/schedules/{name}/${verb}`, { params })),
    keys.schedules,
    keys.lists,
  );
  const remove = useChange(() => unwrap(api.DELETE('/schedules/{name}', { params })), keys.schedules);
  if (isReadOnly) return null;
  const pausing = schedule.status === 'PAUSED' ? 'resume' : 'pause';
  return (
    <>
      <Menu label="⋯" title={`Actions on ${visibleText(name)}`}>
        <button type="button" onClick={() => change.mutate('trigger')}>
          Trigger now
        </button>
        <button type="button" onClick={() => change.mutate(pausing)}>
          {pausing === 'resume' ? 'Resume' : 'Pause'}
        </button>
        <button type="button" onClick={() => setOpen('backfill')}>
          Backfill…
        </button>
        <button type="button" onClick={() => setOpen('edit')}>
          Edit…
        </button>
        <button type="button" className="danger" onClick={() => setOpen('delete')}>
          Delete…
        </button>
      </Menu>
      <Failure error={change.error} />
      {open === 'edit' && <ScheduleForm schedule={schedule} onClose={() => setOpen(undefined)} />}
      {open === 'backfill' && <Backfill schedule={schedule} onClose={() => setOpen(undefined)} />}
      {open === 'delete' && (
        <Confirm
          title={`Delete schedule ${name}?`}
          action="Delete"
          isDangerous
          onSubmit={() => remove.mutateAsync(undefined)}
          onClose={() => setOpen(undefined)}
        >
          <p>It fires no more. Workflows that it has started stay.</p>
        </Confirm>
      )}
    </>
  );
}
