import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { type JobQueue, QUEUE, type QueueSettings } from './job-queue.js';
import { importPeer } from './peers.js';
import { type QueueLibrary, workflowQueue } from './workflow-queue.js';

/** How DBOS enqueues in bulk: a module for those who write event receivers. */
interface EventReceiver {
  prepareEnqueuedWorkflow(
    workflow: unknown,
    args: readonly unknown[],
    options: { queueName: string; workflowID: string },
  ): Promise<unknown>;
  enqueueWorkflows(workflows: readonly unknown[]): Promise<unknown>;
}

export async function openDbos(settings: QueueSettings): Promise<JobQueue> {
  const { DBOS } = await importPeer<{ readonly DBOS: QueueLibrary }>('dbos-5');
  const receiver = await importPeer<EventReceiver>('dbos-5/eventreceiver');
  const pool = new pg.Pool({ connectionString: settings.url, max: 1 });
  return workflowQueue(DBOS, settings, {
    async enqueueMany(workflow, jobs) {
      const prepared = [];
      for (const { sentAt, workMs } of jobs) {
        const options = { queueName: QUEUE, workflowID: randomUUID() };
        prepared.push(await receiver.prepareEnqueuedWorkflow(workflow, [sentAt, workMs], options));
      }
      await receiver.enqueueWorkflows(prepared);
    },
    async countDone() {
      const { rows } = await pool.query<{ n: string }>(
        `SELECT COUNT(*) AS n FROM dbos.workflow_status WHERE queue_name = $1 AND status = 'SUCCESS'`,
        [QUEUE],
      );
      return Number(rows[0]?.n);
    },
    close: () => pool.end(),
  });
}
