// Schedules in the database. `schedule-firing.ts` fires them.
import type { ScheduleRecord } from './schedule.js';
import { lock, oneOf, type Sql, sql, table, type Value } from '../../kernel/sql/sql.js';
import { TableColumns } from '../../database/columns.js';
import type { Database, Executor, Row } from '../../database/database.js';
import { lacks } from '../../database/lacking.js';

const schedules = table('workflow_schedules');
const settings = table('schedule_settings');
const counters = table('change_counters');

type SharedRecord = Omit<ScheduleRecord, 'overlap' | 'jitterMs'>;

const columns = new TableColumns<SharedRecord>([
  ['scheduleID', 'schedule_id', 'text'],
  ['scheduleName', 'schedule_name', 'text'],
  ['workflowName', 'workflow_name', 'text'],
  ['workflowClassName', 'workflow_class_name', 'text'],
  ['schedule', 'schedule', 'text'],
  ['status', 'status', 'text'],
  ['context', 'context', 'text'],
  ['lastFiredAt', 'last_fired_at', 'text'],
  ['automaticBackfill', 'automatic_backfill', 'bool'],
  ['cronTimezone', 'cron_timezone', 'text'],
  ['queueName', 'queue_name', 'text'],
  ['applicationName', 'application_name', 'text'],
]);
const selected = sql`
  SELECT ${columns.select('s')}, COALESCE(p.overlap, 'allow') AS overlap, COALESCE(p.jitter_ms, 0) AS jitter_ms
  FROM ${schedules} AS s
  LEFT JOIN ${settings} AS p ON p.schedule_id = s.schedule_id`;

function toRecord(row: Row): ScheduleRecord {
  return {
    ...columns.toRecord(row),
    overlap: row['overlap'] as ScheduleRecord['overlap'],
    jitterMs: Number(row['jitter_ms']),
  };
}

/** Increments the counter that other processes poll for changes. */
async function countChange(tx: Executor): Promise<void> {
  if (lacks(tx, 'change_counters')) return;
  await tx.run(sql`
    INSERT INTO ${counters} (topic, changes) VALUES ('schedules', 1)
    ON CONFLICT (topic) DO UPDATE SET changes = ${counters}.changes + 1`);
}

/** How often Everstep changed schedules. */
export async function countScheduleChanges(database: Database): Promise<number> {
  const [row] = await database.read(sql`SELECT c.changes FROM ${counters} AS c WHERE c.topic = 'schedules'`);
  return Number(row?.['changes'] ?? 0);
}

async function writeSettings(tx: Executor, { scheduleID, overlap, jitterMs }: ScheduleRecord): Promise<void> {
  if (lacks(tx, 'schedule_settings') && overlap === 'allow' && jitterMs === 0) return;
  await tx.run(sql`
    INSERT INTO ${settings} (schedule_id, overlap, jitter_ms) VALUES (${scheduleID}, ${overlap}, ${jitterMs})
    ON CONFLICT (schedule_id) DO UPDATE SET overlap = ${overlap}, jitter_ms = ${jitterMs}`);
}

/** Inserts the schedule if its name is free. Returns whether it was inserted. */
export async function insertSchedule(tx: Executor, record: ScheduleRecord): Promise<boolean> {
  const [first, ...rest] = columns.toValues(record) as [Value, ...Value[]];
  const values = rest.reduce<Sql>((all, value) => sql`${all}, ${value}`, sql`${first}`);
  const added = await tx.run(sql`
    INSERT INTO ${schedules} (${columns.names}) VALUES (${values}) ON CONFLICT DO NOTHING RETURNING schedule_id`);
  if (added.length === 0) return false;
  await writeSettings(tx, record);
  await countChange(tx);
  return true;
}

/** Replaces a schedule's definition; its status stays. */
export async function updateSchedule(tx: Executor, record: ScheduleRecord): Promise<void> {
  await tx.run(sql`
    UPDATE ${schedules}
    SET workflow_name = ${record.workflowName}, workflow_class_name = ${record.workflowClassName},
      schedule = ${record.schedule}, context = ${record.context}, automatic_backfill = ${record.automaticBackfill},
      cron_timezone = ${record.cronTimezone}, queue_name = ${record.queueName},
      application_name = ${record.applicationName}
    WHERE schedule_id = ${record.scheduleID}`);
  await writeSettings(tx, record);
  await countChange(tx);
}

/** Returns whether the schedule exists and had another status. */
export async function setScheduleStatus(tx: Executor, name: string, status: 'ACTIVE' | 'PAUSED'): Promise<boolean> {
  const changed = await tx.run(sql`
    UPDATE ${schedules}
    SET status = ${status}
    WHERE schedule_name = ${name} AND status <> ${status}
    RETURNING schedule_name`);
  if (changed.length > 0) await countChange(tx);
  return changed.length > 0;
}

/** Returns whether there was such a schedule. */
export async function deleteSchedule(tx: Executor, name: string): Promise<boolean> {
  if (!lacks(tx, 'schedule_settings')) {
    await tx.run(sql`
      DELETE FROM ${settings}
      WHERE schedule_id IN (SELECT s.schedule_id FROM ${schedules} AS s WHERE s.schedule_name = ${name})`);
  }
  const deleted = await tx.run(sql`DELETE FROM ${schedules} WHERE schedule_name = ${name} RETURNING schedule_name`);
  if (deleted.length > 0) await countChange(tx);
  return deleted.length > 0;
}

/** Reads the schedule and locks its row until the commit. */
export async function lockSchedule(tx: Executor, name: string): Promise<ScheduleRecord | null> {
  const [row] = await tx.run(sql`${selected} WHERE s.schedule_name = ${name} ${lock('update', 's')}`);
  return row ? toRecord(row) : null;
}

export interface ScheduleQuery {
  readonly names?: readonly string[];
  readonly namePrefixes?: readonly string[];
  readonly statuses?: readonly string[];
  readonly workflowNames?: readonly string[];
  /** The schedules of these applications, and those without one. */
  readonly applicationNames?: readonly string[];
}

export async function findSchedules(database: Database, query: ScheduleQuery): Promise<ScheduleRecord[]> {
  const { names, namePrefixes, statuses, workflowNames, applicationNames } = query;
  const conditions: Sql[] = [];
  if (names) conditions.push(sql`s.schedule_name ${oneOf(names)}`);
  if (statuses) conditions.push(sql`s.status ${oneOf(statuses)}`);
  if (workflowNames) conditions.push(sql`s.workflow_name ${oneOf(workflowNames)}`);
  if (applicationNames) {
    conditions.push(sql`(s.application_name ${oneOf(applicationNames)} OR s.application_name IS NULL)`);
  }
  if (namePrefixes) {
    const begins = namePrefixes.map(
      (prefix) => sql`SUBSTR(s.schedule_name, 1, CAST(${[...prefix].length} AS INTEGER)) = ${prefix}`,
    );
    conditions.push(sql`(${begins.reduce((all, one) => sql`${all} OR ${one}`, sql`FALSE`)})`);
  }
  const where = conditions.reduce((all, one) => sql`${all} AND ${one}`, sql`TRUE`);
  const found = await database.read(sql`${selected} WHERE ${where} ORDER BY s.schedule_name`);
  return found.map(toRecord);
}
