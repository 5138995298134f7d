// Fails a test that leaves a timer, a connection or an open SQLite file of ours behind.
import { createHook } from 'node:async_hooks';
import { readdirSync, readlinkSync } from 'node:fs';
import { beforeEach } from 'vitest';

const WATCHED = new Set(['Timeout', 'TCPWRAP', 'PIPEWRAP']);
const live = new Map<number, { type: string; stack: string }>();

const hook = createHook({
  init(id, type) {
    if (!WATCHED.has(type)) return;
    const stack = new Error().stack ?? '';
    // The test runner has timers and pipes of its own; only what our code opened counts. Node's HTTP server keeps the
    // text of the date for a second.
    if (stack.includes('/src/') && !stack.includes('at utcDate (node:')) live.set(id, { type, stack });
  },
  destroy(id) {
    live.delete(id);
  },
});
Error.stackTraceLimit = 30;
hook.enable();

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

let before: { resources: Set<number>; files: number };

// Callbacks run in reverse order: this one, registered before the test begins, comes after the test's own.
beforeEach((context) => {
  before = { resources: new Set(live.keys()), files: openSqliteFiles().length };
  context.onTestFinished(async () => {
    for (let turn = 0; turn < 50 && leaks().length > 0; turn += 1) {
      await new Promise((resolve) => setImmediate(resolve));
    }
    const found = leaks();
    if (found.length > 0) throw new Error(`The test left behind:\n${found.join('\n')}`);
  });
});

function leaks(): string[] {
  const resources = [...live].filter(([id]) => !before.resources.has(id));
  const files = openSqliteFiles().slice(before.files);
  return [
    ...resources.map(([, { type, stack }]) => `${type} opened at ${stack}`),
    ...files.map((file) => `open file ${file}`),
  ];
}
