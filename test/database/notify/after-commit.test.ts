import { describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../src/kernel/base/clock.js';
import { silentLogger } from '../../../src/kernel/base/log.js';
import { CommitUnknownError } from '../../../src/kernel/errors/database-errors.js';
import { type Sql, sql, table } from '../../../src/kernel/sql/sql.js';
import type { PostgresDatabase } from '../../../src/database/postgres/postgres-database.js';
import { PostgresListener } from '../../../src/database/postgres/postgres-listener.js';
import type { Notification } from '../../../src/database/notify/listener.js';
import { topics } from '../../../src/database/notify/topics.js';
import { findWorkflows, insertWorkflows } from '../../../src/run/rows/workflows.js';
import { onlyOn, type TestDialect } from '../../rig/dialects.js';
import { until } from '../../rig/manual-clock.js';
import { startProxy } from '../../rig/proxy.js';
import { newWorkflow } from '../../rig/records.js';

const failing = sql`SELECT 1 / 0 AS never`;
const one = sql`SELECT 1 AS one`;
const { channel } = topics.events;
const notificationsOf = (...payloads: string[]): Notification[] => payloads.map((payload) => ({ channel, payload }));

async function setup(dialect: TestDialect) {
  const database = (await dialect.create()) as PostgresDatabase;
  const channels = [channel];
  const listener = new PostgresListener(database, { clock: systemClock, logger: silentLogger, channels });
  onTestFinished(() => listener.stop());
  await listener.start();
  const heard: string[] = [];
  listener.subscribe((wakeup) => wakeup.kind === 'message' && heard.push(wakeup.payload));
  const rides: boolean[] = [];
  /** A commit with notifications; notes whether they went along. */
  const tell = (...payloads: string[]) =>
    listener.afterCommit(notificationsOf(...payloads), (notification?: Sql) => {
      rides.push(notification !== undefined);
      return database.commit([one], { afterCommit: notification });
    });
  return { database, listener, heard, rides, tell };
}

describe('notifications after a commit', () => {
  onlyOn('postgres', (dialect) => {
    test('a statement behind a commit is run after it, and the connection goes on', async () => {
      const database = await dialect.create({ poolSize: 1 });
      const [workflow, later] = [newWorkflow(), newWorkflow()];

      const results = await database.commit([insertWorkflows([workflow]), one], {
        afterCommit: insertWorkflows([later]),
      });

      expect(results[1]).toEqual([{ one: 1 }]);
      // The only connection is given back when both are done.
      expect(await findWorkflows(database, [workflow.workflowID, later.workflowID])).toHaveLength(2);
    });

    test('a relaxed commit gives the rows of its own statements, and leaves the session as it was', async () => {
      const database = await dialect.create({ poolSize: 1 });
      const setting = sql`SELECT current_setting('synchronous_commit') AS setting`;

      expect(await database.commit([setting, one], { relaxed: true })).toEqual([[{ setting: 'off' }], [{ one: 1 }]]);
      expect(await database.commit([setting])).not.toEqual([[{ setting: 'off' }]]);
    });

    test('a commit that fails does not fail what is behind it, nor the other way round', async () => {
      const database = await dialect.create({ poolSize: 1 });
      const [undone, behind, kept] = [newWorkflow(), newWorkflow(), newWorkflow()];

      await expect(
        database.commit([insertWorkflows([undone]), failing], { afterCommit: insertWorkflows([behind]) }),
      ).rejects.toThrow('division by zero');
      expect(await database.commit([insertWorkflows([kept]), one], { afterCommit: failing })).toHaveLength(2);

      const found = await findWorkflows(
        database,
        [undone, behind, kept].map(({ workflowID }) => workflowID),
      );
      expect(found.map(({ workflowID }) => workflowID).sort()).toEqual([behind.workflowID, kept.workflowID].sort());
    });

    test('a lost connection leaves a doubt about the commit, and is replaced', async () => {
      const proxy = await startProxy(await dialect.createURL());
      const database = await dialect.open(proxy.url, { poolSize: 1 });
      await database.read(one);

      proxy.loseNextAnswer();

      await expect(database.commit([insertWorkflows([newWorkflow()])], { afterCommit: one })).rejects.toBeInstanceOf(
        CommitUnknownError,
      );
      expect(await database.read(one)).toEqual([{ one: 1 }]);
    });

    test('a few hints go along with their commit, and those right after it are told soon', async () => {
      const { heard, rides, tell } = await setup(dialect);

      await tell('a', 'b');
      await tell('c');
      await until(async () => heard.length === 3);

      expect(rides).toEqual([true, false]);
      // They come over two connections, so their order is open.
      expect([...heard].sort()).toEqual(['a', 'b', 'c']);
    });

    test('many hints, and none, leave the commit alone', async () => {
      const { heard, rides, tell } = await setup(dialect);
      const many = Array.from({ length: 50 }, (_, number) => `hint ${number}`);

      await tell();
      await tell(...many);
      await until(async () => heard.length === many.length);

      expect(rides).toEqual([false, false]);
    });

    test('what nobody hears or no notification can hold is left out', async () => {
      const { database, listener, heard, tell } = await setup(dialect);

      await tell('x'.repeat(9000), 'short');
      await listener.afterCommit([{ channel: 'elsewhere', payload: 'unheard' }], (notification) =>
        database.commit([one], { afterCommit: notification }),
      );
      await tell('last');
      await until(async () => heard.includes('short') && heard.includes('last'));

      expect([...heard].sort()).toEqual(['last', 'short']);
    });

    test('a commit that fails is reported, and the next one is told of', async () => {
      const { database, listener, heard, tell } = await setup(dialect);
      const fail = () =>
        listener.afterCommit(notificationsOf('failed'), (notification) =>
          database.commit([sql`DELETE FROM ${table('no such')}`], { afterCommit: notification }),
        );

      await expect(fail()).rejects.toThrow('no such');
      await expect(fail()).rejects.toThrow('no such');
      await tell('well');

      await until(async () => heard.includes('well'));
    });
  });
});
