import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../src/kernel/base/clock.js';
import { silentLogger } from '../../../src/kernel/base/log.js';
import type { Database } from '../../../src/database/database.js';
import { insertMessages } from '../../../src/features/message/messages.sql.js';
import type { PostgresDatabase } from '../../../src/database/postgres/postgres-database.js';
import { PostgresListener } from '../../../src/database/postgres/postgres-listener.js';
import { SqliteDatabase } from '../../../src/database/sqlite/sqlite-database.js';
import { SqliteListener } from '../../../src/database/sqlite/sqlite-listener.js';
import type { Listener, Wakeup } from '../../../src/database/notify/listener.js';
import { CHANNELS, topics } from '../../../src/database/notify/topics.js';
import { insertWorkflows } from '../../../src/run/rows/workflows.js';
import { forEachDialect, onlyOn } from '../../rig/dialects.js';
import { startProxy } from '../../rig/proxy.js';
import { newMessage, newWorkflow } from '../../rig/records.js';

function listenerOn(database: Database): Listener {
  const options = { clock: systemClock, logger: silentLogger };
  const listener =
    database instanceof SqliteDatabase
      ? new SqliteListener(database, { ...options, intervalMs: 2 })
      : new PostgresListener(database as PostgresDatabase, { ...options, channels: CHANNELS });
  onTestFinished(() => listener.stop());
  return listener;
}

/** Collects wake-ups; `next` resolves at the first one that fits. */
function collect(listener: Listener) {
  const wakeups: Wakeup[] = [];
  let check = (): void => {};
  listener.subscribe((wakeup) => {
    wakeups.push(wakeup);
    check();
  });
  const next = (fits: (wakeup: Wakeup) => boolean) =>
    new Promise<Wakeup>((resolve) => {
      check = () => {
        const found = wakeups.find(fits);
        if (found) resolve(found);
      };
      check();
    });
  return { wakeups, next };
}

describe('listener', () => {
  forEachDialect((dialect) => {
    test('a message of one process wakes another', async () => {
      const url = await dialect.createURL();
      const [sender, receiver] = [await dialect.open(url), await dialect.open(url)];
      const [sending, receiving] = [listenerOn(sender), listenerOn(receiver)];
      await Promise.all([sending.start(), receiving.start()]);
      const { wakeups, next } = collect(receiving);

      await sender.run(insertWorkflows([newWorkflow()]));
      sending.notify(topics.events.channel, 'workflow::key');

      if (dialect.name === 'postgres') {
        expect(await next((wakeup) => wakeup.kind === 'message')).toEqual({
          kind: 'message',
          channel: topics.events.channel,
          payload: 'workflow::key',
        });
      } else {
        expect(await next(() => true)).toEqual({ kind: 'anything' });
      }
      expect(wakeups).toHaveLength(1);
    });

    test('stopping twice or unstarted does no harm, and it can be started again', async () => {
      const listener = listenerOn(await dialect.create());

      await listener.stop();
      await listener.start();
      await listener.stop();
      await listener.stop();
      await listener.start();
    });

    test('a handler that throws does not keep the others from being called', async () => {
      const url = await dialect.createURL();
      const [sender, receiver] = [await dialect.open(url), await dialect.open(url)];
      const [sending, receiving] = [listenerOn(sender), listenerOn(receiver)];
      await Promise.all([sending.start(), receiving.start()]);
      receiving.subscribe(() => {
        throw new Error('bad handler');
      });
      const { next } = collect(receiving);

      await sender.run(insertWorkflows([newWorkflow()]));
      sending.notify(topics.events.channel, 'x');

      await next(() => true);
    });
  });

  onlyOn('sqlite', (dialect) => {
    test('our own commits wake nobody here', async () => {
      const database = await dialect.create();
      const listener = listenerOn(database);
      await listener.start();
      const { wakeups } = collect(listener);

      for (let n = 0; n < 5; n += 1) {
        await database.run(insertWorkflows([newWorkflow()]));
        await new Promise((resolve) => setTimeout(resolve, 5));
      }

      expect(wakeups).toEqual([]);
    });
  });

  onlyOn('postgres', (dialect) => {
    test('messages said together are sent together, each once', async () => {
      const url = await dialect.createURL();
      const [sender, receiver] = [await dialect.open(url), await dialect.open(url)];
      const [sending, receiving] = [listenerOn(sender), listenerOn(receiver)];
      await Promise.all([sending.start(), receiving.start()]);
      const { wakeups, next } = collect(receiving);

      for (let n = 0; n < 50; n += 1) sending.notify(topics.streams.channel, `stream ${n % 5}`);
      sending.notify(topics.streams.channel, 'x'.repeat(9000));
      sending.notify(topics.streams.channel, 'the end');
      await next((wakeup) => wakeup.kind === 'message' && wakeup.payload === 'the end');

      expect(wakeups).toHaveLength(6);
    });

    test('a message inserted by other programs wakes through the trigger, one of ours does not', async () => {
      const url = await dialect.createURL();
      const database = await dialect.open(url);
      const listener = listenerOn(database);
      await listener.start();
      const { wakeups, next } = collect(listener);
      const workflow = newWorkflow();
      await database.run(insertWorkflows([workflow]));
      const stranger = new pg.Client(url);
      await stranger.connect();
      onTestFinished(() => stranger.end());

      await database.run(
        insertMessages([{ message: newMessage({ destinationID: workflow.workflowID, topic: 'ours' }) }]),
      );
      await stranger.query(`SELECT dbos.send_message($1, '"hello"'::json, 'greetings')`, [workflow.workflowID]);

      const wakeup = await next((one) => one.kind === 'message');
      expect(wakeup).toMatchObject({ channel: topics.messages.channel, payload: `${workflow.workflowID}::greetings` });
      expect(wakeups.filter(({ kind }) => kind === 'message')).toHaveLength(1);
    });

    test('a queue that plain SQL puts a workflow into is told of at once, with its partition', async () => {
      const url = await dialect.createURL();
      const listener = listenerOn(await dialect.open(url));
      await listener.start();
      const { wakeups, next } = collect(listener);
      const stranger = new pg.Client(url);
      await stranger.connect();
      onTestFinished(() => stranger.end());

      await stranger.query(`SELECT dbos.enqueue_workflow('hello', 'mail "q"', workflow_id => 'a')`);
      await stranger.query(`SELECT dbos.enqueue_workflow('hello', 'mail "q"', workflow_id => 'a')`);
      await stranger.query(`SELECT dbos.enqueue_workflow('hello', 'mail', queue_partition_key => 'p')`);

      await next((one) => one.kind === 'message' && one.payload.includes('p'));
      const payloads = wakeups.flatMap((one) => (one.kind === 'message' ? [JSON.parse(one.payload) as unknown] : []));
      expect(payloads).toEqual([['mail "q"'], ['mail', 'p']]);
    });

    test('after a lost connection it listens again and tells everybody to look', async () => {
      const proxy = await startProxy(await dialect.createURL());
      const database = await dialect.open(proxy.url);
      const listener = listenerOn(database);
      await listener.start();
      const { wakeups, next } = collect(listener);

      proxy.cut();
      proxy.restore();
      await next((wakeup) => wakeup.kind === 'anything');
      listener.notify(topics.events.channel, 'after');

      await next((wakeup) => wakeup.kind === 'message' && wakeup.payload === 'after');
      expect(wakeups.length).toBeGreaterThanOrEqual(2);
    });

    test('a server that is away at the start does not fail it', async () => {
      const proxy = await startProxy(await dialect.createURL());
      const listener = listenerOn(await dialect.open(proxy.url));
      proxy.cut();

      await listener.start();
      const { next } = collect(listener);
      proxy.restore();

      await next((wakeup) => wakeup.kind === 'anything');
    });

    test('behind a transaction pooler nothing listens', async () => {
      const listener = listenerOn(await dialect.create({ isTransactionPooler: true }));

      await listener.start();

      await listener.stop();
    });

    test('what was said last is still sent when it stops', async () => {
      const url = await dialect.createURL();
      const [sender, receiver] = [await dialect.open(url), await dialect.open(url)];
      const [sending, receiving] = [listenerOn(sender), listenerOn(receiver)];
      await Promise.all([sending.start(), receiving.start()]);
      const { next } = collect(receiving);

      sending.notify(topics.events.channel, 'goodbye');
      await sending.stop();

      await next((wakeup) => wakeup.kind === 'message' && wakeup.payload === 'goodbye');
    });
  });
});
