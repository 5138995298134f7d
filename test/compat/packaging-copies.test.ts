// One process with several copies of the package: both formats, a plugin's own copy, bundles.
import { cpSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'vite';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Project } from './project.js';

let project: Project;

describe('several copies of the package in a process', () => {
  beforeAll(async () => {
    project = await Project.create('everstep', '@dbos-inc/dbos-sdk');
    project.write({ 'main.mjs': readFileSync(new URL('copies-process.mjs', import.meta.url), 'utf8') });
  }, 300_000);

  afterAll(() => project.remove());

  test('share the registry, the context and DBOS, and recognise their objects', async () => {
    expect(await project.run('node', ['main.mjs', 'system.sqlite', 'data.sqlite'])).toBe('shared\n');
  });

  test('must be of one version', async () => {
    const path = 'node_modules/@dbos-inc/dbos-sdk/dist/cjs/shared/services.js';
    const text = readFileSync(join(project.folder, path), 'utf8');
    project.write({
      [path]: text.replace(/(LIBRARY_VERSION = )"[^"]+"/, '$1"0.0.9"'),
      'mixed.mjs': `import { createRequire } from 'node:module';
        import { Error as Errors } from 'everstep';
        try {
          createRequire(import.meta.url)('@dbos-inc/dbos-sdk');
        } catch (error) {
          console.log(error instanceof Errors.MixedVersionsError, error.code, error.loaded, error.refused);
        }`,
    });

    const printed = await project.run('node', ['mixed.mjs']);

    project.write({ [path]: text });
    expect(printed).toMatch(/^true MIXED_VERSIONS \d+\.\d+\.\d+ 0\.0\.9\n$/);
  });

  test('share them when they are bundled', async () => {
    project.write({
      'app.mjs': "export { DBOS, Error as Errors, WorkflowQueue } from 'everstep';",
      'bundled.mjs': `import { DBOS, WorkflowQueue } from './bundles/one.mjs';
        import { DBOS as Same, Errors } from './bundles/two.mjs';
        new WorkflowQueue('queue');
        DBOS.registerWorkflow(async () => Same.workflowID, { name: 'bundled' });
        DBOS.setConfig({ name: 'bundles', systemDatabaseUrl: 'sqlite:bundles.sqlite', logLevel: 'error' });
        await DBOS.launch();
        const params = { workflowName: 'bundled', queueName: 'queue', workflowID: 'b' };
        const handle = await Same.enqueueWorkflowWithOptions(params);
        const error = await DBOS.resumeWorkflow('none').catch((error) => error);
        console.log(await handle.getResult(), error instanceof Errors.DBOSNonExistentWorkflowError);
        await Same.shutdown();`,
    });
    project.addModules('better-sqlite3', 'pg', 'yaml');
    await bundleApp();
    // Loaded under two names, a bundle is two copies.
    cpSync(join(project.folder, 'bundles/one.mjs'), join(project.folder, 'bundles/two.mjs'));

    expect(await project.run('node', ['bundled.mjs'])).toBe('b true\n');
  });
});

/** With the package inside and its names shortened, as a framework might do it. */
async function bundleApp(): Promise<void> {
  await build({
    configFile: false,
    root: project.folder,
    logLevel: 'error',
    ssr: { noExternal: ['everstep'], external: ['better-sqlite3', 'pg'] },
    build: {
      ssr: 'app.mjs',
      outDir: 'bundles',
      emptyOutDir: false,
      minify: 'esbuild',
      rollupOptions: { output: { format: 'es', entryFileNames: 'one.mjs', inlineDynamicImports: true } },
    },
  });
}
