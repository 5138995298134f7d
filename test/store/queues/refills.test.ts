// A claim in the commit that ends runs: it fills the slots that this very commit frees, and no others.
import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../src/base/clock.js';
import { deferred } from '../../../src/base/deferred.js';
import { silentLogger } from '../../../src/base/log.js';
import { CommitUnknownError } from '../../../src/model/errors/errors.js';
import { type Limits, UNLIMITED } from '../../../src/model/queues.js';
import { sql, table } from '../../../src/sql/sql.js';
import type { Database } from '../../../src/store/database.js';
import { lockRefill } from '../../../src/store/queues/claim-lock.js';
import { countOpenWork, countRunning } from '../../../src/store/listing/open-work.js';
import { registerVersion } from '../../../src/store/management/versions.js';
import { claimWorkflows } from '../../../src/store/queues/claims.js';
import { countQueues } from '../../../src/store/queues/queue-stats.js';
import { pauseQueue } from '../../../src/store/queues/queues.js';
import type { Refill, RefillTerms } from '../../../src/store/queues/refills.js';
import {
  cancelWorkflows,
  handBack,
  type Owned,
  recoverExecutor,
  recoverIncarnation,
} from '../../../src/store/runs/lifecycle.js';
import { findWorkflows, insertWorkflows, type NewWorkflow } from '../../../src/store/runs/workflows.js';
import { Writer } from '../../../src/store/writer/writer.js';
import { forEachDialect, onlyOn, type TestDialect } from '../../rig/dialects.js';
import { until } from '../../rig/manual-clock.js';
import { newWorkflow } from '../../rig/records.js';

const TWO: Limits = { ...UNLIMITED, concurrency: 2 };

const TERMS: RefillTerms = {
  queueName: 'q',
  owner: 'me.9',
  executorID: 'vm-1',
  applicationVersion: 'v1',
  applicationName: 'test',
  functions: ['.workflow'],
  limits: TWO,
};

const waiting = (workflowID: string, queueName = 'q'): NewWorkflow =>
  newWorkflow({ workflowID, queueName, status: 'ENQUEUED', owner: null, recoveryAttempts: 0 });
const running = (workflowID: string, queueName = 'q'): NewWorkflow =>
  newWorkflow({ workflowID, queueName, owner: 'me.1' });
const outcomeOf = (workflowID: string, owner = 'me.1') =>
  ({ workflowID, owner, status: 'SUCCESS', output: 'o', error: null }) as const;

/** Notes what happens to it. */
class NotedRefill implements Refill {
  readonly terms: RefillTerms;
  readonly ended: boolean[] = [];
  readonly launched: string[] = [];
  readonly held: string[] = [];
  readonly foreign: boolean[] = [];
  readonly successor: Owned | undefined;
  readonly wanted: number;
  readonly looksForForeign = true;
  handedBack = 0;
  #mayBegin = true;

  constructor(terms: Partial<RefillTerms> = {}, { successor, wanted = 0 }: Partial<Refill> = {}) {
    this.terms = { ...TERMS, ...terms };
    this.successor = successor;
    this.wanted = wanted;
  }

  begin(): boolean {
    const mayBegin = this.#mayBegin;
    this.#mayBegin = false;
    return mayBegin;
  }

  end(isFilled: boolean): void {
    this.ended.push(isFilled);
  }

  launch(claimed: Parameters<Refill['launch']>[0]): void {
    this.launched.push(...claimed.map(({ workflow }) => workflow.workflowID));
  }

  hold(claimed: Parameters<Refill['hold']>[0]): void {
    this.held.push(...claimed.map(({ workflow }) => workflow.workflowID));
  }

  noteForeign(areConnected: boolean): void {
    this.foreign.push(areConnected);
  }

  handBack(): void {
    this.handedBack += 1;
  }
}

async function setup(dialect: TestDialect, ...workflows: NewWorkflow[]) {
  const url = await dialect.createURL();
  const database = await dialect.open(url);
  await database.run(insertWorkflows(workflows));
  const writer = new Writer(database, { clock: systemClock, logger: silentLogger, isPatient: true });
  const statesOf = async (...workflowIDs: string[]) => {
    const found = await findWorkflows(database, workflowIDs);
    return Object.fromEntries(found.map(({ workflowID, status, owner }) => [workflowID, `${status} ${owner}`]));
  };
  return { database, writer, statesOf, url };
}

describe('a refill', () => {
  forEachDialect((dialect) => {
    test('gives the slot of a run that ends to the next workflow, in the order of the queue', async () => {
      const { writer, statesOf } = await setup(dialect, running('a'), running('b'), waiting('c'), waiting('d'));
      const refills = [new NotedRefill(), new NotedRefill({ owner: 'me.10' })] as const;

      const verdicts = await Promise.all([
        writer.finish(outcomeOf('a'), refills[0]),
        writer.finish(outcomeOf('b'), refills[1]),
      ]);

      expect(verdicts).toEqual(['recorded', 'recorded']);
      expect(refills[0].launched).toEqual(['c', 'd']);
      expect(refills.map(({ ended }) => ended)).toEqual([[true], [true]]);
      expect(await statesOf('c', 'd')).toEqual({ c: 'PENDING me.9', d: 'PENDING me.9' });
    });

    test('claims no more than the commit ends, even if the limit has room', async () => {
      const { writer, statesOf } = await setup(dialect, running('a'), waiting('b'), waiting('c'));
      const refill = new NotedRefill();

      await writer.finish(outcomeOf('a'), refill);

      expect(refill.launched).toEqual(['b']);
      expect(await statesOf('c')).toEqual({ c: 'ENQUEUED null' });
    });

    test('claims nothing for a run that has lost its workflow: its slot was freed before', async () => {
      const { database, writer, statesOf } = await setup(dialect, running('a'), running('b'), waiting('c'));
      await cancelWorkflows(database, ['a']);
      const refill = new NotedRefill();

      const verdicts = await Promise.all([
        writer.finish(outcomeOf('a'), refill),
        writer.finish(outcomeOf('b', 'another.1'), new NotedRefill()),
      ]);

      expect(verdicts).toEqual(['lost', 'lost']);
      expect(refill.ended).toEqual([false]);
      expect(await statesOf('c')).toEqual({ c: 'ENQUEUED null' });
    });

    test('claims nothing above a limit that was lowered', async () => {
      const { writer, statesOf } = await setup(dialect, running('a'), running('b'), running('c'), waiting('d'));
      const refill = new NotedRefill();

      await writer.finish(outcomeOf('a'), refill);

      expect(refill.ended).toEqual([false]);
      expect(await statesOf('d')).toEqual({ d: 'ENQUEUED null' });
    });

    test('is part of one commit for each queue', async () => {
      const { writer } = await setup(dialect, running('a'), running('b', 'r'), waiting('c'), waiting('d', 'r'));
      const refills = [new NotedRefill(), new NotedRefill({ queueName: 'r', owner: 'me.10' })] as const;

      await Promise.all([writer.finish(outcomeOf('a'), refills[0]), writer.finish(outcomeOf('b'), refills[1])]);

      expect(refills.map(({ launched }) => launched)).toEqual([['c'], ['d']]);
    });

    test('claims nothing a second time if the answer to the commit is lost', async () => {
      const { database, writer, statesOf } = await setup(dialect, running('a'), waiting('b'), waiting('c'));
      const commit = database.commit.bind(database);
      let commits = 0;
      database.commit = async (...args) => {
        const answer = await commit(...args);
        commits += 1;
        if (commits === 1) throw new CommitUnknownError('The answer was lost.');
        return answer;
      };
      const refill = new NotedRefill();

      const verdict = await writer.finish(outcomeOf('a'), refill);

      expect(verdict).toBe('recorded');
      expect(refill).toMatchObject({ ended: [false], launched: [], handedBack: 1 });
      // What the first attempt has claimed is for `handBack` to find.
      expect(await statesOf('b', 'c')).toEqual({ b: 'PENDING me.9', c: 'ENQUEUED null' });
    });

    test('claims nothing from a paused queue', async () => {
      const { database, writer, statesOf } = await setup(dialect, running('a'), waiting('b'));
      await pauseQueue(database, 'q');
      const refill = new NotedRefill();

      expect(await writer.finish(outcomeOf('a'), refill)).toBe('recorded');
      expect(refill.ended).toEqual([false]);
      expect(await statesOf('b')).toEqual({ b: 'ENQUEUED null' });
    });

    test('claims nothing if it was withdrawn', async () => {
      const { writer, statesOf } = await setup(dialect, running('a'), waiting('b'));
      const refill = new NotedRefill();
      refill.begin();

      expect(await writer.finish(outcomeOf('a'), refill)).toBe('recorded');
      expect(await statesOf('b')).toEqual({ b: 'ENQUEUED null' });
    });
  });

  onlyOn('postgres', (dialect) => {
    test('claims nothing while a worker of DBOS is connected, which waits for a free slot', async () => {
      const { database, writer, statesOf, url } = await setup(
        dialect,
        running('a'),
        running('b'),
        waiting('c'),
        waiting('d'),
      );
      const worker = new pg.Client({ connectionString: url, application_name: 'dbos_transact_one_v2' });
      await worker.connect();
      onTestFinished(() => worker.end());
      const refill = new NotedRefill({}, { wanted: 1 });

      await writer.finish(outcomeOf('a'), refill);

      expect(refill).toMatchObject({ launched: [], held: [], ended: [false], foreign: [true] });
      expect(await statesOf('c', 'd')).toEqual({ c: 'ENQUEUED null', d: 'ENQUEUED null' });
      expect((await claimWorkflows(database, { ...TERMS, owner: 'peer.1', limit: 10 })).claimed).toHaveLength(1);
    });

    test('that is in flight keeps a pause waiting', async () => {
      const { database, writer, statesOf } = await setup(dialect, running('a'), waiting('b'));
      const holdsLock = deferred<void>();
      const mayCommit = deferred<void>();
      const inFlight = database.transaction(async (tx) => {
        await tx.run(lockRefill('q'));
        holdsLock.resolve();
        await mayCommit.promise;
      });
      await holdsLock.promise;
      const paused = pauseQueue(database, 'q');
      await until(async () => {
        const waiting = await database.read(sql`
          SELECT 1
          FROM pg_catalog.pg_locks AS l
          WHERE l.locktype = 'advisory' AND NOT l.granted
            AND l.database = (SELECT d.oid FROM pg_catalog.pg_database AS d WHERE d.datname = current_database())`);
        return waiting.length > 0;
      });
      mayCommit.resolve();
      await inFlight;

      expect(await paused).toBe(true);
      const refill = new NotedRefill();
      await writer.finish(outcomeOf('a'), refill);
      expect(await statesOf('b')).toEqual({ b: 'ENQUEUED null' });
    });
  });
});

describe('a successor', () => {
  /** What a claim of its own may take: a successor that has not started leaves its slot to others. */
  async function countClaimable(database: Database): Promise<number> {
    const { claimed } = await claimWorkflows(database, { ...TERMS, owner: 'peer.1', limit: 10 });
    return claimed.length;
  }

  const finish = (writer: Writer, workflowID: string, refill: Refill, owner = 'me.1') =>
    writer.finish(outcomeOf(workflowID, owner), refill);
  const startOf = async (database: Database, workflowID: string) =>
    (await findWorkflows(database, [workflowID]))[0]?.startedAt ?? null;

  forEachDialect((dialect) => {
    test('is claimed beside the workflow that gets the slot, and has not started', async () => {
      const { database, writer, statesOf } = await setup(
        dialect,
        running('a'),
        ...['b', 'c', 'd', 'e'].map((id) => waiting(id)),
      );
      const refill = new NotedRefill({}, { wanted: 2 });

      await finish(writer, 'a', refill);

      expect(refill).toMatchObject({ launched: ['b'], held: ['c', 'd'], ended: [true] });
      expect(await statesOf('b', 'c', 'e')).toEqual({ b: 'PENDING me.9', c: 'PENDING me.9', e: 'ENQUEUED null' });
      expect([await startOf(database, 'b'), await startOf(database, 'c')]).toEqual([expect.any(Number), null]);
    });

    test('does not count against the limit until it starts', async () => {
      const { database, writer } = await setup(
        dialect,
        running('a'),
        running('b'),
        ...['c', 'd', 'e', 'f'].map((id) => waiting(id)),
      );
      await finish(writer, 'a', new NotedRefill({}, { wanted: 1 }));
      // b and c run, d is the successor.
      expect(await countClaimable(database)).toBe(0);

      // Its slot goes to d.
      await finish(writer, 'b', new NotedRefill({}, { successor: { workflowID: 'd', owner: 'me.9' } }));
      expect(await startOf(database, 'd')).toEqual(expect.any(Number));
      expect(await countClaimable(database)).toBe(0);

      await finish(writer, 'c', new NotedRefill({}, { successor: { workflowID: 'x', owner: 'me.9' } }), 'me.9');
      expect(await countClaimable(database)).toBe(1);
    });

    test('starts once, also if the answer to the commit is lost', async () => {
      const { database, writer, statesOf } = await setup(
        dialect,
        running('a'),
        running('b'),
        ...['c', 'd', 'e'].map((id) => waiting(id)),
      );
      await finish(writer, 'a', new NotedRefill({}, { wanted: 1 }));
      const commit = database.commit.bind(database);
      const commits: unknown[] = [];
      database.commit = async (...args) => {
        const answer = await commit(...args);
        if (commits.push(args) === 1) throw new CommitUnknownError('The answer was lost.');
        return answer;
      };
      const refill = new NotedRefill({ owner: 'me.10' }, { successor: { workflowID: 'd', owner: 'me.9' }, wanted: 1 });

      expect(await finish(writer, 'b', refill)).toBe('recorded');

      expect(await startOf(database, 'd')).toEqual(expect.any(Number));
      expect(refill).toMatchObject({ held: [], ended: [false], handedBack: 1 });
      expect(await statesOf('e')).toEqual({ e: 'PENDING me.10' });
    });

    test('that has ended in the same commit has a start as well', async () => {
      const { database, writer } = await setup(dialect, running('a'), ...['b', 'c'].map((id) => waiting(id)));
      await finish(writer, 'a', new NotedRefill({}, { wanted: 1 }));

      const [, verdict] = await Promise.all([
        finish(writer, 'b', new NotedRefill({}, { successor: { workflowID: 'c', owner: 'me.9' } }), 'me.9'),
        writer.finish(outcomeOf('c', 'me.9')),
      ]);

      expect(verdict).toBe('recorded');
      const [c] = await findWorkflows(database, ['c']);
      expect(c?.startedAt).toBe(c?.completedAt);
    });

    test('that was cancelled does not start', async () => {
      const { database, writer, statesOf } = await setup(dialect, running('a'), ...['b', 'c'].map((id) => waiting(id)));
      await finish(writer, 'a', new NotedRefill({}, { wanted: 1 }));
      await cancelWorkflows(database, ['c']);

      await finish(writer, 'b', new NotedRefill({}, { successor: { workflowID: 'c', owner: 'me.9' } }), 'me.9');

      expect(await startOf(database, 'c')).toBeNull();
      expect(await statesOf('c')).toEqual({ c: 'CANCELLED me.9' });
    });

    test('is not claimed from a paused queue', async () => {
      const { database, writer, statesOf } = await setup(dialect, running('a'), waiting('b'), waiting('c'));
      await pauseQueue(database, 'q');
      const refill = new NotedRefill({}, { wanted: 2 });

      await finish(writer, 'a', refill);

      expect(refill.held).toEqual([]);
      expect(await statesOf('b')).toEqual({ b: 'ENQUEUED null' });
    });

    test('is recovered with the runs of an engine that has died', async () => {
      const { database, writer, statesOf } = await setup(dialect, running('a'), waiting('b'), waiting('c'));
      await finish(writer, 'a', new NotedRefill({}, { wanted: 1 }));

      await recoverIncarnation(database, 'me');

      expect(await statesOf('b', 'c')).toEqual({ b: 'ENQUEUED null', c: 'ENQUEUED null' });
    });

    test('counts as waiting in the figures of its queue', async () => {
      const { database, writer } = await setup(dialect, running('a'), ...['b', 'c', 'd'].map((id) => waiting(id)));
      await finish(writer, 'a', new NotedRefill({}, { wanted: 1 }));

      const [stats] = await countQueues(database, { isByPartition: false, applicationName: null });

      expect(stats).toMatchObject({ running: 1, enqueued: 2 });
      expect(await countOpenWork(database, null)).toMatchObject([{ running: 1, enqueued: 2 }]);
      expect(await countRunning(database, 'q')).toEqual(new Map([['vm-1', 1]]));
    });

    /** Of a workflow that goes to the latest version, and has a timeout. */
    async function setupOpen() {
      const before = [running('a'), waiting('b')];
      const open = { ...waiting('c'), applicationVersion: null, timeoutMs: 60_000 };
      const parts = await setup(dialect, ...before, open);
      const { database, writer } = parts;
      await registerVersion(database, 'v1', 'test');
      await finish(writer, 'a', new NotedRefill({}, { wanted: 1 }));
      const find = async () => (await findWorkflows(database, ['c']))[0];
      return { ...parts, find };
    }

    test('that is handed back goes to the latest version, its timeout has not begun, and it has lost no attempt', async () => {
      const { database, find } = await setupOpen();
      expect(await find()).toMatchObject({ status: 'PENDING', owner: 'me.9' });

      await handBack(database, [{ workflowID: 'c', owner: 'me.9' }]);

      const untouched = { applicationVersion: null, deadlineAt: null, recoveryAttempts: 0 };
      expect(await find()).toMatchObject({ status: 'ENQUEUED', ...untouched });
      expect(await database.read(sql`SELECT j.event_type FROM ${table('journal')} AS j`)).toEqual([]);
    });

    test('belongs to the version that starts it, and its timeout begins then', async () => {
      const { writer, find } = await setupOpen();

      await finish(writer, 'b', new NotedRefill({}, { successor: { workflowID: 'c', owner: 'me.9' } }), 'me.9');

      const started = await find();
      expect(started).toMatchObject({ applicationVersion: 'v1', startedAt: expect.any(Number) });
      expect(started?.deadlineAt).toBe((started?.startedAt ?? 0) + 60_000);
    });

    test('without a version is recovered with the others of its executor', async () => {
      const { database, find } = await setupOpen();

      await recoverExecutor(database, { executorID: 'vm-1', applicationVersion: 'v1', keptPrefix: 'other' });

      expect(await find()).toMatchObject({ status: 'ENQUEUED', owner: null });
    });
  });
});
