// Conditions of the database that pass: the writer waits, so that none becomes the outcome of a workflow.
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/kernel/base/clock.js';
import { silentLogger } from '../../../src/kernel/base/log.js';
import { sql, table } from '../../../src/kernel/sql/sql.js';
import type { Database } from '../../../src/database/database.js';
import { Writer, type WriterOptions } from '../../../src/run/writer/writer.js';
import { forEachDialect, onlyOn } from '../../rig/dialects.js';
import { until } from '../../rig/manual-clock.js';
import { postgresURL } from '../../rig/postgres-url.js';
import { newWorkflow, step } from '../../rig/records.js';

function writerOn(database: Database, options: Partial<WriterOptions> = {}) {
  const warnings: string[] = [];
  const logger = { ...silentLogger, warn: (entry: unknown) => void warnings.push(String(entry)) };
  return { writer: new Writer(database, { clock: systemClock, logger, isPatient: true, ...options }), warnings };
}

/** Lets every insert of a checkpoint fail with a SQLSTATE until the returned function is called. */
async function failCheckpoints(database: Database, state: string): Promise<() => Promise<unknown>> {
  const steps = table('operation_outputs');
  await database.run(sql`
    CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'for a moment' USING ERRCODE = TG_ARGV[0]; END $$`);
  await database.exclusive((connection) =>
    connection.script(
      `CREATE TRIGGER fail BEFORE INSERT ON dbos.operation_outputs FOR EACH ROW EXECUTE FUNCTION fail('${state}')`,
    ),
  );
  return () => database.run(sql`DROP TRIGGER fail ON ${steps}`);
}

describe('conditions', () => {
  onlyOn('postgres', (dialect) => {
    test.each([
      ['57014', 'a statement timeout or a cancellation'],
      ['25006', 'a read-only server during a failover'],
      ['28000', 'a refused login'],
      ['42501', 'a missing privilege'],
      ['58030', 'an I/O error'],
      ['53100', 'a full disk'],
      ['XX000', 'an internal error'],
    ])('%s, %s, is waited out: nothing is rejected', async (state) => {
      const database = await dialect.create();
      const { writer, warnings } = writerOn(database);
      const workflow = newWorkflow();
      await writer.start(workflow);
      const recover = await failCheckpoints(database, state);

      const written = writer.checkpoint({ owner: workflow.creator, step: step(workflow.workflowID, 0) });
      const finished = writer.finish({
        ...workflow,
        owner: workflow.creator,
        status: 'SUCCESS',
        output: '',
        error: null,
      });
      await until(() => warnings.length > 0);
      await recover();

      expect(await written).toBe('recorded');
      expect(await finished).toBe('recorded');
    });

    test('a client does not wait for privileges that it lacks', async () => {
      const database = await dialect.create();
      const { writer } = writerOn(database, { isPatient: false });
      const workflow = newWorkflow();
      await writer.start(workflow);
      await failCheckpoints(database, '42501');

      const written = writer.checkpoint({ owner: workflow.creator, step: step(workflow.workflowID, 0) });

      await expect(written).rejects.toMatchObject({ code: 'DATABASE_ACCESS' });
    });

    test.each([
      ['our own sessions', {}],
      ['sessions of a pooler, which takes no settings', { isTransactionPooler: true }],
    ])("a role's statement timeout does not end a commit that waits: %s", async (_, options) => {
      const url = await dialect.createURL();
      const admin = await dialect.open(url);
      await admin.exclusive((connection) =>
        connection.script(`ALTER DATABASE "${new URL(url).pathname.slice(1)}" SET statement_timeout = '100ms'`),
      );
      const database = await dialect.open(url, options);
      const { writer, warnings } = writerOn(database);
      const workflow = newWorkflow();
      await writer.start(workflow);

      const { written } = await admin.transaction(async (tx) => {
        await tx.run(sql`LOCK TABLE ${table('operation_outputs')} IN SHARE MODE`);
        const waiting = writer.checkpoint({ owner: workflow.creator, step: step(workflow.workflowID, 0) });
        // By the lock timeout, which is longer.
        await until(() => warnings.length > 0);
        return { written: waiting };
      });

      expect(await written).toBe('recorded');
      expect(warnings.filter((warning) => warning.includes('57014'))).toEqual([]);
    });

    test('a session of a server that was read-only is given up', async () => {
      const url = await dialect.createURL();
      const name = new URL(url).pathname.slice(1);
      // Not through a pooler: what it does must not depend on the sessions that the pooler has.
      const admin = await dialect.open(Object.assign(new URL(await postgresURL()), { pathname: name }).href);
      const setReadOnly = (isReadOnly: boolean) =>
        admin.exclusive((connection) =>
          connection.script(
            `ALTER DATABASE "${name}" SET default_transaction_read_only = ${isReadOnly ? 'on' : 'off'}`,
          ),
        );
      await setReadOnly(true);
      const { writer, warnings } = writerOn(await dialect.open(url, { poolSize: 1 }));

      const started = writer.start(newWorkflow());
      await until(() => warnings.length > 0);
      await setReadOnly(false);

      expect((await started).kind).toBe('created');
    });
  });

  forEachDialect((dialect) => {
    test('a disk that is full for a moment fails nothing', async () => {
      const database = await dialect.create();
      const { writer, warnings } = writerOn(database);
      const workflow = newWorkflow();
      await writer.start(workflow);
      const makeRoom = await fillDisk(database);

      const output = 'x'.repeat(1_000_000);
      const written = writer.checkpoint({ owner: workflow.creator, step: step(workflow.workflowID, 0, { output }) });
      await until(() => warnings.length > 0);
      await makeRoom();

      expect(await written).toBe('recorded');
    });
  });
});

async function fillDisk(database: Database): Promise<() => Promise<unknown>> {
  if (database.dialect.name === 'postgres') return failCheckpoints(database, '53100');
  const limitTo = (pages: number) =>
    database.exclusive((connection) => connection.script(`PRAGMA max_page_count = ${pages}`));
  await limitTo(1);
  return () => limitTo(1_000_000);
}
