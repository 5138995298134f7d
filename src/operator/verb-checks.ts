// Checks of what applications pass to the verbs of `DBOS` and `DBOSClient`, made before a verb is recorded or run.
import {
  array,
  boolean,
  type Check,
  checkThat,
  filledName,
  INT_MAX,
  integer,
  isRecord,
  nullish,
  oneOf,
  oneOrMany,
  optional,
  positiveInteger,
  lenientRecord,
  record,
  storableName,
} from '../kernel/check/validation.js';
import { areErrorClasses, type ErrorClasses } from '../kernel/codec/error-classes.js';
import type { SerializationRecipe } from '../kernel/codec/serializer.js';
import type { ChangeReason } from '../features/history/cancellations.js';
import type { HistoryOptions, TailOptions } from '../features/history/history.js';
import type { CancelOptions } from '../features/lifecycle/lifecycle.js';
import type { RewindOptions } from '../features/lifecycle/rewind.js';
import type { ImportOptions } from '../features/transfer/transfer.js';
import type { SetLatestVersionOptions } from '../features/version/versions.js';
import type { QueueTargetOptions } from '../features/queue/queue-target.js';
import type { QueueStatsQuery } from '../features/queue/queues.js';
import type { ScheduleFilters } from '../features/schedule/schedules.js';

type FieldsOf<T> = Record<keyof T, Check<unknown>>;

export const ids = array(filledName);
export const optionalNames = nullish(oneOrMany(filledName));
export const flag = nullish(boolean);
const listed = nullish(oneOrMany(storableName));

const reasonFields = {
  reason: nullish(storableName),
  actor: nullish(storableName),
} satisfies FieldsOf<ChangeReason>;
export const changeReason = record(reasonFields);

const types = optional(array(filledName));

export const historyOptions = record({
  after: optional(filledName),
  limit: optional(positiveInteger),
  types,
  payloads: flag,
} satisfies FieldsOf<HistoryOptions>);

export const tailOptions = record({
  since: optional(
    checkThat<Date | number | string>(
      'a time or a cursor',
      (value) => value instanceof Date || typeof value === 'number' || typeof value === 'string',
    ),
  ),
  types,
  signal: optional(checkThat<AbortSignal>('an AbortSignal', (value) => value instanceof AbortSignal)),
  follow: flag,
} satisfies FieldsOf<TailOptions>);

export const exportHistoryOptions = record({ payloads: flag });

export const cancelOptions = lenientRecord({ cancelChildren: flag, ...reasonFields } satisfies FieldsOf<CancelOptions>);

const queueTarget = {
  queueName: nullish(filledName),
  queuePartitionKey: nullish(storableName),
} satisfies FieldsOf<QueueTargetOptions>;
export const resumeOptions = lenientRecord({ ...queueTarget, ...reasonFields });

/** Step numbers are stored in 32 bits. */
const stepNumber = integer({ max: INT_MAX });

export const rewindOptions = record({
  ...queueTarget,
  ...reasonFields,
  startStep: optional(stepNumber),
  applicationVersion: nullish(filledName),
} satisfies FieldsOf<RewindOptions>);

export const importOptions = record({
  onConflict: optional(oneOf(['fail', 'skip'])),
  activeWorkflows: optional(oneOf(['cancel', 'enqueue'])),
} satisfies FieldsOf<ImportOptions>);

export const exportSource = checkThat(
  'text, an array of exported workflows, or something that can be iterated over',
  (value) =>
    typeof value === 'string' ||
    Array.isArray(value) ||
    (isRecord(value) && (Symbol.iterator in value || Symbol.asyncIterator in value) && !(value instanceof Map)),
);

export const queueStatsQuery = record({ queueName: listed, byPartition: flag } satisfies FieldsOf<QueueStatsQuery>);

export const scheduleFilters = lenientRecord({
  status: listed,
  workflowName: listed,
  scheduleNamePrefix: listed,
  applicationName: listed,
} satisfies FieldsOf<ScheduleFilters>);

export const versionOptions = record({
  applicationName: nullish(filledName),
} satisfies FieldsOf<SetLatestVersionOptions>);

export const optionsObject = checkThat<object>('an object', isRecord);
export const objects = array(optionsObject);

/** Also an object of a class. */
export const errorClasses = checkThat<ErrorClasses>('classes of errors, each under a name of its own', areErrorClasses);

export const recipeCheck = checkThat<SerializationRecipe<unknown, null>>(
  'an object with a name and the methods isApplicable, serialize and deserialize',
  (value) =>
    isRecord(value) &&
    filledName.accepts(value['name']) &&
    ['isApplicable', 'serialize', 'deserialize'].every((method) => typeof value[method] === 'function'),
);
