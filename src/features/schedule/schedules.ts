// Schedules: the verbs on them, and the workflows of their occurrences.
import { type DurationText, inMs } from '../../kernel/base/duration.js';
import { newID } from '../../kernel/base/ids.js';
import {
  DatabaseStatementError,
  OwnedByAnotherApplicationError,
  ScheduleExistsError,
  ScheduleNotFoundError,
} from '../../kernel/errors/errors.js';
import { parseCron } from './cron/cron.js';
import { checkSchedule, occurrenceID, type ScheduleOverlap, type ScheduleRecord } from './schedule.js';
import {
  anything,
  boolean,
  date,
  filledName,
  integer,
  nullish,
  optional,
  lenientRecord,
  record,
  storableName,
  string,
} from '../../kernel/check/validation.js';
import type { Executor } from '../../database/database.js';
import { INTERNAL_QUEUE } from '../queue/queue.js';
import {
  deleteSchedule as deleteRow,
  findSchedules,
  insertSchedule,
  lockSchedule,
  setScheduleStatus,
  updateSchedule as updateRow,
} from './schedules.sql.js';
import { readNow } from '../../database/now.js';
import { insertIfFree, insertWorkflows, type NewWorkflow } from '../../run/rows/workflows.js';
import { readable } from '../listing/status.js';
import { enqueuedWorkflow } from '../queue/enqueue.js';
import { announceQueued } from '../../operator/announcements.js';
import type { Operator } from '../../operator/operator.js';
import { topics } from '../../database/notify/topics.js';

/** Settings of a schedule besides its workflow and cron expression. */
export interface ScheduleOptions {
  /** Runs occurrences at launch that were missed while no process was running. */
  readonly automaticBackfill?: boolean;
  /** An IANA name. Default: UTC. */
  readonly cronTimezone?: string;
  readonly queueName?: string;
  /** What to do while the previous run is active. Default: 'allow', which starts another one. */
  readonly overlap?: ScheduleOverlap;
  /** Maximum random delay, to spread the load. */
  readonly jitterMs?: number | DurationText;
}

/** A schedule, as the public API returns it. */
export interface WorkflowSchedule {
  readonly scheduleId: string;
  readonly scheduleName: string;
  readonly workflowName: string;
  readonly workflowClassName: string;
  readonly schedule: string;
  readonly status: string;
  readonly context: unknown;
  readonly lastFiredAt: string | null;
  readonly automaticBackfill: boolean;
  readonly cronTimezone: string | null;
  readonly queueName: string | null;
  readonly applicationName?: string;
  readonly overlap: ScheduleOverlap;
  readonly jitterMs: number;
}

/** A schedule to create or apply. */
export interface ScheduleDefinition extends ScheduleOptions {
  readonly scheduleName: string;
  readonly workflowName: string;
  readonly workflowClassName: string | null;
  readonly schedule: string;
  readonly context?: unknown;
  /** The application that runs it. Default: the operator's own. */
  readonly applicationName?: string;
}

const anyOption = optional(anything);
/** `checkSchedule` checks what depends on more than the type. */
const optionFields = {
  automaticBackfill: nullish(boolean),
  cronTimezone: nullish(string({ min: 1 })),
  queueName: nullish(filledName),
  overlap: anyOption,
  jitterMs: anyOption,
} satisfies Record<keyof ScheduleOptions, unknown>;
const definitionFields = lenientRecord({
  ...optionFields,
  scheduleName: filledName,
  workflowName: filledName,
  workflowClassName: nullish(storableName),
  schedule: string(),
  context: anyOption,
  applicationName: nullish(filledName),
} satisfies Record<keyof ScheduleDefinition, unknown>);
const nextRunsFields = record({ schedule: string(), cronTimezone: nullish(string({ min: 1 })) }, { unknown: 'ignore' });
const updateFields = lenientRecord({
  ...optionFields,
  schedule: optional(string()),
  context: anyOption,
} satisfies Record<keyof ScheduleUpdate, unknown>);

type Actor = Pick<Operator, 'codec' | 'applicationName'>;

/** Changes schedules in one retriable transaction, and notifies the schedulers. */
async function change<R>(operator: Operator, name: string | undefined, body: (tx: Executor) => Promise<R>): Promise<R> {
  const result = await operator.retrying(() => operator.database.transaction(body));
  await operator.bus.publishAndWait(topics.schedules, [name ?? '']);
  return result;
}

export async function createSchedule(
  operator: Operator,
  definition: ScheduleDefinition,
  /** Chosen by the caller: a retry with the same ID finds the schedule it created. */
  scheduleID: string = newID(),
): Promise<void> {
  const record = await toRecord(operator, definition, scheduleID);
  await change(operator, record.scheduleName, async (tx) => {
    if (await insertSchedule(tx, record)) return;
    const stored = await lockSchedule(tx, record.scheduleName);
    if (!stored) throw deletedMeanwhile(record);
    refuseForeign(stored, record);
    // An earlier attempt of the same call.
    if (stored.scheduleID === scheduleID) return;
    throw new ScheduleExistsError(record.scheduleName);
  });
}

/** Creates or replaces schedules, all or none. Existing ones keep their status and last run. */
export async function applySchedules(operator: Operator, definitions: readonly ScheduleDefinition[]): Promise<void> {
  const records: ScheduleRecord[] = [];
  for (const definition of definitions) records.push(await toRecord(operator, definition, newID()));
  await change(operator, undefined, async (tx) => {
    for (const record of records) await apply(tx, record);
  });
}

async function apply(tx: Executor, record: ScheduleRecord): Promise<void> {
  if (await insertSchedule(tx, record)) return;
  const stored = await lockSchedule(tx, record.scheduleName);
  if (!stored) throw deletedMeanwhile(record);
  refuseForeign(stored, record);
  const applicationName = record.applicationName ?? stored.applicationName;
  await updateRow(tx, { ...record, scheduleID: stored.scheduleID, applicationName });
}

/** The insert found the name taken, but the lock found it free. Throw a serialization failure to retry. */
function deletedMeanwhile({ scheduleName }: ScheduleRecord): Error {
  return new DatabaseStatementError(`Schedule "${scheduleName}" has just been deleted.`, { sqlState: '40001' });
}

/** The changeable fields; a missing key leaves its field unchanged. */
export interface ScheduleUpdate {
  readonly schedule?: string;
  readonly context?: unknown;
  readonly automaticBackfill?: boolean;
  readonly cronTimezone?: string | null;
  readonly queueName?: string | null;
  readonly overlap?: ScheduleOverlap;
  readonly jitterMs?: number | DurationText;
}

export async function updateSchedule(operator: Operator, name: string, update: ScheduleUpdate): Promise<void> {
  updateFields.read(update, 'update');
  const context = 'context' in update ? await encodeContext(operator, update.context) : undefined;
  await change(operator, name, async (tx) => {
    const stored = await lockSchedule(tx, name);
    if (!stored) throw new ScheduleNotFoundError(name);
    refuseForeign(stored, operator);
    const changed: ScheduleRecord = {
      ...stored,
      schedule: update.schedule ?? stored.schedule,
      context: context ?? stored.context,
      automaticBackfill: update.automaticBackfill ?? stored.automaticBackfill,
      cronTimezone: update.cronTimezone === undefined ? stored.cronTimezone : update.cronTimezone,
      queueName: update.queueName === undefined ? stored.queueName : update.queueName,
      overlap: update.overlap ?? stored.overlap,
      jitterMs: inMs(update.jitterMs) ?? stored.jitterMs,
    };
    checkSchedule(changed);
    await updateRow(tx, changed);
  });
}

/**
 * Changes a schedule if it exists and this operator may change it. Returns whether something changed. If the reply to an
 * attempt was lost, returns false, because the retry finds it done.
 */
function changeIfExists(operator: Operator, name: string, body: (tx: Executor) => Promise<boolean>): Promise<boolean> {
  return change(operator, name, async (tx) => {
    const stored = await lockSchedule(tx, name);
    if (!stored) return false;
    refuseForeign(stored, operator);
    return body(tx);
  });
}

/** False if the schedule does not exist or was already paused. */
export function pauseSchedule(operator: Operator, name: string): Promise<boolean> {
  return changeIfExists(operator, name, (tx) => setScheduleStatus(tx, name, 'PAUSED'));
}

/** False if the schedule does not exist or was not paused. */
export function resumeSchedule(operator: Operator, name: string): Promise<boolean> {
  return changeIfExists(operator, name, (tx) => setScheduleStatus(tx, name, 'ACTIVE'));
}

/** False if the schedule does not exist. */
export function deleteSchedule(operator: Operator, name: string): Promise<boolean> {
  return changeIfExists(operator, name, (tx) => deleteRow(tx, name));
}

export interface ScheduleFilters {
  readonly status?: string | readonly string[];
  readonly workflowName?: string | readonly string[];
  readonly scheduleNamePrefix?: string | readonly string[];
  readonly applicationName?: string | readonly string[];
}

export async function listSchedules(operator: Operator, filters: ScheduleFilters = {}): Promise<WorkflowSchedule[]> {
  const query = {
    statuses: toList(filters.status),
    workflowNames: toList(filters.workflowName),
    namePrefixes: toList(filters.scheduleNamePrefix),
    applicationNames: toList(filters.applicationName ?? operator.applicationName ?? undefined),
  };
  const records = await operator.retrying(() => findSchedules(operator.database, query));
  return Promise.all(records.map((record) => toSchedule(operator, record)));
}

function toList(value: string | readonly string[] | undefined): readonly string[] | undefined {
  return typeof value === 'string' ? [value] : value;
}

async function findSchedule(operator: Operator, name: string): Promise<ScheduleRecord | null> {
  const [found] = await operator.retrying(() => findSchedules(operator.database, { names: [name] }));
  return found ?? null;
}

async function findKnown(operator: Operator, name: string): Promise<ScheduleRecord> {
  const found = await findSchedule(operator, name);
  if (!found) throw new ScheduleNotFoundError(name);
  refuseForeign(found, operator);
  return found;
}

export async function getSchedule(operator: Operator, name: string): Promise<WorkflowSchedule | null> {
  const record = await findSchedule(operator, name);
  return record && isVisible(record, operator) ? toSchedule(operator, record) : null;
}

/** As many as fit on a screen, and more. */
const countCheck = integer({ max: 10_000 });

/** The next occurrences of a schedule, given by name, or of a cron expression. */
export async function nextRuns(
  operator: Operator,
  schedule: string | { readonly schedule: string; readonly cronTimezone?: string | null },
  count: number,
): Promise<Date[]> {
  countCheck.read(count, 'count');
  const found =
    typeof schedule === 'string' ? await findKnown(operator, schedule) : nextRunsFields.read(schedule, 'schedule');
  const cron = parseCron(found.schedule, { timeZone: found.cronTimezone });
  return cron.nextRuns(operator.clock.now(), count).map((dueAt) => new Date(dueAt));
}

/** The workflow of an occurrence. It has no version, so that the latest one claims it. */
export async function workflowOf(
  { codec, applicationName }: Actor,
  record: ScheduleRecord,
  dueAt: number,
  workflowID: string = occurrenceID(record.scheduleName, dueAt),
): Promise<NewWorkflow> {
  const context = await decodeContext({ codec }, record);
  const inputs = await codec.encodeInputs([new Date(dueAt), context]);
  return enqueuedWorkflow({
    workflowID,
    name: record.workflowName,
    className: record.workflowClassName || null,
    inputs: inputs.text,
    serialization: inputs.serialization,
    queueName: record.queueName ?? INTERNAL_QUEUE,
    applicationName: record.applicationName ?? applicationName,
    scheduleName: record.scheduleName,
  });
}

/** Enqueues the workflow of the schedule now, even if it is paused. Returns its ID. */
export async function triggerSchedule(operator: Operator, name: string): Promise<string> {
  const { database, bus } = operator;
  const record = await findKnown(operator, name);
  const { now } = await operator.retrying(() => readNow(database));
  // The ID contains the time: if the schedule was already triggered in this millisecond, try the next one.
  for (let at = now; ; at += 1) {
    const workflow = await workflowOf(operator, record, at, `sched-${name}-trigger-${new Date(at).toISOString()}`);
    if (!(await operator.retrying(() => insertIfFree(database, workflow)))) continue;
    announceQueued(bus, [workflow]);
    return workflow.workflowID;
  }
}

/** Rows per statement. */
const ROWS_MAX = 200;

/** Enqueues workflows for all occurrences after the start and before the end; existing ones stay. */
export async function backfillSchedule(
  operator: Operator,
  name: string,
  { start, end }: { readonly start: Date; readonly end: Date },
): Promise<string[]> {
  const [startMs, endMs] = [date.read(start, 'start').getTime(), date.read(end, 'end').getTime()];
  const record = await findKnown(operator, name);
  const cron = parseCron(record.schedule, { timeZone: record.cronTimezone });
  const workflows: NewWorkflow[] = [];
  for (const dueAt of cron.between(startMs, endMs)) workflows.push(await workflowOf(operator, record, dueAt));
  for (let first = 0; first < workflows.length; first += ROWS_MAX) {
    const chunk = workflows.slice(first, first + ROWS_MAX);
    await operator.retrying(() => operator.database.run(insertWorkflows(chunk)));
    announceQueued(operator.bus, chunk);
  }
  return workflows.map(({ workflowID }) => workflowID);
}

async function toRecord(actor: Actor, definition: ScheduleDefinition, scheduleID: string): Promise<ScheduleRecord> {
  definitionFields.read(definition, 'options');
  const { scheduleName, workflowName, workflowClassName, schedule } = definition;
  const record: ScheduleRecord = {
    scheduleID,
    scheduleName,
    workflowName,
    // Not NULL: DBOS finds the function by this name.
    workflowClassName: workflowClassName ?? '',
    schedule,
    status: 'ACTIVE',
    context: await encodeContext(actor, definition.context),
    lastFiredAt: null,
    automaticBackfill: definition.automaticBackfill ?? false,
    cronTimezone: definition.cronTimezone ?? null,
    queueName: definition.queueName ?? null,
    applicationName: definition.applicationName ?? actor.applicationName,
    overlap: definition.overlap ?? 'allow',
    jitterMs: inMs(definition.jitterMs) ?? 0,
  };
  checkSchedule(record);
  return record;
}

async function encodeContext({ codec }: Actor, context: unknown): Promise<string> {
  return (await codec.encodeValue(context)).text;
}

async function decodeContext({ codec }: Pick<Actor, 'codec'>, { context }: ScheduleRecord): Promise<unknown> {
  return codec.decodeValue(context, codec.serializer.name());
}

/** Whether the schedule belongs to the operator's application, or to none. An operator without one sees all. */
function isVisible(stored: ScheduleRecord, { applicationName }: Pick<Operator, 'applicationName'>): boolean {
  return stored.applicationName === null || applicationName === null || stored.applicationName === applicationName;
}

function refuseForeign(stored: ScheduleRecord, owner: Pick<Operator, 'applicationName'>): void {
  if (isVisible(stored, owner)) return;
  throw new OwnedByAnotherApplicationError(
    `Schedule "${stored.scheduleName}" belongs to application "${stored.applicationName}". Choose another name, or use a client of that application.`,
  );
}

async function toSchedule({ codec }: Actor, record: ScheduleRecord): Promise<WorkflowSchedule> {
  const { scheduleID, ...rest } = record;
  return {
    ...rest,
    scheduleId: scheduleID,
    workflowClassName: record.workflowClassName ?? '',
    // One of another language must not hide the others.
    context: await readable(record.context, () => decodeContext({ codec }, record)),
    applicationName: record.applicationName ?? undefined,
  };
}
