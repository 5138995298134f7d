// Builds what is published: the migrations embedded as code, then JavaScript and type declarations in `dist/`, with the
// command ready to be run.
import { chmodSync, rmSync } from 'node:fs';
import { runSteps } from './run.mjs';

rmSync('dist', { recursive: true, force: true });
runSteps([
  ['migrations', process.execPath, 'scripts/embed-migrations.mjs'],
  ['compile', 'tsc', '-p', 'tsconfig.build.json'],
]);
for (const name of ['main', 'dbos']) chmodSync(`dist/cli/${name}.js`, 0o755);
