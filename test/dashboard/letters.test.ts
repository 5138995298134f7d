// Dead letters of outboxes and receivers: grouped by failure, looked at, edited, requeued, archived and discarded.
import { afterAll, describe, expect, test } from 'vitest';
import { createAdmin } from '../../src/faces/http/admin.js';
import { RECEIVED_LETTERS } from '../../src/features/dead-letter/received-letters.js';
import { Reject } from '../../src/plugins/outbox/consume/outcomes.js';
import { upsertEventDispatchState } from '../../src/run/rows/event-dispatch.js';
import { until } from '../crash/processes.js';
import { dropDatabase } from '../plugins/transaction/scene.js';
import { DIALECTS, pending, setOutbox } from '../plugins/outbox/scene.js';
import { serveAdmin, withBrowser } from '../rig/browser.js';
import { forEachDialect } from '../rig/dialects.js';
import { engineOf } from '../rig/engines.js';
import { callerOf } from '../faces/http/scene.js';
import { confirm, setup, TIMEOUT } from './scene.js';

afterAll(dropDatabase);

/** Only a test that fails waits for so long. */
const PATIENCE_MS = 45_000;

interface Mail {
  readonly to: string;
}

/** An outbox whose handler refuses what has no good address, in two ways. */
async function setupOutbox(name: (typeof DIALECTS)[number][1]) {
  const scene = await setOutbox(name, { isLaunched: false });
  // A message may be delivered twice.
  const delivered = new Set<string>();
  const state = { isOpen: false };
  scene.outbox.on('mail', (body) => {
    const { to } = body as Mail;
    if (!to.includes('@')) throw new Reject('no address');
    if (!state.isOpen) throw new Reject('mailbox full');
    delivered.add(to);
  });
  await scene.DBOS.launch();
  const letters = ['a@shop', 'b@shop', 'nowhere'].map((to) => ({ body: { to } }));
  await scene.source.runTransaction(() => scene.outbox.publishAll('mail', letters), { name: 'publish' });
  await until('all are dead letters', async () => (await pending(scene)).length === 0, { boundMs: PATIENCE_MS });
  const admin = createAdmin({ source: scene.DBOS, isOpen: true, outboxes: { shop: scene.outbox } });
  const { url } = await serveAdmin(admin);
  return { ...scene, state, delivered, ui: `${url}/ui`, call: callerOf(admin.fetch) };
}

withBrowser((browser) => {
  describe.each(DIALECTS)('outboxes on %s', (_, name) => {
    test('dead letters are grouped by failure, edited and requeued', { timeout: TIMEOUT }, async () => {
      const { ui, state, delivered, call } = await setupOutbox(name);
      const page = await browser.open(`${ui}/outbox`);
      const group = (failure: string) => page.getByRole('region', { name: `Dead letters of mail: Reject: ${failure}` });

      await group('mailbox full').getByText('2', { exact: true }).waitFor();
      await group('no address').getByRole('button', { name: '1 for mail' }).click();
      await group('no address').getByRole('button', { name: 'Edit and requeue…' }).click();
      await page.getByLabel('Body, as JSON').fill('{"to": ');
      await page.getByRole('dialog').getByRole('button', { name: 'Requeue', exact: true }).click();
      await page.getByText('This is not valid JSON.').waitFor();
      state.isOpen = true;
      await page.getByLabel('Body, as JSON').fill('{"to": "c@shop"}');
      await confirm(page, 'Requeue');
      await group('no address').waitFor({ state: 'detached' });
      await until('it is delivered', async () => delivered.size === 1, { boundMs: PATIENCE_MS });
      await group('mailbox full').getByRole('button', { name: '2 for mail' }).click();
      await group('mailbox full').getByText('b@shop').waitFor();
      await group('mailbox full').getByRole('button', { name: 'Requeue…', exact: true }).click();
      await page.getByRole('heading', { name: 'Requeue 2 dead letters of mail?' }).waitFor();
      await confirm(page, 'Requeue');
      await group('mailbox full').waitFor({ state: 'detached' });
      await until('all are delivered', async () => delivered.size === 3, { boundMs: PATIENCE_MS });

      expect([...delivered].toSorted()).toEqual(['a@shop', 'b@shop', 'c@shop']);
      expect((await call('GET', '/api/v1/outboxes/shop/dead-letters?archived=both')).body.letters).toEqual([]);
    });

    test('dead letters are archived and discarded', { timeout: TIMEOUT }, async () => {
      const { ui, call } = await setupOutbox(name);
      const page = await browser.open(`${ui}/outbox`);
      const group = (failure: string) => page.getByRole('region', { name: `Dead letters of mail: Reject: ${failure}` });

      await group('no address').getByRole('button', { name: 'Archive…' }).click();
      await confirm(page, 'Archive');
      await group('no address').waitFor({ state: 'detached' });
      await group('mailbox full').getByRole('button', { name: 'Discard…' }).click();
      await confirm(page, 'Discard');
      await group('mailbox full').waitFor({ state: 'detached' });

      const kept = await call('GET', '/api/v1/outboxes/shop/dead-letters?archived=both');
      expect(kept.body.letters).toMatchObject([{ body: { json: { to: 'nowhere' } } }]);
    });
  });

  forEachDialect((dialect) => {
    test('dead letters of receivers are shown, archived and discarded', { timeout: TIMEOUT }, async () => {
      const { DBOS, ui, call } = await setup(dialect);
      const states = ['no JSON', 'no JSON', 'too large'].map((error, n) => ({
        service: RECEIVED_LETTERS,
        workflowFnName: 'greet',
        key: `m${n}`,
        value: JSON.stringify({ error, message: { n } }),
        updateTime: 1_700_000_000_000 + n,
      }));
      await engineOf(DBOS).runtime.database.commit(states.map((state) => upsertEventDispatchState(state)));
      const page = await browser.open(`${ui}/outbox`);
      const group = (failure: string) => page.getByRole('region', { name: `Dead letters of greet: ${failure}` });

      await group('too large').getByRole('button', { name: '1 for greet' }).click();
      await group('too large').getByText('n:').waitFor();
      await group('too large').getByRole('button', { name: 'Archive…' }).click();
      await confirm(page, 'Archive');
      await group('too large').waitFor({ state: 'detached' });
      await group('no JSON').getByRole('button', { name: 'Discard…' }).click();
      await page.getByRole('heading', { name: 'Discard 2 dead letters of greet?' }).waitFor();
      await confirm(page, 'Discard');
      await group('no JSON').waitFor({ state: 'detached' });

      const kept = await call('GET', '/api/v1/receivers/dead-letters?archived=true');
      expect(kept.body.letters).toMatchObject([{ error: 'too large' }]);
    });
  });
});
