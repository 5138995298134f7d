// The rows that the figures of schedules rest on.
import { type Sql, sql, table } from '../../src/kernel/sql/sql.js';
import type { Database } from '../../src/database/database.js';

const ROWS_MAX = 500;
const ZONES = [null, 'Europe/Berlin', 'America/New_York', 'Asia/Tokyo'] as const;
const NO_CONTEXT = '{"json":null,"__dbos_serializer":"superjson"}';

export interface SchedulesToAdd {
  readonly prefix: string;
  readonly count: number;
  /** Due some day of another month, in one of four time zones; otherwise each second. */
  readonly isResting: boolean;
}

export async function addSchedules(database: Database, { prefix, count, isResting }: SchedulesToAdd): Promise<void> {
  const otherMonth = ((new Date().getUTCMonth() + 5) % 12) + 1;
  const insert = (n: number): Sql => {
    const schedule = isResting ? `${n % 60} ${n % 24} ${1 + (n % 28)} ${otherMonth} *` : '* * * * * *';
    const zone = isResting ? (ZONES[n % ZONES.length] ?? null) : null;
    return sql`
      INSERT INTO ${table('workflow_schedules')}
        (schedule_id, schedule_name, workflow_name, schedule, status, context, cron_timezone, application_name)
      VALUES (${`${prefix}-id-${n}`}, ${`${prefix}-${n}`}, 'tick', ${schedule}, 'ACTIVE', ${NO_CONTEXT}, ${zone}, 'bench')`;
  };
  const statements = Array.from({ length: count }, (_, n) => insert(n));
  for (let first = 0; first < count; first += ROWS_MAX) {
    await database.commit(statements.slice(first, first + ROWS_MAX));
  }
}

/** How much later than due the workflows of the last occurrences were created. */
export async function readLateness(
  database: Database,
  { prefix, lastMs }: { readonly prefix: string; readonly lastMs: number },
): Promise<number[]> {
  const rows = await database.read(sql`
    SELECT w.workflow_uuid AS id, w.created_at AS created_at
    FROM ${table('workflow_status')} AS w
    WHERE w.schedule_name LIKE ${`${prefix}-%`}`);
  const fired = rows.map((row) => {
    const dueAt = Date.parse((row['id'] as string).slice(-24));
    return { dueAt, lateMs: Number(row['created_at']) - dueAt };
  });
  const last = fired.reduce((latest, { dueAt }) => Math.max(latest, dueAt), 0);
  return fired.filter(({ dueAt }) => dueAt > last - lastMs).map(({ lateMs }) => lateMs);
}
