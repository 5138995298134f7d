// `DebouncerClient`: its own rules, and its part in debouncing by several at once.
import { describe, expect, test } from 'vitest';
import { Debouncer, DebouncerClient, type StartWorkflowParams } from '../../../src/index.js';
import { sql, table } from '../../../src/kernel/sql/sql.js';
import { forEachDialect, onlyOn, type TestDialect } from '../../rig/dialects.js';
import { until } from '../../rig/manual-clock.js';
import { createEngine } from '../../rig/engines.js';
import { connect, failureOf, setup } from './scene.js';

const LONG_MS = 1_000_000;

describe('a debouncer of a client', () => {
  forEachDialect((dialect) => {
    test('makes one workflow of the calls of two clients and an engine, with the arguments of the last', async () => {
      const { DBOS, url } = await createEngine(dialect);
      const runs: string[] = [];
      const save = DBOS.registerWorkflow(async (text: string) => void runs.push(text), { name: 'save' });
      await DBOS.launch();
      const clients = await Promise.all([connect(url), connect(url)]);
      const [first, second] = clients.map((client) => new DebouncerClient(client, { workflowName: 'save' }));
      const own = new Debouncer({ workflow: save }, DBOS);
      if (!first || !second) throw new Error('There are two clients.');

      const calls = Array.from({ length: 10 }, (_, n) => [
        first.debounce('key', LONG_MS, `first ${n}`),
        second.debounce('key', LONG_MS, `second ${n}`),
        own.debounce('key', LONG_MS, `own ${n}`),
      ]);
      const handles = await Promise.all<{ readonly workflowID: string }>(calls.flat());
      const last = await first.debounce('key', 1, 'last');
      await until(() => runs.length > 0);
      const next = await second.debounce('key', LONG_MS, 'next');

      expect(new Set([...handles, last].map(({ workflowID }) => workflowID)).size).toBe(1);
      expect(runs).toEqual(['last']);
      expect(next.workflowID).not.toBe(last.workflowID);
    });

    test('starts the workflow as it is told to', async () => {
      const { client } = await setup(dialect);
      const debouncer = new DebouncerClient(client, {
        workflowName: 'echo',
        workflowClassName: 'Class',
        debounceTimeoutMs: 500_000,
        serializationType: 'portable',
        startWorkflowParams: {
          queueName: 'q',
          workflowID: 'w',
          timeoutMS: 7000,
          authenticatedUser: 'user',
          authenticatedRoles: ['role'],
          workflowAttributes: { a: 1 },
          enqueueOptions: { applicationVersion: 'v', applicationName: 'other' },
        },
      });

      const before = Date.now();
      const handle = await debouncer.debounce('key', LONG_MS, 'x');

      const status = await handle.getStatus();
      expect(status).toMatchObject({
        workflowID: 'w',
        status: 'DELAYED',
        workflowName: 'echo',
        workflowClassName: 'Class',
        queueName: 'q',
        deduplicationID: 'Class.echo-key',
        timeoutMS: 7000,
        authenticatedUser: 'user',
        authenticatedRoles: ['role'],
        attributes: { a: 1 },
        applicationVersion: 'v',
        applicationName: 'other',
      });
      // The first delay is no longer than all calls together may put it off.
      const delayedMs = (status?.delayUntilEpochMS ?? 0) - before;
      expect(delayedMs).toBeGreaterThan(400_000);
      expect(delayedMs).toBeLessThan(600_000);
    });

    test('puts off what is of its application or of none; without one, what is of any', async () => {
      const { named, other, nameless } = await callersOf(dialect);
      const first = await nameless.debounce('key', LONG_MS, 1);
      // It was nobody's so far.
      const second = await named.debounce('key', LONG_MS, 2);

      const refusal = await failureOf(other.debounce('key', LONG_MS, 3));
      const third = await nameless.debounce('key', LONG_MS, 4);

      expect(refusal).toMatchObject({ code: 'QUEUE_DUPLICATED' });
      expect([second.workflowID, third.workflowID]).toEqual([first.workflowID, first.workflowID]);
      expect(await third.getStatus()).toMatchObject({ input: [4], applicationName: 'test' });
    });

    test('runs the workflow with the arguments of another library if that was last to put it off', async () => {
      const { client, url } = await setup(dialect);
      const database = await dialect.open(url);
      const debouncer = new DebouncerClient(client, { workflowName: 'echo' });
      const handle = await debouncer.debounce('key', LONG_MS, 'ours');

      await database.run(sql`
        INSERT INTO ${table('workflow_input')} (workflow_uuid, inputs, retention_timestamp)
        VALUES (${handle.workflowID}, '{"json":["theirs"],"__dbos_serializer":"superjson"}', 0)`);
      await client.setWorkflowDelay(handle.workflowID, 0.001);

      expect(await handle.getResult()).toBe('theirs');
    });

    test('finds its key held by a workflow that is not debounced', async () => {
      const client = await connect(await dialect.createURL());
      const debouncer = new DebouncerClient(client, { workflowName: 'w', startWorkflowParams: { queueName: 'q' } });

      await client.enqueue({ queueName: 'q', workflowName: 'w', deduplicationID: '.w-key' });

      await expect(debouncer.debounce('key', 1)).rejects.toMatchObject({ code: 'QUEUE_DUPLICATED' });
    });
  });

  // Nothing of it reaches a database.
  onlyOn('sqlite', (dialect) => {
    test('refuses what contradicts debouncing', async () => {
      const client = await connect(await dialect.createURL());
      const contradictions: [string, StartWorkflowParams][] = [
        ['deduplicationID', { enqueueOptions: { deduplicationID: 'd' } }],
        ['delaySeconds', { enqueueOptions: { delaySeconds: 1 } }],
        ['priority', { enqueueOptions: { priority: 1 } }],
        ['queuePartitionKey', { enqueueOptions: { queuePartitionKey: 'p' } }],
        ["duplicationPolicy 'return-existing'", { duplicationPolicy: 'return-existing' }],
        ["workflowIDReusePolicy 'reject'", { workflowIDReusePolicy: 'reject' }],
      ];
      const debounce = (startWorkflowParams: StartWorkflowParams, periodMs: number) =>
        new DebouncerClient(client, { workflowName: 'w', startWorkflowParams }).debounce('key', periodMs);

      for (const [what, params] of contradictions) {
        await expect(debounce(params, 1), what).rejects.toThrow(`A debounced workflow cannot have: ${what}.`);
      }
      for (const periodMs of [0, -1, NaN, Infinity]) {
        await expect(debounce({}, periodMs)).rejects.toThrow('debouncePeriodMs must be a positive finite number');
      }
    });
  });
});

async function callersOf(dialect: TestDialect) {
  const url = await dialect.createURL();
  const [named, other, nameless] = await Promise.all(
    ['test', 'other', undefined].map(async (applicationName) => {
      const client = await connect(url, { applicationName });
      return new DebouncerClient(client, { workflowName: 'w' });
    }),
  );
  return { named, other, nameless } as Record<'named' | 'other' | 'nameless', DebouncerClient>;
}
