// Processes that are killed before and after the commits of an outbox. No committed message is lost, none is invented.
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, inject, test } from 'vitest';
import { until } from '../../crash/processes.js';
import { bundle } from '../transaction/bundle.js';
import { dropDatabase, effectsIn } from '../transaction/scene.js';
import type { OutboxKill } from './outbox-process.js';
import { type KillPoint, type Scenario, subscribe } from './scenario.js';
import { DIALECTS, type OutboxScene, pending, setOutbox } from './scene.js';

afterAll(dropDatabase);

async function runUntilKilled(settings: OutboxKill): Promise<void> {
  const source = fileURLToPath(new URL('./outbox-process.ts', import.meta.url));
  const script = await bundle(source, settings.folder, 'outbox-process.mjs');
  const { signal, log } = await new Promise<{ signal: unknown; log: string }>((resolve) => {
    execFile(process.execPath, [script, JSON.stringify(settings)], (error, stdout, stderr) =>
      resolve({ signal: error?.signal, log: stdout + stderr }),
    );
  });
  expect(signal, log).toBe('SIGKILL');
}

interface Killed {
  readonly scene: OutboxScene;
  /** What the killed process left. */
  readonly left: { readonly outbox: number; readonly dlq: number; readonly effects: readonly unknown[] };
  /** What there was when another process had finished. */
  readonly finished: Killed['left'];
}

async function countIn(scene: OutboxScene): Promise<Killed['left']> {
  return {
    outbox: (await pending(scene)).length,
    dlq: (await scene.query('SELECT id FROM outbox_dlq')).length,
    effects: await effectsIn(scene.scene),
  };
}

async function kill(
  adapter: OutboxKill['adapter'],
  { scenario, point, isShared = false }: { scenario: Scenario; point: KillPoint; isShared?: boolean },
): Promise<Killed> {
  const scene = await setOutbox(adapter, { isLaunched: false, isShared });
  const { url, systemURL } = scene.scene;
  await runUntilKilled({ adapter, url, systemURL, scenario, point, folder: inject('folder') });
  const others = `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`;
  if (url.startsWith('postgres'))
    await until('its sessions have ended', async () => (await scene.query(others)).length === 0);
  const left = await countIn(scene);
  subscribe(scenario, scene, scene.outbox);
  await scene.DBOS.launch();
  if (scenario !== 'publish') await until('nothing is pending', async () => (await pending(scene)).length === 0);
  if (scenario === 'workflow') {
    await until(
      'the workflow has ended',
      async () => (await scene.DBOS.listWorkflows({ status: 'SUCCESS' })).length > 0,
    );
  }
  return { scene, left, finished: await countIn(scene) };
}

describe.each(DIALECTS)('a process killed on %s', (_, adapter) => {
  test.each(['before', 'after'] as const)('%s it commits what it published leaves all or nothing', async (point) => {
    const { left } = await kill(adapter, { scenario: 'publish', point });

    const nothing = { outbox: 0, dlq: 0, effects: [] };
    expect(left).toEqual(point === 'before' ? nothing : { outbox: 1, dlq: 0, effects: ['published'] });
  });

  test.each(['before', 'after'] as const)('%s it deletes a handled message loses none', async (point) => {
    const { left, finished } = await kill(adapter, { scenario: 'handler', point });

    expect(left).toEqual({ outbox: point === 'before' ? 1 : 0, dlq: 0, effects: ['handled', 'published'] });
    const handled = point === 'before' ? ['handled', 'handled', 'published'] : ['handled', 'published'];
    expect(finished).toEqual({ outbox: 0, dlq: 0, effects: handled });
  });

  test.each(['before', 'after'] as const)('%s the commit of a transactional handler has one effect', async (point) => {
    const { left, finished } = await kill(adapter, { scenario: 'transactional', point });

    if (point === 'before') expect(left).toEqual({ outbox: 1, dlq: 0, effects: ['published'] });
    else expect(left).toEqual({ outbox: 0, dlq: 0, effects: ['handled', 'published'] });
    expect(finished).toEqual({ outbox: 0, dlq: 0, effects: ['handled', 'published'] });
  });

  test.each(['before', 'after'] as const)('%s it commits a dead letter leaves it in one table', async (point) => {
    const { left, finished } = await kill(adapter, { scenario: 'reject', point });

    expect([left.outbox, left.dlq]).toEqual(point === 'before' ? [1, 0] : [0, 1]);
    expect(finished).toMatchObject({ outbox: 0, dlq: 1 });
  });

  test.each([
    ['before', true],
    ['after', true],
    ['before', false],
    ['after', false],
  ] as const)('%s it commits a handoff (shared database: %s) starts one workflow', async (point, isShared) => {
    const { scene, left, finished } = await kill(adapter, { scenario: 'workflow', point, isShared });

    expect(left.outbox).toBe(point === 'before' ? 1 : 0);
    expect(finished).toEqual({ outbox: 0, dlq: 0, effects: ['handled', 'published'] });
    expect(await scene.DBOS.listWorkflows({})).toHaveLength(1);
  });
});
