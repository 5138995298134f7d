// Plugins that were written for DBOS, and published, run unchanged: the package takes the name of theirs.
import { execFileSync } from 'node:child_process';
import { copyFileSync, cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { postgres, wantsDialect } from '../rig/dialects.js';
import { queryOn } from './scene.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
let folder: string;

interface Bundler {
  build(options: Record<string, unknown>): Promise<unknown>;
}

/** The package as it would be published, but for the types. Built apart: other tests build in the usual place. */
async function packInto(target: string): Promise<string> {
  const own = join(target, 'everstep');
  mkdirSync(own);
  const bundler = createRequire(createRequire(import.meta.url).resolve('tsx'))('esbuild') as Bundler;
  const sources = (readdirSync(join(root, 'src'), { recursive: true }) as string[]).filter((name) =>
    name.endsWith('.ts'),
  );
  await bundler.build({
    entryPoints: sources.map((name) => join(root, 'src', name)),
    outdir: join(own, 'dist'),
    outbase: join(root, 'src'),
    format: 'esm',
    target: 'node20',
  });
  copyFileSync(join(root, 'package.json'), join(own, 'package.json'));
  cpSync(join(root, 'migrations'), join(own, 'migrations'), { recursive: true });
  const packed = JSON.parse(run('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', target], own)) as [
    { filename: string },
  ];
  return packed[0].filename;
}

function run(command: string, args: string[], cwd: string): string {
  return execFileSync(command, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}

describe.skipIf(!wantsDialect('postgres'))('published data sources of DBOS', () => {
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'everstep-published-'));
    const tarball = await packInto(folder);
    const dependencies = {
      '@dbos-inc/dbos-sdk': `file:${tarball}`,
      '@dbos-inc/drizzle-datasource': '4.27.6',
      '@dbos-inc/knex-datasource': '4.5.13',
      '@dbos-inc/postgres-datasource': '4.24.16',
      'drizzle-orm': '0.45.4',
    };
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'user', private: true, dependencies }));
    run('npm', ['install', '--no-audit', '--no-fund', '--prefer-offline', '--ignore-scripts'], folder);
    copyFileSync(join(root, 'test/datasource/published-process.mjs'), join(folder, 'main.mjs'));
  }, 120_000);

  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test('run workflows, and replay what they have recorded', async () => {
    const url = await postgres.createURL({ isMigrated: false });
    const systemURL = await postgres.createURL();
    await queryOn(url)('CREATE TABLE effects (workflow_id TEXT, note TEXT)');
    const program = (): unknown => JSON.parse(run('node', ['main.mjs', JSON.stringify({ url, systemURL })], folder));
    const first = { note: 'registered', stepID: 0, isInTransaction: true };
    const results = ['knex', 'drizzle', 'postgres'].map((name) => [name, [first, '1970-01-01T00:00:00.000Z', 'no']]);
    const counted = 'SELECT workflow_id, note, COUNT(*)::int AS times FROM effects GROUP BY 1, 2 ORDER BY 1, 2';

    expect(program()).toEqual({ results: Object.fromEntries(results), bodies: 9 });
    const effects = await queryOn(url)(counted);
    // As if all had died before their checkpoints: the engine knows nothing of the steps.
    await queryOn(systemURL)('DELETE FROM dbos.operation_outputs');
    await queryOn(systemURL)(
      `UPDATE dbos.workflow_status SET status = 'ENQUEUED', queue_name = '_dbos_internal_queue', output = NULL`,
    );
    await queryOn(url)(`DELETE FROM effects WHERE note = 'outside'`);

    expect(program()).toEqual({ results: Object.fromEntries(results), bodies: 0 });
    expect(await queryOn(url)(counted)).toEqual(effects);
    expect(effects).toHaveLength(7);
  }, 60_000);
});
