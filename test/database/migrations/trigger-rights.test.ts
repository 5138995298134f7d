// What roles can do with the functions and triggers of the system tables, most of which run with the rights of their owner.
import type pg from 'pg';
import { expect, test } from 'vitest';
import { applyRetention } from '../../../src/features/retention/retention-policy.js';
import { grantAccess } from '../../../src/database/migrations/migrate.js';
import { onlyOn, partitioned, type TestDialect } from '../../rig/dialects.js';
import { operatorOn } from '../../rig/operators.js';
import { connect, createRole } from './setup.js';

/** What anybody may call. They run with the rights of the caller. */
const FOR_ALL = ['enqueue_workflow', 'everstep_create_history', 'everstep_json', 'send_message'];
/** Run with the rights of their owner, each for triggers of one table. */
const DEFINERS = {
  everstep_check_claim: 'workflow_status',
  everstep_check_step: 'operation_outputs',
  everstep_end_waits: 'workflow_status',
  everstep_journal_change: 'workflow_status',
  everstep_journal_follow: 'workflow_status',
  everstep_journal_fork: 'workflow_status',
  everstep_note_other_version: 'application_versions',
  everstep_wake_at_commit: 'parked_wakes',
  everstep_wake_event_readers: 'workflow_events',
  everstep_wake_receivers: 'notifications',
  everstep_wake_result_waiters: 'workflow_status',
};
/** Columns of all tables that functions look at. */
const COLUMNS =
  'workflow_uuid text, status text, owner_xid text, forked_from text, queue_name text, destination_uuid text, topic text, ' +
  'key text, schedule_name text, workflow_id text, updated_at bigint, created_at bigint, priority int, recovery_attempts int';

/** A database with history, its owner's connection, and what is in it. */
async function setup(dialect: TestDialect) {
  const url = await dialect.createURL();
  const owner = await connect(url);
  await owner.query(`
    INSERT INTO dbos.workflow_status (workflow_uuid, status, name, priority, recovery_attempts, created_at, updated_at)
    SELECT 'w' || n, 'PENDING', 'w', 0, 0, 1, 1 FROM generate_series(1, 4) AS n;
    INSERT INTO dbos.operation_outputs (workflow_uuid, function_id, function_name)
    SELECT 'w' || n, 0, 'step' FROM generate_series(1, 4) AS n;
    UPDATE dbos.workflow_status SET status = 'CANCELLED' WHERE workflow_uuid IN ('w1', 'w2');
    UPDATE dbos.workflow_status SET status = 'DELAYED', owner_xid = 'a.1' WHERE workflow_uuid = 'w3';
    INSERT INTO dbos.parked_waits (wait_key, workflow_uuid, kind, awaited_uuid)
    VALUES ('outcome:w4', 'w3', 'outcome', 'w4'), ('message:w3::t', 'w3', 'message', 'w3'), ('event:w4::k', 'w3', 'event', 'w4')`);
  const contents = async () => {
    const { rows } = await owner.query(`
      SELECT c.relname, (xpath('/row/hash/text()', query_to_xml(
        format('SELECT md5(string_agg(t::text, chr(10) ORDER BY t::text)) AS hash FROM dbos.%I AS t', c.relname), false, true, '')))[1]::text AS hash
      FROM pg_class AS c WHERE c.relnamespace = 'dbos'::regnamespace AND c.relkind IN ('r', 'p') ORDER BY 1`);
    return rows as unknown[];
  };
  return { url, owner, contents, dialect };
}

const GRANTS = {
  'may do nothing': () => '',
  'may read': (role: string) => `
    GRANT USAGE ON SCHEMA dbos, dbos_history TO ${role};
    GRANT SELECT ON ALL TABLES IN SCHEMA dbos TO ${role};
    GRANT SELECT ON ALL TABLES IN SCHEMA dbos_history TO ${role}`,
  'may write': (role: string) => `
    GRANT USAGE ON SCHEMA dbos, dbos_history TO ${role};
    GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA dbos TO ${role}`,
};
type Rights = keyof typeof GRANTS;
const ROLES = Object.keys(GRANTS) as Rights[];

async function logIn({ url, owner }: { url: string; owner: pg.Client }, rights: Rights): Promise<pg.Client> {
  const { role, roleURL } = await createRole(url);
  await owner.query(GRANTS[rights](owner.escapeIdentifier(role)));
  return connect(roleURL);
}

interface Call {
  readonly name: string;
  readonly error: string;
  readonly code: string | undefined;
}

/** Hangs each function on temporary tables of the role, for all kinds of triggers, and fires them. */
async function callFromOwnTables(role: pg.Client, names: readonly string[]): Promise<Call[]> {
  const calls: Call[] = [];
  await role.query(`SET everstep.prune = 'on'; SET everstep.change = '{"actor":"forged","source":"api"}'`);
  const timings = ['INSERT', 'UPDATE', 'DELETE', 'TRUNCATE'].flatMap((event) => [
    `BEFORE ${event} ON mine FOR EACH ${event === 'TRUNCATE' ? 'STATEMENT' : 'ROW'}`,
    `AFTER ${event} ON mine ${event === 'INSERT' ? 'REFERENCING NEW TABLE AS sent FOR EACH STATEMENT' : event === 'TRUNCATE' ? 'FOR EACH STATEMENT' : 'FOR EACH ROW'}`,
  ]);
  timings.push(
    'AFTER INSERT ON mine REFERENCING NEW TABLE AS events FOR EACH STATEMENT',
    'AFTER INSERT ON mine FOR EACH ROW',
  );
  for (const name of names) {
    for (const timing of timings) {
      const attempt = await role
        .query(
          `BEGIN; CREATE TEMP TABLE mine (${COLUMNS}) ON COMMIT DROP;
          INSERT INTO mine (workflow_uuid, workflow_id, status, owner_xid, updated_at, created_at, priority, recovery_attempts)
          SELECT 'w' || n, 'w' || n, 'DELAYED', 'a.1', 1, 1, 0, 0 FROM generate_series(1, 4) AS n;
          CREATE TRIGGER mine ${timing} EXECUTE FUNCTION dbos.${name}();
          INSERT INTO mine VALUES ('w4', 'CANCELLED', 'a.1', 'w4', 'q', 'w3', 't', 'k', 's', 'w4', 1, 1, 0, 0);
          UPDATE mine SET status = 'CANCELLED', workflow_uuid = 'w1', updated_at = 2;
          DELETE FROM mine WHERE destination_uuid IS NULL; TRUNCATE mine; COMMIT`,
        )
        .then(
          () => ({ message: 'done', code: '' }),
          (error: unknown) => error as pg.DatabaseError,
        );
      await role.query('ROLLBACK');
      calls.push({ name, error: attempt.message, code: attempt.code });
    }
  }
  return calls;
}

onlyOn('postgres', (dialect) => {
  test('everyone may call four functions, and those with the rights of their owner serve triggers', async () => {
    const { owner } = await setup(dialect);

    const { rows } = await owner.query<{
      name: string;
      definer: boolean;
      trigger: boolean;
      all: boolean;
      path: string;
    }>(`
      SELECT p.proname AS name, p.prosecdef AS definer, p.prorettype = 'trigger'::regtype AS trigger,
        has_function_privilege('public', p.oid, 'EXECUTE') AS all, p.proconfig[1] AS path
      FROM pg_proc AS p WHERE p.pronamespace IN ('dbos'::regnamespace, 'dbos_history'::regnamespace) ORDER BY 1`);

    expect(rows.filter((row) => row.all).map(({ name }) => name)).toEqual(FOR_ALL);
    expect(rows.filter((row) => row.definer).map(({ name }) => name)).toEqual(Object.keys(DEFINERS));
    expect(rows.filter((row) => row.definer && !row.trigger)).toEqual([]);
    expect(rows.filter(({ path }) => path !== 'search_path=pg_catalog, pg_temp')).toEqual([]);
  });

  test('a function with the rights of its owner is called by triggers of one table', async () => {
    const { owner } = await setup(dialect);

    const { rows } = await owner.query<{ name: string; table: string }>(`
      SELECT DISTINCT p.proname AS name, c.relname AS table
      FROM pg_trigger AS t JOIN pg_proc AS p ON p.oid = t.tgfoid JOIN pg_class AS c ON c.oid = t.tgrelid
      WHERE p.prosecdef ORDER BY 1`);

    expect(Object.fromEntries(rows.map(({ name, table }) => [name, table]))).toEqual(DEFINERS);
  });

  test.each(ROLES)('a role that %s can hang no function on a table of its own', async (rights) => {
    const scene = await setup(dialect);
    const role = await logIn(scene, rights);
    const { rows } = await scene.owner.query<{ proname: string }>(
      `SELECT proname FROM pg_proc WHERE pronamespace = 'dbos'::regnamespace AND prorettype = 'trigger'::regtype`,
    );
    const before = await scene.contents();

    const calls = await callFromOwnTables(
      role,
      rows.map(({ proname }) => proname),
    );

    expect(calls.filter(({ error }) => !/permission denied for (function|schema)/.test(error))).toEqual([]);
    expect(calls.length).toBeGreaterThan(100);
    expect(await scene.contents()).toEqual(before);
  });

  test.each(ROLES)('functions serve no table of a role that %s where all may call them', async (rights) => {
    const scene = await setup(dialect);
    // As in a database that was restored without privileges.
    await scene.owner.query(
      'GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA dbos TO PUBLIC; GRANT USAGE ON SCHEMA dbos TO PUBLIC',
    );
    const role = await logIn(scene, rights);
    const before = await scene.contents();

    const calls = await callFromOwnTables(role, Object.keys(DEFINERS));

    expect(calls.filter(({ code, error }) => code !== '42501' || !error.startsWith('only triggers of'))).toEqual([]);
    expect(await scene.contents()).toEqual(before);
  });

  test('a cast of the caller does not run with the rights of the owner', async () => {
    const scene = await setup(dialect);
    await scene.owner.query('GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA dbos TO PUBLIC');
    await scene.owner.query('CREATE SCHEMA own; GRANT ALL ON SCHEMA own TO PUBLIC');
    const role = await logIn(scene, 'may read');
    await role.query(`
      CREATE TYPE own.bait AS (a text);
      CREATE FUNCTION own.to_text(own.bait) RETURNS text LANGUAGE plpgsql AS $$
      BEGIN DELETE FROM dbos.workflow_status; RETURN 'x'; END $$;
      CREATE FUNCTION own.to_number(own.bait) RETURNS bigint LANGUAGE plpgsql AS $$
      BEGIN DELETE FROM dbos.workflow_status; RETURN 1; END $$;
      CREATE CAST (own.bait AS text) WITH FUNCTION own.to_text(own.bait) AS IMPLICIT;
      CREATE CAST (own.bait AS bigint) WITH FUNCTION own.to_number(own.bait) AS IMPLICIT`);
    const before = await scene.contents();

    for (const name of Object.keys(DEFINERS)) {
      for (const each of [
        'REFERENCING NEW TABLE AS sent FOR EACH STATEMENT',
        'REFERENCING NEW TABLE AS events FOR EACH STATEMENT',
        'FOR EACH ROW',
      ]) {
        const attempt = role.query(
          `BEGIN; CREATE TEMP TABLE mine (destination_uuid own.bait, topic own.bait, workflow_uuid own.bait, key own.bait,
            status own.bait, updated_at own.bait) ON COMMIT DROP;
          CREATE TRIGGER mine AFTER INSERT ON mine ${each} EXECUTE FUNCTION dbos.${name}();
          INSERT INTO mine SELECT r, r, r, r, r, r FROM (SELECT ROW('x')::own.bait AS r) AS x; COMMIT`,
        );
        await expect(attempt, name).rejects.toThrow(/^only triggers of/);
        await role.query('ROLLBACK');
      }
    }
    expect(await scene.contents()).toEqual(before);
    await scene.owner.query('DROP SCHEMA own CASCADE');
  });
});

for (const dialect of [undefined, partitioned]) {
  onlyOn('postgres', (plain) => {
    test(`a history${dialect ? ' in partitions' : ''} is append-only to a role that may write, whatever it sets`, async () => {
      const scene = await setup(dialect ?? plain);
      const role = await logIn(scene, 'may write');
      const before = await scene.contents();
      await role.query(`SET everstep.prune = 'on'`);

      await expect(role.query('DELETE FROM dbos.journal')).rejects.toMatchObject({ code: '42501' });
      await expect(role.query(`UPDATE dbos.journal SET workflow_id = 'w3'`)).rejects.toThrow('append-only');
      await expect(role.query('TRUNCATE dbos.journal')).rejects.toThrow('permission denied');

      expect(await scene.contents()).toEqual(before);
    });

    test(`the role of an application prunes a history${dialect ? ' in partitions' : ''}, and cannot delete it otherwise`, async () => {
      const used = dialect ?? plain;
      const scene = await setup(used);
      await scene.owner.query(
        `UPDATE dbos.workflow_status SET status = 'SUCCESS', completed_at = 2, updated_at = 2 WHERE workflow_uuid = 'w4';
        INSERT INTO dbos.journal (workflow_id, at, event_type) VALUES ('w4', 1, 'AttemptLost')`,
      );
      const { role, roleURL } = await createRole(scene.url);
      await grantAccess(await used.open(scene.url), { role });
      const application = await connect(roleURL);
      await expect(application.query('DELETE FROM dbos.journal')).rejects.toThrow('append-only');
      await expect(application.query('TRUNCATE dbos.journal')).rejects.toThrow('append-only');

      const applied = await applyRetention(
        operatorOn(await used.open(roleURL)),
        { history: '7 days' },
        { restFactor: 0 },
      );

      expect(applied).toMatchObject({ events: 1 });
    });
  });
}
