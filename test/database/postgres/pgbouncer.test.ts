// PgBouncer with its default configuration between the library and Postgres, in both modes: nothing has to be configured on
// either side. `npm run test:pgbouncer` runs whole suites through it.
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { silentLogger } from '../../../src/kernel/base/log.js';
import { DBOSClient } from '../../../src/index.js';
import { ident, sql } from '../../../src/kernel/sql/sql.js';
import { Store } from '../../../src/run/writer/store.js';
import { postgres, wantsDialect } from '../../rig/dialects.js';
import { createEngine, engineOf } from '../../rig/engines.js';
import { until } from '../../rig/manual-clock.js';
import { hasPgBouncer, type PgBouncer, type PoolMode, startPgBouncer } from '../../rig/pgbouncer.js';
import { postgresURL } from '../../rig/postgres-url.js';
import { countByStatus, expectAllDone, expectKept } from '../../crash/invariants.js';
import { linesOf } from '../../crash/journal.js';
import { launchWorker, until as untilTrue } from '../../crash/processes.js';
import { idsOf, launchHere, setScene } from '../../crash/setup.js';

if (!hasPgBouncer) console.warn('No PgBouncer: apt-get install pgbouncer.');

const isWanted = hasPgBouncer && wantsDialect('postgres');

describe.skipIf(!isWanted).each<PoolMode>(['session', 'transaction'])('PgBouncer in %s mode', (mode) => {
  let bouncer: PgBouncer;
  beforeAll(async () => {
    bouncer = await startPgBouncer(await postgresURL(), mode);
  });
  afterAll(() => bouncer?.stop());

  /** A database behind it: migrated, unless said otherwise. */
  const createURL = async (options?: { isMigrated?: boolean }): Promise<string> =>
    bouncer.through(await postgres.createURL(options));

  /** An instance that is not launched yet. */
  const create = async (systemDatabaseUrl?: string, more: object = {}) =>
    createEngine(postgres, { systemDatabaseUrl: systemDatabaseUrl ?? (await createURL()), ...more });

  test('is found out', async () => {
    const { DBOS } = await create();
    await DBOS.launch();

    const { database, hasPush } = engineOf(DBOS).runtime;

    expect(database.features?.hasSessions).toBe(mode === 'session');
    expect(hasPush).toBe(mode === 'session');
  });

  test('an engine creates its tables through it, and leaves no lock behind', async () => {
    const url = await createURL({ isMigrated: false });
    const { DBOS } = await create(url);
    const workflow = DBOS.registerWorkflow(async () => 'ran', { name: 'workflow' });

    await DBOS.launch();

    expect(await workflow()).toBe('ran');
    const { database } = engineOf(DBOS).runtime;
    const locks = await database.read(sql`
      SELECT l.objid
      FROM pg_catalog.pg_locks AS l
      JOIN pg_catalog.pg_database AS d ON d.oid = l.database
      WHERE l.locktype = 'advisory' AND l.objid = 1234567890 AND d.datname = current_database()`);
    expect(locks).toEqual([]);
  });

  test('many workflows, steps, messages and events at once get through', async () => {
    const { DBOS } = await create();
    const child = DBOS.registerWorkflow((n: number) => DBOS.runStep(async () => n * 2, { name: 'double' }), {
      name: 'child',
    });
    const workflow = DBOS.registerWorkflow(
      async (n: number) => {
        const doubled = await child(n);
        await DBOS.setEvent('doubled', doubled);
        const message = await DBOS.recv<string>('topic', 30);
        return `${doubled} ${message}`;
      },
      { name: 'workflow' },
    );
    await DBOS.launch();
    await DBOS.registerQueue('q', { concurrency: 5 });
    const numbers = Array.from({ length: 40 }, (_, n) => n);

    const handles = await Promise.all(
      numbers.map((n) => DBOS.startWorkflow(workflow, { workflowID: `w${n}`, queueName: n % 2 ? 'q' : undefined })(n)),
    );
    await Promise.all(numbers.map((n) => DBOS.send(`w${n}`, `hello ${n}`, 'topic')));

    expect(await Promise.all(handles.map((handle) => handle.getResult()))).toEqual(
      numbers.map((n) => `${n * 2} hello ${n}`),
    );
    expect(await DBOS.getEvent('w7', 'doubled')).toBe(14);
    expect(await DBOS.listWorkflows({ status: 'SUCCESS' })).toHaveLength(80);
  });

  test('a client in another session starts work and gets its result', async () => {
    const url = await createURL();
    const { DBOS } = await create(url);
    DBOS.registerWorkflow(async (name: string) => `hello ${name}`, { name: 'greet' });
    await DBOS.launch();
    await DBOS.registerQueue('q');
    const client = await DBOSClient.create({ systemDatabaseUrl: url, logger: silentLogger });
    onTestFinished(() => client.destroy());

    const handle = await client.enqueue({ queueName: 'q', workflowName: 'greet' }, 'you');

    expect(await handle.getResult()).toBe('hello you');
  });

  test('a schedule fires', async () => {
    const { DBOS } = await create();
    let fired = 0;
    const tick = DBOS.registerWorkflow(async () => void (fired += 1), { name: 'tick' });
    await DBOS.launch();

    await DBOS.createSchedule({ scheduleName: 'often', schedule: '* * * * * *', workflowFn: tick });

    await until(() => fired > 1);
  });

  test('what a killed process has left is recovered, and no checkpointed step is repeated', async () => {
    const direct = await postgres.createURL();
    const scene = await setScene(postgres, direct);
    const { journal, journalPath, gate } = scene;
    const url = bouncer.through(direct);
    const workflowIDs = idsOf('held', 10);
    const victim = await launchWorker({ url, journalPath, gate });
    await victim.perform({ do: 'start', name: 'held', workflowIDs });
    const held = () => linesOf(journal.read(), 'step').filter(({ name }) => name === 'held');
    await untilTrue('all workflows are held', () => held().length === workflowIDs.length);

    await victim.kill();
    const before = await scene.tables();
    const linesBefore = journal.read();
    await launchHere({ url, journal });
    await scene.withDatabase((database) =>
      untilTrue('all are done', async () => (await countByStatus(database)).get('SUCCESS') === workflowIDs.length),
    );

    const lines = journal.read();
    const after = await scene.tables();
    expectKept(before, after, lines.slice(linesBefore.length));
    expectAllDone(after, lines);
  });

  test('a session that began while the server was read-only is not used again', async () => {
    const direct = await postgres.createURL();
    const admin = await postgres.open(direct, { isTransactionPooler: false });
    const name = ident(new URL(direct).pathname.slice(1));
    const setReadOnly = (value: 'on' | 'off') =>
      admin.run(sql`ALTER DATABASE ${name} SET default_transaction_read_only = ${ident(value)}`);
    const database = await postgres.open(bouncer.through(direct), { isTransactionPooler: mode === 'transaction' });
    const write = () => database.transaction((tx) => tx.run(sql`CREATE TABLE written (number INT)`));
    await setReadOnly('on');
    await expect(write()).rejects.toMatchObject({ sqlState: '25006' });

    await setReadOnly('off');

    expect(await write()).toEqual([]);
  });

  test('a store that is told of the pooler does not look for it', async () => {
    const store = await Store.open({ url: await createURL(), logger: silentLogger, isTransactionPooler: true });
    onTestFinished(() => store.close());

    expect(store.hasPush).toBe(false);
  });
});

describe.skipIf(!wantsDialect('postgres'))('without a pooler', () => {
  test('a store has sessions', async () => {
    const store = await Store.open({ url: await postgres.createURL(), logger: silentLogger });
    onTestFinished(() => store.close());

    expect([store.hasPush, store.database.features?.hasSessions]).toEqual([true, true]);
  });
});
