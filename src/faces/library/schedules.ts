// The schedule members of `DBOS` that take functions; the verbs are in control/.
import { change } from '../../operator/performer.js';
import {
  applySchedules as apply,
  createSchedule as create,
  type ScheduleDefinition,
  type ScheduleOptions,
} from '../../features/schedule/schedules.js';
import type { Registry } from '../../run/registration/registry.js';
import { DBOSInvalidArgumentError } from '../../kernel/errors/errors.js';
import type { Instance } from './instance.js';

import { scheduleCheck, schedulesCheck } from './checks.js';

/** A scheduled workflow. It gets the time at which it was due and the schedule's context. */
// The function declares the type of its context.
// eslint-disable-next-line @typescript-eslint/no-explicit-any
export type ScheduledWorkflowFn = (scheduledDate: Date, context: any) => Promise<void>;

export interface CreateScheduleOptions {
  readonly scheduleName: string;
  readonly workflowFn: ScheduledWorkflowFn;
  /** A cron expression of five fields, or of six with seconds first. */
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

/** What a schedule defined in code does with occurrences missed while no process was running. */
export const SchedulerMode = {
  /** Runs them at launch. */
  ExactlyOncePerInterval: 'ExactlyOncePerInterval',
  /** Skips them. */
  ExactlyOncePerIntervalWhenActive: 'ExactlyOncePerIntervalWhenActive',
} as const;
export type SchedulerMode = (typeof SchedulerMode)[keyof typeof SchedulerMode];

export interface SchedulerConfig {
  readonly crontab: string;
  readonly mode?: SchedulerMode;
  readonly queueName?: string;
}

export async function createSchedule(instance: Instance, given: CreateScheduleOptions): Promise<void> {
  scheduleCheck.read(given, 'options');
  const { scheduleName, workflowFn, schedule, context, options = {} } = given;
  const { registry } = instance.engineFor('createSchedule').runtime;
  const definition = { ...options, ...targetOf(registry, workflowFn), scheduleName, schedule, context };
  // With the token, a call repeated after a crash recognizes the schedule it created.
  await change(instance, 'createSchedule', (operator, token) => create(operator, definition, token));
}

export async function applySchedules(instance: Instance, schedules: readonly ApplySchedule[]): Promise<void> {
  schedulesCheck.read(schedules, 'schedules');
  const runtime = instance.operatorFor('applySchedules', 'outside workflows');
  const definitions = schedules.map(({ workflowFn, ...rest }): ScheduleDefinition => {
    return { ...rest, ...targetOf(runtime.registry, workflowFn) };
  });
  await apply(runtime, definitions);
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
