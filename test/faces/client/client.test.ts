// Each member of the client, and the rows that it writes.
import { describe, expect, test } from 'vitest';
import { sql, table } from '../../../src/kernel/sql/sql.js';
import { forEachDialect } from '../../rig/dialects.js';
import { connect, failureOf, setup } from './scene.js';
import { engineOf } from '../../rig/engines.js';

class Money {
  constructor(readonly cents: number) {}
}

const MONEY = {
  name: 'Money',
  isApplicable: (value: unknown): value is Money => value instanceof Money,
  serialize: ({ cents }: Money) => cents,
  deserialize: (cents: number) => new Money(cents),
};

describe('a client', () => {
  forEachDialect((dialect) => {
    test('enqueues workflows and gets their results, inputs and errors', async () => {
      const { client } = await setup(dialect);
      type Add = (a: number, b: number) => Promise<number>;

      const added = await client.enqueue<Add>({ queueName: 'q', workflowName: 'add' }, 1, 2);
      const failed = await client.enqueue({ queueName: 'q', workflowName: 'fail' });
      const portable = await client.enqueuePortable({ queueName: 'q', workflowName: 'echo' }, [1], { named: 2 });

      expect(await added.getResult()).toBe(3);
      expect(await added.getStatus()).toMatchObject({ status: 'SUCCESS', output: 3, applicationName: 'test' });
      expect(await added.getWorkflowInputs()).toEqual([1, 2]);
      await expect(failed.getResult()).rejects.toThrow('broken');
      expect(await client.waitAll([added, failed])).toEqual([added, failed]);
      expect(await client.getResult(portable.workflowID)).toBe(1);
      expect(await client.waitFirst([portable])).toBe(portable);
      expect(await portable.getWorkflowInputs()).toEqual([1, { named: 2 }]);
    });

    test('writes the row that DBOS writes', async () => {
      const url = await dialect.createURL();
      const client = await connect(url);
      const nameless = await connect(url, { applicationName: undefined });
      const database = await dialect.open(url);

      await client.enqueue({ queueName: 'q', workflowName: 'w', workflowID: 'plain' }, 1);
      await nameless.enqueue({ queueName: 'q', workflowName: 'w', workflowID: 'nameless' });
      await client.enqueue({
        queueName: 'q',
        workflowName: 'w',
        workflowID: 'full',
        workflowClassName: 'C',
        workflowConfigName: 'I',
        appVersion: 'v',
        workflowTimeoutMS: 10.5,
        deduplicationID: 'd',
        priority: 7,
        queuePartitionKey: 'p',
        delaySeconds: 1000,
        attributes: { a: 1 },
        authenticatedUser: 'u',
        authenticatedRoles: ['r'],
        applicationName: 'other',
        serializationType: 'portable',
      });

      const rows = await database.read(sql`
        SELECT w.status, w.name, w.class_name, w.config_name, w.inputs, w.serialization, w.executor_id, w.application_id,
          w.assumed_role, w.authenticated_user, w.authenticated_roles, w.application_version, w.application_name,
          w.recovery_attempts, w.priority, w.queue_partition_key, w.deduplication_id, w.workflow_timeout_ms,
          w.workflow_deadline_epoch_ms, w.owner_xid, w.started_at_epoch_ms, w.parent_workflow_id,
          w.delay_until_epoch_ms - w.created_at AS delay
        FROM ${table('workflow_status')} AS w
        ORDER BY w.workflow_uuid DESC`);
      const plain = {
        status: 'ENQUEUED',
        name: 'w',
        class_name: null,
        config_name: null,
        inputs: '{"json":[1],"__dbos_serializer":"superjson"}',
        serialization: 'js_superjson',
        executor_id: '',
        application_id: '',
        assumed_role: '',
        authenticated_user: '',
        authenticated_roles: '[]',
        application_version: null,
        application_name: 'test',
        recovery_attempts: 0,
        priority: 0,
        queue_partition_key: null,
        deduplication_id: null,
        workflow_timeout_ms: null,
        workflow_deadline_epoch_ms: null,
        owner_xid: null,
        started_at_epoch_ms: null,
        parent_workflow_id: null,
        delay: null,
      };
      expect(rows).toEqual([
        plain,
        { ...plain, inputs: '{"json":[],"__dbos_serializer":"superjson"}', application_name: null },
        {
          ...plain,
          status: 'DELAYED',
          class_name: 'C',
          config_name: 'I',
          inputs: '{"positionalArgs":[]}',
          serialization: 'portable_json',
          authenticated_user: 'u',
          authenticated_roles: '["r"]',
          application_version: 'v',
          application_name: 'other',
          priority: 7,
          queue_partition_key: 'p',
          deduplication_id: 'd',
          workflow_timeout_ms: 11,
          delay: 1_000_000,
        },
      ]);
    });

    test('refuses what cannot be enqueued, and finds what is there already', async () => {
      const { client } = await setup(dialect);
      await client.registerQueue('parts', { partitionQueue: true });
      const enqueue = (options: object) => client.enqueue({ queueName: 'q', workflowName: 'receive', ...options });
      const first = await enqueue({ workflowID: 'first', deduplicationID: 'd' });

      const again = await enqueue({ workflowID: 'first' });
      const holder = await enqueue({ deduplicationID: 'd', duplicationPolicy: 'return-existing' });
      const refusals: [object, string][] = [
        [{ deduplicationID: 'd' }, 'QUEUE_DUPLICATED'],
        [{ workflowID: 'first', workflowName: 'add' }, 'CONFLICTING_WORKFLOW'],
        [{ workflowID: 'first', workflowIDReusePolicy: 'reject' }, 'WORKFLOW_ID_IN_USE'],
        [{ duplicationPolicy: 'return-existing' }, 'INVALID_WORKFLOW_TRANSITION'],
        [{ workflowID: ' \t' }, 'INVALID_ARGUMENT'],
        [{ workflowName: '' }, 'INVALID_ARGUMENT'],
        [{ queueName: undefined }, 'INVALID_ARGUMENT'],
        [{ queueName: 'parts' }, 'INVALID_QUEUE'],
        [{ priority: -1 }, 'INVALID_QUEUE_PRIORITY'],
        [{ delaySeconds: NaN }, 'INVALID_ARGUMENT'],
        [{ workflowTimeoutMS: -1 }, 'INVALID_ARGUMENT'],
        [{ attributes: [] }, 'INVALID_ARGUMENT'],
      ];

      expect([again.workflowID, holder.workflowID]).toEqual([first.workflowID, first.workflowID]);
      for (const [options, code] of refusals) {
        expect(await failureOf(enqueue(options)), JSON.stringify(options)).toMatchObject({ code });
      }
      await expect(client.send('nobody', 'message')).rejects.toMatchObject({ code: 'NON_EXISTENT_WORKFLOW' });
    });

    test('sends messages, and reads events and streams', async () => {
      const { client } = await setup(dialect);
      const telling = await client.enqueue({ queueName: 'q', workflowName: 'tell' }, 'hello');

      await client.send(telling.workflowID, 1, 'go', 'key');
      await client.send(telling.workflowID, 2, 'go', 'key');
      await client.send(telling.workflowID, 3, undefined, undefined, { serializationType: 'portable' });

      const values: unknown[] = [];
      for await (const value of client.readStream(telling.workflowID, 'stream')) values.push(value);
      expect(values).toEqual(['hello']);
      expect(await client.readStreamOffset(telling.workflowID, 'stream', 0)).toBe('hello');
      expect(await client.getEvent(telling.workflowID, 'event')).toBe('hello');
      const messages = await client.getAllNotifications(telling.workflowID);
      // In no order, for messages of two topics may have been sent within one millisecond.
      expect(new Set(messages.map(({ topic, message }) => [topic, message]))).toEqual(
        new Set([
          ['go', 1],
          [null, 3],
        ]),
      );
      expect(await client.getAllEvents(telling.workflowID)).toEqual({ event: 'hello' });
      expect(await client.getAllStreamEntries(telling.workflowID)).toEqual({ stream: ['hello'] });
      const steps = await client.listWorkflowSteps(telling.workflowID, { limit: 1 });
      expect(steps?.map(({ name }) => name)).toEqual(['DBOS.recv']);
    });

    test('moves what waits', async () => {
      const client = await connect(await dialect.createURL());
      const handle = await client.enqueue({ queueName: 'q', workflowName: 'w', priority: 3 });

      await client.setWorkflowPriority(handle.workflowID, 1);
      await client.setWorkflowDelay(handle.workflowID, { delaySeconds: 1000 });

      expect(await handle.getStatus()).toMatchObject({ status: 'DELAYED', priority: 1 });
      expect((await client.explainWorkflow(handle.workflowID)).message).toMatch(/delayed/i);
      expect(await client.getWorkflow('nobody')).toBeUndefined();
    });

    test('keeps queues of its application, and sees those of nobody', async () => {
      const url = await dialect.createURL();
      const client = await connect(url);
      const nameless = await connect(url, { applicationName: undefined });
      const names = async (queues: Promise<{ name: string }[]>) => (await queues).map(({ name }) => name);

      await client.registerQueue('own', { concurrency: 1 });
      await client.registerQueue('own', { concurrency: 2 });
      await client.registerQueue('own', { concurrency: 3, onConflict: 'never_update' });
      await client.registerQueue('foreign', { applicationName: 'other' });
      await nameless.registerQueue('free');

      expect(await (await client.retrieveQueue('own'))?.getConcurrency()).toBe(2);
      expect(await names(client.listQueues())).toEqual(['free', 'own']);
      expect(await names(client.listQueues(['other']))).toEqual(['foreign', 'free']);
      expect(await names(nameless.listQueues())).toEqual(['foreign', 'free', 'own']);
      await expect(client.registerQueue('own', { onConflict: 'update_if_latest_version' })).rejects.toThrow(
        /a client has no application version/,
      );
      await expect(client.registerQueue('foreign')).rejects.toThrow(/belongs to application "other"/);
      await client.deleteQueue('own');
      expect(await client.retrieveQueue('own')).toBeNull();
    });

    test('keeps schedules', async () => {
      const client = await connect(await dialect.createURL());
      const schedule = { scheduleName: 's', workflowName: 'w', schedule: '0 9 * * *', context: { at: new Date(0) } };

      await client.createSchedule({ ...schedule, options: { cronTimezone: 'Europe/Berlin', overlap: 'skip' } });
      await client.applySchedules([
        schedule,
        { ...schedule, scheduleName: 't', queueName: 'q', workflowClassName: 'C' },
      ]);
      await client.updateSchedule('s', { schedule: '0 8 * * *' });
      await client.pauseSchedule('s');

      expect(await client.getSchedule('s')).toMatchObject({
        status: 'PAUSED',
        schedule: '0 8 * * *',
        overlap: 'allow',
      });
      const [active] = await client.listSchedules({ status: 'ACTIVE' });
      expect(active).toMatchObject({ scheduleName: 't', workflowClassName: 'C', applicationName: 'test' });
      expect(active?.context).toEqual({ at: new Date(0) });
      expect((await client.nextRuns('s', 1))[0]?.getUTCHours()).toBe(8);
      const triggered = await client.triggerSchedule('t');
      expect(await triggered.getStatus()).toMatchObject({ queueName: 'q', scheduleName: 't', workflowName: 'w' });
      expect(await client.backfillSchedule('t', new Date('2020-01-01'), new Date('2020-01-03'))).toHaveLength(2);
      await client.resumeSchedule('s');
      await client.deleteSchedule('t');
      expect((await client.listSchedules()).map(({ scheduleName }) => scheduleName)).toEqual(['s']);
      await expect(client.createSchedule(schedule)).rejects.toThrow(/already exists/);
      await expect(client.createSchedule({ ...schedule, workflowName: '' })).rejects.toThrow(/needs a workflowName/);
    });

    test('reads and writes with its serializer, and knows handles and registered classes without one', async () => {
      const { DBOS, url, client } = await setup(dialect);
      client.registerSerialization(MONEY);
      engineOf(DBOS).runtime.codec.registerRecipe(MONEY);
      const upside = {
        name: () => 'upside-down',
        stringify: (value: unknown) => [...JSON.stringify(value)].reverse().join(''),
        parse: (text: string | null | undefined) => JSON.parse([...(text ?? 'llun')].reverse().join('')) as unknown,
      };
      const other = await connect(url, { serializer: upside });

      const target = client.retrieveWorkflow('target');
      const echoed = await client.enqueue({ queueName: 'q', workflowName: 'echo' }, [new Money(5), target]);
      const [money, handle] = (await echoed.getResult()) as [Money, typeof target];
      const stored = await other.enqueue({ queueName: 'elsewhere', workflowName: 'w' }, { a: 1 });

      expect(money).toEqual(new Money(5));
      expect(money).toBeInstanceOf(Money);
      expect(handle.workflowID).toBe('target');
      expect(await handle.getStatus()).toBeNull();
      expect(other.serializer).toBe(upside);
      expect((await stored.getStatus())?.input).toEqual([{ a: 1 }]);
      // Who cannot read it sees the text.
      expect((await client.getWorkflow(stored.workflowID))?.input).toBe(']}1:"a"{[');
    });
  });
});
