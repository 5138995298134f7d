// Fails a test that leaves a timer, a connection or an open SQLite file of ours behind.
import { createHook } from 'node:async_hooks';
import { readdirSync, readlinkSync } from 'node:fs';
import { afterAll, beforeEach } from 'vitest';

const WATCHED = new Set(['Timeout', 'TCPWRAP', 'PIPEWRAP']);
const live = new Map<number, { type: string; origin: Error }>();

const hook = createHook({
  init(id, type) {
    if (!WATCHED.has(type)) return;
    // The test runner has timers and pipes of its own; only what our code opened counts.
    if (isCalledFromSource()) live.set(id, { type, origin: new Error('opened') });
  },
  destroy(id) {
    live.delete(id);
  },
});
Error.stackTraceLimit = 30;
hook.enable();
// The next file of tests in this process has a hook of its own.
afterAll(() => {
  hook.disable();
  // An engine that has stopped a run listens for unhandled rejections. Where anyone does, the test runner reports none.
  for (const listener of process.listeners('unhandledRejection')) {
    if (listener.name === 'onRejection') process.off('unhandledRejection', listener);
  }
});

/** Looks at the files alone: to write a stack out, with its source maps, costs more than most of what is watched. */
function isCalledFromSource(): boolean {
  const original = Reflect.get(Error, 'prepareStackTrace');
  // Node keeps the date of HTTP answers for a second, in a timer of its own.
  Error.prepareStackTrace = (_, sites) =>
    sites.some((site) => site.getFileName()?.includes('/src/')) &&
    !sites.some((site) => site.getFunctionName() === 'utcDate');
  const isOurs = new Error().stack as unknown as boolean;
  Error.prepareStackTrace = original;
  return isOurs;
}

function openSqliteFiles(): string[] {
  if (process.platform !== 'linux') return [];
  return readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      const target = readlinkSync(`/proc/self/fd/${fd}`);
      return target.includes('.sqlite') ? [target] : [];
    } catch {
      // The descriptor was closed between listing and reading.
      return [];
    }
  });
}

/** A server on a busy machine may take seconds. */
const GOODBYE_MAX_MS = Number(process.env['LEAKS_GOODBYE_MS'] ?? 60_000);

let before: { resources: Set<number>; files: number };

// Callbacks run in reverse order: this one, registered before the test begins, comes after the test's own.
beforeEach((context) => {
  before = { resources: new Set(live.keys()), files: openSqliteFiles().length };
  context.onTestFinished(async () => {
    for (let turn = 0; turn < 50 && leaks().length > 0; turn += 1) {
      await new Promise((resolve) => setImmediate(resolve));
    }
    // A connection that was ended is there until the server has ended it too.
    const giveUpAt = Date.now() + GOODBYE_MAX_MS;
    while (hasConnection() && Date.now() < giveUpAt) {
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    const found = leaks();
    if (found.length > 0) throw new Error(`The test left behind:\n${found.join('\n')}`);
  });
});

function opened(): { type: string; origin: Error }[] {
  return [...live].filter(([id]) => !before.resources.has(id)).map(([, resource]) => resource);
}

function hasConnection(): boolean {
  return opened().some(({ type }) => type !== 'Timeout');
}

function leaks(): string[] {
  const resources = opened();
  const files = openSqliteFiles().slice(before.files);
  return [
    ...resources.map(({ type, origin }) => `${type} ${origin.stack}`),
    ...files.map((file) => `open file ${file}`),
  ];
}
