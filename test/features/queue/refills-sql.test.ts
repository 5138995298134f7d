// A claim in the commit that ends runs: it fills the slots that this very commit frees, and no others.
import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../src/kernel/base/clock.js';
import { deferred } from '../../../src/kernel/base/deferred.js';
import { silentLogger } from '../../../src/kernel/base/log.js';
import { CommitUnknownError } from '../../../src/kernel/errors/errors.js';
import { type Limits, UNLIMITED } from '../../../src/features/queue/queue.js';
import { sql } from '../../../src/kernel/sql/sql.js';
import { lockRefill } from '../../../src/features/queue/claim-lock.sql.js';
import { claimWorkflows } from '../../../src/features/queue/claims.sql.js';
import { pauseQueue } from '../../../src/features/queue/queues.sql.js';
import type { Refill, RefillTerms } from '../../../src/features/queue/refills.sql.js';
import { cancelWorkflows } from '../../../src/run/rows/lifecycle.js';
import { findWorkflows, insertWorkflows, type NewWorkflow } from '../../../src/run/rows/workflows.js';
import { Writer } from '../../../src/run/writer/writer.js';
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
  readonly others: unknown[] = [];
  readonly looks = true;
  handedBack = 0;
  #mayBegin = true;

  constructor(terms: Partial<RefillTerms> = {}) {
    this.terms = { ...TERMS, ...terms };
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

  noteOthers(others: Parameters<Refill['noteOthers']>[0]): void {
    this.others.push(others);
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
    test('claims nothing while work of another program waits, which gets a slot only when one is free', async () => {
      const { database, writer, statesOf, url } = await setup(dialect, running('a'), running('b'), waiting('c'), {
        ...waiting('d'),
        applicationVersion: 'theirs',
      });
      const worker = new pg.Client({ connectionString: url });
      await worker.connect();
      onTestFinished(() => worker.end());
      await worker.query(`INSERT INTO dbos.application_versions (version_id, version_name) VALUES ('1', 'theirs')`);
      const refill = new NotedRefill();

      await writer.finish(outcomeOf('a'), refill);

      expect(refill).toMatchObject({ launched: [], ended: [false], others: [{ spare: 1 }] });
      expect(await statesOf('c', 'd')).toEqual({ c: 'ENQUEUED null', d: 'ENQUEUED null' });
      expect((await claimWorkflows(database, { ...TERMS, owner: 'peer.1', limit: 10 })).claimed).toHaveLength(1);
    });

    test('claims although their work waits, if the engine insists', async () => {
      const { writer, url } = await setup(dialect, running('a'), running('b'), waiting('c'), {
        ...waiting('d'),
        applicationVersion: 'theirs',
      });
      const worker = new pg.Client({ connectionString: url });
      await worker.connect();
      onTestFinished(() => worker.end());
      await worker.query(`INSERT INTO dbos.application_versions (version_id, version_name) VALUES ('1', 'theirs')`);
      const refill = new NotedRefill({ isInsisting: true });

      await writer.finish(outcomeOf('a'), refill);

      expect(refill).toMatchObject({ launched: ['c'], others: [{ spare: 1 }] });
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
