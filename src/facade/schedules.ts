// The schedule members of `DBOS` that know functions and handles; the verbs stand in the control room.
import { newID } from '../base/ids.js';
import {
  applySchedules as apply,
  backfillSchedule as backfill,
  createSchedule as create,
  type ScheduleDefinition,
  type ScheduleOptions,
  triggerSchedule as trigger,
} from '../control/schedules/schedules.js';
import { currentContext, isWorkflowCode } from '../engine/runs/ambient.js';
import type { Engine } from '../engine/engine.js';
import type { WorkflowHandle } from '../control/runs/outcome.js';
import { operation } from '../engine/runs/operation.js';
import type { Registry } from '../engine/registration/registry.js';
import { DBOSInvalidArgumentError, DBOSInvalidWorkflowTransitionError } from '../model/errors/errors.js';

/** What a schedule runs: it gets the time at which it was due, and the schedule's context. */
// The context has the type that the function wants.
// eslint-disable-next-line @typescript-eslint/no-explicit-any
export type ScheduledWorkflowFn = (scheduledDate: Date, context: any) => Promise<void>;

export interface CreateScheduleOptions {
  readonly scheduleName: string;
  readonly workflowFn: ScheduledWorkflowFn;
  /** A cron expression of five fields, or of six that begin with seconds. */
  readonly schedule: string;
  readonly context?: unknown;
  readonly options?: ScheduleOptions;
}

export interface ApplySchedule extends ScheduleOptions {
  readonly scheduleName: string;
  readonly workflowFn: ScheduledWorkflowFn;
  readonly schedule: string;
  readonly context?: unknown;
}

/** How a schedule that stands in the code treats runs that were missed while no process was there. */
export const SchedulerMode = {
  /** They are made up for. */
  ExactlyOncePerInterval: 'ExactlyOncePerInterval',
  /** They are left out. */
  ExactlyOncePerIntervalWhenActive: 'ExactlyOncePerIntervalWhenActive',
} as const;
export type SchedulerMode = (typeof SchedulerMode)[keyof typeof SchedulerMode];

export interface SchedulerConfig {
  readonly crontab: string;
  readonly mode?: SchedulerMode;
  readonly queueName?: string;
}

export async function createSchedule(engine: Engine, given: CreateScheduleOptions): Promise<void> {
  const { scheduleName, workflowFn, schedule, context, options = {} } = given;
  const definition = { ...options, ...targetOf(engine.registry, workflowFn), scheduleName, schedule, context };
  // The same after a recovery, so that the schedule that this very call has created is not in its way.
  const caller = currentContext();
  const scheduleID = isWorkflowCode(caller) ? `${caller.run.workflowID}-${caller.run.upcomingStepID}` : newID();
  await operation({ name: 'DBOS.createSchedule', isEffect: true }, async () => {
    await create(engine, definition, scheduleID);
    return null;
  });
}

export async function applySchedules(engine: Engine, schedules: readonly ApplySchedule[]): Promise<void> {
  refuseInWorkflow('applySchedules');
  const definitions = schedules.map(({ workflowFn, ...rest }): ScheduleDefinition => {
    return { ...rest, ...targetOf(engine.registry, workflowFn) };
  });
  await apply(engine, definitions);
}

function targetOf(registry: Registry, fn: ScheduledWorkflowFn) {
  const registration = registry.workflowOf(fn, fn.name);
  if (registration.isInstance) {
    throw new DBOSInvalidArgumentError(
      `Cannot schedule instance method ${registration.name}: which instance should run it? Schedule a function or a static method.`,
    );
  }
  return { workflowName: registration.name, workflowClassName: registry.classNameFor(registration) || null };
}

export async function triggerSchedule(engine: Engine, name: string): Promise<WorkflowHandle<unknown>> {
  refuseInWorkflow('triggerSchedule');
  return engine.handleOf(await trigger(engine, name));
}

export async function backfillSchedule(
  engine: Engine,
  name: string,
  range: { readonly start: Date; readonly end: Date },
): Promise<WorkflowHandle<unknown>[]> {
  refuseInWorkflow('backfillSchedule');
  return (await backfill(engine, name, range)).map((workflowID) => engine.handleOf(workflowID));
}

function refuseInWorkflow(verb: string): void {
  if (currentContext()?.run) {
    throw new DBOSInvalidWorkflowTransitionError(
      `DBOS.${verb} cannot be called from a workflow. Call it from outside.`,
    );
  }
}
