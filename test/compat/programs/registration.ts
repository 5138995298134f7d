// What can be registered, under which names, and how registered functions are called.
import { randomUUID } from 'node:crypto';
import { ConfiguredInstance, DBOS, Debouncer } from '@dbos-inc/dbos-sdk';
import { failureOf, runProgram, sql } from '../program.js';

const found: Record<string, unknown> = {};

function attempt(body: () => unknown): string {
  try {
    body();
    return 'accepted';
  } catch (error) {
    return (error as Error).constructor.name;
  }
}

// Anonymous functions: the name of an argument is empty.
const anonymousSteps = [DBOS.registerStep(async () => 1), DBOS.registerStep(async () => 2)];
found['two steps of one name'] = attempt(() => {
  DBOS.registerStep(async () => 1, { name: 'same' });
  DBOS.registerStep(async () => 2, { name: 'same' });
});
found['a workflow and a step of one name'] = attempt(() => {
  DBOS.registerStep(async () => 1, { name: 'mixed' });
  DBOS.registerWorkflow(async () => 2, { name: 'mixed' });
});
found['a step and a workflow of one name'] = attempt(() => {
  DBOS.registerWorkflow(async () => 2, { name: 'mixed2' });
  DBOS.registerStep(async () => 1, { name: 'mixed2' });
});
found['two workflows of one name'] = attempt(() => {
  DBOS.registerWorkflow(async () => 1, { name: 'twice' });
  DBOS.registerWorkflow(async () => 2, { name: 'twice' });
});
found['a function that is a workflow twice'] = attempt(() => {
  const both = async (): Promise<void> => {};
  DBOS.registerWorkflow(both, { name: 'both' });
  DBOS.registerWorkflow(both, { name: 'other name' });
});

const stepping = DBOS.registerWorkflow(async () => [await anonymousSteps[0]?.(), await anonymousSteps[1]?.()], {
  name: 'stepping',
});

class Shop extends ConfiguredInstance {
  async order(item: string): Promise<string> {
    return `${this.name} ${item}`;
  }

  async pack(item: string): Promise<string> {
    return `${this.name} packs ${item}`;
  }

  // Assigned below.
  declare sell: (item: string) => Promise<string>;

  static async audit(what: string): Promise<string> {
    return `audits ${what}`;
  }
}

Shop.prototype.order = DBOS.registerWorkflow(Shop.prototype.order, { ctorOrProto: Shop, name: 'order' });
Shop.prototype.pack = DBOS.registerWorkflow(Shop.prototype.pack, { ctorOrProto: Shop.prototype, name: 'pack' });
Shop.prototype.sell = DBOS.registerWorkflow(
  async function (this: Shop, item: string) {
    return `${this.name} sells ${item}`;
  },
  { ctorOrProto: Shop, name: 'sell' },
);
Shop.audit = DBOS.registerWorkflow(Shop.audit, { ctorOrProto: Shop, name: 'audit' });
const shop = new Shop('corner');

const plain = DBOS.registerWorkflow(async () => 'plain', { name: 'plain' });
const step = DBOS.registerStep(async () => DBOS.workflowID ?? 'none', { name: 'step' });
const debouncer = new Debouncer({ workflow: plain, applicationName: 'other' });

async function rowOf(workflowID: string): Promise<unknown> {
  const [row] = await sql(
    `SELECT application_name, application_version FROM workflow_status WHERE workflow_uuid = '${workflowID}'`,
  );
  return row;
}

async function recorded(handle: { workflowID: string; getResult(): Promise<unknown> }): Promise<unknown> {
  const result = await handle.getResult();
  const status = await DBOS.getWorkflowStatus(handle.workflowID);
  return { result, className: status?.workflowClassName, configName: status?.workflowConfigName };
}

async function main(): Promise<void> {
  await runProgram({
    registration: async () => found,
    'anonymous steps': () => stepping(),
    'an instance method registered with its class': async () => [
      await shop.order('pen'),
      await recorded(await DBOS.startWorkflow(shop).order('ink')),
    ],
    'an enqueued instance method registered with its class': async () => {
      await DBOS.registerQueue('shop', {});
      return recorded(await DBOS.startWorkflow(shop, { queueName: 'shop' }).order('ink'));
    },
    'an instance method registered with its prototype': async () => [
      await shop.pack('pen'),
      await recorded(await DBOS.startWorkflow(shop).pack('ink')),
    ],
    'a function registered with a class before it is a method': async () => [
      await shop.sell('pen'),
      await recorded(await DBOS.startWorkflow(shop, { queueName: 'shop' }).sell('ink')),
    ],
    'an instance method on another object': async () =>
      failureOf(() => Shop.prototype.order.call({ name: 'stranger' } as Shop, 'pen')),
    'a static method': async () => [
      await Shop.audit('books'),
      await recorded(await DBOS.startWorkflow(Shop).audit('books')),
    ],
    'work for another application': async () => {
      await DBOS.registerQueue('foreign', {});
      const handle = await DBOS.startWorkflow(plain, {
        queueName: 'foreign',
        enqueueOptions: { applicationName: 'other' },
      })();
      return rowOf(handle.workflowID);
    },
    'work for another application, of a version': async () => {
      const handle = await DBOS.startWorkflow(plain, {
        queueName: 'foreign',
        enqueueOptions: { applicationName: 'other', applicationVersion: 'v9' },
      })();
      return rowOf(handle.workflowID);
    },
    'work for this application': async () => {
      const handle = await DBOS.startWorkflow(plain, { queueName: 'foreign' })();
      return rowOf(handle.workflowID);
    },
    'debounced work for another application': async () => rowOf((await debouncer.debounce('key', 60_000)).workflowID),
    'a step where an ID is assigned': async () => {
      const workflowID = randomUUID();
      const [result, handle] = await DBOS.withNextWorkflowID(workflowID, async () => [
        await step(),
        await DBOS.startWorkflow(plain)(),
      ]);
      return [result, (handle as { workflowID: string }).workflowID === workflowID];
    },
    'a step run where an ID is assigned': () =>
      DBOS.withNextWorkflowID(randomUUID(), () => DBOS.runStep(async () => 'ran', { name: 'run' })),
  });
}

void main();
