// The schedule members of `DBOS`: the verbs of the control room, and the news of them for running schedulers.
import { newID } from '../base/ids.js';
import {
  applySchedules as apply,
  backfillSchedule as backfill,
  createSchedule as create,
  enqueueTriggered,
  getSchedule,
  nextRuns as next,
  prepareTrigger,
  type ScheduleActor,
  type ScheduleDefinition,
  type ScheduleOptions,
} from '../control/schedules.js';
import { currentContext, isWorkflowCode } from '../engine/ambient.js';
import type { Engine } from '../engine/engine.js';
import type { WorkflowHandle } from '../engine/handles.js';
import { operation } from '../engine/operation.js';
import type { Registry } from '../engine/registry.js';
import { DBOSError } from '../model/errors.js';

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

export function actorOf(engine: Engine): ScheduleActor {
  return { database: engine.store.database, codec: engine.codec, applicationName: engine.config.name };
}

/** Reads or changes schedules, recorded if called in workflow code. */
export function scheduleOperation<R>(
  engine: Engine,
  verb: string,
  body: (actor: ScheduleActor) => Promise<R>,
  changedName?: string,
): Promise<R> {
  const isEffect = changedName !== undefined;
  return operation({ name: `DBOS.${verb}`, isEffect }, async () => {
    const result = await engine.retrying(() => body(actorOf(engine)));
    if (isEffect) await engine.scheduler.announceChange(changedName);
    return result;
  });
}

export async function createSchedule(engine: Engine, given: CreateScheduleOptions): Promise<void> {
  const { scheduleName, workflowFn, schedule, context, options = {} } = given;
  const definition = { ...options, ...targetOf(engine.registry, workflowFn), scheduleName, schedule, context };
  // The same after a recovery, so that the schedule that this very call has created is not in its way.
  const caller = currentContext();
  const scheduleID = isWorkflowCode(caller) ? `${caller.run.workflowID}-${caller.run.upcomingStepID}` : newID();
  const body = async (actor: ScheduleActor) => {
    await create(actor, definition, scheduleID);
    return null;
  };
  await scheduleOperation(engine, 'createSchedule', body, scheduleName);
}

export async function applySchedules(engine: Engine, schedules: readonly ApplySchedule[]): Promise<void> {
  refuseInWorkflow('applySchedules');
  const definitions = schedules.map(({ workflowFn, ...rest }): ScheduleDefinition => {
    return { ...rest, ...targetOf(engine.registry, workflowFn) };
  });
  await engine.retrying(() => apply(actorOf(engine), definitions));
  await engine.scheduler.announceChange();
}

function targetOf(registry: Registry, fn: ScheduledWorkflowFn) {
  const registration = registry.workflowOf(fn, fn.name);
  if (registration.isInstance) {
    throw new DBOSError(
      `Cannot schedule instance method ${registration.name}: which instance should run it? Schedule a function or a static method.`,
    );
  }
  return { workflowName: registration.name, workflowClassName: registry.classNameFor(registration) || null };
}

export async function triggerSchedule(engine: Engine, name: string): Promise<WorkflowHandle<unknown>> {
  refuseInWorkflow('triggerSchedule');
  // Its ID holds the time, so it is chosen once, however often the insert is tried.
  const workflow = await engine.retrying(() => prepareTrigger(actorOf(engine), name));
  await engine.retrying(() => enqueueTriggered(actorOf(engine), workflow));
  engine.announceQueued([workflow]);
  return engine.handleOf(workflow.workflowID);
}

export async function backfillSchedule(
  engine: Engine,
  name: string,
  range: { readonly start: Date; readonly end: Date },
): Promise<WorkflowHandle<unknown>[]> {
  refuseInWorkflow('backfillSchedule');
  const workflows = await engine.retrying(() => backfill(actorOf(engine), name, range));
  engine.announceQueued(workflows);
  return workflows.map(({ workflowID }) => engine.handleOf(workflowID));
}

/** The next times of a schedule of the database, or of a cron expression. */
export async function nextRuns(
  engine: Engine,
  schedule: string | { readonly schedule: string; readonly cronTimezone?: string | null },
  count: number,
): Promise<Date[]> {
  const now = engine.clock.now();
  if (typeof schedule !== 'string') return next(schedule, count, now);
  const stored = await engine.retrying(() => getSchedule(actorOf(engine), schedule));
  if (!stored) throw new DBOSError(`Schedule '${schedule}' not found`);
  return next(stored, count, now);
}

function refuseInWorkflow(verb: string): void {
  if (currentContext()?.run) {
    throw new DBOSError(`DBOS.${verb} cannot be called from a workflow. Call it from outside.`);
  }
}
