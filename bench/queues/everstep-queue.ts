import { locateDatabase } from '../../src/kernel/base/url.js';
import { createDBOS } from '../../src/faces/library/dbos.js';
import { sql, table } from '../../src/kernel/sql/sql.js';
import { PostgresDatabase } from '../../src/database/postgres/postgres-database.js';
import { SqliteDatabase } from '../../src/database/sqlite/sqlite-database.js';
import type { Database } from '../../src/database/database.js';
import { type JobQueue, QUEUE, type QueueSettings } from './job-queue.js';
import { workflowQueue } from './workflow-queue.js';

export async function openEverstep(settings: QueueSettings): Promise<JobQueue> {
  const library = createDBOS();
  let database: Database | undefined;
  return workflowQueue(library, settings, {
    enqueueMany: (workflow, jobs) =>
      library.startWorkflows(
        workflow,
        jobs.map(({ sentAt, workMs }) => ({ args: [sentAt, workMs] as [number, number] })),
        { queueName: QUEUE },
      ),
    async countDone() {
      database ??= await openDatabase(settings.url);
      const [row] = await database.read(sql`
        SELECT COUNT(*) AS n
        FROM ${table('workflow_status')} AS w
        WHERE w.queue_name = ${QUEUE} AND w.status = 'SUCCESS'`);
      return Number(row?.['n']);
    },
    close: async () => database?.close(),
  });
}

async function openDatabase(url: string): Promise<Database> {
  const location = locateDatabase(url);
  return location?.kind === 'sqlite' ? SqliteDatabase.open({ path: location.path }) : new PostgresDatabase({ url });
}
