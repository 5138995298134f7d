// Takes due timers until there are none, and prints their IDs. Several of these race.
import { openHistoryStore } from '../../../src/features/history/open-history-store.sql.js';

async function takeAll(): Promise<void> {
  const store = await openHistoryStore(process.argv.at(-1));
  const taken: string[] = [];
  for (let due = await store.fetchDueTimers(7); due.length > 0; due = await store.fetchDueTimers(7)) {
    taken.push(...due.map(({ timerID }) => timerID));
  }
  await store.close();
  process.stdout.write(JSON.stringify(taken));
}

void takeAll();
