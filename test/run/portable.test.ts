// Data that programs in other languages read and write, held against fixed texts in both directions.
import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type Sql, sql, table } from '../../src/kernel/sql/sql.js';
import type { TestSettings } from '../../src/faces/library/dbos.js';
import type { Database } from '../../src/database/database.js';
import { INTERNAL_QUEUE } from '../../src/features/queue/queue.js';
import { forEachDialect, onlyOn, type TestDialect } from '../rig/dialects.js';
import { createEngine } from '../rig/engines.js';
import { patientClock } from '../rig/patient-clock.js';
import { failureOf } from './succession.js';

async function setup(dialect: TestDialect, settings?: TestSettings) {
  const { DBOS, url } = await createEngine(dialect, { applicationVersion: 'v1' }, settings);
  const everything = DBOS.registerWorkflow(
    async (when: Date | string, count: bigint | string) => {
      await DBOS.runStep(async () => new Set([1]), { name: 'native step' });
      await DBOS.setEvent('event', new Map([['a', 1n]]));
      await DBOS.setEvent('native event', 1, { serializationType: 'native' });
      await DBOS.writeStream('stream', new Date(0));
      await DBOS.closeStream('stream');
      await DBOS.send('receiver', { when });
      return [when, count, new Error('inner')];
    },
    { name: 'everything', serialization: 'portable' },
  );
  const receiver = DBOS.registerWorkflow(() => DBOS.recv(undefined, 20), { name: 'receiver' });
  const fails = DBOS.registerWorkflow(
    async () => {
      throw Object.assign(new RangeError('too far'), { code: 'E_FAR', data: { by: 3 } });
    },
    { name: 'fails', serialization: 'portable' },
  );
  return { DBOS, url, database: await dialect.open(url), everything, receiver, fails };
}

/** The texts and formats of one column pair, in order. */
async function texts(database: Database, statement: Sql): Promise<unknown[]> {
  return (await database.read(statement)).map((row) => [row['value'], row['serialization']]);
}

describe('portable data', () => {
  forEachDialect((dialect) => {
    test('a portable workflow writes texts that every language reads', async () => {
      const { DBOS, database, everything, receiver } = await setup(dialect);
      await DBOS.launch();
      const received = await DBOS.startWorkflow(receiver, { workflowID: 'receiver' })();

      const handle = await DBOS.startWorkflow(everything, { workflowID: 'w' })(new Date(0), 12345678901234567890n);
      const result = await handle.getResult();

      expect(result).toEqual(['1970-01-01T00:00:00.000Z', '12345678901234567890', { name: 'Error', message: 'inner' }]);
      expect(await received.getResult()).toEqual({ when: '1970-01-01T00:00:00.000Z' });
      const [workflow] = await database.read(sql`
        SELECT w.inputs, w.output, w.serialization FROM ${table('workflow_status')} AS w WHERE w.workflow_uuid = 'w'`);
      expect(workflow).toEqual({
        inputs: '{"positionalArgs":["1970-01-01T00:00:00.000Z","12345678901234567890"]}',
        output: '["1970-01-01T00:00:00.000Z","12345678901234567890",{"name":"Error","message":"inner"}]',
        serialization: 'portable_json',
      });
      expect(
        await texts(
          database,
          sql`SELECT e.value, e.serialization FROM ${table('workflow_events')} AS e ORDER BY e.key`,
        ),
      ).toEqual([
        ['{"a":"1"}', 'portable_json'],
        ['{"json":1,"__dbos_serializer":"superjson"}', 'js_superjson'],
      ]);
      expect(
        await texts(database, sql`SELECT s.value, s.serialization FROM ${table('streams')} AS s ORDER BY s."offset"`),
      ).toEqual([
        ['"1970-01-01T00:00:00.000Z"', 'portable_json'],
        ['"__DBOS_STREAM_CLOSED__"', 'portable_json'],
      ]);
      expect(
        await texts(database, sql`SELECT n.message AS value, n.serialization FROM ${table('notifications')} AS n`),
      ).toEqual([['{"when":"1970-01-01T00:00:00.000Z"}', 'portable_json']]);
      expect(
        await texts(
          database,
          sql`
          SELECT o.output AS value, o.serialization FROM ${table('operation_outputs')} AS o
          WHERE o.workflow_uuid = 'w' ORDER BY o.function_id`,
        ),
      ).toEqual([
        ['{"json":[1],"meta":{"values":["set"]},"__dbos_serializer":"superjson"}', 'js_superjson'],
        ...Array.from({ length: 5 }, () => ['null', 'portable_json']),
      ]);
      expect(
        await texts(
          database,
          sql`
          SELECT o.output AS value, o.serialization FROM ${table('operation_outputs')} AS o
          WHERE o.workflow_uuid = 'receiver' AND o.function_id = 0`,
        ),
      ).toEqual([['{"when":"1970-01-01T00:00:00.000Z"}', 'portable_json']]);
    });

    test('the error of a portable workflow is portable, for its first caller too', async () => {
      const { DBOS, database, fails } = await setup(dialect);
      await DBOS.launch();

      const first = await failureOf(
        DBOS.startWorkflow(fails, { workflowID: 'w' })().then((handle) => handle.getResult()),
      );
      const later = await failureOf(DBOS.retrieveWorkflow('w').getResult());

      const expected = { name: 'RangeError', message: 'too far', code: 'E_FAR', data: { by: 3 } };
      expect(first).toMatchObject(expected);
      expect(first.constructor.name).toBe('PortableWorkflowError');
      expect(later).toMatchObject(expected);
      expect(
        await texts(database, sql`SELECT w.error AS value, w.serialization FROM ${table('workflow_status')} AS w`),
      ).toEqual([['{"name":"RangeError","message":"too far","code":"E_FAR","data":{"by":3}}', 'portable_json']]);
    });

    test('what other languages have written is read: inputs with names, messages, events, streams, errors', async () => {
      const { DBOS, database } = await setup(dialect);
      const takes = DBOS.registerWorkflow(
        async (a: number, b: string, named?: { c: number }) => [a, b, named, await DBOS.recv('t', 20)],
        { name: 'takes' },
      );
      expect(takes).toBeTypeOf('function');
      await DBOS.launch();
      const status = table('workflow_status');
      await database.run(sql`
        INSERT INTO ${status} (workflow_uuid, status, name, queue_name, inputs, serialization, error)
        VALUES
          ('w', 'ENQUEUED', 'takes', ${INTERNAL_QUEUE}, '{"positionalArgs": [1, "ü"], "namedArgs": {"c": 3}}', 'portable_json', NULL),
          ('failed', 'ERROR', 'other', NULL, '{"positionalArgs": []}', 'portable_json',
            '{"name": "ValueError", "message": "bad", "code": 7}')`);
      await database.run(sql`
        INSERT INTO ${table('notifications')} (destination_uuid, topic, message, serialization)
        VALUES ('w', 't', '{"from": "elsewhere"}', 'portable_json')`);
      await database.run(sql`
        INSERT INTO ${table('workflow_events')} (workflow_uuid, key, value, serialization)
        VALUES ('failed', 'k', '[1, 2]', 'portable_json')`);
      await database.run(sql`
        INSERT INTO ${table('streams')} (workflow_uuid, key, value, "offset", serialization)
        VALUES ('failed', 's', '"a"', 0, 'portable_json'), ('failed', 's', '"__DBOS_STREAM_CLOSED__"', 1, 'portable_json')`);
      await DBOS.resumeWorkflow('w');

      expect(await DBOS.retrieveWorkflow('w').getResult()).toEqual([1, 'ü', { c: 3 }, { from: 'elsewhere' }]);
      expect(await failureOf(DBOS.retrieveWorkflow('failed').getResult())).toMatchObject({
        name: 'ValueError',
        code: 7,
      });
      expect(await DBOS.getEvent('failed', 'k', 0)).toEqual([1, 2]);
      expect(await DBOS.getAllStreamEntries('failed')).toEqual({ s: ['a'] });
    });

    test('a format that is not available is named in the error, and does not stop the others', async () => {
      const { DBOS, database, receiver } = await setup(dialect);
      await DBOS.launch();
      const handle = await DBOS.startWorkflow(receiver, { workflowID: 'w' })();
      await database.run(sql`
        INSERT INTO ${table('workflow_events')} (workflow_uuid, key, value, serialization)
        VALUES ('w', 'k', 'gASVAQ==', 'py_pickle')`);
      await DBOS.send('w', 1);
      await handle.getResult();

      expect((await failureOf(DBOS.getEvent('w', 'k', 0))).message).toBe(
        'Value deserialization type py_pickle is not available',
      );
      expect(await DBOS.getAllEvents('w')).toEqual({ k: 'gASVAQ==' });
    });

    test('a context makes the workflows and messages in it portable', async () => {
      const { DBOS, database, receiver } = await setup(dialect);
      await DBOS.launch();

      const handle = await DBOS.runWithContext({ serializationType: 'portable' }, async () => {
        const started = await DBOS.startWorkflow(receiver, { workflowID: 'w' })();
        await DBOS.send('w', new Date(0));
        return started;
      });

      expect(await handle.getResult()).toBe('1970-01-01T00:00:00.000Z');
      expect(
        await texts(database, sql`SELECT w.inputs AS value, w.serialization FROM ${table('workflow_status')} AS w`),
      ).toEqual([['{"positionalArgs":[]}', 'portable_json']]);
    });
  });

  onlyOn('postgres', (dialect) => {
    test('plain SQL starts a workflow and wakes its receive at once', async () => {
      // Without a poll, only the triggers of the functions can wake it.
      const { DBOS, url } = await setup(dialect, { clock: patientClock });
      DBOS.registerWorkflow(
        async (greeting: string, named: { name: string }) => {
          await DBOS.setEvent('ready', true);
          const message = await DBOS.recv<{ n: number }>('numbers', 20);
          return `${greeting} ${named.name} ${message?.n}`;
        },
        { name: 'greet' },
      );
      await DBOS.launch();
      const stranger = new pg.Client(url);
      await stranger.connect();
      onTestFinished(() => stranger.end());

      const { rows } = await stranger.query<{ id: string }>(
        `SELECT dbos.enqueue_workflow('greet', $1, ARRAY['"hello"'::json], '{"name": "Ada"}') AS id`,
        [INTERNAL_QUEUE],
      );
      const workflowID = rows[0]?.id ?? '';
      await DBOS.getEvent(workflowID, 'ready', 20);
      await stranger.query(`SELECT dbos.send_message($1, '{"n": 7}', 'numbers', 'once')`, [workflowID]);
      await stranger.query(`SELECT dbos.send_message($1, '{"n": 8}', 'numbers', 'once')`, [workflowID]);

      expect(await DBOS.retrieveWorkflow(workflowID).getResult()).toBe('hello Ada 7');
    });
  });
});
