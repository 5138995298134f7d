// Waiting by a client: pushed where that is possible, by polling where it is not, and ended with the client.
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import type { DBOSInstance } from '../../../src/index.js';
import { Bus } from '../../../src/database/notify/bus.js';
import { topics } from '../../../src/database/notify/topics.js';
import { forEachDialect, onlyOn, type TestDialect } from '../../rig/dialects.js';
import { ManualClock, until } from '../../rig/manual-clock.js';
import { startProxy } from '../../rig/proxy.js';
import { connect, failureOf, interestIn, ownConnection, setup } from './scene.js';

/** A client whose time stands still, so that it never polls, beside one that acts. */
async function setupWaiting(dialect: TestDialect, useListenNotify = true) {
  const scene = await setup(dialect);
  const clock = new ManualClock(Date.now());
  const waiter = await connect(scene.url, { useListenNotify }, { clock });
  const start = async (workflowName: string, ...args: unknown[]) =>
    (await scene.client.enqueue({ queueName: 'q', workflowName }, ...args)).workflowID;
  return { ...scene, clock, waiter, start };
}

/** The result, while less time passes for the waiter than it takes to poll: a listener on SQLite looks every 20 ms. */
async function pushed<T>(clock: ManualClock, promise: Promise<T>): Promise<T> {
  let isSettled = false;
  void promise.catch(() => {}).finally(() => (isSettled = true));
  for (let passedMs = 0; passedMs < 1000 && !isSettled; passedMs += 20) {
    clock.advance(20);
    await turns(5);
  }
  return promise;
}

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

/** Keeps back what this process tells others of its waits. */
function holdInterest() {
  const held: (() => void)[] = [];
  // eslint-disable-next-line @typescript-eslint/unbound-method -- Given its object when it is called.
  const original = Bus.prototype.publishElsewhere;
  const spy = vi.spyOn(Bus.prototype, 'publishElsewhere').mockImplementation(function (this: Bus, topic, payload) {
    if (topic.channel === topics.interest.channel) held.push(() => original.call(this, topic, payload));
    else original.call(this, topic, payload);
  });
  onTestFinished(() => spy.mockRestore());
  return {
    get held() {
      return held.length;
    },
    release() {
      spy.mockRestore();
      for (const publish of held) publish();
    },
  };
}

async function isEnded(DBOS: DBOSInstance, workflowID: string): Promise<boolean> {
  return (await DBOS.getWorkflowStatus(workflowID))?.completedAt !== undefined;
}

describe('a client that waits', () => {
  forEachDialect((dialect) => {
    test('is told of outcomes, events and stream values of another process without polling', async () => {
      const { DBOS, client, waiter, clock, start } = await setupWaiting(dialect);
      const workflowID = await start('tell', 'hello');
      const other = await start('receive');
      const isKnown = interestIn(DBOS, workflowID);

      const handle = waiter.retrieveWorkflow(workflowID);
      const handles = [waiter.retrieveWorkflow(other), handle];
      const waits = [
        handle.getResult(),
        waiter.getResult(workflowID, 60),
        waiter.getEvent(workflowID, 'event'),
        waiter.readStream(workflowID, 'stream').next(),
        waiter.waitFirst(handles),
        waiter.waitAll([handle]),
      ] as const;
      await isKnown;
      await client.send(workflowID, 'now', 'go');
      await until(() => isEnded(DBOS, workflowID));
      const found = await pushed(clock, Promise.all(waits));

      expect(found.slice(0, 4)).toEqual(['hello', 'hello', 'hello', { done: false, value: 'hello' }]);
      expect(found[4]).toBe(handle);
      expect(found[5]).toEqual([handle]);
    });

    test('is told of an outcome although the engine hears only then that it waits', async () => {
      const { DBOS, client, waiter, clock, start } = await setupWaiting(dialect);
      const workflowID = await start('receive');
      const interest = holdInterest();
      const waiting = waiter.retrieveWorkflow(workflowID).getResult();
      // It looks when it begins to wait, and when it listens.
      if (dialect.name === 'postgres') await until(() => interest.held > 0);
      await turns(50);

      await client.send(workflowID, 'done', 'topic');
      await until(() => isEnded(DBOS, workflowID));
      interest.release();

      expect(await pushed(clock, waiting)).toBe('done');
    });

    test('is told of the outcome of a workflow that was resumed before', async () => {
      const { DBOS, client, waiter, clock, start } = await setupWaiting(dialect);
      const workflowID = await start('receive');
      await until(async () => (await DBOS.getWorkflowStatus(workflowID))?.status === 'PENDING');
      await DBOS.cancelWorkflow(workflowID);
      await DBOS.resumeWorkflow(workflowID);
      const isKnown = interestIn(DBOS, workflowID);
      const waiting = waiter.retrieveWorkflow(workflowID).getResult();
      await isKnown;

      await client.send(workflowID, 'done', 'topic');
      await until(() => isEnded(DBOS, workflowID));

      expect(await pushed(clock, waiting)).toBe('done');
    });

    test('hears at once of what it has cancelled itself', async () => {
      const clock = new ManualClock(Date.now());
      const client = await connect(await dialect.createURL(), {}, { clock });
      const handle = await client.enqueue({ queueName: 'served by nobody', workflowName: 'w' });
      const waiting = failureOf(handle.getResult());
      await turns(20);

      await client.cancelWorkflow(handle.workflowID);

      expect(await pushed(clock, waiting)).toMatchObject({ code: 'AWAITED_WORKFLOW_CANCELLED' });
    });

    test('gives null when its time is up, and looks at least once', async () => {
      const { client, waiter, clock, start } = await setupWaiting(dialect);
      const workflowID = await start('receive');

      const waits = [waiter.getResult(workflowID, 5), waiter.getEvent(workflowID, 'never')];
      await until(() => clock.isArmed(5000) && clock.isArmed(60_000));
      clock.advance(60_000);
      expect(await Promise.all(waits)).toEqual([null, null]);
      await client.send(workflowID, 'done', 'topic');
      await client.retrieveWorkflow(workflowID).getResult();

      expect(await waiter.getResult(workflowID, 0)).toBe('done');
      expect(await waiter.getEvent(workflowID, 'waiting', { deadlineEpochMS: 1 })).toBe(true);
      await expect(waiter.readStreamOffset(workflowID, 'none', 0)).rejects.toMatchObject({ code: 'STREAM_TIMEOUT' });
      await expect(waiter.readStreamOffset('nobody', 's', 0)).rejects.toMatchObject({ code: 'NON_EXISTENT_WORKFLOW' });
    });

    test('polls at its own interval, whatever it waits for', async () => {
      const { DBOS, client, waiter, clock, start } = await setupWaiting(dialect, false);
      const workflowID = await start('tell', 'hello');
      const handle = waiter.retrieveWorkflow(workflowID);
      const often = { pollingIntervalMs: 40 };
      const waits = [
        handle.getResult(often),
        waiter.getResult(workflowID, { timeoutSeconds: 60, ...often }),
        waiter.getEvent(workflowID, 'event', often),
        waiter.readStream(workflowID, 'stream', often).next(),
        waiter.readStreamOffset(workflowID, 'stream', 0, often),
        waiter.waitFirst([handle], often),
        waiter.waitAll([handle], often),
      ] as const;
      await until(() => clock.isArmed(40));

      await client.send(workflowID, 'now', 'go');
      await until(() => isEnded(DBOS, workflowID));
      // Less than the default interval.
      clock.advance(40);

      const answers = await Promise.all(waits);
      expect(answers.slice(0, 5)).toEqual(['hello', 'hello', 'hello', { done: false, value: 'hello' }, 'hello']);
      expect(answers.slice(5)).toEqual([handle, [handle]]);
    });

    test('is not kept from its answer by somebody who asks for what cannot be', async () => {
      const { client, start } = await setupWaiting(dialect);
      const handle = client.retrieveWorkflow(await start('add', 1, 2));

      const [result, ...failures] = await Promise.all([
        handle.getResult(),
        failureOf(client.getResult('a\0b')),
        failureOf(client.getResult(undefined as never)),
        failureOf(client.getEvent('w', 'a\0b')),
        failureOf(client.waitAll([{ ...handle, workflowID: '\0' }])),
        failureOf(client.waitFirst([])),
        failureOf(handle.getResult({ pollingIntervalMs: 0 })),
      ]);

      expect(result).toBe(3);
      expect(failures.map(({ message }) => message)).toEqual([
        expect.stringContaining('NUL character'),
        expect.stringContaining('must be a non-empty string'),
        expect.stringContaining('NUL character'),
        expect.stringContaining('NUL character'),
        'handles must not be empty',
        'pollingIntervalMs must be a positive finite number, but is 0.',
      ]);
    });

    test('is told when the client is destroyed, whatever it waits for', async () => {
      const { waiter, start } = await setupWaiting(dialect);
      const workflowID = await start('receive');
      const handle = waiter.retrieveWorkflow(workflowID);
      const waits = [
        handle.getResult(),
        waiter.getResult(workflowID, 5),
        waiter.getEvent(workflowID, 'never'),
        waiter.readStream(workflowID, 'never').next(),
        waiter.waitFirst([handle]),
        waiter.waitAll([handle]),
      ];
      const failures = Promise.all(waits.map((waiting) => failureOf(waiting)));

      await waiter.destroy();

      for (const error of await failures) {
        expect(error).toMatchObject({ code: 'DATABASE_CLOSED', message: 'The client was destroyed.' });
      }
    });
  });

  onlyOn('postgres', (dialect) => {
    test('polls less often if it is asked to', async () => {
      const { DBOS, client, waiter, clock, start } = await setupWaiting(dialect, false);
      const workflowID = await start('tell', 'hello');
      const answered: string[] = [];
      const seldom = waiter.getResult(workflowID, { pollingIntervalMs: 60_000 });
      const usual = waiter.getResult(workflowID);
      void seldom.then(() => answered.push('seldom'));
      void usual.then(() => answered.push('usual'));
      await until(() => clock.isArmed(60_000));

      await client.send(workflowID, 'now', 'go');
      await until(() => isEnded(DBOS, workflowID));
      clock.advance(1000);
      await usual;
      expect(answered).toEqual(['usual']);

      clock.advance(59_000);
      expect(await seldom).toBe('hello');
    });

    test('polls where it cannot listen', async () => {
      const { DBOS, url, client, waiter, clock, start } = await setupWaiting(dialect, false);
      const workflowID = await start('tell', 'hello');
      const waits = Promise.all([
        waiter.retrieveWorkflow(workflowID).getResult(),
        waiter.getEvent(workflowID, 'event', Infinity),
      ]);

      await client.send(workflowID, 'now', 'go');
      await until(() => isEnded(DBOS, workflowID));
      clock.advance(700);

      expect(await waits).toEqual(['hello', 'hello']);
      const own = await ownConnection(url);
      const listening = await own.run(`
        SELECT pid FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = 'everstep_client' AND query LIKE 'LISTEN%'`);
      expect(listening).toEqual([]);
    });

    test('goes on when the connection was cut', async () => {
      const { client, url, start } = await setupWaiting(dialect);
      const proxy = await startProxy(url);
      const waiter = await connect(proxy.url);
      const workflowID = await start('receive');
      const waiting = waiter.retrieveWorkflow(workflowID).getResult();
      await waiter.getWorkflow(workflowID);

      proxy.cut();
      proxy.restore();
      await client.send(workflowID, 'done', 'topic');

      expect(await waiting).toBe('done');
    });

    test('destroys itself although the database is away, and says what was not written', async () => {
      const { url } = await setup(dialect);
      const proxy = await startProxy(url);
      const clock = new ManualClock(Date.now());
      const client = await connect(proxy.url, {}, { clock });
      proxy.cut();
      const sent = failureOf(client.send('w', 'message'));
      await turns(1);

      const destroyed = client.destroy();
      await clock.untilArmed(5000);
      clock.advance(5000);

      await destroyed;
      expect((await sent).code).toMatch(/^(DATABASE_CLOSED|DATABASE_UNAVAILABLE|COMMIT_UNKNOWN)$/);
    });
  });
});
