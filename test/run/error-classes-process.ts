// A process with a workflow that branches on the class of an error. The first one dies behind the branch; the next one,
// with the word `again`, comes by there once more and says which way it went.
import { silentLogger } from '../../src/kernel/base/log.js';
import { createDBOS } from '../../src/faces/library/dbos.js';

const [url, registration, life] = process.argv.slice(-3);

/** Two modules of a bundle. A minifier gives their classes one name. */
const payments = (() => {
  class CardDeclined extends Error {
    constructor(readonly amount: number) {
      super('declined');
    }

    isLarge(): boolean {
      return this.amount > 100;
    }
  }
  return { CardDeclined };
})();

const stock = (() => {
  class CardDeclined extends Error {
    constructor(readonly article: string) {
      super('declined');
    }

    isLarge(): never {
      throw new Error('The wrong class.');
    }
  }
  return { OutOfStock: CardDeclined };
})();

async function main(): Promise<void> {
  const DBOS = createDBOS();
  const { CardDeclined } = payments;
  const { OutOfStock } = stock;
  if (registration === 'registered') DBOS.registerErrors({ OutOfStock }, { CardDeclined });
  DBOS.setConfig({ name: 'test', applicationVersion: 'v1', systemDatabaseUrl: url, logger: silentLogger });
  const pay = DBOS.registerWorkflow(
    async () => {
      const errors = registration === 'step' ? [{ CardDeclined }] : [];
      try {
        return await DBOS.runStep(() => Promise.reject(new CardDeclined(5000)), { name: 'charge', errors });
      } catch (error) {
        const branch = error instanceof OutOfStock ? 'reorder' : error instanceof CardDeclined ? 'mail' : 'unknown';
        const isLarge = error instanceof CardDeclined && error.isLarge();
        await DBOS.runStep(
          async () => {
            if (life !== 'again') process.kill(process.pid, 'SIGKILL');
            return Promise.resolve();
          },
          { name: branch },
        );
        return `${branch} ${isLarge} ${CardDeclined.name}`;
      }
    },
    { name: 'pay' },
  );
  await DBOS.launch();
  if (life !== 'again') await DBOS.startWorkflow(pay, { workflowID: 'w' })();
  const result = await DBOS.retrieveWorkflow('w').getResult();
  console.log(result);
  await DBOS.shutdown();
}

void main();
