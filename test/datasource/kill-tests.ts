// Processes that are killed at named points around a transaction. Whoever finishes the workflow finds it done once.
import { execFile } from 'node:child_process';
import { existsSync, renameSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, inject, test } from 'vitest';
import { until } from '../crash/processes.js';
import type { AdapterName } from './adapters.js';
import { type KillPoint, registerKillable } from './killable.js';
import { effectsIn, type Scene, setScene } from './scene.js';
import type { KillSettings } from './worker-process.js';

/** These are killed everywhere; the others where it matters most. */
const THOROUGH: readonly AdapterName[] = ['node-postgres', 'better-sqlite3'];
const EVERYWHERE: readonly KillPoint[] = ['begun', 'written', 'recorded', 'committed', 'checkpointed'];

export function killTests(name: AdapterName): void {
  const points = THOROUGH.includes(name) ? EVERYWHERE : (['committed'] as const);
  test.each(points)('a step is done once although its process is killed when it is %s', (killPoint) =>
    killAndFinish(name, { killPoint, isShared: false }),
  );

  test.runIf(name === 'node-postgres')('a step is done once although its process is killed in COMMIT', () =>
    killAndFinish(name, { killPoint: 'commit-sent', isShared: false }),
  );

  const sharedPoints = THOROUGH.includes(name) ? (['written', 'recorded', 'committed'] as const) : [];
  test.each(sharedPoints)('the same in the system database, when it is %s', (killPoint) =>
    killAndFinish(name, { killPoint, isShared: true }),
  );
}

async function killAndFinish(
  name: AdapterName,
  { killPoint, isShared }: { readonly killPoint: KillPoint; readonly isShared: boolean },
): Promise<void> {
  const scene = await setScene(name, { isShared });
  await runUntilKilled({ adapter: name, url: scene.url, systemURL: scene.systemURL, killPoint });
  await untilSessionsEnded(scene);
  const effectsThen = await effectsIn(scene);
  let bodies = 0;
  const engine = await scene.engine();
  registerKillable(engine, (point) => {
    if (point === 'begun') bodies += 1;
  });

  await engine.DBOS.launch();
  const result = await engine.DBOS.retrieveWorkflow('w').getResult();

  expect(result).toBe('before value');
  expect(await effectsIn(scene)).toEqual(['once']);
  expect(bodies).toBe(effectsThen.length === 0 ? 1 : 0);
  if (killPoint === 'committed' || killPoint === 'checkpointed') expect(effectsThen).toEqual(['once']);
  else if (killPoint !== 'commit-sent') expect(effectsThen).toEqual([]);
}

/** A server may still be at work on the last request of a client that is gone. */
async function untilSessionsEnded(scene: Scene): Promise<void> {
  if (scene.adapter.dialect === 'sqlite') return;
  const others = `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`;
  await until('the sessions of the killed process have ended', async () => (await scene.query(others)).length === 0);
}

async function runUntilKilled(settings: KillSettings): Promise<void> {
  const script = await bundle();
  const { signal, log } = await new Promise<{ signal: unknown; log: string }>((resolve) => {
    execFile(process.execPath, [script, JSON.stringify(settings)], (error, stdout, stderr) =>
      resolve({ signal: error?.signal, log: stdout + stderr }),
    );
  });
  expect(signal, log).toBe('SIGKILL');
}

/** What we use of esbuild, which comes with tsx. */
interface Bundler {
  build(options: Record<string, unknown>): Promise<unknown>;
}

let bundled: Promise<string> | undefined;

/** The worker as one file of JavaScript, made once a test file. Packages stay outside. */
function bundle(): Promise<string> {
  bundled ??= bundleOnce();
  return bundled;
}

async function bundleOnce(): Promise<string> {
  const folder = inject('folder');
  const path = join(folder, 'datasource-worker.mjs');
  if (existsSync(path)) return path;
  const packages = join(folder, 'node_modules');
  if (!existsSync(packages)) linkPackages(packages);
  const bundler = createRequire(createRequire(import.meta.url).resolve('tsx'))('esbuild') as Bundler;
  const ownPath = `${path}.${process.pid}`;
  await bundler.build({
    entryPoints: [fileURLToPath(new URL('./worker-process.ts', import.meta.url))],
    outfile: ownPath,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    packages: 'external',
  });
  renameSync(ownPath, path);
  return path;
}

function linkPackages(path: string): void {
  try {
    symlinkSync(fileURLToPath(new URL('../../node_modules', import.meta.url)), path);
  } catch (error) {
    // Another test file was faster.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}
