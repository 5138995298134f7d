// The shop. It is started twice as the same program; nothing here knows about the crash.
import { setTimeout as delay } from 'node:timers/promises';
import { DBOS } from '../../src/index.js';
import { type Order, ORDERS, parcelName, RECEIPT, writeEntry } from './orders.js';

const [url = '', logPath = '', processNumber = ''] = process.argv.slice(2);
const SLEEP_MS = 2000;
const BETWEEN_ORDERS_MS = 650;

/** Stands for the outside world: what is in the log has happened and cannot be undone. */
async function happen(effect: string, durationMs: number): Promise<string> {
  const { workflowID = '', stepID = -1 } = DBOS;
  const entry = { process: Number(processNumber), order: workflowID, effect, stepID };
  writeEntry(logPath, { ...entry, event: 'begin' });
  await delay(durationMs);
  writeEntry(logPath, { ...entry, event: 'end' });
  return `${effect} of ${workflowID}`;
}

const reserveStock = DBOS.registerStep(() => happen('reserve', 350), { name: 'reserveStock' });
const chargeCard = DBOS.registerStep(() => happen('charge', 500), { name: 'chargeCard' });
const shipParcel = DBOS.registerStep((index: number) => happen(parcelName(index), 500 + 250 * index), {
  name: 'shipParcel',
});
const sendReceipt = DBOS.registerStep(() => happen(RECEIPT, 350), { name: 'sendReceipt' });

const fulfil = DBOS.registerWorkflow(
  async (order: Order) => {
    await reserveStock();
    await chargeCard();
    await DBOS.sleep(SLEEP_MS);
    const shipped = await Promise.all(Array.from({ length: order.parcels }, (_, index) => shipParcel(index)));
    await sendReceipt();
    return shipped.length;
  },
  { name: 'fulfil' },
);

DBOS.setConfig({ name: 'demo', systemDatabaseUrl: url, logLevel: 'error' });
await DBOS.launch();

// Starting an existing order returns a handle to it instead of starting it again.
const results: Promise<number>[] = [];
for (const order of ORDERS) {
  const handle = await DBOS.startWorkflow(fulfil, { workflowID: order.id })(order);
  results.push(handle.getResult());
  await delay(BETWEEN_ORDERS_MS);
}
await Promise.all(results);
await DBOS.shutdown();
