// Several commits of a writer in flight. None may depend on another, and none may wait for a stuck one without need.
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/kernel/base/clock.js';
import { type Deferred, deferred } from '../../../src/kernel/base/deferred.js';
import { silentLogger } from '../../../src/kernel/base/log.js';
import { lock, type Sql, sql, table } from '../../../src/kernel/sql/sql.js';
import type { CommitOptions, Database } from '../../../src/database/database.js';
import { listMessages } from '../../../src/features/message/messages.sql.js';
import { loadSteps } from '../../../src/run/rows/steps.js';
import { findWorkflows, type NewWorkflow } from '../../../src/run/rows/workflows.js';
import { Writer, type WriterOptions } from '../../../src/run/writer/writer.js';
import { forEachDialect, onlyOn, type TestDialect } from '../../rig/dialects.js';
import { until } from '../../rig/manual-clock.js';
import { startProxy } from '../../rig/proxy.js';
import { newMessage, newWorkflow, step } from '../../rig/records.js';

async function setup(dialect: TestDialect, options: Partial<WriterOptions> = {}) {
  const database = await dialect.create();
  const commits = watched(database);
  const writer = new Writer(commits.database, {
    clock: systemClock,
    logger: silentLogger,
    isPatient: true,
    parallelItemsMin: 1,
    ...options,
  });
  return { database, writer, commits };
}

/** The database, with its commits counted. `hold` makes the next one wait before it is sent. */
function watched(database: Database) {
  const seen = { inFlight: 0, mostInFlight: 0 };
  let held: Deferred<void> | undefined;
  const commit = async (statements: readonly Sql[], options?: CommitOptions) => {
    const waiting = held;
    held = undefined;
    seen.inFlight += 1;
    seen.mostInFlight = Math.max(seen.mostInFlight, seen.inFlight);
    try {
      await waiting?.promise;
      return await database.commit(statements, options);
    } finally {
      seen.inFlight -= 1;
    }
  };
  const proxy = new Proxy(database, {
    get(target, property) {
      if (property === 'commit') return commit;
      const value: unknown = Reflect.get(target, property, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
  const hold = (): Deferred<void> => (held = deferred<void>());
  return { database: proxy, seen, hold };
}

const checkpointOf = ({ workflowID, owner }: NewWorkflow, stepID = 0) => ({
  owner: owner ?? '',
  step: step(workflowID, stepID),
});

const successOf = ({ workflowID, owner }: NewWorkflow) =>
  ({ workflowID, owner: owner ?? '', status: 'SUCCESS', output: 'o', error: null }) as const;

/** Submits a workflow as a run does: its start, steps, a message to another one and its outcome, in one go. */
function submitRun(writer: Writer, workflow: NewWorkflow, destination: NewWorkflow, steps: number): Promise<unknown[]> {
  const { workflowID, owner } = workflow;
  const checkpoints = Array.from({ length: steps }, (_, stepID) => writer.checkpoint(checkpointOf(workflow, stepID)));
  const message = newMessage({ destinationID: destination.workflowID });
  const send = writer.send({ sending: { message, sender: { workflowID, owner: owner ?? '' } } });
  return Promise.all([...checkpoints, send.then(({ sent }) => sent), writer.finish(successOf(workflow))]);
}

describe('commits in flight', () => {
  forEachDialect((dialect) => {
    test('what each of many workflows has written is a prefix of what it submitted, at any time', async () => {
      const { database, writer, commits } = await setup(dialect, { itemsMax: 40 });
      const STEPS = 5;
      const workflows = Array.from({ length: 60 }, () => newWorkflow());
      const starts = workflows.map((workflow) => writer.start(workflow));

      const runs = Promise.all(
        workflows.map((workflow, index) =>
          submitRun(writer, workflow, workflows[(index + 1) % workflows.length] ?? workflow, STEPS),
        ),
      );
      let isDone = false;
      void runs.finally(() => (isDone = true)).catch(() => {});
      do {
        expect(await gapsIn(database)).toEqual([]);
        await new Promise((resolve) => setImmediate(resolve));
      } while (!isDone);

      expect(new Set((await Promise.all(starts)).map(({ kind }) => kind))).toEqual(new Set(['created']));
      expect(new Set((await runs).flat())).toEqual(new Set(['recorded', 'sent']));
      expect(commits.seen.mostInFlight > 1).toBe(dialect.name === 'postgres');
    });
  });

  onlyOn('postgres', (dialect) => {
    test('while a commit is stuck, only its workflows wait', async () => {
      const { database, writer, commits } = await setup(dialect, { parallelItemsMin: 1000 });
      const [stuck, other] = [newWorkflow(), newWorkflow()];
      await Promise.all([writer.start(stuck), writer.start(other)]);
      const gate = commits.hold();
      const settled: string[] = [];
      const first = writer.checkpoint(checkpointOf(stuck, 0)).then(() => settled.push('first'));
      await until(() => commits.seen.inFlight === 1);

      const second = writer.checkpoint(checkpointOf(stuck, 1)).then(() => settled.push('second'));
      expect(await writer.checkpoint(checkpointOf(other, 0))).toBe('recorded');
      expect(await writer.start(newWorkflow())).toMatchObject({ kind: 'created' });
      expect(settled).toEqual([]);

      gate.resolve();
      await Promise.all([first, second]);
      expect(settled).toEqual(['first', 'second']);
      expect(await loadSteps(database, [stuck.workflowID])).toHaveLength(2);
    });

    test('a large value has a commit of its own, and others do not wait for it', async () => {
      const { writer, commits } = await setup(dialect, { parallelItemsMin: 1000 });
      const [large, other] = [newWorkflow(), newWorkflow()];
      await Promise.all([writer.start(large), writer.start(other)]);
      const { step: record, owner } = checkpointOf(large, 0);
      const output = `"${'x'.repeat(1_000_000)}"`;
      const gate = commits.hold();
      let isWritten = false;
      const written = writer.checkpoint({ owner, step: { ...record, output } }).then(() => (isWritten = true));
      await until(() => commits.seen.inFlight === 1);

      for (const stepID of [0, 1]) expect(await writer.checkpoint(checkpointOf(other, stepID))).toBe('recorded');
      expect(isWritten).toBe(false);
      gate.resolve();

      await written;
      expect(await writer.finish(successOf(large))).toBe('recorded');
    });

    test('a row that another session has locked delays only its workflow', async () => {
      const { database, writer } = await setup(dialect);
      const [locked, other] = [newWorkflow(), newWorkflow()];
      await Promise.all([writer.start(locked), writer.start(other)]);
      const settled: string[] = [];

      const waiting = await database.transaction(async (tx) => {
        await tx.run(
          sql`SELECT 1 FROM ${table('workflow_status')} AS w
            WHERE w.workflow_uuid = ${locked.workflowID} ${lock('update', 'w')}`,
        );
        const blocked = [0, 1].map((stepID) =>
          writer.checkpoint(checkpointOf(locked, stepID)).then(() => settled.push(`step ${stepID}`)),
        );
        for (const stepID of [0, 1, 2]) expect(await writer.checkpoint(checkpointOf(other, stepID))).toBe('recorded');
        expect(await writer.finish(successOf(other))).toBe('recorded');
        expect(settled).toEqual([]);
        return { blocked };
      });

      await Promise.all(waiting.blocked);
      expect(settled).toEqual(['step 0', 'step 1']);
    });

    test('a message waits for the start of its destination, and an enqueued workflow for those before it', async () => {
      const { database, writer, commits } = await setup(dialect, { parallelItemsMin: 2 });
      const destination = newWorkflow();
      const queued = { status: 'ENQUEUED', queueName: 'q', owner: null } as const;
      const gate = commits.hold();
      const first = Promise.all([
        writer.start(destination),
        writer.start(newWorkflow({ ...queued, workflowID: 'q1' })),
      ]);
      await until(() => commits.seen.inFlight === 1);
      const sent = writer.send({ sending: { message: newMessage({ destinationID: destination.workflowID }) } });
      const next = writer.start(newWorkflow({ ...queued, workflowID: 'q2' }));

      await writer.start(newWorkflow());
      expect(await findWorkflows(database, [destination.workflowID, 'q1', 'q2'])).toEqual([]);
      gate.resolve();

      await Promise.all([first, next]);
      expect(await sent).toMatchObject({ sent: 'sent' });
      expect(await listMessages(database, destination.workflowID)).toHaveLength(1);
      const [one, two] = (await findWorkflows(database, ['q1', 'q2'])).sort((a, b) =>
        a.workflowID < b.workflowID ? -1 : 1,
      );
      expect(two?.createdAt).toBeGreaterThanOrEqual(one?.createdAt ?? Infinity);
    });

    test('a child waits for the commit of its parent, and what it does for its own', async () => {
      const { writer, commits } = await setup(dialect);
      const parent = newWorkflow();
      const gate = commits.hold();
      const started = writer.start(parent);
      await until(() => commits.seen.inFlight === 1);
      const start = newWorkflow({ parentWorkflowID: parent.workflowID, parentOwner: parent.owner });
      const record = { ...step(parent.workflowID, 0), childWorkflowID: start.workflowID };
      const child = writer.startChild({ start, checkpoint: { owner: parent.owner ?? '', step: record, child: start } });
      const ofChild = writer.checkpoint(checkpointOf(start, 0));

      await writer.start(newWorkflow());
      gate.resolve();

      expect((await started).kind).toBe('created');
      expect(await child).toMatchObject({ start: { kind: 'created' }, checkpoint: 'recorded' });
      expect(await ofChild).toBe('recorded');
    });

    test.each(['loseNextAnswer', 'loseNextRequest'] as const)(
      'a connection lost in a COMMIT (%s) while others are in flight neither loses nor repeats anything',
      async (fault) => {
        const proxy = await startProxy(await dialect.createURL());
        const commits = watched(await dialect.open(proxy.url));
        const options = { clock: systemClock, logger: silentLogger, parallelItemsMin: 1, itemsMax: 20 };
        const writer = new Writer(commits.database, options);
        const workflows = Array.from({ length: 40 }, () => newWorkflow());
        await Promise.all(workflows.map((workflow) => writer.start(workflow)));

        proxy[fault](/operation_outputs/);
        const runs = await Promise.all(workflows.map((workflow) => submitRun(writer, workflow, workflow, 3)));

        expect(proxy.hasStruck).toBe(true);
        expect(commits.seen.mostInFlight).toBeGreaterThan(1);
        expect(new Set(runs.flat())).toEqual(new Set(['recorded', 'sent']));
        const ids = workflows.map(({ workflowID }) => workflowID);
        expect(await loadSteps(commits.database, ids)).toHaveLength(3 * workflows.length);
        const found = await findWorkflows(commits.database, ids);
        expect(found.filter(({ status }) => status === 'SUCCESS')).toHaveLength(workflows.length);
        for (const id of ids.slice(0, 3)) expect(await listMessages(commits.database, id)).toHaveLength(1);
      },
    );

    test('sessions that are killed over and over lose nothing, and leave no gap', async () => {
      const url = await dialect.createURL();
      const database = await dialect.open(url);
      const killer = await dialect.open(url, { poolSize: 1 });
      const options = { clock: systemClock, logger: silentLogger, parallelItemsMin: 1, itemsMax: 30 };
      const writer = new Writer(database, options);
      const workflows = Array.from({ length: 60 }, () => newWorkflow());
      const starts = workflows.map((workflow) => writer.start(workflow));
      const runs = Promise.all(workflows.map((workflow) => submitRun(writer, workflow, workflow, 4)));

      for (const steps of [0, 40, 80, 120, 160]) {
        await until(async () => (await countSteps(killer)) >= steps);
        await killer.read(sql`
          SELECT pg_terminate_backend(pid) FROM pg_stat_activity
          WHERE datname = current_database() AND pid <> pg_backend_pid()`);
        expect(await gapsIn(killer)).toEqual([]);
      }

      await Promise.all(starts);
      expect(new Set((await runs).flat())).toEqual(new Set(['recorded', 'sent']));
      expect(await gapsIn(killer)).toEqual([]);
      expect(await countSteps(killer)).toBe(4 * workflows.length);
    });

    test.each([1, 2, 3])(
      'with a pool of %d, one commit is in flight at a time, and all is written',
      async (poolSize) => {
        const commits = watched(await dialect.create({ poolSize }));
        const writer = new Writer(commits.database, { clock: systemClock, logger: silentLogger, parallelItemsMin: 1 });
        const workflows = Array.from({ length: 20 }, () => newWorkflow());

        const starts = workflows.map((workflow) => writer.start(workflow));
        const runs = workflows.map((workflow) => submitRun(writer, workflow, workflow, 2));

        await Promise.all(starts);
        expect(new Set((await Promise.all(runs)).flat())).toEqual(new Set(['recorded', 'sent']));
        expect(commits.seen.mostInFlight).toBe(1);
      },
    );
  });
});

/** Workflows with a step but not the one before it, or with an outcome but not all that was submitted before it. */
async function gapsIn(database: Database): Promise<unknown[]> {
  const steps = table('operation_outputs');
  return database.read(sql`
    SELECT o.workflow_uuid, o.function_id
    FROM ${steps} AS o
    WHERE o.function_id > 0 AND NOT EXISTS (
      SELECT 1 FROM ${steps} AS p WHERE p.workflow_uuid = o.workflow_uuid AND p.function_id = o.function_id - 1)
    UNION ALL
    SELECT w.workflow_uuid, -1
    FROM ${table('workflow_status')} AS w
    WHERE w.status = 'SUCCESS' AND NOT EXISTS (
      SELECT 1 FROM ${steps} AS p WHERE p.workflow_uuid = w.workflow_uuid AND p.function_id = 3)`);
}

async function countSteps(database: Database): Promise<number> {
  const [row] = await database.read(sql`SELECT COUNT(*) AS count FROM ${table('operation_outputs')}`);
  return Number(row?.['count']);
}
