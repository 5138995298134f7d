// The application version of one program, as different tools compile and run it.
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Project } from '../compat/project.js';

/** What we use of esbuild, which comes with tsx. */
interface Esbuild {
  build(options: Record<string, unknown>): Promise<unknown>;
}

const require = createRequire(import.meta.url);
const COMMIT = '0123456789abcdef0123456789abcdef01234567';
const SOURCES = ['git', 'package'];

const PROGRAM = `
import { DBOS } from 'everstep';

enum Size {
  Large = 10_000,
}

const applicationVersion: string | undefined = process.argv[2];
DBOS.registerWorkflow(
  async (item: string): Promise<string> => {
    // A comment, which some tools keep.
    const parts = [item, Size.Large,];
    return parts.join(', ')
  },
  { name: 'workflow' },
);
DBOS.setConfig({ name: 'app', systemDatabaseUrl: 'sqlite::memory:', applicationVersion, logLevel: 'error' });
await DBOS.launch();
console.log(DBOS.applicationVersion);
await DBOS.shutdown();
`;

let project: Project;

beforeAll(async () => {
  project = await Project.create('everstep');
  project.addModules('better-sqlite3', 'pg', 'tsx', 'typescript', '@types/node');
  project.write({
    'package.json': { type: 'module', private: true, version: '1.2.3' },
    '.git/HEAD': COMMIT,
    'app.ts': PROGRAM,
  });
}, 300_000);

afterAll(() => project.remove());

/** Compiles the program with esbuild, without and with a minifier. */
async function bundle(outfile: string, minify: boolean): Promise<void> {
  const esbuild = createRequire(require.resolve('tsx'))('esbuild') as Esbuild;
  await esbuild.build({
    absWorkingDir: project.folder,
    entryPoints: ['app.ts'],
    outfile,
    minify,
    bundle: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    target: 'node20',
    logLevel: 'error',
  });
}

const COMPILED: readonly [string, () => Promise<readonly string[]>][] = [
  ['run by tsx', async () => ['--import', 'tsx', 'app.ts']],
  [
    'compiled by tsc',
    async () => {
      const options = ['--module', 'NodeNext', '--target', 'ES2022', '--types', 'node', '--skipLibCheck'];
      const compiler = join(project.folder, 'node_modules/typescript/bin/tsc');
      await project.run('node', [compiler, 'app.ts', '--outDir', 'compiled', ...options]);
      return ['compiled/app.js'];
    },
  ],
  ['bundled by esbuild', () => bundle('bundle.mjs', false).then(() => ['bundle.mjs'])],
  ['minified by esbuild', () => bundle('minified.mjs', true).then(() => ['minified.mjs'])],
];

test.each(COMPILED)('a program %s has the version that Git or package.json names', async (_, compile) => {
  const args = await compile();

  const versions = await Promise.all(SOURCES.map((source) => project.run('node', [...args, source])));

  expect(versions).toEqual([`${COMMIT}\n`, '1.2.3\n']);
});
