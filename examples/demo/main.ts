// Orders that survive a SIGKILL. This process only watches: it starts the shop, kills it mid-work, starts it again, and
// then compares the log of side effects with the checkpoints in the database.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { audit, printAudit } from './audit.js';
import { Board, paint } from './board.js';
import { effectsOf, type Entry, ORDERS, readEntries, RECEIPT } from './orders.js';

const FRAME_MS = 60;
const LIFE_MAX_MS = 120_000;
const PAUSE_AFTER_KILL_MS = 1200;
/** Kill once the first order is done and this many steps are in flight. */
const IN_FLIGHT_AT_KILL = 2;

const folder = mkdtempSync(join(tmpdir(), 'everstep-demo-'));
const logPath = join(folder, 'effects.log');
const url = `sqlite:///${join(folder, 'demo.sqlite')}`;
const board = new Board();
let shop: ChildProcess | undefined;

function cleanUp(): void {
  board.close();
  shop?.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    cleanUp();
    process.kill(process.pid, signal);
  });
}

try {
  console.log(paint('bold', `Everstep: ${ORDERS.length} orders and a SIGKILL`));
  console.log('  Each order is a workflow with five kinds of steps. Its state is in');
  console.log(`  ${url}\n`);
  await openShop(1, isTimeToKill);
  const diedAt = Date.now();
  const inFlight = stepsInFlight(readEntries(logPath)).length;
  board.say(`SIGKILL. Process 1 is gone, with ${inFlight} steps in flight.`);
  board.draw(readEntries(logPath));
  await delay(PAUSE_AFTER_KILL_MS);
  await openShop(2, () => false);
  board.say('Process 2 has finished what process 1 started.');
  board.draw(readEntries(logPath));
  board.close();
  const isProven = printAudit(await audit(url, readEntries(logPath), diedAt));
  process.exitCode = isProven ? 0 : 1;
} finally {
  cleanUp();
}

/** Runs the shop until it exits or is killed. */
async function openShop(number: number, isToBeKilled: (entries: readonly Entry[]) => boolean): Promise<void> {
  const script = fileURLToPath(new URL('./shop-process.ts', import.meta.url));
  const options = ['--import', 'tsx', script, url, logPath, String(number)];
  const child = spawn(process.execPath, options, { stdio: ['ignore', 'ignore', 'inherit'] });
  shop = child;
  const exit = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>;
  board.running = number;
  board.say(`Process ${number} (${child.pid}) is running the orders.`);
  const startedAt = Date.now();
  let isKilled = false;
  while (child.exitCode === null && child.signalCode === null) {
    const entries = readEntries(logPath);
    board.draw(entries);
    if (Date.now() - startedAt > LIFE_MAX_MS) throw new Error(`Process ${number} did not finish in time.`);
    if (!isKilled && isToBeKilled(entries)) isKilled = child.kill('SIGKILL');
    await Promise.race([delay(FRAME_MS), exit]);
  }
  const [code] = await exit;
  shop = undefined;
  board.running = undefined;
  if (!isKilled && code !== 0) throw new Error(`Process ${number} exited with code ${code}.`);
  board.draw(readEntries(logPath));
}

function isTimeToKill(entries: readonly Entry[]): boolean {
  const isOneDone = entries.some((entry) => entry.effect === RECEIPT && entry.event === 'end');
  return isOneDone && stepsInFlight(entries).length >= IN_FLIGHT_AT_KILL;
}

/** The effects that have started and not ended. */
function stepsInFlight(entries: readonly Entry[]): string[] {
  return ORDERS.flatMap((order) =>
    effectsOf(order)
      .map((effect) => entries.findLast((entry) => entry.order === order.id && entry.effect === effect))
      .flatMap((entry) => (entry?.event === 'begin' ? `${entry.order} ${entry.effect}` : [])),
  );
}
