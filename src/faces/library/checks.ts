// Checks of what applications pass to `DBOS`: functions, and objects of options. Names and numbers inside them that every
// entry shares, such as those of the client, are checked where they are used.
import { timed } from '../../kernel/check/duration.js';
import {
  anything,
  array,
  boolean,
  type Check,
  checkThat,
  filledName,
  func,
  INT_MAX,
  isRecord,
  nullish,
  number,
  oneOf,
  optional,
  lenientRecord,
  record,
  storableName,
  string,
} from '../../kernel/check/validation.js';
import type { StartWorkflowParams } from '../../features/queue/enqueue.js';
import type { CreateScheduleOptions, SchedulerConfig } from './schedules.js';
import type { DBOSContextOptions, DBOSLaunchOptions, ShutdownOptions } from './types.js';

type FieldsOf<T> = Record<keyof T, Check<unknown>>;

/** Checked elsewhere, or not at all. */
const anyOption = optional(anything);
/** Durations in milliseconds: what a timer can hold. */
const timerMs = timed(number({ max: INT_MAX }));
const format = nullish(oneOf(['native', 'portable']));

/** The values are checked where every start is. */
export const startParamsCheck = lenientRecord({
  workflowID: anyOption,
  queueName: anyOption,
  timeoutMS: anyOption,
  enqueueOptions: nullish(
    lenientRecord({
      deduplicationID: anyOption,
      priority: anyOption,
      queuePartitionKey: anyOption,
      delaySeconds: anyOption,
      applicationVersion: anyOption,
      applicationName: anyOption,
    }),
  ),
  authenticatedUser: anyOption,
  authenticatedRoles: anyOption,
  duplicationPolicy: nullish(oneOf(['reject', 'return-existing'])),
  workflowIDReusePolicy: nullish(oneOf(['reject', 'return-existing'])),
  workflowAttributes: anyOption,
} satisfies FieldsOf<StartWorkflowParams>);

export const startsCheck = array(checkThat<object>('an object', isRecord));

export const contextCheck = lenientRecord({
  idAssignedForNextWorkflow: nullish(storableName),
  queueAssignedForWorkflows: optional(filledName),
  logger: anyOption,
  authenticatedUser: nullish(string()),
  authenticatedRoles: nullish(array(string())),
  assumedRole: nullish(string()),
  workflowTimeoutMS: nullish(timed(number())),
  serializationType: format,
  request: anyOption,
} satisfies FieldsOf<DBOSContextOptions>);

export const userCheck = record({ authenticatedUser: string(), authenticatedRoles: array(string()) });

/** An empty list opens a single method of a class that requires roles. For a whole class it would be a mistake. */
export const methodRoles = array(string({ min: 1 }));
export const classRoles = array(string({ min: 1 }), { min: 1 });

export const launchCheck = lenientRecord({
  conductorURL: optional(string()),
  conductorKey: optional(string()),
  conductorExecutorMetadata: anyOption,
  conductorMetadataOnlyMode: optional(boolean),
} satisfies FieldsOf<DBOSLaunchOptions>);

export const executorIDsCheck = array(filledName);

export const shutdownCheck = lenientRecord({
  deregister: optional(boolean),
  workflowCompletionTimeoutMS: optional(timerMs),
} satisfies FieldsOf<ShutdownOptions>);

export const signalsCheck = record({
  signals: optional(array(string({ min: 1 }), { min: 1 })),
  workflowCompletionTimeoutMS: optional(timerMs),
});

export const dispatchStateCheck = record(
  { service: filledName, workflowFnName: filledName, key: storableName },
  { unknown: 'ignore' },
);

export const debouncerCheck = lenientRecord({
  workflow: func,
  startWorkflowParams: optional(startParamsCheck),
  debounceTimeoutMs: anyOption,
  applicationName: optional(filledName),
});

export const scheduleCheck = lenientRecord({
  scheduleName: anyOption,
  workflowFn: func,
  schedule: anyOption,
  context: anyOption,
  options: optional(checkThat<object>('an object', isRecord)),
} satisfies FieldsOf<CreateScheduleOptions>);
/** Other fields are those of the definition, and checked with it. */
export const schedulesCheck = array(record({ workflowFn: func }, { unknown: 'ignore' }));

export const codeScheduleCheck = lenientRecord({
  crontab: string({ min: 1 }),
  mode: optional(oneOf(['ExactlyOncePerInterval', 'ExactlyOncePerIntervalWhenActive'])),
  queueName: optional(filledName),
} satisfies FieldsOf<SchedulerConfig>);

export const promisesCheck = array(anything);
