import type { AddressInfo } from 'node:net';
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { createAdmin } from '../../../src/faces/http/admin.js';
import { Reject } from '../../../src/plugins/outbox/consume/outcomes.js';
import { until } from '../../crash/processes.js';
import { dropDatabase } from '../../plugins/transaction/scene.js';
import { bodyOf, DIALECTS, pending, setOutbox } from '../../plugins/outbox/scene.js';
import { callerOf, TOKEN } from './scene.js';

afterAll(dropDatabase);

/** An outbox with dead letters, and the interface of its process. */
async function setup(name: (typeof DIALECTS)[number][1], count: number) {
  const scene = await setOutbox(name, { isLaunched: false });
  scene.outbox.on('mail', () => {
    throw new Reject('no');
  });
  await scene.DBOS.launch();
  const bodies = Array.from({ length: count }, (_, n) => ({ body: { n } }));
  await scene.source.runTransaction(() => scene.outbox.publishAll('mail', bodies), { name: 'publish' });
  await until('all are dead letters', async () => (await pending(scene)).length === 0);
  const state = { isReady: true };
  const admin = createAdmin({
    source: scene.DBOS,
    token: TOKEN,
    outboxes: { shop: scene.outbox },
    isReady: () => state.isReady,
  });
  onTestFinished(() => admin.close());
  return { ...scene, state, call: callerOf(admin.fetch) };
}

const API = '/api/v1/outboxes';

describe.each(DIALECTS)('outboxes over HTTP on %s', (_, name) => {
  test('are listed, counted and checked', async () => {
    const { call, query } = await setup(name, 2);

    expect((await call('GET', API)).body).toEqual({ outboxes: ['shop'] });
    expect((await call('GET', `${API}/shop/statistics`)).body).toMatchObject({
      queues: [{ queue: 'mail', depth: 0, deadLetters: 2 }],
    });
    expect(await call('GET', `${API}/shop/health`)).toMatchObject({ status: 200, body: { ok: true } });
    expect(await call('GET', `${API}/shop/health?maxDeadLetters=1`)).toMatchObject({
      status: 503,
      body: { ok: false, problems: ['"mail": 2 dead letters.'] },
    });
    expect((await call('GET', `${API}/shop/schema`)).body).toEqual({ ok: true, findings: [] });
    await query('DROP INDEX outbox_lease_idx');
    expect((await call('GET', `${API}/shop/schema`)).body).toMatchObject({
      ok: false,
      findings: [{ code: 'missing_index' }],
    });
    expect(await call('GET', `${API}/shop/health?schema=true`)).toMatchObject({ status: 503 });
    expect((await call('GET', '/metrics')).body).toContain(
      'everstep_outbox_dead_letters{outbox="shop",queue="mail"} 2',
    );
  });

  test('pause and resume topics', async () => {
    const { call } = await setup(name, 0);

    expect((await call('POST', `${API}/shop/topics/mail/pause`)).body).toEqual({ changed: true });
    expect((await call('POST', `${API}/shop/topics/mail/pause`)).body).toEqual({ changed: false });
    expect((await call('GET', `${API}/shop/health`)).body).toMatchObject({ paused: ['mail'] });
    expect((await call('POST', `${API}/shop/topics/mail/resume`)).body).toEqual({ changed: true });
  });

  test('list, group, show and change dead letters', async () => {
    const { call } = await setup(name, 5);

    const first = await call('GET', `${API}/shop/dead-letters?topic=mail&limit=3`);
    const rest = await call('GET', `${API}/shop/dead-letters?limit=3&cursor=${first.body.cursor}`);
    const { id } = first.body.letters[0];
    const shown = await call('GET', `${API}/shop/dead-letters/${id}`);
    const groups = await call('GET', `${API}/shop/dead-letter-groups`);
    const counted = await call('POST', `${API}/shop/bulk/requeue`, { topic: 'mail', dryRun: true });
    const requeued = await call('POST', `${API}/shop/bulk/requeue`, { ids: [id], delayMs: 3_600_000 });
    const archived = await call('POST', `${API}/shop/bulk/archive`, { topic: 'mail', limit: 1 });
    const before = new Date(Date.now() + 60_000).toISOString();
    const discarded = await call('POST', `${API}/shop/bulk/discard`, { before });
    const kept = await call('GET', `${API}/shop/dead-letters?archived=both`);

    expect(first.body.letters).toHaveLength(3);
    expect(rest.body).toMatchObject({ letters: { length: 2 }, cursor: null });
    expect(shown.body).toMatchObject({ id, reason: 'rejected', key: null, body: { isExact: true } });
    expect(groups.body).toMatchObject({ groups: [{ count: 5, topic: 'mail' }] });
    expect(counted.body).toEqual({ requeued: 5, skipped: 0 });
    expect(requeued.body).toEqual({ requeued: 1, skipped: 0 });
    expect(archived.body).toEqual({ archived: 1 });
    expect(discarded.body).toEqual({ discarded: 3 });
    expect(kept.body.letters).toHaveLength(1);
  });

  test('requeue a dead letter with another body', async () => {
    const scene = await setup(name, 1);
    const { call } = scene;
    const [letter] = (await call('GET', `${API}/shop/dead-letters`)).body.letters as { id: string }[];

    const edit = { body: { n: 'edited' }, delayMs: 3_600_000 };
    const requeued = await call('POST', `${API}/shop/dead-letters/${letter?.id}/requeue`, edit);
    const again = await call('POST', `${API}/shop/dead-letters/${letter?.id}/requeue`, {});

    expect(requeued.body).toEqual({ requeued: 1, skipped: 0 });
    expect((await pending(scene)).map(bodyOf)).toEqual([{ n: 'edited' }]);
    expect(again.status).toBe(404);
  });

  test('refuse what makes no sense', async () => {
    const { call } = await setup(name, 0);

    expect((await call('GET', `${API}/other/statistics`)).status).toBe(404);
    expect((await call('GET', `${API}/shop/dead-letters/17`)).status).toBe(404);
    expect((await call('GET', `${API}/shop/dead-letters/x`)).status).toBe(400);
    expect((await call('GET', `${API}/shop/dead-letters?cursor=x`)).status).toBe(400);
    expect((await call('POST', `${API}/shop/bulk/discard`, {})).status).toBe(400);
    expect((await call('GET', API, undefined, { authorization: 'Bearer wrong' })).status).toBe(401);
  });

  test('a check of the application makes the process not ready', async () => {
    const { call, state } = await setup(name, 0);

    expect((await call('GET', '/readyz')).status).toBe(200);
    state.isReady = false;
    expect((await call('GET', '/readyz')).status).toBe(503);
  });
});

test('the built-in server finds the outboxes of its process by itself', async () => {
  const scene = await setOutbox('better-sqlite3', {
    isLaunched: false,
    config: { runAdminServer: true, adminPort: 0, adminToken: TOKEN },
  });
  scene.outbox.on('mail', () => {});
  await scene.DBOS.launch();
  const { port } = scene.DBOS.adminServer?.address() as AddressInfo;

  const answer = await fetch(`http://127.0.0.1:${port}${API}`, { headers: { authorization: `Bearer ${TOKEN}` } });
  const health = await fetch(`http://127.0.0.1:${port}${API}/app/health`, {
    headers: { authorization: `Bearer ${TOKEN}` },
  });

  expect(await answer.json()).toEqual({ outboxes: ['app'] });
  expect(health.status).toBe(200);
});
