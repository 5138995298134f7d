// An engine with workflows in several states, and its interface on a port.
import type { Page } from 'playwright-core';
import { type AdminOptions, createAdmin } from '../../src/faces/http/admin.js';
import type { DBOSConfig } from '../../src/run/config/config.js';
import { callerOf } from '../faces/http/scene.js';
import { serveAdmin } from '../rig/browser.js';
import type { TestDialect } from '../rig/dialects.js';
import { createEngine } from '../rig/engines.js';

export const HOSTILE = '<img src=x onerror="window.hacked=1">"><script>window.hacked=1</script>\u202Etxt.exe';

/** For tests of the browser, which loads pages on a machine that does much else. */
export const TIMEOUT = 120_000;

/** Presses the button of the dialog that is open, and waits until it has closed. */
export async function confirm(page: Page, name: string): Promise<void> {
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('button', { name, exact: true }).click();
  await dialog.waitFor({ state: 'detached' });
}

/** Opens a menu by its title and presses one of its buttons. */
export async function choose(page: Page, name: string, menu = 'More actions'): Promise<void> {
  await page.getByRole('button', { name: menu }).click();
  await page.getByRole('button', { name, exact: true }).click();
}

export async function setup(
  dialect: TestDialect,
  options: Partial<AdminOptions> = { isOpen: true },
  config?: Partial<DBOSConfig>,
) {
  const { DBOS, url } = await createEngine(dialect, config);
  const greet = DBOS.registerWorkflow(
    async (name: string) => DBOS.runStep(async () => `Hello ${name}`, { name: 'greet step' }),
    { name: 'greet' },
  );
  const refuse = DBOS.registerWorkflow(
    async () => {
      await DBOS.runStep(async () => 'reserved', { name: 'reserve' });
      await DBOS.runStep(() => Promise.reject(new Error('card declined')), { name: 'charge' });
    },
    { name: 'refuse' },
  );
  const approve = DBOS.registerWorkflow(async () => DBOS.recv('approval', 86_400), { name: 'approve' });
  const hostile = DBOS.registerWorkflow(
    async (text: string) => {
      await DBOS.setEvent(text, { [text]: text });
      await DBOS.runStep(async () => ({ link: 'javascript:window.hacked=1', text }), { name: text });
      throw new Error(text);
    },
    { name: HOSTILE },
  );
  const long = DBOS.registerWorkflow(
    async (steps: number) => {
      for (let step = 0; step < steps; step += 1) await DBOS.runStep(async () => step, { name: `step ${step}` });
    },
    { name: 'long' },
  );
  const stream = DBOS.registerWorkflow(
    async (values: number) => {
      for (let value = 0; value < values; value += 1) await DBOS.writeStream('numbers', value);
    },
    { name: 'stream' },
  );
  await DBOS.launch();
  await DBOS.registerQueue('mail', { globalConcurrency: 10 });
  const admin = createAdmin({ source: DBOS, ...options });
  const server = await serveAdmin(admin);
  return {
    DBOS,
    /** Of the system database. */
    url,
    server,
    ui: `${server.url}/ui`,
    call: callerOf(admin.fetch),
    workflows: { greet, refuse, approve, hostile, long, stream },
  };
}
