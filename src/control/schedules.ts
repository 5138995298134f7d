// Schedules: what may be done with them, and the workflows that stand for their occurrences.
import { newID } from '../base/ids.js';
import type { Codec } from '../codec/codec.js';
import { DBOSError } from '../model/errors.js';
import { parseCron } from '../model/cron.js';
import { checkSchedule, occurrenceID, type ScheduleOverlap, type ScheduleRecord } from '../model/schedules.js';
import type { Database, Executor } from '../store/database.js';
import { INTERNAL_QUEUE } from '../store/lifecycle.js';
import {
  deleteSchedule as deleteRow,
  findSchedules,
  insertSchedule,
  lockSchedule,
  readNow,
  setScheduleStatus,
  updateSchedule as updateRow,
} from '../store/schedules.js';
import { insertWorkflows, type NewWorkflow } from '../store/workflows.js';
import { enqueuedWorkflow } from './enqueue.js';

/** What may be said of a schedule besides what it runs and when. */
export interface ScheduleOptions {
  /** Fires at launch what was missed while no process was there. */
  readonly automaticBackfill?: boolean;
  /** An IANA name; UTC if not given. */
  readonly cronTimezone?: string;
  readonly queueName?: string;
  /** What happens when the run before is still active; 'allow' begins another one. */
  readonly overlap?: ScheduleOverlap;
  /** Fires up to so much later than due, to spread the load. */
  readonly jitterMs?: number;
}

/** A schedule as users see it. */
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

/** A schedule to be created or applied. */
export interface ScheduleDefinition extends ScheduleOptions {
  readonly scheduleName: string;
  readonly workflowName: string;
  readonly workflowClassName: string | null;
  readonly schedule: string;
  readonly context?: unknown;
}

/** Who acts, and how values are stored. */
export interface ScheduleActor {
  readonly database: Database;
  readonly codec: Codec;
  /** Null for somebody who acts for no application. */
  readonly applicationName: string | null;
}

export async function createSchedule(
  actor: ScheduleActor,
  definition: ScheduleDefinition,
  /** Chosen by the caller: a repeated call with the same one finds what it has created. */
  scheduleID: string,
): Promise<void> {
  const record = await toRecord(actor, definition, scheduleID);
  await actor.database.transaction(async (tx) => {
    if (await insertSchedule(tx, record)) return;
    const stored = await lockSchedule(tx, record.scheduleName);
    if (!stored) throw new DBOSError(`Schedule '${record.scheduleName}' was deleted while it was being created.`);
    refuseForeign(stored, actor);
    // An earlier attempt of the same call.
    if (stored.scheduleID === scheduleID) return;
    throw new DBOSError(`Schedule '${record.scheduleName}' already exists. Use DBOS.updateSchedule or applySchedules.`);
  });
}

/** Creates or redefines schedules, all or none. State and last firing of those that are there stay. */
export async function applySchedules(actor: ScheduleActor, definitions: readonly ScheduleDefinition[]): Promise<void> {
  const records: ScheduleRecord[] = [];
  for (const definition of definitions) records.push(await toRecord(actor, definition, newID()));
  await actor.database.transaction(async (tx) => {
    for (const record of records) await apply(actor, tx, record);
  });
}

async function apply(actor: ScheduleActor, tx: Executor, record: ScheduleRecord): Promise<void> {
  if (await insertSchedule(tx, record)) return;
  const stored = await lockSchedule(tx, record.scheduleName);
  if (!stored) throw new DBOSError(`Schedule '${record.scheduleName}' was deleted while it was being applied.`);
  refuseForeign(stored, actor);
  const applicationName = record.applicationName ?? stored.applicationName;
  await updateRow(tx, { ...record, scheduleID: stored.scheduleID, applicationName });
}

/** What may be changed; a key that is absent leaves its field alone. */
export interface ScheduleUpdate {
  readonly schedule?: string;
  readonly context?: unknown;
  readonly automaticBackfill?: boolean;
  readonly cronTimezone?: string | null;
  readonly queueName?: string | null;
  readonly overlap?: ScheduleOverlap;
  readonly jitterMs?: number;
}

export async function updateSchedule(actor: ScheduleActor, name: string, update: ScheduleUpdate): Promise<void> {
  const context = 'context' in update ? await encodeContext(actor, update.context) : undefined;
  await actor.database.transaction(async (tx) => {
    const stored = await lockSchedule(tx, name);
    if (!stored) throw new DBOSError(`Schedule '${name}' not found`);
    refuseForeign(stored, actor);
    const changed: ScheduleRecord = {
      ...stored,
      schedule: update.schedule ?? stored.schedule,
      context: context ?? stored.context,
      automaticBackfill: update.automaticBackfill ?? stored.automaticBackfill,
      cronTimezone: update.cronTimezone === undefined ? stored.cronTimezone : update.cronTimezone,
      queueName: update.queueName === undefined ? stored.queueName : update.queueName,
      overlap: update.overlap ?? stored.overlap,
      jitterMs: update.jitterMs ?? stored.jitterMs,
    };
    checkSchedule(changed);
    await updateRow(tx, changed);
  });
}

export async function pauseSchedule({ database }: ScheduleActor, name: string): Promise<void> {
  await database.transaction((tx) => setScheduleStatus(tx, name, 'PAUSED'));
}

export async function resumeSchedule({ database }: ScheduleActor, name: string): Promise<void> {
  await database.transaction((tx) => setScheduleStatus(tx, name, 'ACTIVE'));
}

export async function deleteSchedule({ database }: ScheduleActor, name: string): Promise<void> {
  await database.transaction((tx) => deleteRow(tx, name));
}

export interface ScheduleFilters {
  readonly status?: string | readonly string[];
  readonly workflowName?: string | readonly string[];
  readonly scheduleNamePrefix?: string | readonly string[];
  readonly applicationName?: string | readonly string[];
}

export async function listSchedules(actor: ScheduleActor, filters: ScheduleFilters): Promise<WorkflowSchedule[]> {
  const records = await findSchedules(actor.database, {
    statuses: toList(filters.status),
    workflowNames: toList(filters.workflowName),
    namePrefixes: toList(filters.scheduleNamePrefix),
    applicationNames: toList(filters.applicationName ?? actor.applicationName ?? undefined),
  });
  return Promise.all(records.map((record) => toSchedule(actor, record)));
}

function toList(value: string | readonly string[] | undefined): readonly string[] | undefined {
  return typeof value === 'string' ? [value] : value;
}

export async function findSchedule({ database }: ScheduleActor, name: string): Promise<ScheduleRecord | null> {
  return (await findSchedules(database, { names: [name] }))[0] ?? null;
}

export async function getSchedule(actor: ScheduleActor, name: string): Promise<WorkflowSchedule | null> {
  const record = await findSchedule(actor, name);
  return record && toSchedule(actor, record);
}

/** The next times at which a schedule, or a cron expression, is due. */
export function nextRuns(
  schedule: { readonly schedule: string; readonly cronTimezone?: string | null },
  count: number,
  afterMs: number,
): Date[] {
  if (!(Number.isInteger(count) && count >= 0)) throw new DBOSError(`Give a whole number of runs, not ${count}.`);
  const cron = parseCron(schedule.schedule, { timeZone: schedule.cronTimezone });
  return cron.nextRuns(afterMs, count).map((dueAt) => new Date(dueAt));
}

/** The workflow that stands for an occurrence. It has no version, so that the latest one takes it. */
export async function workflowOf(
  { codec, applicationName }: Pick<ScheduleActor, 'codec' | 'applicationName'>,
  record: ScheduleRecord,
  dueAt: number,
  workflowID: string = occurrenceID(record.scheduleName, dueAt),
): Promise<NewWorkflow> {
  const context = await decodeContext(codec, record);
  const inputs = await codec.encodeInputs([new Date(dueAt), context]);
  return enqueuedWorkflow({
    workflowID,
    name: record.workflowName,
    className: record.workflowClassName,
    inputs: inputs.text,
    serialization: inputs.serialization,
    queueName: record.queueName ?? INTERNAL_QUEUE,
    applicationName: record.applicationName ?? applicationName,
    scheduleName: record.scheduleName,
  });
}

/** The workflow of the schedule for now, whether or not it is paused; to be given to `enqueueTriggered`. */
export async function prepareTrigger(actor: ScheduleActor, name: string): Promise<NewWorkflow> {
  const record = await findSchedule(actor, name);
  if (!record) throw new DBOSError(`Schedule "${name}" not found`);
  const { now } = await readNow(actor.database);
  return workflowOf(actor, record, now, `sched-${name}-trigger-${new Date(now).toISOString()}`);
}

/** Enqueues it. Repeated with the same workflow it adds nothing, as after a commit whose answer was lost. */
export async function enqueueTriggered({ database }: ScheduleActor, workflow: NewWorkflow): Promise<void> {
  await database.run(insertWorkflows([workflow]));
}

/** Rows of one statement. */
const ROWS_MAX = 200;

/** Enqueues the workflows of all occurrences after the start and before the end; those that are there stay. */
export async function backfillSchedule(
  actor: ScheduleActor,
  name: string,
  { start, end }: { readonly start: Date; readonly end: Date },
): Promise<NewWorkflow[]> {
  const [startMs, endMs] = [start.getTime(), end.getTime()];
  if (Number.isNaN(startMs) || Number.isNaN(endMs)) throw new DBOSError('backfillSchedule needs two valid dates.');
  const record = await findSchedule(actor, name);
  if (!record) throw new DBOSError(`Schedule "${name}" not found`);
  const cron = parseCron(record.schedule, { timeZone: record.cronTimezone });
  const workflows: NewWorkflow[] = [];
  for (const dueAt of cron.between(startMs, endMs)) workflows.push(await workflowOf(actor, record, dueAt));
  for (let first = 0; first < workflows.length; first += ROWS_MAX) {
    await actor.database.run(insertWorkflows(workflows.slice(first, first + ROWS_MAX)));
  }
  return workflows;
}

async function toRecord(
  actor: ScheduleActor,
  definition: ScheduleDefinition,
  scheduleID: string,
): Promise<ScheduleRecord> {
  const { scheduleName, workflowName, workflowClassName, schedule } = definition;
  const record: ScheduleRecord = {
    scheduleID,
    scheduleName,
    workflowName,
    workflowClassName: workflowClassName || null,
    schedule,
    status: 'ACTIVE',
    context: await encodeContext(actor, definition.context),
    lastFiredAt: null,
    automaticBackfill: definition.automaticBackfill ?? false,
    cronTimezone: definition.cronTimezone ?? null,
    queueName: definition.queueName ?? null,
    applicationName: actor.applicationName,
    overlap: definition.overlap ?? 'allow',
    jitterMs: definition.jitterMs ?? 0,
  };
  checkSchedule(record);
  return record;
}

async function encodeContext({ codec }: ScheduleActor, context: unknown): Promise<string> {
  return (await codec.encodeValue(context)).text;
}

async function decodeContext(codec: Codec, { context }: ScheduleRecord): Promise<unknown> {
  return codec.decodeValue(context, codec.serializer.name());
}

function refuseForeign(stored: ScheduleRecord, { applicationName }: ScheduleActor): void {
  if (stored.applicationName === null || applicationName === null || stored.applicationName === applicationName) return;
  throw new DBOSError(
    `Schedule "${stored.scheduleName}" belongs to application "${stored.applicationName}". Choose another name.`,
  );
}

async function toSchedule({ codec }: ScheduleActor, record: ScheduleRecord): Promise<WorkflowSchedule> {
  const { scheduleID, ...rest } = record;
  return {
    ...rest,
    scheduleId: scheduleID,
    workflowClassName: record.workflowClassName ?? '',
    context: await decodeContext(codec, record),
    applicationName: record.applicationName ?? undefined,
  };
}
