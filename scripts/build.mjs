// Builds what is published: the migrations embedded as code, then JavaScript and type declarations in `dist/`, with the
// command ready to be run.
import { chmodSync, rmSync } from 'node:fs';
import { runSteps } from './run.mjs';

rmSync('dist', { recursive: true, force: true });
runSteps([
  ['migrations', process.execPath, 'scripts/embed-migrations.mjs'],
  ['compile', 'tsc', '-p', 'tsconfig.build.json'],
]);
chmodSync('dist/cli/main.js', 0o755);
