import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newID } from '../../../src/kernel/base/ids.js';
import {
  type PostgresConsumerOptions,
  postgresAdapter,
  type PostgresMessage,
} from '../../../src/plugins/receiver/adapters/postgres.js';
import { Receiver } from '../../../src/plugins/receiver/receiver.js';
import { postgres, wantsDialect } from '../../rig/dialects.js';
import { createEngine } from '../../rig/engines.js';
import { postgresURL } from '../../rig/postgres-url.js';
import { createPostgresDatabase, dropPostgresDatabase } from '../../rig/templates.js';
import { describeReceiver, type Rig } from './conformance.js';
import { Spy, Tally } from './spy.js';

describe.skipIf(!wantsDialect('postgres'))('Postgres tables', () => {
  let url = '';
  beforeAll(async () => {
    url = await createPostgresDatabase(await postgresURL(), false);
  });
  afterAll(async () => dropPostgresDatabase(await postgresURL(), url));

  const connected = async <T>(to: string, body: (client: pg.Client) => Promise<T>): Promise<T> => {
    const client = new pg.Client(to);
    await client.connect();
    try {
      return await body(client);
    } finally {
      await client.end();
    }
  };
  const createTable = async (): Promise<string> => {
    const table = `t_${newID().replaceAll('-', '')}`;
    const text = `CREATE TABLE ${table} (id serial, n bigserial, body text, at timestamptz DEFAULT clock_timestamp())`;
    await connected(url, (client) => client.query(text));
    return table;
  };
  const allowConnections = async (isAllowed: boolean): Promise<unknown> =>
    connected(await postgresURL(), async (client) => {
      const name = new URL(url).pathname.slice(1);
      await client.query(`ALTER DATABASE ${name} ALLOW_CONNECTIONS ${isAllowed}`);
      if (isAllowed) return;
      await client.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1', [name]);
    });

  const rig: Rig<PostgresMessage, PostgresConsumerOptions> = {
    name: 'postgres',
    adapter: () => postgresAdapter(url),
    createTopic: createTable,
    options: (topic) => ({ table: topic, keyColumns: ['id'], sequenceColumn: 'n', installTrigger: true }),
    publish: (topic, texts) =>
      connected(url, async (client) => {
        for (const text of texts) await client.query(`INSERT INTO ${topic} (body) VALUES ($1)`, [text]);
      }),
    textOf: ({ record }) => record['body'] as string,
    stop: async () => void (await allowConnections(false)),
    start: async () => void (await allowConnections(true)),
    missing: {
      options: { table: 'nowhere', keyColumns: ['id'], sequenceColumn: 'n' },
      says: 'relation "nowhere" does not exist',
    },
  };
  describeReceiver(rig);
  describeReceiver({
    ...rig,
    name: 'postgres, by time',
    options: (topic) => ({ table: topic, keyColumns: ['id'], timestampColumn: 'at', pollIntervalMs: 50 }),
    isBrief: true,
  });

  const launch = async (systemDatabaseUrl: string, table: string) => {
    const { DBOS } = await createEngine(postgres, { systemDatabaseUrl });
    const spy = new Spy();
    const tally = new Tally();
    const ran: unknown[][] = [];
    const receiver = new Receiver(spy.watch(postgresAdapter(url)), { dbos: DBOS });
    const handle = DBOS.registerWorkflow(
      async (...args: unknown[]) => {
        ran.push(args);
        tally.add();
      },
      { name: 'handle' },
    );
    receiver.registerConsumer(handle, { ...rig.options(table), overlap: 0 });
    await DBOS.launch();
    return { DBOS, spy, tally, ran };
  };

  test('a row that is committed after a later one is not passed over, not even by a restart in between', async () => {
    const table = await createTable();
    const systemDatabaseUrl = await postgres.createURL();
    const first = await launch(systemDatabaseUrl, table);
    await rig.publish(table, ['0']);
    await first.tally.reach(1);

    const slow = new pg.Client(url);
    await slow.connect();
    await slow.query(`BEGIN; INSERT INTO ${table} (body) VALUES ('slow')`);
    await rig.publish(table, ['fast']);
    await first.tally.reach(2);
    await first.spy.acknowledged.reach(2);
    await first.DBOS.shutdown({ workflowCompletionTimeoutMS: 5000 });
    await slow.query('COMMIT');
    await slow.end();
    const second = await launch(systemDatabaseUrl, table);
    await second.tally.reach(1);

    expect(second.ran).toMatchObject([['upsert', ['2'], { id: 2, body: 'slow' }]]);
  });

  test('an update with a new number starts another workflow, one without starts none', async () => {
    const table = await createTable();
    const { tally, ran } = await launch(await postgres.createURL(), table);
    await rig.publish(table, ['a']);
    await tally.reach(1);

    await connected(url, (client) => client.query(`UPDATE ${table} SET body = 'b'`));
    await connected(url, (client) => client.query(`UPDATE ${table} SET body = 'c', n = nextval('${table}_n_seq')`));
    await tally.reach(2);

    expect(ran.map(([, , record]) => (record as { body: string }).body)).toEqual(['a', 'c']);
  });

  test('rows whose keys contain the separator are kept apart, and each is taken once', async () => {
    const table = `parts_${newID().replaceAll('-', '')}`;
    const values = String.raw`('a|b', 'c', 1), ('a', 'b|c', 1), ('a\', 'b', 1), ('a', E'\\|b', 1), ('', NULL, 1), ('', '', 1)`;
    await connected(url, async (client) => {
      await client.query(`CREATE TABLE ${table} (k text, l text, n bigint)`);
      await client.query(`INSERT INTO ${table} VALUES ${values}`);
    });
    const { DBOS } = await createEngine(postgres);
    const tally = new Tally();
    const ran: unknown[] = [];
    const receiver = new Receiver(postgresAdapter(url), { dbos: DBOS });
    const handle = DBOS.registerWorkflow(
      async (_: string, key: unknown) => {
        ran.push(key);
        tally.add();
      },
      { name: 'handle' },
    );
    receiver.registerConsumer(handle, { table, keyColumns: ['k', 'l'], sequenceColumn: 'n', pollIntervalMs: 20 });
    await DBOS.launch();
    await tally.reach(6);
    await connected(url, (client) => client.query(`INSERT INTO ${table} VALUES ('last', 'l', 1)`));
    await tally.reach(7);

    expect(new Set(ran.map((key) => JSON.stringify(key))).size).toBe(7);
    expect(ran).toHaveLength(7);
  });

  test.each<[string, Partial<PostgresConsumerOptions>]>([
    ['no key', { keyColumns: [], sequenceColumn: 'n' }],
    ['no order', { keyColumns: ['id'] }],
    ['two orders', { keyColumns: ['id'], sequenceColumn: 'n', timestampColumn: 'at' }],
  ])('a table is refused that has %s', (_, options) => {
    expect(() => postgresAdapter(url).check?.({ table: 't', ...options } as PostgresConsumerOptions)).toThrow(
      '"t" needs',
    );
  });
});
