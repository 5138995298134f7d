// An engine with workflows in several states, and its interface on a port.
import { type AdminOptions, createAdmin } from '../../src/admin/admin.js';
import { callerOf } from '../admin/scene.js';
import { serveAdmin } from '../rig/browser.js';
import type { TestDialect } from '../rig/dialects.js';
import { createEngine } from '../rig/engines.js';

export const HOSTILE = '<img src=x onerror="window.hacked=1">"><script>window.hacked=1</script>\u202Etxt.exe';

export async function setup(dialect: TestDialect, options: Partial<AdminOptions> = { isOpen: true }) {
  const { DBOS } = await createEngine(dialect);
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
    server,
    ui: `${server.url}/ui`,
    call: callerOf(admin.fetch),
    workflows: { greet, refuse, approve, hostile, long, stream },
  };
}
