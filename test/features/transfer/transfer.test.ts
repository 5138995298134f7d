import { describe, expect, test } from 'vitest';
import { type ExportedWorkflow, readSource, toLines } from '../../../src/features/transfer/export-format.js';
import { getAllEvents, getAllNotifications, getAllStreamEntries } from '../../../src/features/listing/inspection.js';
import { listWorkflows } from '../../../src/features/listing/listing.js';
import type { Operator } from '../../../src/operator/operator.js';
import { listWorkflowSteps } from '../../../src/features/listing/steps.js';
import { exportWorkflows, type ExportInput, importWorkflows } from '../../../src/features/transfer/transfer.js';
import type { DBOSInstance } from '../../../src/faces/library/dbos.js';
import { sql, table } from '../../../src/kernel/sql/sql.js';
import { forEachDialect, postgres, sqlite, type TestDialect, wantsDialect } from '../../rig/dialects.js';
import { createEngine, engineOf } from '../../rig/engines.js';
import { operatorOn, published } from '../../rig/operators.js';
import { topics } from '../../../src/database/notify/topics.js';
import { insert, workflow } from '../listing/rows.js';

async function collect<T>(source: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const one of source) all.push(one);
  return all;
}

const exported = (operator: Operator, input: ExportInput = {}): Promise<ExportedWorkflow[]> =>
  collect(exportWorkflows(operator, input));

/** The other database, if it is wanted; else a second one of the same kind. */
function other(dialect: TestDialect): TestDialect {
  const twin = dialect.name === 'sqlite' ? postgres : sqlite;
  return wantsDialect(twin.name) ? twin : dialect;
}

/** Workflows with everything that a workflow can have: steps, children, events, streams, messages, attributes, errors. */
function register(DBOS: DBOSInstance) {
  const runs: string[] = [];
  const child = DBOS.registerWorkflow(async (n: number) => n * 2, { name: 'child' });
  const rich = DBOS.registerWorkflow(
    async (input: { when: Date; set: Set<number> }) => {
      await DBOS.setEvent('progress', 1);
      await DBOS.runStep(async () => runs.push('first'), { name: 'first' });
      await DBOS.setEvent('progress', { at: input.when });
      await DBOS.writeStream('log', 'one');
      await DBOS.writeStream('log', new Map([['two', 2]]));
      await DBOS.closeStream('log');
      const handle = await DBOS.startWorkflow(child)(21);
      const message = await DBOS.recv<string>('greeting');
      const failure = await DBOS.runStep(
        async (): Promise<never> => {
          throw new TypeError('no', { cause: 'because' });
        },
        { name: 'second' },
      ).catch((error: Error) => error.message);
      return { sum: await handle.getResult(), message, failure, size: input.set.size };
    },
    { name: 'rich' },
  );
  const failing = DBOS.registerWorkflow(
    async (): Promise<never> => {
      throw new RangeError('out of range');
    },
    { name: 'failing', serialization: 'portable' },
  );
  return { rich, failing, runs };
}

async function visible(operator: Operator, workflowID: string) {
  const [status] = await listWorkflows(operator, { workflowIDs: [workflowID] });
  return {
    status,
    steps: await listWorkflowSteps(operator, workflowID),
    events: await getAllEvents(operator, workflowID),
    streams: await getAllStreamEntries(operator, workflowID),
    messages: await getAllNotifications(operator, workflowID),
  };
}

async function runRich(DBOS: DBOSInstance, functions: ReturnType<typeof register>): Promise<void> {
  const handle = await DBOS.startWorkflow(functions.rich, {
    workflowID: 'rich',
    workflowAttributes: { tags: ['a', { b: null }], n: 0.1 },
  })({ when: new Date(5), set: new Set([1, 2]) });
  await DBOS.send('rich', 'hello', 'greeting');
  await DBOS.send('rich', 'nobody reads this', 'other');
  await handle.getResult();
  await expect(
    DBOS.withAuthedContext('ann', ['admin'], () => DBOS.withNextWorkflowID('failing', () => functions.failing())),
  ).rejects.toThrow('out of range');
}

test('a long line is read in time that grows with its length', async () => {
  const started = process.cpuUsage();
  const chunk = 'x'.repeat(1000);
  function* chunks() {
    yield '{"workflow_status":"';
    for (let n = 0; n < 30_000; n += 1) yield chunk;
    yield '"}\n{"next":1}\n';
  }

  const read = await collect(readSource(chunks()));

  expect(read).toMatchObject([{ workflow_status: expect.any(String) as string }, { next: 1 }]);
  expect(process.cpuUsage(started).user).toBeLessThan(3_000_000);
});

describe('export and import', () => {
  forEachDialect((dialect) => {
    test('a workflow is the same in the other database, and goes on there', async () => {
      const from = await createEngine(dialect, { applicationVersion: 'v1' });
      const functions = register(from.DBOS);
      await from.DBOS.launch();
      await runRich(from.DBOS, functions);
      const to = await createEngine(other(dialect), { applicationVersion: 'v1' });
      const there = register(to.DBOS);
      await to.DBOS.launch();
      const [source, target] = [engineOf(from.DBOS).runtime, engineOf(to.DBOS).runtime];

      const lines = await collect(toLines(exportWorkflows(source, { workflow_id_prefix: ['rich', 'failing'] })));
      const result = await importWorkflows(target, lines);

      expect(result).toEqual({ imported: 3, skipped: 0 });
      for (const id of ['rich', 'rich-6', 'failing']) {
        const before = await visible(source, id);
        expect(before.status?.workflowID).toBe(id);
        expect(await visible(target, id)).toEqual(before);
      }
      expect(await exported(target)).toEqual(await exported(source));
      expect(await to.DBOS.getResult('rich')).toMatchObject({ sum: 42, message: 'hello', failure: 'no', size: 2 });

      // As if the last steps had not been there when it was exported: it goes on where it was, and repeats nothing.
      await target.database.run(sql`
        UPDATE ${table('workflow_status')} SET status = 'CANCELLED' WHERE workflow_uuid = 'rich'`);
      await target.database.run(sql`
        DELETE FROM ${table('operation_outputs')} WHERE workflow_uuid = 'rich' AND function_name = 'second'`);
      const resumed = await to.DBOS.resumeWorkflow('rich');
      expect(await resumed.getResult()).toMatchObject({ sum: 42, message: 'hello', failure: 'no' });
      expect(there.runs).toEqual([]);
    });

    test('trees come whole and each workflow once, parents first', async () => {
      const database = await dialect.create();
      await insert(database, [
        workflow('root', { createdAt: 5, name: 'r' }),
        workflow('child-1', { createdAt: 3, parentWorkflowID: 'root', name: 'c' }),
        workflow('child-2', { createdAt: 4, parentWorkflowID: 'root', applicationName: 'other', name: 'c' }),
        workflow('grandchild', { createdAt: 2, parentWorkflowID: 'child-2', name: 'g' }),
        workflow('alone', { createdAt: 1, name: 'c' }),
        workflow('circle-1', { createdAt: 6, parentWorkflowID: 'circle-2', name: 'circle' }),
        workflow('circle-2', { createdAt: 7, parentWorkflowID: 'circle-1', name: 'circle' }),
      ]);
      const operator = operatorOn(database);
      const ids = async (input: ExportInput): Promise<unknown[]> =>
        (await exported(operator, input)).map((one) => one.workflow_status['workflow_uuid']);

      expect(await ids({ workflowName: 'r', exportChildren: true })).toEqual([
        'root',
        'child-1',
        'child-2',
        'grandchild',
      ]);
      expect(await ids({ workflowName: 'r' })).toEqual(['root']);
      expect(await ids({ workflowName: ['c', 'r'], exportChildren: true })).toHaveLength(5);
      expect(new Set(await ids({ workflowName: 'circle', exportChildren: true }))).toEqual(
        new Set(['circle-1', 'circle-2']),
      );
      expect(await ids({ limit: 2 })).toEqual(['alone', 'grandchild']);
    });

    test('an ID in use stops the import, or is passed over', async () => {
      const [from, to] = [await dialect.create(), await dialect.create()];
      const rows = Array.from({ length: 120 }, (_, n) => workflow(`w-${String(n).padStart(3, '0')}`, { createdAt: n }));
      await insert(from, rows);
      await insert(to, [workflow('w-070', { name: 'mine' })]);
      const [source, target] = [operatorOn(from), operatorOn(to)];

      await expect(importWorkflows(target, exportWorkflows(source))).rejects.toMatchObject({
        code: 'WORKFLOW_IMPORT',
        workflowID: 'w-070',
        imported: 50,
        message: expect.stringMatching(/onConflict: 'skip'/),
      });
      const stopped = await listWorkflows(target, { loadInput: false });
      const skipping = await importWorkflows(target, exportWorkflows(source), { onConflict: 'skip' });

      expect(stopped).toHaveLength(51);
      expect(skipping).toEqual({ imported: 69, skipped: 51 });
      expect((await listWorkflows(target, { workflowIDs: ['w-070'] }))[0]?.workflowName).toBe('mine');
    });

    test('two lines with one ID are a conflict, wherever the second stands', async () => {
      for (const between of [0, 60]) {
        const from = await dialect.create();
        const rows = Array.from({ length: between + 1 }, (_, n) => workflow(`w-${n}`, { createdAt: n }));
        await insert(from, rows);
        const all = await exported(operatorOn(from));
        const twice = [...all, all[0] as ExportedWorkflow];
        const [failing, skipping] = [operatorOn(await dialect.create()), operatorOn(await dialect.create())];

        await expect(importWorkflows(failing, twice)).rejects.toMatchObject({ workflowID: 'w-0' });
        const result = await importWorkflows(skipping, twice, { onConflict: 'skip' });

        expect(result).toEqual({ imported: between + 1, skipped: 1 });
        expect(await listWorkflows(skipping, {})).toHaveLength(between + 1);
      }
    });

    test('an ID that cannot be stored is refused', async () => {
      const from = await dialect.create();
      await insert(from, [workflow('w')]);
      const [one] = await exported(operatorOn(from));
      const target = operatorOn(await dialect.create());

      for (const workflow_uuid of ['', 'x'.repeat(9000), 'a\0b', 7]) {
        const bad = { ...one, workflow_status: { ...one?.workflow_status, workflow_uuid } } as ExportedWorkflow;
        await expect(importWorkflows(target, [bad])).rejects.toThrow(/its ID must/);
      }
    });

    test('what has not ended is imported as cancelled, or goes on if wanted', async () => {
      const [from, held, running] = [await dialect.create(), await dialect.create(), await dialect.create()];
      const parked = { status: 'DELAYED', owner: 'me.2', delayUntil: 253_402_300_799_999, output: null } as const;
      await insert(from, [
        workflow('e', { createdAt: 1, status: 'ENQUEUED', queueName: 'q', deduplicationID: 'd', output: null }),
        workflow('p', { createdAt: 2, status: 'PENDING', startedAt: 5, owner: 'me.1', creator: 'me', output: null }),
        workflow('d', { createdAt: 3, status: 'DELAYED', queueName: 'q', delayUntil: 9_000_000_000_000 }),
        workflow('s', { createdAt: 4, queueName: 'q', completedAt: 9 }),
        workflow('k', { ...parked, createdAt: 5, queueName: '_dbos_internal_queue' }),
        workflow('l', { ...parked, createdAt: 6, queueName: 'q' }),
      ]);
      const source = operatorOn(from);
      const goOn = operatorOn(running);
      const queued = published(goOn.bus, topics.work);
      const delayed = published(goOn.bus, topics.delays);

      await importWorkflows(operatorOn(held), exportWorkflows(source));
      await importWorkflows(goOn, exportWorkflows(source), { activeWorkflows: 'enqueue' });

      const states = async (operator: Operator) =>
        (await listWorkflows(operator)).map((one) => [one.workflowID, one.status, one.queueName, one.deduplicationID]);
      const waiting = (await exported(source)).slice(-2).map(({ workflow_status }) => workflow_status);
      expect(waiting).toMatchObject([
        { status: 'PENDING', queue_name: null, delay_until_epoch_ms: null },
        { status: 'PENDING', queue_name: 'q', delay_until_epoch_ms: null },
      ]);
      expect(await states(operatorOn(held))).toEqual([
        ['e', 'CANCELLED', undefined, undefined],
        ['p', 'CANCELLED', undefined, undefined],
        ['d', 'CANCELLED', undefined, undefined],
        ['s', 'SUCCESS', 'q', undefined],
        ['k', 'CANCELLED', undefined, undefined],
        ['l', 'CANCELLED', undefined, undefined],
      ]);
      expect(await states(goOn)).toEqual([
        ['e', 'ENQUEUED', 'q', 'd'],
        ['p', 'ENQUEUED', '_dbos_internal_queue', undefined],
        ['d', 'DELAYED', 'q', undefined],
        ['s', 'SUCCESS', 'q', undefined],
        ['k', 'ENQUEUED', '_dbos_internal_queue', undefined],
        ['l', 'ENQUEUED', 'q', undefined],
      ]);
      expect([...delayed.map(() => 'delayed'), ...queued]).toMatchObject([
        'delayed',
        { queueName: 'q', partitionKey: null },
        { queueName: '_dbos_internal_queue', partitionKey: null },
      ]);
      const [row] = await running.read(sql`
        SELECT w.owner_xid FROM ${table('workflow_status')} AS w WHERE w.workflow_uuid = 'p'`);
      expect(row?.['owner_xid']).toBeNull();
    });

    test('a deduplication ID that is held stops the import', async () => {
      const [from, to] = [await dialect.create(), await dialect.create()];
      const queued = { status: 'ENQUEUED', queueName: 'q', deduplicationID: 'd' } as const;
      await insert(from, [workflow('a', queued)]);
      await insert(to, [workflow('b', queued)]);

      await expect(
        importWorkflows(operatorOn(to), exportWorkflows(operatorOn(from)), { activeWorkflows: 'enqueue' }),
      ).rejects.toThrow(/"a" was not imported: its deduplication ID is held/);
    });

    test('an export of DBOS is read: an array, numbers as texts, no messages, some columns missing', async () => {
      const operator = operatorOn(await dialect.create());
      const stored = (json: string): string => `{"json":${json},"__dbos_serializer":"superjson"}`;
      const status = {
        workflow_uuid: 'peer',
        status: 'SUCCESS',
        name: 'f',
        created_at: '1700000000000',
        inputs: stored('[1]'),
        output: stored('2'),
        attributes: { a: 1 },
        class_name: null,
        a_column_of_tomorrow: 1,
      };
      const step = { workflow_uuid: 'peer', function_id: 0, function_name: 's', output: stored('3'), error: null };
      const event = { workflow_uuid: 'peer', key: 'k', value: stored('4') };
      const text = JSON.stringify([
        {
          workflow_status: status,
          operation_outputs: [step],
          workflow_events: [event],
          workflow_events_history: [{ ...event, function_id: 0 }],
          streams: [],
        },
      ]);

      const bytes = Buffer.from(text);
      expect(await importWorkflows(operator, [bytes.subarray(0, 50), bytes.subarray(50)])).toEqual({
        imported: 1,
        skipped: 0,
      });

      const seen = await visible(operator, 'peer');
      expect(seen.status).toMatchObject({ createdAt: 1_700_000_000_000, input: [1], output: 2, attributes: { a: 1 } });
      expect(seen.steps).toMatchObject([{ name: 's', output: 3 }]);
      expect(seen.events).toEqual({ k: 4 });
    });

    test('what is no exported workflow is refused, and nothing of it is there', async () => {
      const operator = operatorOn(await dialect.create());
      const status = { workflow_uuid: 'w', status: 'SUCCESS', name: 'f', created_at: 1 };
      const parts = { operation_outputs: [], workflow_events: [], workflow_events_history: [], streams: [] };
      const bad: unknown[] = [
        'no JSON',
        '[1]',
        null,
        {},
        { workflow_status: { ...status, workflow_uuid: 1 } },
        { workflow_status: { ...status, name: null } },
        { workflow_status: { ...status, status: 'DONE' } },
        { workflow_status: { ...status, created_at: 'yesterday' } },
        { workflow_status: { ...status, priority: 1.5 } },
        { workflow_status: { ...status, inputs: 'nul \0' } },
        { workflow_status: { ...status, attributes: 'x' } },
        { workflow_status: { ...status, was_forked_from: 'x' } },
        { workflow_status: status, operation_outputs: {} },
        { workflow_status: status, operation_outputs: [1] },
        { workflow_status: status, operation_outputs: [{ workflow_uuid: 'w' }] },
        { workflow_status: status, operation_outputs: [{ workflow_uuid: 'other', function_id: 1 }] },
        { workflow_status: status, streams: [{ workflow_uuid: 'w', key: 'k', value: 'v', offset: 1 }] },
      ];

      for (const one of bad) {
        await expect(importWorkflows(operator, [one as string])).rejects.toMatchObject({ code: 'WORKFLOW_IMPORT' });
      }
      // The database refuses the second of two equal steps, and with it the whole workflow.
      const step = { workflow_uuid: 'w', function_id: 0 };
      const twice = { ...parts, workflow_status: status, operation_outputs: [step, step] };
      await expect(importWorkflows(operator, [twice])).rejects.toThrow();
      await expect(importWorkflows(operator, [], { onConflict: 'replace' as 'skip' })).rejects.toThrow(/onConflict/);
      await expect(importWorkflows(operator, [], { activeWorkflows: 'run' as 'cancel' })).rejects.toThrow(/activeWork/);

      expect(await listWorkflows(operator)).toEqual([]);
    });
  });
});
