import { describe, expect, test } from 'vitest';
import { type Sql, sql, table } from '../../../src/kernel/sql/sql.js';
import { functionKey, instanceKey } from '../../../src/kernel/workflow/function-key.js';
import type { Limits, QueueRecord } from '../../../src/features/queue/queue.js';
import {
  type ClaimOptions,
  claimPartitions,
  claimWorkflows,
  findSeparateInputs,
} from '../../../src/features/queue/claims.sql.js';
import { lockQueueClaims } from '../../../src/features/queue/claim-lock.sql.js';
import type { Database, Row } from '../../../src/database/database.js';
import { deleteUnchanged } from '../../../src/features/retention/archive-index.sql.js';
import { listByAge, OLDEST } from '../../../src/features/retention/retention.sql.js';
import { cancelWorkflows, deadLetterIfOwned, recoverIncarnation } from '../../../src/run/rows/lifecycle.js';
import { insertQueue, pauseQueue, resumeQueue } from '../../../src/features/queue/queues.sql.js';
import { findWaitingPartitions } from '../../../src/features/queue/waiting-work.sql.js';
import { listVersions, registerVersion } from '../../../src/features/version/versions.sql.js';
import { finishIfOwned, findWorkflows, insertWorkflows, type NewWorkflow } from '../../../src/run/rows/workflows.js';
import { forEachDialect, onlyOn } from '../../rig/dialects.js';
import { newWorkflow } from '../../rig/records.js';

const CLAIM: ClaimOptions = {
  queueName: 'q',
  limit: 10,
  owner: 'me.1',
  executorID: 'vm-1',
  applicationVersion: 'v1',
  applicationName: 'test',
  functions: ['.workflow', 'Class.method'],
};

function queued(fields: Partial<NewWorkflow> = {}): NewWorkflow {
  return newWorkflow({ status: 'ENQUEUED', queueName: 'q', owner: null, recoveryAttempts: 0, ...fields });
}

async function add(database: Database, ...workflows: NewWorkflow[]): Promise<void> {
  await database.run(insertWorkflows(workflows));
}

function newQueue(name: string): QueueRecord {
  return {
    name,
    concurrency: null,
    workerConcurrency: null,
    rateLimitMax: null,
    rateLimitPeriodSec: null,
    isPriorityEnabled: false,
    isPartitionQueue: false,
    pollingIntervalSec: 1,
    partitionConcurrency: null,
    partitionWorkerConcurrency: null,
    partitionRateLimitMax: null,
    partitionRateLimitPeriodSec: null,
    applicationName: null,
  };
}

async function claimedIDs(database: Database, options: Partial<ClaimOptions> = {}): Promise<string[]> {
  const { claimed } = await claimWorkflows(database, { ...CLAIM, ...options });
  return claimed.map(({ workflow }) => workflow.workflowID);
}

describe('claims', () => {
  forEachDialect((dialect) => {
    test('a claim makes the workflow this engine’s and gives all that is needed to run it', async () => {
      const database = await dialect.create();
      const workflow = queued({ timeoutMs: 60_000, attributes: '{"a":1}' });
      await add(database, workflow);

      const {
        claimed: [claimed],
      } = await claimWorkflows(database, CLAIM);

      const [stored] = await findWorkflows(database, [workflow.workflowID]);
      expect(stored).toMatchObject({ status: 'PENDING', owner: 'me.1', executorID: 'vm-1', recoveryAttempts: 1 });
      expect(claimed?.workflow).toMatchObject({ inputs: workflow.inputs, isDebounced: false });
      expect(stored).toMatchObject(claimed?.workflow ?? {});
      expect(claimed?.workflow.deadlineAt).toBeGreaterThan((stored?.startedAt ?? 0) + 59_000);
      expect(await claimedIDs(database)).toEqual([]);
    });

    test('names with dots and slashes are not taken for others', async () => {
      const database = await dialect.create();
      const functions = [functionKey('A', 'b.c'), functionKey('A~', 'd')];
      const instances = [instanceKey('A', 'b/c')];
      const of = (className: string | null, name: string, configName: string | null = null) =>
        queued({ workflowID: `${className} ${name} ${configName}`, className, name, configName });
      await add(database, of('A.b', 'c'), of('A', 'b.c'), of('A~', 'd'), of(null, 'A.b.c'), of('A~.d', ''));
      await add(database, of('A/b', 'b.c', 'c'), of('A', 'b.c', 'b/c'));

      const claimed = await claimedIDs(database, { functions, instances });

      expect(claimed.sort()).toEqual(['A b.c b/c', 'A b.c null', 'A~ d null']);
    });

    test('it takes at most the limit, by priority and then in the order of creation, on a table never analysed', async () => {
      const database = await dialect.create();
      const low = Array.from({ length: 50 }, () => queued({ priority: 5 }));
      for (const workflow of low) await add(database, workflow);
      const urgent = queued({ priority: 1 });
      await add(database, urgent);

      const first = await claimedIDs(database, { limit: 3 });
      const second = await claimedIDs(database, { limit: 2, owner: 'me.2' });

      expect(first.sort()).toEqual([urgent, low[0], low[1]].map((workflow) => workflow?.workflowID).sort());
      expect(second.sort()).toEqual([low[2], low[3]].map((workflow) => workflow?.workflowID).sort());
    });

    test('it leaves other queues, versions, applications, functions and states alone', async () => {
      const database = await dialect.create();
      const mine = queued({ className: 'Class', name: 'method' });
      await add(
        database,
        mine,
        queued({ queueName: 'other' }),
        queued({ applicationVersion: 'v2' }),
        queued({ applicationName: 'other' }),
        queued({ name: 'unknown' }),
        queued({ className: 'Class' }),
        queued({ status: 'DELAYED', delayMs: 1000 }),
      );

      expect(await claimedIDs(database)).toEqual([mine.workflowID]);
    });

    test('a workflow without a version goes to the latest version only', async () => {
      const database = await dialect.create();
      const workflow = queued({ applicationVersion: null, applicationName: null });
      await add(database, workflow);
      await registerVersion(database, 'v1', 'test');
      await database.run(sql`SELECT 1`);
      await registerVersion(database, 'v2', 'test');
      const [latest] = await listVersions(database, 'test');

      const other = latest?.versionName === 'v2' ? 'v1' : 'v2';
      expect(await claimedIDs(database, { applicationVersion: other })).toEqual([]);
      expect(await claimedIDs(database, { applicationVersion: latest?.versionName })).toEqual([workflow.workflowID]);
    });

    test('several engines that claim at once never get the same workflow', async () => {
      const url = await dialect.createURL();
      const databases = await Promise.all(Array.from({ length: 4 }, () => dialect.open(url)));
      const [first] = databases;
      await add(first!, ...Array.from({ length: 100 }, () => queued()));

      const claims = await Promise.all(
        databases.flatMap((database, engine) =>
          Array.from({ length: 4 }, (_, round) =>
            claimedIDs(database, { limit: 10, owner: `e${engine}.${round + 1}` }),
          ),
        ),
      );

      const all = claims.flat();
      expect(new Set(all).size).toBe(all.length);
      const rest = await claimedIDs(first!, { limit: 200, owner: 'rest.1' });
      expect(all.length + rest.length).toBe(100);
    });

    test('a claim leaves others an even part of what waits and runs', async () => {
      const database = await dialect.create();
      await add(database, ...Array.from({ length: 10 }, () => queued()));
      const claim = (owner: string, engines: number, running: number) =>
        claimedIDs(database, { limit: 100, owner, share: { engines, running } });

      // 10 / 3, rounded up; then what runs elsewhere counts as well.
      expect((await claim('a.1', 3, 0)).length).toBe(4);
      expect((await claim('b.1', 3, 0)).length).toBe(4);
      expect((await claim('a.2', 3, 4)).length).toBe(0);
      expect((await claim('c.1', 3, 0)).length).toBe(2);
    });

    test('a claim takes all that it may when there is work for all', async () => {
      const database = await dialect.create();
      await add(database, ...Array.from({ length: 30 }, () => queued()));

      const taken = await claimedIDs(database, { limit: 10, share: { engines: 3, running: 10 } });

      expect(taken.length).toBe(10);
    });

    test('among many engines, too, a claim takes all that it may when there is work for all', async () => {
      const database = await dialect.create();
      // More than is counted to compute a share.
      await add(database, ...Array.from({ length: 10_100 }, () => queued()));

      const taken = await claimedIDs(database, { limit: 101, share: { engines: 100, running: 500 } });

      expect(taken.length).toBe(101);
    });

    test('a claim leaves others an even part of the slots, however much waits', async () => {
      const database = await dialect.create();
      await add(database, ...Array.from({ length: 60 }, () => queued()));
      const limits: Limits = { concurrency: 10, workerConcurrency: null, rate: null };
      const claim = (owner: string, running: number) =>
        claimedIDs(database, { limit: 15, owner, limits, share: { engines: 4, running } });

      expect((await claim('a.1', 0)).length).toBe(3);
      expect((await claim('a.2', 3)).length).toBe(0);
      expect((await claim('b.1', 0)).length).toBe(3);
      expect((await claim('c.1', 0)).length).toBe(3);
      expect((await claim('d.1', 0)).length).toBe(1);
    });

    test('a claim of a limited queue takes what the limit leaves free and tells what is in the way', async () => {
      const database = await dialect.create();
      await add(database, ...Array.from({ length: 5 }, () => queued()));
      const limits: Limits = { concurrency: 2, workerConcurrency: null, rate: null };

      const first = await claimWorkflows(database, { ...CLAIM, limits });
      const second = await claimWorkflows(database, { ...CLAIM, owner: 'me.2', limits });

      expect(first.claimed.length).toBe(2);
      expect(second.claimed.length).toBe(0);
      expect(second.remainder).toMatchObject({ isWaiting: true, hasRoom: false, waitMs: null });
    });

    test('a rate limit counts by the clock of the database and tells how long to wait', async () => {
      let now = 1_000_000;
      const database = await dialect.create({ now: () => now });
      await add(database, ...Array.from({ length: 5 }, () => queued()));
      const limits: Limits = { concurrency: null, workerConcurrency: null, rate: { max: 2, periodMs: 1000 } };
      const claim = (owner: string) => claimWorkflows(database, { ...CLAIM, owner, limit: 1, limits });

      expect((await claim('me.1')).claimed.length).toBe(1);
      now += 400;
      expect((await claim('me.2')).claimed.length).toBe(1);
      now += 100;
      const refused = await claim('me.3');
      expect(refused.claimed.length).toBe(0);
      expect(refused.remainder).toMatchObject({ isWaiting: true, hasRoom: false, waitMs: 500 });

      now += 500;
      expect((await claim('me.4')).claimed.length).toBe(1);
      expect((await claim('me.5')).remainder.waitMs).toBe(400);
    });

    test('a rate limit does not wait until the clock of the database is back where it was', async () => {
      let now = 10_000_000;
      const database = await dialect.create({ now: () => now });
      await add(database, ...Array.from({ length: 3 }, () => queued()));
      const limits: Limits = { concurrency: null, workerConcurrency: null, rate: { max: 1, periodMs: 1000 } };
      const claim = (owner: string) => claimWorkflows(database, { ...CLAIM, owner, limits });
      await claim('me.1');

      now -= 3_600_000;

      expect((await claim('me.2')).claimed.length).toBe(1);
      expect((await claim('me.3')).remainder.waitMs).toBe(1000);
    });

    test.each(['cancelled', 'dead-lettered', 'collected'] as const)(
      'a start that a rate limit has counted is counted although the workflow was %s',
      async (fate) => {
        let now = 1_000_000;
        const database = await dialect.create({ now: () => now });
        await insertQueue(database, { ...newQueue('q'), rateLimitMax: 1, rateLimitPeriodSec: 1 });
        const limits: Limits = { concurrency: null, workerConcurrency: null, rate: { max: 1, periodMs: 1000 } };
        const first = queued();
        const collect = async () => {
          const aged = await listByAge(database, { after: OLDEST, before: now + 1, limit: 10 }, null);
          return deleteUnchanged(
            database,
            aged.filter(({ workflowID }) => workflowID === first.workflowID),
            undefined,
          );
        };
        await add(database, first);
        expect(await claimedIDs(database, { limits })).toEqual([first.workflowID]);
        await add(database, queued());

        if (fate === 'cancelled') await cancelWorkflows(database, [first.workflowID]);
        if (fate === 'dead-lettered') await deadLetterIfOwned(database, [{ ...first, owner: CLAIM.owner }]);
        if (fate === 'collected') {
          await database.run(
            sql`UPDATE ${table('workflow_status')} SET status = 'SUCCESS' WHERE owner_xid IS NOT NULL`,
          );
          expect(await collect()).toEqual([]);
        }

        now += 999;
        expect(await claimedIDs(database, { limits })).toEqual([]);
        now += 1;
        expect(await claimedIDs(database, { limits })).toHaveLength(1);
        expect(await collect()).toEqual([first.workflowID]);
      },
    );

    test('a start that a rate limit has counted is counted after a recovery', async () => {
      let now = 1_000_000;
      const database = await dialect.create({ now: () => now });
      await add(database, queued(), queued());
      const limits: Limits = { concurrency: null, workerConcurrency: null, rate: { max: 1, periodMs: 1000 } };
      await claimWorkflows(database, { ...CLAIM, owner: 'dead.1', limits });
      now += 10;
      expect((await recoverIncarnation(database, 'dead')).length).toBe(1);

      expect((await claimWorkflows(database, { ...CLAIM, limits })).remainder).toMatchObject({
        hasRoom: false,
        waitMs: 990,
      });
    });

    test('the limits of a partition and of the whole queue hold together', async () => {
      const database = await dialect.create();
      const of = (key: string, count: number) =>
        Array.from({ length: count }, () => queued({ queuePartitionKey: key }));
      await add(database, ...of('a', 3), ...of('b', 3), ...of('c', 3));
      const whole: Limits = { concurrency: 3, workerConcurrency: null, rate: null };
      const partitionLimits: Limits = { concurrency: 2, workerConcurrency: null, rate: null };
      const partitions = ['a', 'b', 'c'].map((key) => ({ key, limit: 5 }));

      const claims = await claimPartitions(database, { ...CLAIM, limits: whole, partitionLimits, partitions });

      expect(claims.map(({ claimed }) => claimed.length)).toEqual([2, 1, 0]);
      expect(claims[0]?.remainder).toMatchObject({ isWaiting: true, hasRoom: true, hasPartitionRoom: false });
      expect(claims[2]?.remainder).toMatchObject({ isWaiting: true, hasRoom: false, hasPartitionRoom: true });
    });

    test('the partitions in which workflows wait are found from key to key', async () => {
      const database = await dialect.create();
      for (const key of ['b', 'a', 'c', 'a', 'ä', '']) await add(database, queued({ queuePartitionKey: key }));
      await add(database, queued(), queued({ queueName: 'other', queuePartitionKey: 'x' }));
      const find = (after: string, limit: number) => findWaitingPartitions(database, { queueName: 'q', after, limit });

      const all = await find('', 10);
      expect([...all].sort()).toEqual(['a', 'b', 'c', 'ä']);
      expect(await find('', 2)).toEqual(all.slice(0, 2));
      expect(await find(all[1] ?? '', 10)).toEqual(all.slice(2));
    });

    test('limits hold for processes that claim at the same time', async () => {
      const url = await dialect.createURL();
      const databases = await Promise.all(Array.from({ length: 4 }, () => dialect.open(url)));
      await add(databases[0]!, ...Array.from({ length: 50 }, () => queued()));
      const limits: Limits = { concurrency: 7, workerConcurrency: null, rate: null };

      const claims = await Promise.all(
        databases.flatMap((database, engine) =>
          Array.from({ length: 5 }, (_, round) =>
            claimedIDs(database, { limit: 2, owner: `e${engine}.${round + 1}`, limits }),
          ),
        ),
      );

      expect(claims.flat().length).toBe(7);
    });

    test('a pause waits for a claim that has begun', async () => {
      const url = await dialect.createURL();
      const [first, second] = [await dialect.open(url), await dialect.open(url)];
      await add(first, queued());
      const order: string[] = [];
      let pausing: Promise<unknown> = Promise.resolve();

      await first.transaction(async (tx) => {
        await tx.run(lockQueueClaims('q'));
        pausing = pauseQueue(second, 'q').then(() => order.push('paused'));
        // Long enough for a pause that does not wait.
        for (let turn = 0; turn < 20; turn += 1) await first.read(sql`SELECT 1 AS one`);
        order.push('claimed');
      });
      await pausing;

      expect(order).toEqual(['claimed', 'paused']);
      expect(await claimedIDs(first)).toEqual([]);
    });

    test('nothing is claimed from a paused queue', async () => {
      const database = await dialect.create();
      await add(database, queued());
      await pauseQueue(database, 'q');

      expect(await claimedIDs(database)).toEqual([]);
      await resumeQueue(database, 'q');
      expect((await claimedIDs(database)).length).toBe(1);
    });

    test('inputs that another library stored apart are found', async () => {
      const database = await dialect.create();
      const workflow = queued({ inputs: null });
      await add(database, workflow);
      await database.run(
        sql`INSERT INTO ${table('workflow_input')} (workflow_uuid, inputs) VALUES (${workflow.workflowID}, ${'[1]'})`,
      );

      expect(await findSeparateInputs(database, [workflow.workflowID, 'x'])).toEqual(
        new Map([[workflow.workflowID, '[1]']]),
      );
    });

    test('registering a version twice keeps it as it was', async () => {
      const database = await dialect.create();

      await registerVersion(database, 'v1', 'test');
      const [before] = await listVersions(database, 'test');
      await registerVersion(database, 'v1', 'test');

      expect(await listVersions(database, 'test')).toEqual([before]);
    });
  });
});

/** Does something after one of the statements of each commit, before the next. */
function interrupt(database: Database, after: number, interruption: () => Promise<unknown>): Database {
  const commit = (statements: readonly Sql[]): Promise<Row[][]> =>
    database.transaction(async (tx) => {
      const results: Row[][] = [];
      for (const [index, statement] of statements.entries()) {
        results.push(await tx.run(statement));
        if (index === after) await interruption();
      }
      return results;
    });
  return Object.create(database, { commit: { value: commit } }) as Database;
}

describe('claims from several partitions', () => {
  // SQLite locks the file: nothing changes during a commit.
  onlyOn('postgres', (dialect) => {
    test.each(Array.from({ length: 9 }, (_, after) => after))(
      'give a slot that is freed after their statement %i to nobody before the first',
      async (after) => {
        const database = await dialect.create();
        const limits: Limits = { concurrency: 1, workerConcurrency: null, rate: null };
        const keys = ['a', 'b', 'c'];
        await add(database, newWorkflow({ workflowID: 'running', queueName: 'q', owner: 'me.9' }));
        await add(database, ...keys.map((key) => queued({ queuePartitionKey: key })));
        const outcome = { workflowID: 'running', owner: 'me.9', status: 'SUCCESS', output: null, error: null } as const;
        const interrupted = interrupt(database, after, () => database.run(finishIfOwned([outcome])));
        const partitions = keys.map((key) => ({ key, limit: 5 }));

        const claims = await claimPartitions(interrupted, { ...CLAIM, limits, partitionLimits: limits, partitions });

        const [first = 0, ...others] = claims.map(({ claimed }) => claimed.length);
        expect(others).toEqual([0, 0]);
        expect(claims.map(({ hadRoom }) => hadRoom)).toEqual([first === 1, false, false]);
      },
    );
  });

  forEachDialect((dialect) => {
    test('say which of them came too late', async () => {
      const database = await dialect.create();
      const keys = ['a', 'nothing waits', 'b', 'c'];
      await add(database, ...['a', 'a', 'b', 'c'].map((key) => queued({ queuePartitionKey: key })));
      const whole: Limits = { concurrency: 2, workerConcurrency: null, rate: null };
      const partitionLimits: Limits = { ...whole, concurrency: 1 };
      const partitions = keys.map((key) => ({ key, limit: 5 }));

      const claims = await claimPartitions(database, { ...CLAIM, limits: whole, partitionLimits, partitions });

      expect(claims.map(({ claimed }) => claimed.length)).toEqual([1, 0, 1, 0]);
      expect(claims.filter(({ claimed }) => claimed.length === 0).map(({ hadRoom }) => hadRoom)).toEqual([true, false]);
    });
  });
});
