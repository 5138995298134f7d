import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { NodePostgresDataSource } from '../../../src/plugins/transaction/adapters/node-postgres.js';
import { ServerTimes } from '../../../src/plugins/transaction/server-times.js';
import { postgresDialect } from '../../../src/kernel/sql/postgres-dialect.js';
import { render, type Sql, sql } from '../../../src/kernel/sql/sql.js';
import { onlyOn, postgres } from '../../rig/dialects.js';
import { createEngine } from '../../rig/engines.js';
import { startRefusingProxy } from '../../rig/refusing-proxy.js';

const dialect = postgresDialect({ schema: 'dbos' });
const HOUR_SECONDS = 3600;

onlyOn('postgres', () => {
  describe('the time limit of a record', () => {
    async function setup() {
      const client = new pg.Client(await postgres.createURL({ isMigrated: false }));
      await client.connect();
      onTestFinished(() => client.end());
      const run = async (statement: Sql): Promise<Record<string, unknown> | undefined> => {
        const { text, values } = render(statement, dialect);
        return (await client.query<Record<string, unknown>>(text, [...values])).rows[0];
      };
      const times = new ServerTimes<pg.Client>();
      const isWithin = async (seconds: number) =>
        (await run(sql`SELECT ${times.isWithin(client, seconds)} AS is_within`))?.['is_within'];
      const answer = (await run(sql`SELECT ${times.returned}`)) ?? {};
      return { client, times, isWithin, answer };
    }

    test.each([
      ['is recent', 0, true],
      ['is long ago', -2 * HOUR_SECONDS, false],
      ['is to come: its clock was set back', 2 * HOUR_SECONDS, false],
    ])('counts from an earlier answer of the server, whose time %s', async (_, shift, isInTime) => {
      const { client, times, isWithin, answer } = await setup();
      times.note(client, { ...answer, server_seconds: Number(answer['server_seconds']) + shift });

      expect(times.startAtLatest(client)).toBe(true);

      expect(await isWithin(HOUR_SECONDS)).toBe(isInTime);
    });

    test('is over on another server, whose clock may differ', async () => {
      const { client, times, isWithin, answer } = await setup();
      times.note(client, { ...answer, server_started: Number(answer['server_started']) - 1 });

      expect(times.startAtLatest(client)).toBe(true);

      expect(await isWithin(HOUR_SECONDS)).toBe(false);
    });

    test('counts from the begin of a transaction that has begun first', async () => {
      const { client, times, isWithin, answer } = await setup();
      times.note(client, { ...answer, server_seconds: 0 });

      // Not asked whether it may start at the latest answer.
      expect(await isWithin(HOUR_SECONDS)).toBe(true);
    });

    test('counts from the begin after a record that was refused', async () => {
      const { client, times, answer } = await setup();
      times.note(client, answer);
      times.note(client, undefined);

      expect(times.startAtLatest(client)).toBe(false);
    });
  });

  test('a server that cannot say who it is gets records without the time', async () => {
    const proxy = await startRefusingProxy(await postgres.createURL(), /AS server_started/);
    const { DBOS } = await createEngine(postgres);
    const source = new NodePostgresDataSource('app', { connectionString: proxy.url }, { owner: DBOS });
    const pay = DBOS.registerWorkflow(
      (amount: number) =>
        source.runTransaction(
          async () => (await source.client.query<{ n: number }>(`SELECT ${amount} AS n`)).rows[0]?.n,
        ),
      { name: 'pay' },
    );
    await DBOS.launch();

    expect([await pay(1), await pay(2)]).toEqual([1, 2]);

    expect(proxy.takeRefused()).toHaveLength(1);
  });
});
