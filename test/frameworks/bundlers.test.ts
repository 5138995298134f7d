// An application bundled in the usual ways, with the package inside, minified or not.
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { build as buildWithVite } from 'vite';
import { Project } from '../compat/project.js';
import { root } from '../rig/built-package.js';

/** What we use of esbuild, which comes with tsx. */
interface Esbuild {
  build(options: Record<string, unknown>): Promise<unknown>;
}
interface Webpack {
  (options: object, done: (error: Error | null, stats?: { toString(): string; hasErrors(): boolean }) => void): unknown;
}

const require = createRequire(import.meta.url);
const webpackFolder = join(root, 'test/frameworks/node_modules/webpack');
const hasWebpack = existsSync(webpackFolder);
const tsup = join(root, 'test/frameworks/node_modules/tsup/dist/cli-default.js');

const APP = `
import { DBOS, WorkflowQueue } from 'everstep';

new WorkflowQueue('queue');
const workflow = DBOS.registerWorkflow(
  async (at) => DBOS.runStep(async () => at.toISOString(), { name: 'step' }),
  { name: 'workflow' },
);
DBOS.setConfig({ name: 'bundled', systemDatabaseUrl: process.argv[2], logLevel: 'warn' });
await DBOS.launch();
const handle = await DBOS.startWorkflow(workflow, { queueName: 'queue' })(new Date(0));
console.log(await handle.getResult());
await DBOS.shutdown();
`;
const YAML_APP = `
import { DBOS } from 'everstep';
await DBOS.launch();
console.log('launched');
await DBOS.shutdown();
`;

describe('an application', () => {
  let project: Project;

  beforeAll(async () => {
    project = await Project.create('everstep');
    project.addModules('better-sqlite3', 'pg');
    project.write({
      'package.json': { type: 'module', private: true },
      'app.mjs': APP,
      'yaml-app.mjs': YAML_APP,
      'dbos-config.yaml':
        'name: configured\nsystem_database_url: sqlite:configured.sqlite\ntelemetry: { logs: { logLevel: error } }\n',
    });
  }, 300_000);

  afterAll(() => project.remove());

  const inside = (name: string): string => join(project.folder, name);

  async function bundleWithEsbuild(entry: string, out: string, options: object): Promise<void> {
    const esbuild = createRequire(require.resolve('tsx'))('esbuild') as Esbuild;
    await esbuild.build({
      absWorkingDir: project.folder,
      entryPoints: [entry],
      outfile: out,
      bundle: true,
      platform: 'node',
      format: 'esm',
      target: 'node20',
      logLevel: 'error',
      external: ['better-sqlite3', 'pg'],
      ...options,
    });
  }

  const run = (file: string): Promise<string> => project.run('node', [file, `sqlite:${inside(`${file}.sqlite`)}`]);

  test.each([
    ['as it is', {}],
    ['minified', { minify: true }],
  ])('bundled by esbuild as an ES module, %s, runs', async (name, options) => {
    const out = `esbuild-${name.length}.mjs`;
    await bundleWithEsbuild('app.mjs', out, options);

    expect(await run(out)).toBe('1970-01-01T00:00:00.000Z\n');
  });

  test('bundled by esbuild as an ES module reads dbos-config.yaml', async () => {
    await bundleWithEsbuild('yaml-app.mjs', 'yaml.mjs', {});

    expect(await project.run('node', ['yaml.mjs'])).toContain('launched\n');
  });

  test.skipIf(!existsSync(tsup))('bundled by tsup, with the package inside, runs', async () => {
    const modules = { noExternal: ['everstep'], external: ['pg', 'better-sqlite3'] };
    const config = { entry: ['app.mjs'], format: 'esm', outDir: 'tsup', target: 'node20', minify: true, ...modules };
    project.write({ 'tsup.config.json': config });

    await project.run('node', [tsup]);

    expect(readFileSync(inside('tsup/app.js'), 'utf8')).not.toMatch(/from\s*["']everstep["']/);
    expect(await run('tsup/app.js')).toBe('1970-01-01T00:00:00.000Z\n');
  });

  test('bundled by Vite for a server runs', async () => {
    await buildWithVite({
      configFile: false,
      root: project.folder,
      logLevel: 'error',
      ssr: { noExternal: true, external: ['better-sqlite3', 'pg'] },
      build: { ssr: 'app.mjs', outDir: 'vite', minify: 'esbuild', target: 'node20' },
    });

    expect(await run('vite/app.js')).toBe('1970-01-01T00:00:00.000Z\n');
  });

  test.skipIf(!hasWebpack)('bundled by webpack runs', async () => {
    const webpack = require(webpackFolder) as Webpack;
    const failures = await new Promise<string>((resolve, reject) => {
      webpack(
        {
          context: project.folder,
          entry: './app.mjs',
          mode: 'production',
          target: 'node20',
          experiments: { outputModule: true },
          externals: { 'better-sqlite3': 'module better-sqlite3', pg: 'module pg' },
          output: { path: inside('webpack'), filename: 'app.mjs', module: true, chunkFormat: 'module' },
        },
        (error, stats) => {
          if (error) reject(error);
          else resolve(stats?.hasErrors() ? stats.toString() : '');
        },
      );
    });

    expect(failures).toBe('');
    expect(await run('webpack/app.mjs')).toBe('1970-01-01T00:00:00.000Z\n');
  });
});
