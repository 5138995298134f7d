// A person with a browser: how long until they see the list, and what the database has to do while they look at it.
import { existsSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { type Browser, chromium, type Page } from 'playwright-core';
import type { Admin } from '../../src/faces/http/admin.js';
import type { Database } from '../../src/database/database.js';
import { noteStatements } from '../engine/statements.js';
import { type Measurement, median, timed } from '../report.js';

const CHROMIUM = '/usr/bin/chromium';
const LOADS = 5;
const LOOK_MS = 10_000;
const ROW = '.list-rows li';

export interface Visited {
  readonly admin: Admin;
  readonly database: Database;
  /** Starts and ends a workflow every tenth of a second while it runs. */
  readonly load: (signal: AbortSignal) => Promise<void>;
}

/** Empty without Chromium. */
export async function measureVisit(visited: Visited): Promise<Measurement[]> {
  if (!existsSync(CHROMIUM)) return [];
  const server = await serve(visited.admin);
  const browser = await chromium.launch({
    executablePath: CHROMIUM,
    args: ['--no-sandbox', '--disable-dev-shm-usage'],
  });
  try {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/ui`;
    return [...(await measureLoads(browser, url)), ...(await measureLooking(browser, url, visited))];
  } finally {
    await browser.close();
    visited.admin.close();
    server.closeAllConnections();
    await new Promise((done) => server.close(done));
  }
}

async function serve(admin: Admin): Promise<Server> {
  const server = createServer((request, response) => void admin.handle(request, response));
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  return server;
}

async function measureLoads(browser: Browser, url: string): Promise<Measurement[]> {
  const firsts: number[] = [];
  const totals: number[] = [];
  for (let round = 0; round < LOADS; round += 1) {
    // Without a cache, as on a first visit.
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
    const page = await context.newPage();
    const startedAt = performance.now();
    firsts.push(
      await timed(async () => {
        await page.goto(`${url}/workflows`, { waitUntil: 'commit' });
        await page.locator(ROW).first().waitFor();
      }),
    );
    await page.getByTestId('total').waitFor();
    totals.push(performance.now() - startedAt);
    await context.close();
  }
  return [
    { label: 'first load to a usable list', value: ms(median(firsts)), ratio: `all: ${firsts.map(ms).join(', ')}` },
    { label: 'first load to the total', value: ms(median(totals)) },
  ];
}

async function measureLooking(browser: Browser, url: string, visited: Visited): Promise<Measurement[]> {
  const lines: Measurement[] = [];
  const sent = noteStatements(visited.database);
  const look = async (label: string, isLoaded: boolean): Promise<void> => {
    const over = new AbortController();
    const load = isLoaded ? visited.load(over.signal) : undefined;
    // What a page asks for when it is opened is not part of it.
    await pause(2000);
    const before = sent.length;
    const elapsedMs = await timed(() => pause(LOOK_MS));
    const statements = sent.length - before;
    if (process.env['BENCH_SENT']) printSent(label, sent.slice(before));
    over.abort();
    await load;
    lines.push({ label: `statements/s, ${label}`, value: ((statements * 1000) / elapsedMs).toFixed(1) });
  };
  await look('no one looks', false);
  for (const [name, path] of [
    ['list', 'workflows'],
    ['overview', ''],
    ['queues', 'queues'],
  ] as const) {
    const page = await open(browser, `${url}/${path}`);
    await look(`one person looks at the ${name}`, false);
    await look(`${name}, while 10 workflows/s run`, true);
    await page.context().close();
  }
  await look('no one looks any more', true);
  return lines;
}

async function open(browser: Browser, url: string): Promise<Page> {
  const page = await (await browser.newContext({ viewport: { width: 1280, height: 800 } })).newPage();
  await page.goto(url);
  return page;
}

/** Which statements they were: BENCH_SENT=1. */
function printSent(label: string, sent: readonly string[]): void {
  const counts = new Map<string, number>();
  for (const text of sent) {
    const short = text.replace(/\s+/g, ' ').trim().slice(0, 150);
    counts.set(short, (counts.get(short) ?? 0) + 1);
  }
  console.log(`\n${label}`);
  for (const [text, count] of [...counts].sort(([, a], [, b]) => b - a)) console.log(`  ${count}  ${text}`);
}

function ms(value: number): string {
  return `${value.toFixed(0)} ms`;
}
