// Creates a schedule, or edits one.
import { type ReactNode, useState } from 'react';
import { api, unwrap } from '../api/client';
import { keys } from '../api/queries';
import { useChange } from '../parts/changes';
import { Dialog } from '../parts/dialog';
import type { Schedule } from './schedules-page';

type Overlap = 'allow' | 'skip' | 'cancelPrevious';

interface Draft {
  readonly scheduleName: string;
  readonly workflowName: string;
  readonly workflowClassName: string;
  readonly schedule: string;
  readonly cronTimezone: string;
  readonly queueName: string;
  readonly overlap: Overlap;
}

function draftOf(schedule: Schedule | undefined): Draft {
  return {
    scheduleName: schedule?.scheduleName ?? '',
    workflowName: schedule?.workflowName ?? '',
    workflowClassName: schedule?.workflowClassName ?? '',
    schedule: schedule?.schedule ?? '',
    cronTimezone: schedule?.cronTimezone ?? '',
    queueName: schedule?.queueName ?? '',
    overlap: (schedule?.overlap as Overlap | undefined) ?? 'allow',
  };
}

async function save(draft: Draft, isNew: boolean): Promise<unknown> {
  const { scheduleName, workflowName, workflowClassName, schedule, cronTimezone, queueName, overlap } = draft;
  if (isNew) {
    const body = {
      scheduleName,
      workflowName,
      schedule,
      overlap,
      ...(workflowClassName && { workflowClassName }),
      ...(cronTimezone && { cronTimezone }),
      ...(queueName && { queueName }),
    };
    return unwrap(api.POST('/schedules', { body }));
  }
  const body = { schedule, overlap, cronTimezone: cronTimezone || null, queueName: queueName || null };
  return unwrap(api.PATCH('/schedules/{name}', { params: { path: { name: scheduleName } }, body }));
}

export function ScheduleForm({ schedule, onClose }: { schedule?: Schedule; onClose: () => void }) {
  const isNew = schedule === undefined;
  const [draft, setDraft] = useState(() => draftOf(schedule));
  const change = useChange(() => save(draft, isNew), keys.schedules);
  const field = (key: keyof Draft, label: string, hint?: string): ReactNode => (
    <label className="line">
      {label}
      <input
        className="field"
        value={draft[key]}
        placeholder={hint}
        onChange={({ target }) => setDraft({ ...draft, [key]: target.value })}
      />
    </label>
  );
  const isMissing = [draft.scheduleName, draft.workflowName, draft.schedule].some((text) => text.trim() === '');
  return (
    <Dialog
      title={isNew ? 'New schedule' : `Edit schedule ${draft.scheduleName}`}
      action={isNew ? 'Create' : 'Save'}
      isDisabled={isMissing}
      onSubmit={() => change.mutateAsync(undefined)}
      onClose={onClose}
    >
      {isNew && field('scheduleName', 'Name')}
      {isNew && field('workflowName', 'Workflow')}
      {isNew && field('workflowClassName', 'Class, if it has one')}
      {field('schedule', 'Cron expression', '0 3 * * *')}
      {field('cronTimezone', 'Time zone', 'UTC')}
      {field('queueName', 'Queue', 'the internal queue')}
      <label className="line">
        If the previous run has not ended
        <select
          className="field"
          value={draft.overlap}
          onChange={({ target }) => setDraft({ ...draft, overlap: target.value as Overlap })}
        >
          <option value="allow">start another one</option>
          <option value="skip">skip this one</option>
          <option value="cancelPrevious">cancel the previous one</option>
        </select>
      </label>
    </Dialog>
  );
}
