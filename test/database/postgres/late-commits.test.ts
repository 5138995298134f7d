// A commit whose connection broke is repeated while the old copy is still on its way. The copy must not undo what came later.
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/kernel/base/clock.js';
import { silentLogger } from '../../../src/kernel/base/log.js';
import { CommitUnknownError } from '../../../src/kernel/errors/database-errors.js';
import { lock, sql, table } from '../../../src/kernel/sql/sql.js';
import type { Database } from '../../../src/database/database.js';
import { listEvents } from '../../../src/features/message/events.sql.js';
import type { PostgresOptions } from '../../../src/database/postgres/postgres-options.js';
import { bounceIfDelayed } from '../../../src/features/queue/debounce.sql.js';
import { claimWorkflows } from '../../../src/features/queue/claims.sql.js';
import { withRetry } from '../../../src/database/retry.js';
import { cancelWorkflows, findOwnedWith, resumeWorkflows } from '../../../src/run/rows/lifecycle.js';
import { findWorkflows } from '../../../src/run/rows/workflows.js';
import { Writer } from '../../../src/run/writer/writer.js';
import { onlyOn, type TestDialect } from '../../rig/dialects.js';
import { until } from '../../rig/manual-clock.js';
import { startProxy } from '../../rig/proxy.js';
import { newWorkflow, step } from '../../rig/records.js';

const retrying = <T>(operation: () => Promise<T>): Promise<T> =>
  withRetry(operation, { clock: systemClock, logger: silentLogger, isIdempotent: true });

async function setup(dialect: TestDialect, options: Partial<PostgresOptions> = {}) {
  const url = await dialect.createURL();
  const proxy = await startProxy(url);
  const database = await dialect.open(proxy.url, options);
  const writer = new Writer(database, { clock: systemClock, logger: silentLogger });
  const direct = await dialect.open(url);
  return { database, direct, proxy, writer };
}

const statusOf = async (database: Database, workflowID: string) => (await findWorkflows(database, [workflowID]))[0];

describe('commits that arrive late', () => {
  onlyOn('postgres', (dialect) => {
    const sessions: [string, Partial<PostgresOptions>][] = [
      ['our own sessions', {}],
      ['one connection', { poolSize: 1 }],
      ['a transaction pooler', { isTransactionPooler: true }],
    ];

    test.each(sessions)('an event does not go back to an earlier value: %s', async (_, options) => {
      const { database, proxy, writer } = await setup(dialect, options);
      const { workflowID, creator: owner, ...rest } = newWorkflow();
      await writer.start({ workflowID, creator: owner, ...rest });
      const setEvent = (stepID: number, text: string) =>
        writer.setEvent({
          event: { workflowID, owner, stepID, key: 'k', text, serialization: 'portable_json' },
          checkpoint: { owner, step: step(workflowID, stepID) },
        });

      proxy.holdNextRequest(/everstep|workflow_events/);
      expect(await setEvent(0, 'first')).toBe('recorded');
      expect(await setEvent(1, 'second')).toBe('recorded');
      await proxy.deliver();

      expect((await listEvents(database, workflowID)).map(({ text }) => text)).toEqual(['second']);
    });

    test('a debounced workflow keeps the input of the last call', async () => {
      const { database, proxy, writer } = await setup(dialect);
      const delayed = { status: 'DELAYED', delayMs: 60_000, owner: null, isDebounced: true } as const;
      const workflow = newWorkflow({ ...delayed, queueName: 'q', deduplicationID: 'd' });
      await writer.start(workflow);
      const bounce = (inputs: string) =>
        retrying(() =>
          bounceIfDelayed(database, {
            queueName: 'q',
            deduplicationID: 'd',
            name: workflow.name,
            className: null,
            applicationName: null,
            periodMs: 60_000,
            inputs,
            serialization: 'portable_json',
          }),
        );

      proxy.holdNextRequest();
      await bounce('first');
      await bounce('second');
      await proxy.deliver();

      expect(await statusOf(database, workflow.workflowID)).toMatchObject({ inputs: 'second' });
    });

    test('a cancellation does not come back after a resume', async () => {
      const { database, proxy, writer } = await setup(dialect);
      const { workflowID, ...rest } = newWorkflow();
      await writer.start({ workflowID, ...rest });

      proxy.holdNextRequest();
      await retrying(() => cancelWorkflows(database, [workflowID]));
      await resumeWorkflows(database, [workflowID]);
      await proxy.deliver();

      expect(await statusOf(database, workflowID)).toMatchObject({ status: 'ENQUEUED' });
    });

    test('a claim whose connection was lost takes nothing once its workflows were looked for', async () => {
      const { database, proxy, writer } = await setup(dialect);
      const workflow = newWorkflow({ status: 'ENQUEUED', queueName: 'q', owner: null });
      await writer.start(workflow);
      const terms = { applicationVersion: 'v1', applicationName: 'test', functions: ['.workflow'] };

      proxy.holdNextRequest();
      const claim = claimWorkflows(database, { ...terms, queueName: 'q', limit: 1, owner: 'o', executorID: 'e' });
      await expect(claim).rejects.toThrow(CommitUnknownError);
      expect(await findOwnedWith(database, 'o')).toEqual([]);
      await proxy.deliver();

      expect(await statusOf(database, workflow.workflowID)).toMatchObject({ status: 'ENQUEUED' });
    });

    test('a commit that waits for a lock when its connection is lost is ended before it is repeated', async () => {
      const { database, direct, proxy, writer } = await setup(dialect, { poolSize: 1 });
      const { workflowID, ...rest } = newWorkflow();
      await writer.start({ workflowID, ...rest });
      const [first] = await database.read(sql`SELECT pg_backend_pid() AS pid`);
      const waiting = async () =>
        (
          await direct.read(sql`
          SELECT a.pid FROM pg_stat_activity AS a
          WHERE a.datname = current_database() AND cardinality(pg_blocking_pids(a.pid)) > 0`)
        ).map(({ pid }) => pid);

      const { cancelled } = await direct.transaction(async (tx) => {
        await tx.run(sql`
          SELECT 1 FROM ${table('workflow_status')} AS w WHERE w.workflow_uuid = ${workflowID} ${lock('update', 'w')}`);
        proxy.abandonNextRequest();
        const repeated = retrying(() => cancelWorkflows(database, [workflowID]));
        await until(async () => {
          const now = await waiting();
          return now.length === 1 && now[0] !== first?.['pid'];
        });
        return { cancelled: repeated };
      });

      expect(await cancelled).toEqual([workflowID]);
    });

    test('without the table of fences, commits go on without one', async () => {
      const database = await dialect.create();
      await database.exclusive((connection) => connection.script('DROP TABLE dbos.fenced_sessions'));
      const writer = new Writer(database, { clock: systemClock, logger: silentLogger });

      expect((await writer.start(newWorkflow())).kind).toBe('created');
      expect((await writer.start(newWorkflow())).kind).toBe('created');
    });
  });
});
