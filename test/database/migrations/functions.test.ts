// The two functions for callers who speak nothing but SQL.
import pg from 'pg';
import { describe, expect, it, onTestFinished } from 'vitest';
import { DBOSClient } from '../../../src/index.js';
import type { Database } from '../../../src/database/database.js';
import { onlyOn } from '../../rig/dialects.js';
import { execute, query } from './setup.js';

/** The SQLSTATE and text of the error that a statement raises. */
async function failure(database: Database, text: string): Promise<{ code: string; message: string; detail?: string }> {
  try {
    await execute(database, text);
  } catch (error) {
    return (error as { cause: { code: string; message: string; detail?: string } }).cause;
  }
  throw new Error(`no error from ${text}`);
}

const workflows = (database: Database): Promise<Readonly<Record<string, unknown>>[]> =>
  query(
    database,
    `SELECT w.*, i.inputs AS stored_input, i.retention_timestamp
     FROM dbos.workflow_status w LEFT JOIN dbos.workflow_input i USING (workflow_uuid)
     ORDER BY workflow_uuid`,
  );

const messages = (database: Database): Promise<Readonly<Record<string, unknown>>[]> =>
  query(database, 'SELECT * FROM dbos.notifications ORDER BY message_uuid');

onlyOn('postgres', (dialect) => {
  describe('enqueue_workflow', () => {
    it.each([
      [`authenticated_roles => 'admin'`, 'authenticated_roles must be a JSON array of strings'],
      [`authenticated_roles => '"admin"'`, 'authenticated_roles must be a JSON array of strings'],
      [`authenticated_roles => '[1]'`, 'authenticated_roles must be a JSON array of strings'],
      [`authenticated_roles => 'null'`, 'authenticated_roles must be a JSON array of strings'],
      ['timeout_ms => 9223372036854775807', 'timeout_ms must be <= 1000000000000000'],
      ['deadline_epoch_ms => 9223372036854775807', 'deadline_epoch_ms must be between 0 and'],
      ['deadline_epoch_ms => -1', 'deadline_epoch_ms must be between 0 and'],
      ['delay_until_epoch_ms => 9223372036854775807', 'delay_until_epoch_ms must be <='],
    ])('refuses %s', async (argument, message) => {
      const database = await dialect.create();

      const error = await failure(database, `SELECT dbos.enqueue_workflow('hello', 'mail', ${argument})`);

      expect(error.message).toContain(message);
      expect(await workflows(database)).toEqual([]);
    });

    it('takes a list of roles', async () => {
      const database = await dialect.create();

      await execute(database, `SELECT dbos.enqueue_workflow('hello', 'mail', authenticated_roles => '["a", "b"]')`);

      expect(await workflows(database)).toMatchObject([{ authenticated_roles: '["a", "b"]' }]);
    });

    it('needs only a name and a queue', async () => {
      const database = await dialect.create();

      const [row] = await query(database, `SELECT dbos.enqueue_workflow('hello', 'mail') AS id`);

      const [workflow] = await workflows(database);
      expect(row?.['id']).toMatch(/^[0-9a-f-]{36}$/);
      expect(workflow).toMatchObject({
        workflow_uuid: row?.['id'],
        status: 'ENQUEUED',
        name: 'hello',
        queue_name: 'mail',
        // DBOS 4 reads the one, DBOS 5 the other.
        inputs: '{"positionalArgs" : [], "namedArgs" : {}}',
        stored_input: '{"positionalArgs" : [], "namedArgs" : {}}',
        serialization: 'portable_json',
        class_name: null,
        config_name: null,
        application_version: null,
        application_name: null,
        workflow_timeout_ms: null,
        workflow_deadline_epoch_ms: null,
        deduplication_id: null,
        priority: 0,
        queue_partition_key: null,
        authenticated_user: null,
        authenticated_roles: null,
        delay_until_epoch_ms: null,
        executor_id: null,
        creator_xid: null,
      });
      expect(Number(workflow?.['recovery_attempts'])).toBe(0);
      expect(workflow?.['owner_xid']).toMatch(/^[0-9a-f-]{36}$/);
      expect(Number(workflow?.['created_at'])).toBeGreaterThan(1_700_000_000_000);
      expect(workflow?.['updated_at']).toEqual(workflow?.['created_at']);
      expect(workflow?.['retention_timestamp']).toEqual(workflow?.['created_at']);
    });

    it('stores every parameter', async () => {
      const database = await dialect.create();

      const [row] = await query(
        database,
        `SELECT dbos.enqueue_workflow(
           'hello', 'mail', ARRAY['1', '"a"', '{"x": [1,2]}']::JSON[], '{"k":  1}', 'Class', 'config', 'w1', 'v1',
           1000, 2000, 'once', 7, 'partition', 'user', '["admin"]', 3000, 'shop') AS id`,
      );

      expect(row).toEqual({ id: 'w1' });
      const [workflow] = await workflows(database);
      expect(workflow).toMatchObject({
        workflow_uuid: 'w1',
        status: 'DELAYED',
        stored_input: '{"positionalArgs" : [1,"a",{"x": [1,2]}], "namedArgs" : {"k":  1}}',
        class_name: 'Class',
        config_name: 'config',
        application_version: 'v1',
        deduplication_id: 'once',
        priority: 7,
        queue_partition_key: 'partition',
        authenticated_user: 'user',
        authenticated_roles: '["admin"]',
        application_name: 'shop',
      });
      expect(
        ['workflow_timeout_ms', 'workflow_deadline_epoch_ms', 'delay_until_epoch_ms'].map((name) =>
          Number(workflow?.[name]),
        ),
      ).toEqual([1000, 2000, 3000]);
    });

    it('delays a workflow even if its time has passed', async () => {
      const database = await dialect.create();

      await execute(database, `SELECT dbos.enqueue_workflow('hello', 'mail', delay_until_epoch_ms => 0)`);

      expect((await workflows(database))[0]).toMatchObject({ status: 'DELAYED' });
    });

    it.each([
      [`NULL, 'q'`, 'Workflow name cannot be null or empty'],
      [`'', 'q'`, 'Workflow name cannot be null or empty'],
      [`'w', NULL`, 'Queue name cannot be null or empty'],
      [`'w', ''`, 'Queue name cannot be null or empty'],
      [`'w', 'q', named_args => '[1]'`, 'Named args must be a JSON object'],
      [`'w', 'q', named_args => 'null'`, 'Named args must be a JSON object'],
      [`'w', 'q', workflow_id => ''`, 'Workflow ID cannot be an empty string if provided.'],
      [`'w', 'q', delay_until_epoch_ms => -1`, 'delay_until_epoch_ms must be >= 0'],
    ])('refuses (%s)', async (parameters, message) => {
      const database = await dialect.create();

      const error = await failure(database, `SELECT dbos.enqueue_workflow(${parameters})`);

      expect(error).toMatchObject({ code: 'P0001', message });
      expect(await workflows(database)).toEqual([]);
    });

    it('refuses a second workflow with the same deduplication ID in the queue', async () => {
      const database = await dialect.create();
      await execute(database, `SELECT dbos.enqueue_workflow('w', 'q', workflow_id => 'a', deduplication_id => 'd')`);

      const error = await failure(
        database,
        `SELECT dbos.enqueue_workflow('w', 'q', workflow_id => 'b', deduplication_id => 'd')`,
      );

      expect(error).toMatchObject({
        code: '23505',
        message: 'DBOS queue duplicated',
        detail: 'Workflow b with queue q and deduplication ID d already exists',
      });
      expect(await workflows(database)).toHaveLength(1);
    });

    it('allows the same deduplication ID in another queue', async () => {
      const database = await dialect.create();

      await execute(
        database,
        `SELECT dbos.enqueue_workflow('w', 'q1', deduplication_id => 'd');
         SELECT dbos.enqueue_workflow('w', 'q2', deduplication_id => 'd')`,
      );

      expect(await workflows(database)).toHaveLength(2);
    });

    it('returns an ID that exists and changes nothing but the time of the update', async () => {
      const database = await dialect.create();
      await execute(
        database,
        `SELECT dbos.enqueue_workflow('w', 'q', ARRAY['1']::JSON[], workflow_id => 'a', deduplication_id => 'd');
         UPDATE dbos.workflow_status SET updated_at = 1`,
      );
      const [before] = await workflows(database);

      const [row] = await query(
        database,
        `SELECT dbos.enqueue_workflow('w', 'q2', ARRAY['2']::JSON[], workflow_id => 'a', priority => 9) AS id`,
      );

      const [after] = await workflows(database);
      expect(row).toEqual({ id: 'a' });
      expect({ ...after, updated_at: 1 }).toEqual({ ...before, updated_at: 1 });
      expect(Number(after?.['updated_at'])).toBeGreaterThan(1);
    });

    it.each([
      [`'other', 'q', class_name => 'C', config_name => 'c'`, 'it runs w, not other'],
      [`'w', 'q', class_name => 'D', config_name => 'c'`, 'it belongs to class C, not D'],
      [`'w', 'q', config_name => 'c'`, 'it belongs to class C, not '],
      [`'w', 'q', class_name => 'C'`, 'it belongs to instance c, not '],
    ])(
      'refuses an ID under which another function runs, as startWorkflow does: (%s)',
      async (parameters, difference) => {
        const database = await dialect.create();
        const first = `'w', 'q', class_name => 'C', config_name => 'c', workflow_id => 'a'`;
        await execute(database, `SELECT dbos.enqueue_workflow(${first})`);
        const before = await workflows(database);

        const error = await failure(database, `SELECT dbos.enqueue_workflow(${parameters}, workflow_id => 'a')`);

        const detail = `Workflow a already exists: ${difference}`;
        expect(error).toMatchObject({ code: '22023', message: 'DBOS workflow conflict', detail });
        expect(await workflows(database)).toEqual(before);
      },
    );

    it('warns of an ID that is in another queue, as startWorkflow does', async () => {
      const client = new pg.Client(await dialect.createURL());
      await client.connect();
      onTestFinished(() => client.end());
      const notices: unknown[] = [];
      client.on('notice', ({ severity, message }) => void notices.push([severity, message]));

      for (const queue of ['q', 'q', 'q2'])
        await client.query(`SELECT dbos.enqueue_workflow('w', $1, workflow_id => 'a')`, [queue]);

      expect(notices).toEqual([['WARNING', 'Workflow a already exists in queue q; it was not enqueued in q2']]);
    });

    it('does not put another input before the one that a workflow was started with', async () => {
      const database = await dialect.create();
      await execute(
        database,
        `INSERT INTO dbos.workflow_status (workflow_uuid, name, inputs) VALUES ('a', 'w', 'the first')`,
      );

      await execute(database, `SELECT dbos.enqueue_workflow('w', 'q', workflow_id => 'a')`);

      expect((await workflows(database))[0]).toMatchObject({ inputs: 'the first', stored_input: null });
    });

    it('does not take the input of a deleted workflow for that of a new one', async () => {
      const database = await dialect.create();
      await execute(
        database,
        `SELECT dbos.enqueue_workflow('w', 'q', ARRAY['1']::JSON[], workflow_id => 'a'); DELETE FROM dbos.workflow_status`,
      );

      await execute(database, `SELECT dbos.enqueue_workflow('w', 'q', ARRAY['2']::JSON[], workflow_id => 'a')`);

      expect((await workflows(database))[0]).toMatchObject({
        stored_input: '{"positionalArgs" : [2], "namedArgs" : {}}',
      });
    });

    it('cannot be led astray by the search path of the caller', async () => {
      const database = await dialect.create();

      await execute(
        database,
        `CREATE SCHEMA evil;
         CREATE FUNCTION evil.gen_random_uuid() RETURNS UUID LANGUAGE sql AS 'SELECT NULL::UUID';
         SET search_path = evil, pg_catalog;
         SELECT dbos.enqueue_workflow('w', 'q');
         RESET search_path`,
      );

      expect((await workflows(database))[0]?.['workflow_uuid']).toMatch(/^[0-9a-f-]{36}$/);
    });
  });

  describe('send_message', () => {
    it('stores a message under a fresh ID and the topic of messages without one', async () => {
      const database = await dialect.create();
      await execute(database, `INSERT INTO dbos.workflow_status (workflow_uuid) VALUES ('w')`);

      await execute(database, `SELECT dbos.send_message('w', '{"a":  1}')`);

      const [message] = await messages(database);
      expect(message).toMatchObject({
        destination_uuid: 'w',
        topic: '__null__topic__',
        message: '{"a":  1}',
        serialization: 'portable_json',
        consumed: false,
        consumed_by_function_id: null,
      });
      expect(message?.['message_uuid']).toMatch(/^[0-9a-f-]{36}$/);
    });

    it('stores a message ID once', async () => {
      const database = await dialect.create();
      await execute(database, `INSERT INTO dbos.workflow_status (workflow_uuid) VALUES ('w')`);

      await execute(
        database,
        `SELECT dbos.send_message('w', '"first"', 'topic', 'm1'); SELECT dbos.send_message('w', '"second"', 'topic', 'm1')`,
      );

      expect(await messages(database)).toMatchObject([{ message_uuid: 'm1::w', topic: 'topic', message: '"first"' }]);
    });

    it('takes the same message ID for another workflow', async () => {
      const database = await dialect.create();
      await execute(database, `INSERT INTO dbos.workflow_status (workflow_uuid) VALUES ('w'), ('x')`);

      await execute(database, `SELECT dbos.send_message(id, '1', 'topic', 'm1') FROM (VALUES ('w'), ('x')) AS v(id)`);

      expect(await messages(database)).toHaveLength(2);
    });

    it.each(['m1', 'a::b', 'ü:::'])(
      'and DBOS.send with the idempotency key %s make one message, whichever comes first',
      async (key) => {
        const url = await dialect.createURL();
        const database = await dialect.open(url);
        const client = await DBOSClient.create({ systemDatabaseUrl: url });
        onTestFinished(() => client.destroy());
        await execute(database, `INSERT INTO dbos.workflow_status (workflow_uuid) VALUES ('w'), ('x')`);
        const sendBySQL = (workflowID: string) =>
          execute(database, `SELECT dbos.send_message('${workflowID}', '"by SQL"', 'topic', '${key}')`);

        await sendBySQL('w');
        await client.send('w', 'by a client', 'topic', key);
        await client.send('x', 'by a client', 'topic', key);
        await sendBySQL('x');

        expect((await messages(database)).map((message) => message['destination_uuid'])).toEqual(['w', 'x']);
      },
    );

    it('does not repeat a message that an earlier version stored under the bare ID', async () => {
      const database = await dialect.create();
      await execute(
        database,
        `INSERT INTO dbos.workflow_status (workflow_uuid) VALUES ('w');
         INSERT INTO dbos.notifications (message_uuid, destination_uuid, topic, message) VALUES ('m1', 'w', 'topic', '1')`,
      );

      await execute(database, `SELECT dbos.send_message('w', '1', 'topic', 'm1')`);

      expect(await messages(database)).toHaveLength(1);
    });

    it('refuses a destination that does not exist', async () => {
      const database = await dialect.create();

      const error = await failure(database, `SELECT dbos.send_message('nobody', '1')`);

      expect(error).toMatchObject({
        code: '23503',
        message: 'DBOS non-existent workflow',
        detail: 'Destination workflow nobody does not exist',
      });
    });
  });
});
