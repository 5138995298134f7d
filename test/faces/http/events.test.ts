import { describe, expect, onTestFinished, test } from 'vitest';
import { type Admin, createAdmin } from '../../../src/faces/http/admin.js';
import { ChangeFeed, type Changes, type Subscriber } from '../../../src/faces/http/changes/feed.js';
import { eventResponse } from '../../../src/faces/http/changes/sse.js';
import { systemClock } from '../../../src/kernel/base/clock.js';
import { silentLogger } from '../../../src/kernel/base/log.js';
import { DBOSClient } from '../../../src/faces/client/client.js';
import { findChangedWorkflows } from '../../../src/features/listing/changes.sql.js';
import { forEachDialect } from '../../rig/dialects.js';
import { ManualClock } from '../../rig/manual-clock.js';
import { setup, TOKEN } from './scene.js';
import { internals } from '../../../src/kernel/base/internals.js';

interface Event {
  readonly id: string;
  readonly event: string;
  readonly data: Record<string, unknown>;
}

/** A client of the stream, which reads event by event. */
async function connect(fetch: Admin['fetch'], query = '', headers: Record<string, string> = {}) {
  const request = new Request(`http://localhost/api/v1/events${query}`, {
    headers: { authorization: `Bearer ${TOKEN}`, ...headers },
  });
  const response = await fetch(request);
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const events: Event[] = [];
  let text = '';
  let lastID = '';
  const pull = async (): Promise<boolean> => {
    const { done, value } = await reader.read();
    text += new TextDecoder().decode(value);
    const blocks = text.split('\n\n');
    text = blocks.pop() ?? '';
    for (const block of blocks) {
      const fields = Object.fromEntries(
        block.split('\n').map((line) => [line.split(': ')[0], line.slice(line.indexOf(': ') + 2)]),
      ) as Record<string, string>;
      const { id = '', event, data } = fields;
      lastID = id || lastID;
      if (event && data) events.push({ id, event, data: JSON.parse(data) as Record<string, unknown> });
    }
    return done;
  };
  /** Reads until an event is as wanted, and gives it. */
  const until = async (isWanted: (event: Event) => boolean): Promise<Event> => {
    for (;;) {
      const found = events.find(isWanted);
      if (found) return found;
      if (await pull()) throw new Error('The stream has ended.');
    }
  };
  /** The ID from which a client would go on. */
  const untilID = async (): Promise<string> => {
    while (lastID === '') if (await pull()) throw new Error('The stream has ended.');
    return lastID;
  };
  const untilEnd = async (): Promise<void> => {
    while (!(await pull())) continue;
  };
  onTestFinished(() => reader.cancel());
  return { response, events, until, untilID, untilEnd, close: () => reader.cancel() };
}

/** A feed that says what the test wants it to say. */
class TalkativeFeed extends ChangeFeed {
  readonly #subscribers: Subscriber[] = [];

  override subscribe(subscriber: Subscriber, since?: number): Promise<() => void> {
    this.#subscribers.push(subscriber);
    return super.subscribe(subscriber, since);
  }

  say(changes: Changes): void {
    for (const subscriber of this.#subscribers) subscriber.deliver(changes);
  }
}

describe('the stream of changes', () => {
  forEachDialect((dialect) => {
    test('tells of workflows that begin, run and end', async () => {
      const { admin, enqueue, call } = await setup(dialect);
      const { response, until } = await connect(admin.fetch);

      const workflowID = await enqueue('receive');
      const running = await until(({ data }) => data['workflowID'] === workflowID && data['status'] === 'PENDING');
      await call('POST', `/api/v1/workflows/${workflowID}/messages`, { message: 'x', topic: 'topic' });
      const ended = await until(({ data }) => data['workflowID'] === workflowID && data['status'] === 'SUCCESS');

      expect(response.headers.get('content-type')).toMatch(/^text\/event-stream/);
      expect(running).toMatchObject({ event: 'workflow', data: { workflowName: 'receive', queueName: 'q' } });
      expect(Number(ended.id)).toBeGreaterThanOrEqual(Number(running.id));
    });

    test('tells of what was cancelled, resumed and deleted, and of queues', async () => {
      const { admin, enqueue, call } = await setup(dialect);
      const workflowID = await enqueue('add', { args: [1, 2], delaySeconds: 1000 });
      const { until } = await connect(admin.fetch);
      const isOf = (status: string) => (event: Event) =>
        event.data['workflowID'] === workflowID && event.data['status'] === status;

      await call('POST', `/api/v1/workflows/${workflowID}/cancel`);
      await until(isOf('CANCELLED'));
      await call('POST', '/api/v1/queues/q/pause');
      await until(({ event, data }) => event === 'queue' && data['name'] === 'q' && data['isPaused'] === true);
      await call('POST', `/api/v1/workflows/${workflowID}/resume`, { queueName: 'q' });
      await until(isOf('ENQUEUED'));
      await call('DELETE', `/api/v1/workflows/${workflowID}`);
      await until(({ event, data }) => event === 'workflow-deleted' && data['workflowID'] === workflowID);
      await call('PUT', '/api/v1/queues/new', { globalConcurrency: 1 });
      await until(({ event, data }) => event === 'queue' && data['globalConcurrency'] === 1);
      await call('DELETE', '/api/v1/queues/new');
      await until(({ event, data }) => event === 'queue-deleted' && data['name'] === 'new');
    });

    test('tells only of what is asked for', async () => {
      const { admin, run, call } = await setup(dialect);
      const filtered = await connect(admin.fetch, '?status=SUCCESS&workflowName=add&queueName=q');

      await call('POST', '/api/v1/queues/q/pause');
      await call('POST', '/api/v1/queues/q/resume');
      await run('fail');
      await run('tell');
      const workflowID = await run('add', { args: [1, 2] });
      await filtered.until(({ data }) => data['workflowID'] === workflowID);

      expect(filtered.events.map(({ data }) => data['workflowID'])).toEqual([workflowID]);
    });

    test('goes on where a client has left off', async () => {
      const { admin, run } = await setup(dialect);
      const before = await connect(admin.fetch);
      const first = await run('add', { args: [1, 2] });
      const { id } = await before.until(({ data }) => data['workflowID'] === first && data['status'] === 'SUCCESS');
      await before.close();
      const missed = await run('fail');

      const after = await connect(admin.fetch, '', { 'last-event-id': id });

      await after.until(({ data }) => data['workflowID'] === missed && data['status'] === 'ERROR');
    });

    test('tells a client that was cut off before its first event what it has missed', async () => {
      const { admin, run, enqueue, call } = await setup(dialect);
      const deleted = await run('add', { args: [1, 2] });
      const filter = '?workflowName=fail';
      const before = await connect(admin.fetch, filter);
      const id = await before.untilID();
      await before.close();
      const missed = await run('fail');
      await call('DELETE', `/api/v1/workflows/${deleted}`);

      const after = await connect(admin.fetch, filter, { 'last-event-id': id });

      await after.until(({ data }) => data['workflowID'] === missed && data['status'] === 'ERROR');
      await after.until(({ event }) => event === 'refresh');
      const next = await enqueue('fail');
      await after.until(({ data }) => data['workflowID'] === next && data['status'] === 'ERROR');
    });

    test('ends with the session of its client', async () => {
      const { DBOS } = await setup(dialect);
      const clock = new ManualClock();
      const feed = new ChangeFeed(DBOS);
      const endsAt = clock.now() + 1000;
      const response = await eventResponse({ feed, clock, filters: {}, since: undefined, endsAt });

      clock.advance(1000);

      expect(await response.text()).toMatch(/^retry: /);
      expect(feed.subscriberCount).toBe(0);
    });

    test('tells a client of another process', async () => {
      const { url, run } = await setup(dialect);
      const client = await DBOSClient.create({ systemDatabaseUrl: url, logger: silentLogger });
      onTestFinished(() => client.destroy());
      const admin = createAdmin({ source: client, token: TOKEN });
      onTestFinished(() => admin.close());
      const { until } = await connect(admin.fetch);

      const workflowID = await run('add', { args: [1, 2] });

      await until(({ data }) => data['workflowID'] === workflowID && data['status'] === 'SUCCESS');
    });

    test('runs while somebody watches, and not longer', async () => {
      const { DBOS } = await setup(dialect);
      const feed = new ChangeFeed(DBOS);
      const response = await eventResponse({ feed, clock: systemClock, filters: {}, since: undefined });
      expect(feed.subscriberCount).toBe(1);

      await response.body?.cancel();

      // A timer or a subscription that stays behind fails the test.
      expect(feed.subscriberCount).toBe(0);
    });

    test('drops a client that does not read', async () => {
      const { DBOS, run } = await setup(dialect);
      const feed = new TalkativeFeed(DBOS);
      onTestFinished(() => feed.end());
      const response = await eventResponse({ feed, clock: systemClock, filters: {}, since: undefined });
      const workflowID = await run('add', { args: [1, 2] });
      const query = { since: 0, workflowIDs: [workflowID], max: 1 };
      const {
        workflows: [workflow],
      } = await findChangedWorkflows(DBOS[internals].operator.database, query);
      if (!workflow) throw new Error('The workflow is gone.');

      for (let round = 0; round < 20; round += 1) {
        feed.say({ at: round, changes: Array.from({ length: 500 }, () => ({ kind: 'workflow', workflow })) });
      }

      expect(feed.subscriberCount).toBe(0);
      expect((await response.text()).length).toBeLessThan(1_500_000);
    });

    test('asks clients to list anew when there is too much to tell', async () => {
      const { DBOS, run } = await setup(dialect);
      const feed = new ChangeFeed(DBOS, { max: 2, pollMs: 10, throttleMs: 1 });
      onTestFinished(() => feed.end());
      const delivered: string[] = [];
      const refreshed = new Promise<void>((resolve) => {
        void feed.subscribe({
          deliver({ changes }) {
            delivered.push(...changes.map(({ kind }) => kind));
            if (delivered.includes('refresh')) resolve();
          },
          end() {},
        });
      });

      await Promise.all([1, 2, 3, 4].map((value) => run('add', { args: [value, value] })));

      await refreshed;
    });
  });
});
