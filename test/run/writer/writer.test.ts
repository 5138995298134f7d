import { describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/kernel/base/clock.js';
import { newID } from '../../../src/kernel/base/ids.js';
import { silentLogger } from '../../../src/kernel/base/log.js';
import { DatabaseClosedError } from '../../../src/kernel/errors/database-errors.js';
import { type Sql, sql, table } from '../../../src/kernel/sql/sql.js';
import type { Database } from '../../../src/database/database.js';
import { cancelWorkflows, resumeWorkflows } from '../../../src/run/rows/lifecycle.js';
import { loadSteps } from '../../../src/run/rows/steps.js';
import { findWorkflows, type NewWorkflow } from '../../../src/run/rows/workflows.js';
import type { ChildStart } from '../../../src/run/writer/write-group.js';
import { Writer, type WriterOptions } from '../../../src/run/writer/writer.js';
import { forEachDialect, onlyOn, type TestDialect } from '../../rig/dialects.js';
import { startProxy } from '../../rig/proxy.js';
import { newWorkflow, step } from '../../rig/records.js';

async function setup(dialect: TestDialect, options: Partial<WriterOptions> = {}) {
  const database = await dialect.create();
  const commits: number[] = [];
  const writer = new Writer(countingCommits(database, commits), {
    clock: systemClock,
    logger: silentLogger,
    ...options,
  });
  return { database, writer, commits };
}

/** The database, with the number of statements of each commit noted. */
function countingCommits(database: Database, commits: number[]): Database {
  return new Proxy(database, {
    get(target, property) {
      if (property === 'commit') {
        return (statements: readonly Sql[]) => {
          commits.push(statements.length);
          return target.commit(statements);
        };
      }
      const value: unknown = Reflect.get(target, property, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}

function childOf(parent: NewWorkflow, fields: Partial<NewWorkflow> = {}): ChildStart {
  const start = newWorkflow({ parentWorkflowID: parent.workflowID, parentOwner: parent.creator, ...fields });
  const record = step(parent.workflowID, 0, { childWorkflowID: start.workflowID });
  return { start, checkpoint: { owner: parent.creator, step: record, child: start } };
}

function takeOver(database: Database, workflowID: string): Promise<unknown> {
  return database.run(sql`
    UPDATE ${table('workflow_status')} SET owner_xid = 'someone else' WHERE workflow_uuid = ${workflowID}`);
}

describe('Writer', () => {
  forEachDialect((dialect) => {
    test('a start, its checkpoints and its outcome are stored as given', async () => {
      const { database, writer } = await setup(dialect);
      const workflow = newWorkflow({ attributes: '{"customer": "a\\"b"}', priority: 3 });

      expect(await writer.start(workflow)).toEqual({ kind: 'created', deadlineAt: null });
      expect(await writer.checkpoint({ owner: workflow.creator, step: step(workflow.workflowID, 0) })).toBe('recorded');
      const outcome = {
        workflowID: workflow.workflowID,
        owner: workflow.creator,
        status: 'SUCCESS',
        output: '"x"',
        error: null,
      } as const;
      expect(await writer.finish(outcome)).toBe('recorded');

      const [stored] = await findWorkflows(database, [workflow.workflowID]);
      expect(stored).toMatchObject({ status: 'SUCCESS', output: '"x"', owner: workflow.creator, priority: 3 });
      expect(JSON.parse(stored?.attributes ?? '')).toEqual({ customer: 'a"b' });
      expect(Math.abs((stored?.createdAt ?? 0) - Date.now())).toBeLessThan(60_000);
      expect(stored?.completedAt).toBeGreaterThanOrEqual(stored?.createdAt ?? Infinity);
      expect(await loadSteps(database, [workflow.workflowID])).toEqual([step(workflow.workflowID, 0)]);
    });

    test('all that is submitted together is one commit, of three statements at most', async () => {
      const { writer, commits } = await setup(dialect);
      const workflows = Array.from({ length: 50 }, () => newWorkflow());

      await Promise.all(
        workflows.flatMap((workflow) => [
          writer.start(workflow),
          writer.checkpoint({ owner: workflow.creator, step: step(workflow.workflowID, 0) }),
          writer.finish({
            workflowID: workflow.workflowID,
            owner: workflow.creator,
            status: 'SUCCESS',
            output: null,
            error: null,
          }),
        ]),
      );

      expect(commits).toEqual([3]);
    });

    test('a workflow that begins and ends in one commit is one row, as if it had been finished later', async () => {
      const { database, writer, commits } = await setup(dialect);
      const [quick, slow, known] = [newWorkflow(), newWorkflow(), newWorkflow()];
      await writer.start(known);
      const again = newWorkflow({ workflowID: known.workflowID });
      const finish = (workflow: NewWorkflow) =>
        writer.finish({
          workflowID: workflow.workflowID,
          owner: workflow.creator,
          status: 'SUCCESS',
          output: 'o',
          error: null,
        });

      const verdicts = await Promise.all([writer.start(quick), finish(quick), writer.start(again), finish(again)]);
      await writer.start(slow);
      await finish(slow);

      expect(commits).toEqual([1, 1, 1, 1]);
      expect(verdicts[1]).toBe('recorded');
      expect(verdicts[3]).toBe('lost');
      const found = await findWorkflows(database, [quick.workflowID, slow.workflowID]);
      const [one, other] = found.map((workflow) => ({
        ...workflow,
        workflowID: '',
        creator: '',
        owner: typeof workflow.owner,
        createdAt: 0,
        updatedAt: 0,
        startedAt: typeof workflow.startedAt,
        completedAt: typeof workflow.completedAt,
      }));
      expect(one).toEqual(other);
      expect(one).toMatchObject({ status: 'SUCCESS', output: 'o', owner: 'string', completedAt: 'number' });
    });

    test('payloads of every awkward kind come back unchanged, alone and in a batch', async () => {
      const { database, writer } = await setup(dialect);
      const workflow = newWorkflow({ workflowID: `we"ird' \\ id-${newID()}` });
      await writer.start(workflow);
      const texts = [
        '',
        '"',
        '\\',
        "'; DROP TABLE x; --",
        '{a,b}',
        'NULL',
        'null',
        '☃ 😀 é',
        '\n\t\r',
        '\\u0000',
        'x'.repeat(100_000),
      ];

      for (const [stepID, output] of texts.entries()) {
        await writer.checkpoint({ owner: workflow.creator, step: step(workflow.workflowID, stepID, { output }) });
      }
      await Promise.all(
        texts.map((output, index) =>
          writer.checkpoint({ owner: workflow.creator, step: step(workflow.workflowID, 100 + index, { output }) }),
        ),
      );

      const stored = await loadSteps(database, [workflow.workflowID]);
      expect(stored.map((record) => record.output)).toEqual([...texts, ...texts]);
    });

    test('a start whose ID is in use gets the workflow that has it', async () => {
      const { writer } = await setup(dialect);
      const first = newWorkflow({ name: 'first' });
      await writer.start(first);

      const verdict = await writer.start(newWorkflow({ workflowID: first.workflowID, name: 'second' }));

      expect(verdict).toMatchObject({ kind: 'exists', workflow: { name: 'first', creator: first.creator } });
    });

    test('of many starts with one ID in a batch, exactly one creates it', async () => {
      const { writer } = await setup(dialect);
      const workflowID = newID();

      const verdicts = await Promise.all(Array.from({ length: 20 }, () => writer.start(newWorkflow({ workflowID }))));

      expect(verdicts.filter((verdict) => verdict.kind === 'created')).toHaveLength(1);
      expect(verdicts.filter((verdict) => verdict.kind === 'exists')).toHaveLength(19);
    });

    test('a deduplication ID in use names its holder, and the neighbours in the batch are created', async () => {
      const { writer } = await setup(dialect);
      const queued = { status: 'ENQUEUED', queueName: 'mail', owner: null } as const;
      const holder = newWorkflow({ ...queued, deduplicationID: 'u-17' });
      await writer.start(holder);

      const verdicts = await Promise.all([
        writer.start(newWorkflow({ ...queued, deduplicationID: 'u-16' })),
        writer.start(newWorkflow({ ...queued, deduplicationID: 'u-17' })),
        writer.start(newWorkflow({ ...queued, queueName: 'other', deduplicationID: 'u-17' })),
      ]);

      expect(verdicts.map((verdict) => verdict.kind)).toEqual(['created', 'duplicated', 'created']);
      expect(verdicts[1]).toEqual({ kind: 'duplicated', holderID: holder.workflowID });
    });

    test('two writers racing for one deduplication ID: one wins, the other learns who', async () => {
      const url = await dialect.createURL();
      const writers = await Promise.all(
        [1, 2].map(async () => new Writer(await dialect.open(url), { clock: systemClock, logger: silentLogger })),
      );

      for (let round = 0; round < 10; round += 1) {
        const starts = writers.map(() =>
          newWorkflow({ status: 'ENQUEUED', queueName: 'q', deduplicationID: `round ${round}`, owner: null }),
        );
        const verdicts = await Promise.all(
          writers.map((writer, index) => writer.start(starts[index] ?? newWorkflow())),
        );
        const winner = starts[verdicts.findIndex((verdict) => verdict.kind === 'created')];
        expect(verdicts).toContainEqual({ kind: 'duplicated', holderID: winner?.workflowID });
      }
    });

    test('the database sets the deadline of a direct start and the due time of a delayed one', async () => {
      const { database, writer } = await setup(dialect);
      const direct = newWorkflow({ timeoutMs: 5000 });
      const delayed = newWorkflow({ status: 'DELAYED', queueName: 'q', delayMs: 60_000, timeoutMs: 5000, owner: null });
      const inherited = newWorkflow({ deadlineAt: 12345 });

      const verdicts = [
        await writer.start(direct),
        ...(await Promise.all([writer.start(delayed), writer.start(inherited)])),
      ];

      const stored = new Map(
        (
          await findWorkflows(
            database,
            [direct, delayed].map((w) => w.workflowID),
          )
        ).map((w) => [w.workflowID, w]),
      );
      const createdAt = stored.get(direct.workflowID)?.createdAt ?? 0;
      expect(stored.get(direct.workflowID)?.deadlineAt).toBeGreaterThanOrEqual(createdAt + 4990);
      expect(stored.get(direct.workflowID)?.deadlineAt).toBeLessThan(createdAt + 6000);
      expect(verdicts[0]).toEqual({ kind: 'created', deadlineAt: stored.get(direct.workflowID)?.deadlineAt });
      expect(stored.get(delayed.workflowID)).toMatchObject({ deadlineAt: null, startedAt: null });
      expect(stored.get(delayed.workflowID)?.delayUntil).toBeGreaterThan(createdAt + 59_000);
      expect(verdicts[2]).toEqual({ kind: 'created', deadlineAt: 12345 });
    });

    test('a run that has lost its workflow can record neither checkpoint nor outcome', async () => {
      const { database, writer } = await setup(dialect);
      const lost = newWorkflow();
      const kept = newWorkflow();
      await Promise.all([writer.start(lost), writer.start(kept)]);
      await takeOver(database, lost.workflowID);

      const verdicts = await Promise.all(
        [lost, kept].flatMap((workflow) => [
          writer.checkpoint({ owner: workflow.creator, step: step(workflow.workflowID, 0) }),
          writer.finish({
            workflowID: workflow.workflowID,
            owner: workflow.creator,
            status: 'ERROR',
            output: null,
            error: 'e',
          }),
        ]),
      );

      expect(verdicts).toEqual(['lost', 'lost', 'recorded', 'recorded']);
      expect(await loadSteps(database, [lost.workflowID])).toEqual([]);
      expect((await findWorkflows(database, [lost.workflowID]))[0]).toMatchObject({
        status: 'PENDING',
        owner: 'someone else',
      });
    });

    test('a workflow that was cancelled or deleted gets no outcome, and its run has lost it', async () => {
      const { database, writer } = await setup(dialect);
      const [cancelled, deleted] = [newWorkflow(), newWorkflow()];
      await Promise.all([writer.start(cancelled), writer.start(deleted)]);
      await database.run(
        sql`UPDATE ${table('workflow_status')} SET status = 'CANCELLED' WHERE workflow_uuid = ${cancelled.workflowID}`,
      );
      await database.run(sql`DELETE FROM ${table('workflow_status')} WHERE workflow_uuid = ${deleted.workflowID}`);

      const verdicts = await Promise.all(
        [cancelled, deleted].flatMap((workflow) => [
          writer.checkpoint({ owner: workflow.creator, step: step(workflow.workflowID, 0) }, { isEffect: true }),
          writer.finish({
            workflowID: workflow.workflowID,
            owner: workflow.creator,
            status: 'SUCCESS',
            output: null,
            error: null,
          }),
        ]),
      );

      expect(verdicts).toEqual(['lost', 'lost', 'lost', 'lost']);
      const steps = await loadSteps(database, [cancelled.workflowID, deleted.workflowID]);
      expect(steps.map(({ workflowID }) => workflowID)).toEqual([cancelled.workflowID]);
    });

    test('an effect that completes while its workflow is cancelled is recorded, until the workflow is resumed', async () => {
      const { database, writer } = await setup(dialect);
      const { workflowID, creator: owner, ...rest } = newWorkflow();
      await writer.start({ workflowID, creator: owner, ...rest });
      const event = { workflowID, owner, stepID: 1, key: 'k', text: '1', serialization: 'portable_json' };

      await cancelWorkflows(database, [workflowID]);
      const whileCancelled = await Promise.all([
        writer.checkpoint({ owner, step: step(workflowID, 0) }, { isEffect: true }),
        writer.checkpoint({ owner: 'someone else', step: step(workflowID, 5) }, { isEffect: true }),
        writer.checkpoint({ owner, step: step(workflowID, 6) }),
        writer.checkpoint({ owner, step: step(workflowID, 7, { output: null, error: '{}' }) }, { isEffect: true }),
        writer.setEvent({ event, checkpoint: { owner, step: step(workflowID, 1) } }),
      ]);
      await resumeWorkflows(database, [workflowID]);
      const afterwards = await writer.checkpoint({ owner, step: step(workflowID, 2) }, { isEffect: true });

      expect(new Set([...whileCancelled, afterwards])).toEqual(new Set(['lost']));
      expect((await loadSteps(database, [workflowID])).map(({ stepID }) => stepID)).toEqual([0]);
    });

    test('a second checkpoint of a step is a conflict; the very same one again is not', async () => {
      const { writer } = await setup(dialect);
      const workflow = newWorkflow();
      await writer.start(workflow);
      const checkpoint = { owner: workflow.creator, step: step(workflow.workflowID, 0) };
      await writer.checkpoint(checkpoint);

      expect(await writer.checkpoint(checkpoint)).toBe('recorded');
      expect(await writer.checkpoint({ ...checkpoint, step: { ...checkpoint.step, output: 'other' } })).toBe(
        'conflict',
      );
    });

    test('of two different checkpoints of a step in a batch, one is recorded and the other is a conflict', async () => {
      const { writer } = await setup(dialect);
      const workflow = newWorkflow();
      await writer.start(workflow);

      const verdicts = await Promise.all(
        ['a', 'b'].map((output) =>
          writer.checkpoint({ owner: workflow.creator, step: step(workflow.workflowID, 0, { output }) }),
        ),
      );

      expect(verdicts.sort()).toEqual(['conflict', 'recorded']);
    });

    test('a child and the record of its parent are created together', async () => {
      const { database, writer, commits } = await setup(dialect);
      const parent = newWorkflow();
      await writer.start(parent);

      const child = childOf(parent);
      const verdict = await writer.startChild(child);

      expect(verdict).toEqual({ start: { kind: 'created', deadlineAt: null }, checkpoint: 'recorded' });
      expect(commits).toEqual([1, 2]);
      expect(await findWorkflows(database, [child.start.workflowID])).toHaveLength(1);
      expect(await loadSteps(database, [parent.workflowID])).toEqual([child.checkpoint.step]);
    });

    test('a parent that was lost can start no child', async () => {
      const { database, writer } = await setup(dialect);
      const [parent, other] = [newWorkflow(), newWorkflow()];
      await Promise.all([writer.start(parent), writer.start(other)]);
      await takeOver(database, parent.workflowID);

      const children = [childOf(parent), childOf(other)];
      const verdicts = await Promise.all(children.map((child) => writer.startChild(child)));

      expect(verdicts[0]).toEqual({ start: { kind: 'orphaned' }, checkpoint: 'lost' });
      expect(verdicts[1]).toMatchObject({ checkpoint: 'recorded' });
      expect(await findWorkflows(database, [children[0]!.start.workflowID])).toEqual([]);
    });

    test('a child whose ID is in use leaves no record with the parent', async () => {
      const { database, writer } = await setup(dialect);
      const [parent, other] = [newWorkflow(), newWorkflow()];
      await Promise.all([writer.start(parent), writer.start(other)]);

      const verdict = await writer.startChild(childOf(parent, { workflowID: other.workflowID }));

      expect(verdict.start).toMatchObject({ kind: 'exists', workflow: { creator: other.creator } });
      expect(await loadSteps(database, [parent.workflowID])).toEqual([]);
    });

    test('a child whose deduplication ID is held leaves no record with the parent', async () => {
      const { database, writer } = await setup(dialect);
      const parent = newWorkflow();
      const queued = { status: 'ENQUEUED', queueName: 'q', deduplicationID: 'd', owner: null } as const;
      const holder = newWorkflow(queued);
      await Promise.all([writer.start(parent), writer.start(holder)]);

      const verdict = await writer.startChild(childOf(parent, queued));

      expect(verdict.start).toEqual({ kind: 'duplicated', holderID: holder.workflowID });
      expect(await loadSteps(database, [parent.workflowID])).toEqual([]);
    });

    test('one bad item does not fail its neighbours', async () => {
      const { database, writer } = await setup(dialect);
      const good = [newWorkflow(), newWorkflow()];
      const bad = newWorkflow({ priority: null as unknown as number });

      const results = await Promise.allSettled([writer.start(good[0]!), writer.start(bad), writer.start(good[1]!)]);

      expect(results.map((result) => result.status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
      expect(
        await findWorkflows(
          database,
          good.map((workflow) => workflow.workflowID),
        ),
      ).toHaveLength(2);
    });

    test('batches are bounded', async () => {
      const { writer, commits, database } = await setup(dialect, { itemsMax: 10 });
      const workflows = Array.from({ length: 35 }, () => newWorkflow());

      await Promise.all(workflows.map((workflow) => writer.start(workflow)));

      expect(commits).toEqual([1, 1, 1, 1]);
      expect(
        await findWorkflows(
          database,
          workflows.map((w) => w.workflowID),
        ),
      ).toHaveLength(35);
    });

    test('who brings new work can wait until the backlog has room', async () => {
      const { writer } = await setup(dialect, { itemsMax: 5, backlogMax: 5 });
      const starts = Array.from({ length: 20 }, () => writer.start(newWorkflow()));

      const room = writer.room();
      await room;

      expect(room).toBeDefined();
      expect((await Promise.all(starts)).every((verdict) => verdict.kind === 'created')).toBe(true);
      expect(writer.room()).toBeUndefined();
    });

    test('close writes what was accepted and refuses the rest', async () => {
      const { database, writer } = await setup(dialect);
      const workflow = newWorkflow();
      const started = writer.start(workflow);

      await writer.close();

      expect((await started).kind).toBe('created');
      await expect(writer.start(newWorkflow())).rejects.toThrow(DatabaseClosedError);
      expect(await findWorkflows(database, [workflow.workflowID])).toHaveLength(1);
    });
  });

  onlyOn('postgres', (dialect) => {
    test.each(['loseNextAnswer', 'loseNextRequest'] as const)(
      'a connection lost during the commit (%s) neither loses nor repeats anything',
      async (fault) => {
        const url = await dialect.createURL();
        const proxy = await startProxy(url);
        const database = await dialect.open(proxy.url, { poolSize: 1 });
        const writer = new Writer(database, { clock: systemClock, logger: silentLogger });
        const workflow = newWorkflow();
        await writer.start(newWorkflow());

        proxy[fault]();
        expect(await writer.start(workflow)).toEqual({ kind: 'created', deadlineAt: null });
        proxy[fault]();
        const [checkpoint, outcome] = await Promise.all([
          writer.checkpoint({ owner: workflow.creator, step: step(workflow.workflowID, 0) }),
          writer.finish({
            workflowID: workflow.workflowID,
            owner: workflow.creator,
            status: 'SUCCESS',
            output: 'o',
            error: null,
          }),
        ]);

        expect([checkpoint, outcome]).toEqual(['recorded', 'recorded']);
        expect(await loadSteps(database, [workflow.workflowID])).toHaveLength(1);
        expect((await findWorkflows(database, [workflow.workflowID]))[0]).toMatchObject({
          status: 'SUCCESS',
          output: 'o',
        });
      },
    );

    test('while the database is away the writer waits, and goes on when it is back', async () => {
      const proxy = await startProxy(await dialect.createURL());
      const writer = new Writer(await dialect.open(proxy.url), { clock: systemClock, logger: silentLogger });
      await writer.start(newWorkflow());
      proxy.cut();

      const started = writer.start(newWorkflow());
      await new Promise((resolve) => setTimeout(resolve, 100));
      proxy.restore();

      expect((await started).kind).toBe('created');
    });

    test('abandon gives up on what cannot be written', async () => {
      const proxy = await startProxy(await dialect.createURL());
      const writer = new Writer(await dialect.open(proxy.url), { clock: systemClock, logger: silentLogger });
      proxy.cut();
      const started = writer.start(newWorkflow());
      const refused = expect(started).rejects.toThrow();
      await new Promise((resolve) => setImmediate(resolve));

      await writer.abandon();

      await refused;
    });

    test('a checkpoint that waits for a take-over finds its workflow gone', async () => {
      const { database, writer } = await setup(dialect);
      const workflow = newWorkflow();
      await writer.start(workflow);
      let recording: Promise<unknown> = Promise.resolve();

      await database.transaction(async (tx) => {
        await tx.run(
          sql`UPDATE ${table('workflow_status')} SET owner_xid = 'other' WHERE workflow_uuid = ${workflow.workflowID}`,
        );
        recording = writer.checkpoint({ owner: workflow.creator, step: step(workflow.workflowID, 0) });
        await untilBlocked(database);
      });

      expect(await recording).toBe('lost');
      expect(await loadSteps(database, [workflow.workflowID])).toEqual([]);
    });
  });
});

/** Resolves when a session of this database waits for a lock. */
async function untilBlocked(database: Database): Promise<void> {
  for (;;) {
    const blocked = await database.read(sql`
      SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND cardinality(pg_blocking_pids(pid)) > 0`);
    if (blocked.length > 0) return;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
