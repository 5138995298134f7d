import { describe, expect, test } from 'vitest';
import { internals } from '../../../src/kernel/base/internals.js';
import { ConfiguredInstance, type DBOSInstance, WorkflowQueue } from '../../../src/index.js';
import { forEachDialect } from '../../rig/dialects.js';
import { createEngine } from '../../rig/engines.js';

/** A module of the application, as a bundler copies it: each copy has functions of its own. */
function loadModule(DBOS: DBOSInstance, copy: string) {
  const step = DBOS.registerStep(async () => copy, { name: 'step' });
  const workflow = DBOS.registerWorkflow(async () => `by ${await step()}`, { name: 'workflow' });
  return { workflow };
}

forEachDialect((dialect) => {
  describe('a module that is loaded twice', () => {
    test('replaces its functions, even after launch', async () => {
      const { DBOS } = await createEngine(dialect);
      const first = loadModule(DBOS, 'first');
      new WorkflowQueue('queue', {}, DBOS);
      await DBOS.launch();

      const second = loadModule(DBOS, 'second');

      expect(await second.workflow()).toBe('by second');
      const queued = await DBOS.startWorkflow(first.workflow, { queueName: 'queue' })();
      expect(await queued.getResult()).toBe('by second');
    });

    test('replaces its classes of errors', async () => {
      const { DBOS } = await createEngine(dialect);
      const load = () => {
        class CardDeclined extends Error {}
        DBOS.registerErrors(CardDeclined);
        return CardDeclined;
      };
      load();
      const second = load();
      const workflow = DBOS.registerWorkflow(() => Promise.reject(new second()), { name: 'workflow' });
      await DBOS.launch();

      await expect(workflow()).rejects.toBeInstanceOf(second);
    });

    test('may not change them', async () => {
      const { DBOS } = await createEngine(dialect);
      loadModule(DBOS, 'first');
      await DBOS.launch();

      const change = (): unknown => DBOS.registerWorkflow(async () => 'changed', { name: 'workflow' });

      expect(change).toThrow('DBOS code is being registered after DBOS.launch()');
    });

    test('may not add others after launch', async () => {
      const { DBOS } = await createEngine(dialect);
      loadModule(DBOS, 'first');
      await DBOS.launch();

      const add = (): unknown => DBOS.registerWorkflow(async () => 'new', { name: 'another' });

      expect(add).toThrow('DBOS code is being registered after DBOS.launch()');
    });
  });

  describe('where modules are reloaded', () => {
    async function setup() {
      const { DBOS } = await createEngine(dialect);
      DBOS[internals].registry.isReloadable = true;
      return DBOS;
    }

    test('a changed class of errors replaces the one before', async () => {
      const DBOS = await setup();
      DBOS.registerErrors({ Declined: class extends Error {} });
      const Declined = class extends Error {
        readonly isChanged = true;
      };

      DBOS.registerErrors({ Declined });

      const workflow = DBOS.registerWorkflow(() => Promise.reject(new Declined()), { name: 'workflow' });
      await DBOS.launch();
      await expect(workflow()).rejects.toBeInstanceOf(Declined);
    });

    test('a changed workflow replaces the one before', async () => {
      const DBOS = await setup();
      const before = DBOS.registerWorkflow(async () => 'before', { name: 'workflow' });
      await DBOS.launch();

      DBOS.registerWorkflow(async () => 'after', { name: 'workflow' });

      expect(await (await DBOS.startWorkflow(before)()).getResult()).toBe('after');
    });

    test('a queue is defined again', async () => {
      const DBOS = await setup();
      new WorkflowQueue('queue', { concurrency: 1 }, DBOS);
      await DBOS.launch();

      const again = new WorkflowQueue('queue', { concurrency: 2 }, DBOS);

      expect(again.concurrency).toBe(2);
    });

    test('an instance is made again, and both run their workflows', async () => {
      const DBOS = await setup();
      const load = () => {
        class Shop extends ConfiguredInstance {
          async order(): Promise<string> {
            return `${this.name} ordered`;
          }
        }
        // eslint-disable-next-line @typescript-eslint/unbound-method
        Shop.prototype.order = DBOS.registerWorkflow(Shop.prototype.order, { name: 'order', ctorOrProto: Shop });
        return new Shop('main', DBOS);
      };
      const first = load();
      await DBOS.launch();

      const second = load();

      expect([await first.order(), await second.order()]).toEqual(['main ordered', 'main ordered']);
    });

    test('a schedule in code is kept from the first load', async () => {
      const DBOS = await setup();
      const load = () => {
        const workflow = DBOS.registerWorkflow(async (_: Date, __: Date) => {}, { name: 'daily' });
        DBOS.registerScheduled(workflow, { crontab: '0 0 * * *' });
      };
      load();
      await DBOS.launch();

      expect(load).not.toThrow();
      expect(DBOS[internals].registry.codeSchedules.size).toBe(1);
    });
  });
});
