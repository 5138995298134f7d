// One item must neither fail nor hold up the others of its process.
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/kernel/base/clock.js';
import { newID } from '../../../src/kernel/base/ids.js';
import { silentLogger } from '../../../src/kernel/base/log.js';
import { UnexplainedRefusalError } from '../../../src/kernel/errors/database-errors.js';
import { lock, type Sql, sql, table } from '../../../src/kernel/sql/sql.js';
import type { Database } from '../../../src/database/database.js';
import { listMessages } from '../../../src/features/message/messages.sql.js';
import { loadSteps } from '../../../src/run/rows/steps.js';
import { findWorkflows, insertWorkflows, type NewWorkflow } from '../../../src/run/rows/workflows.js';
import type { ChildStart } from '../../../src/run/writer/write-group.js';
import { Writer } from '../../../src/run/writer/writer.js';
import { forEachDialect, onlyOn, type TestDialect } from '../../rig/dialects.js';
import { until } from '../../rig/manual-clock.js';
import { newMessage, newWorkflow, step } from '../../rig/records.js';

async function setup(dialect: TestDialect, count = 0) {
  const database = await dialect.create();
  let commits = 0;
  const counting = new Proxy(database, {
    get(target, property) {
      if (property === 'commit') commits += 1;
      const value: unknown = Reflect.get(target, property, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
  const writer = new Writer(counting, { clock: systemClock, logger: silentLogger, isPatient: true });
  const workflows = Array.from({ length: count }, (_, index) => newWorkflow({ workflowID: `w${index}` }));
  await Promise.all(workflows.map((workflow) => writer.start(workflow)));
  return { database, writer, workflows, commits: () => commits };
}

const checkpointOf = ({ workflowID, owner }: NewWorkflow, stepID = 0, fields = {}) => ({
  owner: owner ?? '',
  step: step(workflowID, stepID, fields),
});

function childOf(parent: NewWorkflow, fields: Partial<NewWorkflow> = {}): ChildStart {
  const start = newWorkflow({ parentWorkflowID: parent.workflowID, parentOwner: parent.owner, ...fields });
  return { start, checkpoint: { ...checkpointOf(parent, 0, { childWorkflowID: start.workflowID }), child: start } };
}

/** Holds the locks of the statement in a transaction of its own until the body is done. */
async function whileLocked<T>(database: Database, locking: Sql, body: () => Promise<T>): Promise<T> {
  return database.transaction(async (tx) => {
    await tx.run(locking);
    return body();
  });
}

describe('isolation', () => {
  forEachDialect((dialect) => {
    test('a child of a parent that was cancelled by hand, with its token left, is refused; the writer goes on', async () => {
      const { database, writer, workflows } = await setup(dialect, 1);
      await database.run(sql`UPDATE ${table('workflow_status')} SET status = 'CANCELLED'`);

      const [child, other] = await Promise.all([
        writer.startChild(childOf(workflows[0]!)),
        writer.start(newWorkflow()),
      ]);

      expect(child).toEqual({ start: { kind: 'orphaned' }, checkpoint: 'lost' });
      expect(other.kind).toBe('created');
    });

    test('a start that is refused without a reason is rejected alone, after a few attempts', async () => {
      const { database, writer } = await setup(dialect);
      await refuseSilently(database, dialect);
      const [refused, other] = [newWorkflow({ workflowID: 'refused' }), newWorkflow()];

      const starts = [writer.start(refused), writer.start(other)] as const;
      const rejected = expect(starts[0]).rejects.toThrow(UnexplainedRefusalError);

      expect((await starts[1]).kind).toBe('created');
      await rejected;
      expect((await writer.start(newWorkflow())).kind).toBe('created');
    });

    test('a deduplication ID that is not stored as given cannot wedge the writer', async () => {
      const { writer } = await setup(dialect);
      const queued = { status: 'ENQUEUED', queueName: 'q', owner: null, deduplicationID: 'a\ud800' } as const;
      await writer.start(newWorkflow(queued));

      const again = writer.start(newWorkflow(queued));
      const settled = again.then(
        (verdict) => verdict.kind,
        (error: Error) => error.name,
      );

      expect((await writer.start(newWorkflow())).kind).toBe('created');
      // Which one depends on how the driver stores the text.
      expect(['created', 'duplicated', 'UnexplainedRefusalError']).toContain(await settled);
    });

    test('one bad write does not fail the other workflows of its claim, which share its token', async () => {
      const { database, writer, workflows } = await setup(dialect, 5);
      await database.run(sql`UPDATE ${table('workflow_status')} SET owner_xid = 'of the claim'`);
      const claimed = workflows.map((workflow) => ({ ...workflow, owner: 'of the claim' }));
      const write = (stepID: number) =>
        Promise.allSettled(
          claimed.map((workflow, index) =>
            writer.checkpoint(checkpointOf(workflow, stepID, index === 2 && stepID === 0 ? { name: null } : {})),
          ),
        );

      const first = await write(0);
      const second = await write(1);

      const statuses = ['fulfilled', 'fulfilled', 'rejected', 'fulfilled', 'fulfilled'];
      expect(first.map(({ status }) => status)).toEqual(statuses);
      expect(second.map(({ status }) => status)).toEqual(statuses);
    });

    test('one bad item in a large batch costs a handful of commits, not one for every item', async () => {
      const { writer, commits } = await setup(dialect);
      const starts = Array.from({ length: 500 }, (_, index) =>
        newWorkflow(index === 321 ? { priority: null as unknown as number } : {}),
      );

      const results = await Promise.allSettled(starts.map((start) => writer.start(start)));

      expect(results.filter(({ status }) => status === 'rejected')).toHaveLength(1);
      expect(commits()).toBeLessThan(20);
    });
  });

  onlyOn('postgres', (dialect) => {
    const rowLock = (workflowID: string) =>
      sql`SELECT 1 FROM ${table('workflow_status')} AS w WHERE w.workflow_uuid = ${workflowID} ${lock('update', 'w')}`;

    test('a workflow that a stranger has locked holds up no other, and is written in order once it is free', async () => {
      const { database, writer, workflows } = await setup(dialect, 20);
      const [locked, ...others] = workflows as [NewWorkflow, ...NewWorkflow[]];
      const owned = { workflowID: locked.workflowID, owner: locked.owner ?? '' };
      const written: unknown[] = [];
      const track = (...verdicts: Promise<unknown>[]) =>
        Promise.all(verdicts.map((verdict) => verdict.then((settled) => written.push(settled))));

      const { waiting } = await whileLocked(database, rowLock(locked.workflowID), async () => {
        const first = track(
          writer.checkpoint(checkpointOf(locked, 0)),
          writer.checkpoint(checkpointOf(locked, 1)),
          writer.send({ sending: { message: newMessage({ destinationID: locked.workflowID }) } }),
        );
        const recorded = await Promise.all(others.map((other) => writer.checkpoint(checkpointOf(other))));
        expect(new Set(recorded)).toEqual(new Set(['recorded']));
        const second = track(
          writer.checkpoint(checkpointOf(locked, 2)),
          writer.finish({ ...owned, status: 'SUCCESS', output: 'o', error: null }),
        );
        expect(await writer.start(newWorkflow())).toMatchObject({ kind: 'created' });
        expect(written).toEqual([]);
        return { waiting: Promise.all([first, second]) };
      });

      await waiting;
      expect(written.filter((verdict) => verdict === 'recorded')).toHaveLength(4);
      expect(await loadSteps(database, [locked.workflowID])).toHaveLength(3);
      expect(await listMessages(database, locked.workflowID)).toHaveLength(1);
      expect((await findWorkflows(database, [locked.workflowID]))[0]).toMatchObject({ status: 'SUCCESS' });
    });

    test('many locked workflows are found at once', async () => {
      const { database, writer, workflows, commits } = await setup(dialect, 100);
      const all = sql`SELECT 1 FROM ${table('workflow_status')} AS w ${lock('update', 'w')}`;
      const [locked, free] = [workflows, Array.from({ length: 100 }, () => newWorkflow())];
      const before = commits();

      const { waiting, tried } = await whileLocked(database, all, async () => {
        const blocked = locked.map((workflow) => writer.checkpoint(checkpointOf(workflow)));
        await Promise.all(free.map((workflow) => writer.start(workflow)));
        return { waiting: Promise.all(blocked), tried: commits() - before };
      });

      // Each attempt at a locked row waits for it, so one attempt a workflow would hold up the others for long.
      expect(tried).toBeLessThan(20);
      expect(new Set(await waiting)).toEqual(new Set(['recorded']));
    });

    test('an ID that an open transaction is about to take holds up that start alone', async () => {
      const { database, writer } = await setup(dialect);
      const workflowID = newID();

      const { waiting } = await whileLocked(database, insertWorkflows([newWorkflow({ workflowID })]), async () => {
        const blocked = writer.start(newWorkflow({ workflowID }));
        const others = Array.from({ length: 20 }, () => writer.start(newWorkflow()));
        expect(new Set((await Promise.all(others)).map(({ kind }) => kind))).toEqual(new Set(['created']));
        return { waiting: blocked };
      });

      expect((await waiting).kind).toBe('exists');
    });

    test('an item too large for a message of Postgres is rejected alone, instead of being sent again and again', async () => {
      const url = await dialect.createURL();
      const database = await dialect.open(url, { messageBytesMax: 10_000 });
      const writer = new Writer(database, { clock: systemClock, logger: silentLogger, isPatient: true });
      const withInputs = (length: number) => newWorkflow({ inputs: 'é'.repeat(length / 2) });

      const [small, tooLarge, medium, other] = await Promise.allSettled(
        [100, 12_000, 6_000, 6_000].map((length) => writer.start(withInputs(length))),
      );

      expect(tooLarge).toMatchObject({ status: 'rejected', reason: { sqlState: '54000' } });
      expect([small, medium, other].map((one) => one?.status)).toEqual(['fulfilled', 'fulfilled', 'fulfilled']);
      expect((await writer.start(newWorkflow())).kind).toBe('created');
    });

    test('while a whole table is locked all wait, and all is written afterwards', async () => {
      const { database, writer, workflows } = await setup(dialect, 50);
      const tableLock = sql`LOCK TABLE ${table('operation_outputs')} IN SHARE MODE`;

      const { waiting } = await whileLocked(database, tableLock, async () => {
        const blocked = workflows.flatMap((workflow) =>
          [0, 1].map((stepID) => writer.checkpoint(checkpointOf(workflow, stepID))),
        );
        await untilBlocked(database);
        return { waiting: Promise.all(blocked) };
      });

      expect(new Set(await waiting)).toEqual(new Set(['recorded']));
      expect(await loadSteps(database, ['w0'])).toHaveLength(2);
    });

    test('a writer that is abandoned rejects what is blocked', async () => {
      const { database, writer, workflows } = await setup(dialect, 1);

      await whileLocked(database, rowLock('w0'), async () => {
        const blocked = expect(writer.checkpoint(checkpointOf(workflows[0]!))).rejects.toThrow('shutting down');
        await writer.start(newWorkflow());
        await writer.abandon();
        await blocked;
      });
    });
  });
});

/** Resolves when a session of this database waits for a lock. */
async function untilBlocked(database: Database): Promise<void> {
  await until(async () => {
    const blocked = await database.read(sql`
      SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND cardinality(pg_blocking_pids(pid)) > 0`);
    return blocked.length > 0;
  });
}

/** A trigger that drops the insert of the workflow "refused" without an error. */
async function refuseSilently(database: Database, dialect: TestDialect): Promise<void> {
  const workflows = table('workflow_status');
  if (dialect.name === 'sqlite') {
    await database.run(sql`
      CREATE TRIGGER silent BEFORE INSERT ON workflow_status WHEN NEW.workflow_uuid = 'refused'
      BEGIN SELECT RAISE(IGNORE); END`);
    return;
  }
  await database.run(sql`
    CREATE FUNCTION silent() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'`);
  await database.run(sql`
    CREATE TRIGGER silent BEFORE INSERT ON ${workflows} FOR EACH ROW WHEN (NEW.workflow_uuid = 'refused')
    EXECUTE FUNCTION silent()`);
}
