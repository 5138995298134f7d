import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../src/kernel/base/clock.js';
import { COMMANDS } from '../../../src/faces/cli/commands.js';
import { run } from '../../../src/faces/cli/run.js';
import { createEngine } from '../../rig/engines.js';
import { forEachDialect, sqlite, type TestDialect } from '../../rig/dialects.js';
import { call } from './terminals.js';

/** Runs the command until the test ends, and gives what it has printed and the link in it. */
async function serve(dialect: TestDialect, ...words: string[]) {
  const { DBOS, url } = await createEngine(dialect);
  await DBOS.launch();
  await DBOS.registerQueue('q');
  const interruption = new AbortController();
  let ended: Promise<number> | undefined;
  const printed = new Promise<string>((resolve, reject) => {
    const terminal = {
      ...{ width: Infinity, hasColours: false, isOverwritable: false, isInteractive: false },
      print: async (text: string) => resolve(text),
      printStderr: (text: string) => reject(new Error(text)),
      ask: async () => '',
      async *lines() {},
    };
    ended = run(COMMANDS, ['dashboard', '--no-open', '-s', url, ...words], {
      terminal,
      ...{ environment: {}, folder: '/nonexistent', clock: systemClock, signal: interruption.signal },
    });
  });
  const stop = async (): Promise<number | undefined> => {
    interruption.abort();
    return ended;
  };
  onTestFinished(async () => void (await stop()));
  const text = await printed;
  const link = new URL(/http:\S+/.exec(text)?.[0] ?? '');
  const token = link.hash.replace('#token=', '');
  const api = new URL('../api/v1/', link).href;
  /** Logs in as the page behind the link does. */
  const logIn = async () => {
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(`${api}session`, { method: 'POST', headers, body: JSON.stringify({ token }) });
    const [cookie = ''] = (response.headers.get('set-cookie') ?? '').split(';');
    return { status: response.status, cookie, session: (await response.json()) as { csrf: string; readOnly: boolean } };
  };
  const pause = async (cookie: string, csrf: string): Promise<number> => {
    const headers = { cookie, 'x-everstep-csrf': csrf };
    return (await fetch(`${api}queues/q/pause`, { method: 'POST', headers })).status;
  };
  return { text, link, token, api, logIn, pause, stop };
}

forEachDialect((dialect) => {
  test('the dashboard is served to this machine, read-only, with a link that works once', async () => {
    const { text, link, token, api, logIn, pause, stop } = await serve(dialect);

    const { status, cookie, session } = await logIn();

    expect(link.hostname).toBe('127.0.0.1');
    expect(text).toContain('read-only');
    expect([status, session.readOnly]).toEqual([200, true]);
    expect((await fetch(`${api}queues`, { headers: { cookie } })).status).toBe(200);
    expect(await pause(cookie, session.csrf)).toBe(403);
    expect((await logIn()).status).toBe(401);
    expect((await fetch(`${api}queues`, { headers: { authorization: `Bearer ${token}` } })).status).toBe(401);
    expect(await stop()).toBe(0);
    await expect(fetch(api)).rejects.toThrow();
  });

  test('the dashboard allows changes if asked to', async () => {
    const { text, logIn, pause } = await serve(dialect, '--allow-changes');

    const { cookie, session } = await logIn();

    expect(text).toContain('changes are allowed');
    expect(session.readOnly).toBe(false);
    expect(await pause(cookie, session.csrf)).toBe(200);
  });
});

test('a port in use is refused by name', async () => {
  const { DBOS, url } = await createEngine(sqlite);
  await DBOS.launch();
  const other = createServer();
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void other.close());
  const { port } = other.address() as AddressInfo;

  const { exitCode, err } = await call(['dashboard', '--no-open', '--port', String(port), '-s', url]);

  expect([exitCode, err]).toEqual([1, `Error: Cannot listen on port ${port}: it is in use. Pass another --port.\n`]);
});

test('a missing database is refused', async () => {
  const { exitCode, err } = await call('dashboard --no-open -s sqlite:///nowhere/none.sqlite');

  expect(exitCode).toBe(1);
  expect(err).toMatch(/not found/);
});
