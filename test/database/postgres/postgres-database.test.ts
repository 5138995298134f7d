import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { newID } from '../../../src/kernel/base/ids.js';
import {
  CommitUnknownError,
  DatabaseAccessError,
  DatabaseUnavailableError,
  InvalidDatabaseURLError,
} from '../../../src/kernel/errors/database-errors.js';
import { sql } from '../../../src/kernel/sql/sql.js';
import { PostgresDatabase } from '../../../src/database/postgres/postgres-database.js';
import { insertCheckpoints } from '../../../src/run/rows/steps.js';
import { findWorkflows, finishIfOwned, insertWorkflows } from '../../../src/run/rows/workflows.js';
import { onlyOn } from '../../rig/dialects.js';
import { postgresURL } from '../../rig/postgres-url.js';
import { startPooler } from '../../rig/pooler.js';
import { startProxy } from '../../rig/proxy.js';
import { newWorkflow, step } from '../../rig/records.js';

async function failure(promise: Promise<unknown>): Promise<Error> {
  return promise.then(
    () => Promise.reject(new Error('it succeeded')),
    (error: unknown) => error as Error,
  );
}

describe('PostgresDatabase', () => {
  onlyOn('postgres', (dialect) => {
    test.each([
      ['not a url', /cannot be parsed/],
      ['postgresql://user@host', /missing required field\(s\): database name/],
      ['postgresql:///db', /missing required field\(s\): username, hostname/],
      ['postgresql://user:s3cret@host:notaport/db', /cannot be parsed/],
    ])('the URL %s is refused at once, without its password', (url, message) => {
      const open = () => new PostgresDatabase({ url });

      expect(open).toThrow(InvalidDatabaseURLError);
      expect(open).toThrow(message);
      expect(open).not.toThrow(/s3cret/);
    });

    test('a server that is not there is reported by place, without the password', async () => {
      const database = await dialect.open('postgresql://user:s3cret@127.0.0.1:1/db');

      const error = await failure(database.read(sql`SELECT 1`));

      expect(error).toBeInstanceOf(DatabaseUnavailableError);
      expect(error.message).toContain('127.0.0.1:1/db');
      expect(error.message + String((error.cause as Error).stack)).not.toContain('s3cret');
    });

    test('a database that does not exist and a role without rights are reported as such', async () => {
      const url = await dialect.createURL();
      const missing = await dialect.open(url.replace(/\/\w+$/, '/no_such_database'));
      const owner = await dialect.open(url);
      const role = `role_${newID().replaceAll('-', '')}`;
      await owner.exclusive((connection) => connection.script(`CREATE ROLE ${role} LOGIN`));
      onTestFinished(() => dropRole(role));
      const stranger = await dialect.open(url.replace('postgres:postgres@', `${role}@`));

      const errors = [
        await failure(missing.read(sql`SELECT 1`)),
        await failure(stranger.read(sql`SELECT 1 FROM dbos.workflow_status`)),
      ];

      expect(errors[0]).toBeInstanceOf(DatabaseUnavailableError);
      expect(errors[0]?.message).toMatch(/does not exist.*Create it/);
      expect(errors[1]).toBeInstanceOf(DatabaseAccessError);
      expect(errors[1]?.message).toMatch(/permission denied.*privileges/);
    });

    test('a broken connection is replaced, and a read that broke can simply be repeated', async () => {
      const proxy = await startProxy(await dialect.createURL());
      const database = await dialect.open(proxy.url, { poolSize: 1 });
      await database.read(sql`SELECT 1`);

      proxy.loseNextAnswer();
      const error = await failure(database.read(sql`SELECT 1 AS one`));

      expect(error).toBeInstanceOf(DatabaseUnavailableError);
      expect(await database.read(sql`SELECT 1 AS one`)).toEqual([{ one: 1 }]);
    });

    test('a write whose answer is lost is of unknown outcome', async () => {
      const proxy = await startProxy(await dialect.createURL());
      const database = await dialect.open(proxy.url, { poolSize: 1 });
      const workflow = newWorkflow();
      await database.read(sql`SELECT 1`);

      proxy.loseNextAnswer();
      const error = await failure(database.run(insertWorkflows([workflow])));

      expect(error).toBeInstanceOf(CommitUnknownError);
      expect(await findWorkflows(database, [workflow.workflowID])).toHaveLength(1);
    });

    test('a connection lost inside a transaction undoes it; lost at its COMMIT, nobody knows', async () => {
      const proxy = await startProxy(await dialect.createURL());
      const database = await dialect.open(proxy.url, { poolSize: 1 });
      const [inside, atCommit] = [newWorkflow(), newWorkflow()];
      await database.read(sql`SELECT 1`);

      const lostInside = await failure(
        database.transaction(async (tx) => {
          await tx.run(insertWorkflows([inside]));
          proxy.loseNextAnswer();
          await tx.run(sql`SELECT 1`);
        }),
      );
      const lostAtCommit = await failure(
        database.transaction(async (tx) => {
          await tx.run(insertWorkflows([atCommit]));
          proxy.loseNextAnswer();
        }),
      );

      expect(lostInside).toBeInstanceOf(DatabaseUnavailableError);
      expect(lostAtCommit).toBeInstanceOf(CommitUnknownError);
      expect(await findWorkflows(database, [inside.workflowID])).toEqual([]);
      expect(await findWorkflows(database, [atCommit.workflowID])).toHaveLength(1);
    });

    test('a session that the administrator ends is replaced', async () => {
      const url = await dialect.createURL();
      const database = await dialect.open(url, { poolSize: 1 });
      const other = await dialect.open(url);
      await database.read(sql`SELECT 1`);

      await other.read(sql`
        SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()`);
      // The pool may notice the loss before or after the next use.
      await database
        .read(sql`SELECT 1`)
        .catch((error: unknown) => expect(error).toBeInstanceOf(DatabaseUnavailableError));

      expect(await database.read(sql`SELECT 1 AS one`)).toEqual([{ one: 1 }]);
    });

    test('our sessions have their name, their time limit for idle transactions, their planner settings and no JIT', async () => {
      const url = await dialect.createURL();
      const database = await dialect.open(url, { applicationName: 'my app', idleTransactionTimeoutMs: 7000 });
      const settings = sql`
        SELECT current_setting('application_name') AS name,
          current_setting('idle_in_transaction_session_timeout') AS timeout,
          current_setting('enable_seqscan') AS seqscan,
          current_setting('jit') AS jit,
          current_setting('work_mem') AS memory`;
      const withOptions = await dialect.open(
        `${url}?options=${encodeURIComponent('-c work_mem=7MB -c idle_in_transaction_session_timeout=3000')}`,
      );

      expect(await database.read(settings)).toMatchObject([
        { name: 'my app', timeout: '7s', seqscan: 'off', jit: 'off' },
      ]);
      expect(await withOptions.read(settings)).toMatchObject([
        { timeout: '3s', memory: '7MB', seqscan: 'off', jit: 'off' },
      ]);
    });

    test.each(['refuses', 'ignores'] as const)(
      'our sessions have their settings behind a pooler that %s startup options',
      async (treatment) => {
        const database = await dialect.open(await startPooler(await dialect.createURL(), treatment));

        expect(await database.read(plannerSettings)).toEqual([{ seqscan: 'off', jit: 'off' }]);
        expect(await database.transaction((tx) => tx.run(plannerSettings))).toEqual([{ seqscan: 'off', jit: 'off' }]);
      },
    );

    test('statements have our planner settings in sessions that are not ours, which keep their own', async () => {
      const connectionString = await dialect.createURL();
      const pool = new pg.Pool({ connectionString, max: 1 });
      onTestFinished(() => pool.end());
      const shared = await dialect.open(connectionString, { pool });
      const pooled = await dialect.open(connectionString, { poolSize: 1, isTransactionPooler: true });

      for (const database of [shared, pooled]) {
        const ours = [{ seqscan: 'off', jit: 'off' }];
        expect(await database.read(plannerSettings)).toEqual(ours);
        expect(await database.commit([sql`SELECT 1 AS one`, plannerSettings])).toEqual([[{ one: 1 }], ours]);
        expect(await database.transaction((tx) => tx.run(plannerSettings))).toEqual(ours);
      }

      const { rows: after } = await pool.query("SELECT current_setting('enable_seqscan') AS seqscan");
      expect(after).toEqual([{ seqscan: 'on' }]);
    });

    test('statements are prepared under names once a connection, and not at all behind a transaction pooler', async () => {
      const url = await dialect.createURL();
      const names = sql`SELECT count(*) AS count FROM pg_prepared_statements WHERE name LIKE 'everstep%'`;
      const direct = await dialect.open(url, { poolSize: 1 });
      const pooled = await dialect.open(url, { poolSize: 1, isTransactionPooler: true });

      for (const database of [direct, pooled]) for (let n = 0; n < 3; n += 1) await database.read(names);

      expect(await direct.read(names)).toEqual([{ count: 1 }]);
      expect(await pooled.read(names)).toEqual([{ count: 0 }]);
    });

    test.each([1, 2, 5, 40])('a commit of %i workflows is planned a few times, and not each time', async (count) => {
      const database = await dialect.open(await dialect.createURL(), { poolSize: 1 });
      const times = 20;

      for (let time = 0; time < times; time += 1) {
        const workflows = Array.from({ length: count }, () => newWorkflow({ owner: 'o' }));
        const checkpoints = workflows.map(({ workflowID }) => ({ owner: 'o', step: step(workflowID, 0) }));
        const outcomes = workflows.map(({ workflowID }) => {
          return { workflowID, owner: 'o', status: 'SUCCESS', output: null, error: null } as const;
        });
        await database.commit([insertWorkflows(workflows), insertCheckpoints(checkpoints), finishIfOwned(outcomes)]);
      }

      const plans = await database.read(sql`
        SELECT p.generic_plans, p.custom_plans
        FROM pg_prepared_statements AS p
        WHERE p.statement LIKE ${'%INSERT INTO%'} OR p.statement LIKE ${'%UPDATE "%'}`);
      expect(plans).toHaveLength(3);
      for (const plan of plans) expect(plan['generic_plans']).toBeGreaterThanOrEqual(times - 6);
    });

    test('a pool of the caller is used, never ended, and left without our listeners', async () => {
      const pool = new pg.Pool({ connectionString: await dialect.createURL(), max: 2 });
      onTestFinished(() => pool.end());
      const database = await dialect.open(pool.options.connectionString ?? '', { pool });
      const workflow = newWorkflow();

      await database.commit([insertWorkflows([workflow])]);
      await database.transaction((tx) => tx.run(sql`SELECT 1`));
      await database.close();

      const client = await pool.connect();
      const { rows: found } = await client.query('SELECT workflow_uuid FROM dbos.workflow_status');
      expect(found).toEqual([{ workflow_uuid: workflow.workflowID }]);
      expect(client.listenerCount('error')).toBe(0);
      client.release();
    });

    test('without a pool each operation has a connection of its own', async () => {
      const url = await dialect.createURL();
      const database = await dialect.open(url, { pool: 'none', applicationName: 'unpooled' });

      const pids = await Promise.all([1, 2, 3].map(() => database.read(sql`SELECT pg_backend_pid() AS pid`)));
      await database.close();

      expect(new Set(pids.map(([row]) => row?.['pid'])).size).toBe(3);
      const watcher = await dialect.open(url);
      await expect
        .poll(() => watcher.read(sql`SELECT pid FROM pg_stat_activity WHERE application_name = 'unpooled'`))
        .toEqual([]);
    });

    test('more tasks than connections wait their turn', async () => {
      const database = await dialect.create({ poolSize: 2 });

      const found = await Promise.all(
        Array.from({ length: 20 }, () => database.read(sql`SELECT pg_backend_pid() AS pid`)),
      );

      expect(new Set(found.map(([row]) => row?.['pid'])).size).toBeLessThanOrEqual(2);
    });
  });
});

const plannerSettings = sql`
  SELECT current_setting('enable_seqscan') AS seqscan, current_setting('jit') AS jit`;

async function dropRole(role: string): Promise<void> {
  const client = new pg.Client(await postgresURL());
  await client.connect();
  await client.query(`DROP ROLE ${role}`);
  await client.end();
}
