// The schedule verbs shared by `DBOS` and `DBOSClient`. Creating a schedule is not among them: `DBOS` takes a function,
// `DBOSClient` a name.
import { date, filledName } from '../../kernel/check/validation.js';
import * as checks from '../../operator/verb-checks.js';
import { internals } from '../../kernel/base/internals.js';
import { WorkflowVerbs } from '../lifecycle/workflow-verbs.js';
import { change, changed, look } from '../../operator/performer.js';
import type { WorkflowHandle } from '../../operator/outcome.js';
import {
  backfillSchedule,
  deleteSchedule,
  getSchedule,
  listSchedules,
  nextRuns,
  pauseSchedule,
  resumeSchedule,
  type ScheduleFilters,
  type ScheduleUpdate,
  triggerSchedule,
  updateSchedule,
  type WorkflowSchedule,
} from './schedules.js';

export abstract class ScheduleVerbs extends WorkflowVerbs {
  async listSchedules(filters: ScheduleFilters = {}): Promise<WorkflowSchedule[]> {
    checks.scheduleFilters.read(filters, 'filters');
    return look(this[internals], 'listSchedules', (operator) => listSchedules(operator, filters));
  }

  async getSchedule(name: string): Promise<WorkflowSchedule | null> {
    filledName.read(name, 'name');
    return look(this[internals], 'getSchedule', (operator) => getSchedule(operator, name));
  }

  /** Changes the given fields; null removes the time zone or the queue. */
  async updateSchedule(name: string, updates: ScheduleUpdate): Promise<void> {
    filledName.read(name, 'name');
    checks.optionsObject.read(updates, 'updates');
    return change(this[internals], 'updateSchedule', (operator) => updateSchedule(operator, name, updates));
  }

  /** Stops the schedule from firing until it is resumed. Resolves to false if it was already paused or does not exist. */
  async pauseSchedule(name: string): Promise<boolean> {
    filledName.read(name, 'name');
    return changed(this[internals], 'pauseSchedule', false, (operator) => pauseSchedule(operator, name));
  }

  /** Resolves to false if the schedule was not paused or does not exist. */
  async resumeSchedule(name: string): Promise<boolean> {
    filledName.read(name, 'name');
    return changed(this[internals], 'resumeSchedule', false, (operator) => resumeSchedule(operator, name));
  }

  /** Deletes a schedule. Workflows it has enqueued stay. Resolves to false if it does not exist. */
  async deleteSchedule(name: string): Promise<boolean> {
    filledName.read(name, 'name');
    return changed(this[internals], 'deleteSchedule', false, (operator) => deleteSchedule(operator, name));
  }

  /** Enqueues the workflow of a schedule now, even if the schedule is paused. */
  async triggerSchedule(name: string): Promise<WorkflowHandle<unknown>> {
    filledName.read(name, 'name');
    const operator = this[internals].operatorFor('triggerSchedule', 'outside workflows');
    return this[internals].handleOf(await triggerSchedule(operator, name));
  }

  /** Enqueues the workflows of all occurrences after `start` and before `end`. */
  async backfillSchedule(name: string, start: Date, end: Date): Promise<WorkflowHandle<unknown>[]> {
    filledName.read(name, 'name');
    date.read(start, 'start');
    date.read(end, 'end');
    const operator = this[internals].operatorFor('backfillSchedule', 'outside workflows');
    const workflowIDs = await backfillSchedule(operator, name, { start, end });
    return workflowIDs.map((workflowID) => this[internals].handleOf(workflowID));
  }

  /** The next occurrences of a schedule, given by name, or of a cron expression. */
  async nextRuns(
    schedule: string | { readonly schedule: string; readonly cronTimezone?: string | null },
    count: number,
  ): Promise<Date[]> {
    return nextRuns(this[internals].operatorFor('nextRuns'), schedule, count);
  }
}
