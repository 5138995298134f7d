// The example: an order service that is killed and started again.
import BetterSqlite3 from 'better-sqlite3';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect, inject, onTestFinished, test } from 'vitest';
import { BetterSqlite3DataSource } from '../../../src/plugins/transaction/adapters/better-sqlite3.js';
import { OutboxBroker } from '../../../src/plugins/outbox/outbox-broker.js';
import { makeDlqTable } from '../../../src/plugins/outbox/schema/tables.js';
import { until } from '../../crash/processes.js';
import { bundled } from '../../rig/bundle.js';

/** What the partner got: the orders by message ID. */
async function startPartner(): Promise<{ readonly url: string; readonly got: Map<string, string> }> {
  const got = new Map<string, string>();
  const server = createServer((request, response) => {
    void request.toArray().then((chunks) => {
      const { id } = JSON.parse(Buffer.concat(chunks as Buffer[]).toString()) as { id: string };
      got.set(String(request.headers['ce-id']), id);
      response.writeHead(204).end();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, got };
}

async function startService(settings: object): Promise<{ readonly child: ChildProcess; readonly url: string }> {
  const program = await bundled(new URL('../../../examples/order-service/service.ts', import.meta.url));
  const child = spawn(process.execPath, [...program, JSON.stringify(settings)], { stdio: ['ignore', 'pipe', 'pipe'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  const log: string[] = [];
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => log.push(chunk));
  const ended = once(child, 'exit').then(() => Promise.reject(new Error(log.join(''))));
  ended.catch(() => {});
  const [port] = (await Promise.race([once(createInterface({ input: child.stdout }), 'line'), ended])) as [string];
  return { child, url: `http://127.0.0.1:${port}` };
}

async function createDatabase(path: string): Promise<void> {
  const database = new BetterSqlite3(path);
  database.pragma('journal_mode = WAL');
  database.exec(readFileSync(new URL('../../../examples/order-service/schema.sql', import.meta.url), 'utf8'));
  database.exec(new OutboxBroker(new BetterSqlite3DataSource('app', path), { dlqTable: makeDlqTable() }).ddl());
  database.close();
}

test('the order service ships each order once and tells its partner of each, however often it is killed', async () => {
  const folder = mkdtempSync(join(inject('folder'), 'orders-'));
  const databasePath = join(folder, 'app.sqlite');
  await createDatabase(databasePath);
  const partner = await startPartner();
  const settings = {
    databasePath,
    systemDatabaseURL: `sqlite:///${join(folder, 'system.sqlite')}`,
    partnerURL: partner.url,
    partnerSecret: `whsec_${Buffer.from('a secret of the partner').toString('base64')}`,
  };
  const place = async (url: string, ids: readonly string[]): Promise<number[]> =>
    Promise.all(
      ids.map(async (id) => {
        const body = JSON.stringify({ id, item: 'book' });
        return (await fetch(`${url}/orders`, { method: 'POST', body })).status;
      }),
    );
  const ids = Array.from({ length: 12 }, (_, n) => `o-${n}`);

  for (const from of [0, 4]) {
    const { child, url } = await startService(settings);
    expect(await place(url, ids.slice(from, from + 4))).toEqual([201, 201, 201, 201]);
    await until('the partner has heard', async () => partner.got.size > from / 2);
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
  const { child, url } = await startService(settings);
  expect(await place(url, [...ids.slice(8), 'o-0'])).toEqual([201, 201, 201, 201, 409]);
  const statusOf = async (id: string): Promise<unknown> =>
    ((await (await fetch(`${url}/orders/${id}`)).json()) as { status: unknown }).status;
  await until('all are shipped', async () =>
    (await Promise.all(ids.map(statusOf))).every((status) => status === 'shipped'),
  );
  const database = new BetterSqlite3(databasePath, { readonly: true });
  onTestFinished(() => void database.close());
  await until('all messages are delivered', async () => !database.prepare('SELECT 1 FROM outbox').get());
  child.kill('SIGTERM');
  await once(child, 'exit');

  const counts = database.prepare('SELECT status, COUNT(*) AS n FROM history GROUP BY status ORDER BY status').all();
  expect(counts).toEqual([
    { status: 'paid', n: ids.length },
    { status: 'shipped', n: ids.length },
  ]);
  expect(database.prepare('SELECT COUNT(*) AS n FROM outbox_dlq').get()).toEqual({ n: 0 });
  // One message ID for each order, however often it was sent.
  expect(new Set(partner.got.values())).toEqual(new Set(ids));
  expect(partner.got.size).toBe(ids.length);
});
