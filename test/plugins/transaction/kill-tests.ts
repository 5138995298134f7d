// Processes that are killed at named points around a transaction. Whoever finishes the workflow finds it done once.
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, inject, test } from 'vitest';
import { until } from '../../crash/processes.js';
import type { AdapterName } from './adapters.js';
import { bundle } from './bundle.js';
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
  const folder = inject('folder');
  await runUntilKilled({ adapter: name, url: scene.url, systemURL: scene.systemURL, killPoint, folder });
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
  const source = fileURLToPath(new URL('./worker-process.ts', import.meta.url));
  const script = await bundle(source, settings.folder, 'datasource-worker.mjs');
  const { signal, log } = await new Promise<{ signal: unknown; log: string }>((resolve) => {
    execFile(process.execPath, [script, JSON.stringify(settings)], (error, stdout, stderr) =>
      resolve({ signal: error?.signal, log: stdout + stderr }),
    );
  });
  expect(signal, log).toBe('SIGKILL');
}
