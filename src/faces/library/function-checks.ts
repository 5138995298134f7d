// Checks of functions and of what is said about them when they are registered or run.
import { inSeconds } from '../../kernel/base/duration.js';
import { errorClasses } from '../../operator/verb-checks.js';
import { timed } from '../../kernel/check/duration.js';
import {
  boolean,
  type Check,
  checkThat,
  filledName,
  func,
  INT_MAX,
  integer,
  isRecord,
  nullish,
  number,
  oneOf,
  optional,
  positiveInteger,
  positiveNumber,
  lenientRecord,
} from '../../kernel/check/validation.js';
import { HISTORY_LEVELS } from '../../features/history/event.js';
import type { FunctionName, InputSchema, WorkflowConfig } from '../../run/registration/registry.js';
import type { StepConfig } from '../../run/step.js';

type FieldsOf<T> = Record<keyof T, Check<unknown>>;

const format = nullish(oneOf(['native', 'portable']));
const object = checkThat<object>('an object or a class', (value) => isRecord(value) || typeof value === 'function');

const inputSchema = checkThat<InputSchema>(
  'an object with a method parse, or a Standard Schema',
  (value) =>
    (isRecord(value) || typeof value === 'function') &&
    (typeof (value as { parse?: unknown }).parse === 'function' || '~standard' in value),
);

const functionName = {
  name: optional(filledName),
  className: optional(filledName),
  ctorOrProto: optional(object),
} satisfies FieldsOf<FunctionName>;

const workflowConfig = {
  name: optional(filledName),
  maxRecoveryAttempts: optional(integer({ max: INT_MAX })),
  parkAfterMs: optional(number()),
  serialization: format,
  inputSchema: optional(inputSchema),
  history: optional(oneOf([...HISTORY_LEVELS])),
} satisfies FieldsOf<WorkflowConfig>;

const stepConfig = {
  name: optional(filledName),
  retriesAllowed: optional(boolean),
  intervalSeconds: optional(timed(number(), inSeconds)),
  maxAttempts: optional(positiveInteger),
  backoffRate: optional(number({ min: 1 })),
  jitter: optional(number({ max: 1 })),
  shouldRetry: optional(func),
  timeoutMS: optional(timed(positiveNumber)),
  errors: optional(errorClasses),
  preemptible: optional(boolean),
} satisfies FieldsOf<StepConfig>;

export const callback = func;
export const workflowConfigCheck = lenientRecord({ ...functionName, ...workflowConfig });
export const stepConfigCheck = lenientRecord({ ...functionName, ...stepConfig });
