// An order service. An order, the message about it, and nothing else are one commit; a workflow fulfils it, and a partner
// is told by a webhook. Kill it whenever you like and start it again: every order is shipped once, and the partner hears of
// each at least once.
//
//   POST /orders {"id":"a-1","item":"book"} → 201
//   GET /orders/a-1                         → {"id":"a-1","item":"book","status":"shipped"}
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { BetterSqlite3DataSource } from '../../src/plugins/transaction/adapters/better-sqlite3.js';
import { DBOS } from '../../src/index.js';
import { makeDlqTable, OutboxBroker, topic } from '../../src/outbox.js';
import { webhook } from '../../src/plugins/outbox/relays/webhook.js';

interface Order {
  readonly id: string;
  readonly item: string;
}

interface Settings {
  /** The application's own database. */
  readonly databasePath: string;
  /** Where Everstep keeps workflows. */
  readonly systemDatabaseURL: string;
  readonly partnerURL: string;
  readonly partnerSecret: string;
}

const settings = JSON.parse(process.argv[2] ?? '{}') as Settings;
const app = new BetterSqlite3DataSource('app', settings.databasePath);
const outbox = new OutboxBroker(app, { dlqTable: makeDlqTable() });
const orderPlaced = topic<Order>('order.placed', { key: ({ id }) => id });

async function placeOrder({ id, item }: Order): Promise<void> {
  await app.runTransaction(
    async () => {
      app.client.prepare(`INSERT INTO orders (id, item, status) VALUES (?, ?, 'placed')`).run(id, item);
      await outbox.publish(orderPlaced, { id, item });
    },
    { name: 'placeOrder' },
  );
}

function findOrder(id: string): Promise<unknown> {
  return app.runTransaction(
    async () => app.client.prepare('SELECT id, item, status FROM orders WHERE id = ?').get(id),
    { name: 'findOrder', readOnly: true },
  );
}

/** A transaction step: its effect and the record that it has happened are one commit. */
function setStatus(id: string, status: string): Promise<void> {
  return app.runTransaction(
    async () => {
      app.client.prepare('UPDATE orders SET status = ? WHERE id = ?').run(status, id);
      app.client.prepare('INSERT INTO history (order_id, status) VALUES (?, ?)').run(id, status);
    },
    { name: `set to ${status}` },
  );
}

const fulfil = DBOS.registerWorkflow(
  async ({ id }: Order) => {
    await setStatus(id, 'paid');
    await DBOS.sleep(100);
    await setStatus(id, 'shipped');
  },
  { name: 'fulfil' },
);
outbox.on(orderPlaced, fulfil, { subscription: 'fulfilment' });
outbox.relay(orderPlaced, webhook({ url: settings.partnerURL, secret: settings.partnerSecret }), {
  subscription: 'partner',
  // How long a message waits that a killed process was about to send.
  lease: '2s',
  envelope: { cloudEvents: { source: '/orders', mode: 'binary' } },
});

async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const answer = (status: number, body: unknown): void =>
    void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  const [, orderID] = /^\/orders\/([\w-]+)$/.exec(request.url ?? '') ?? [];
  if (request.method === 'POST' && request.url === '/orders') {
    const order = JSON.parse(Buffer.concat(await request.toArray()).toString()) as Order;
    await placeOrder(order);
    return answer(201, { id: order.id });
  }
  const found = orderID === undefined ? undefined : await findOrder(orderID);
  return found === undefined ? answer(404, { error: 'There is no such order.' }) : answer(200, found);
}

async function main(): Promise<void> {
  DBOS.setConfig({ name: 'orders', systemDatabaseUrl: settings.systemDatabaseURL, logLevel: 'error' });
  await DBOS.launch();
  const server = createServer((request, response) => {
    handle(request, response).catch((error: unknown) => {
      const isTaken = String(error).includes('UNIQUE');
      response.writeHead(isTaken ? 409 : 500).end();
    });
  });
  server.listen(0, '127.0.0.1', () => {
    const address = server.address();
    process.stdout.write(`${typeof address === 'object' ? address?.port : ''}\n`);
  });
  process.once('SIGTERM', () => {
    server.close();
    void DBOS.shutdown();
  });
}

main().catch((error: unknown) => {
  process.stderr.write(`${String(error)}\n`);
  process.exitCode = 1;
});
