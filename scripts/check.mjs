// Everything that can be said about the code without running it. Needs no database.
import { runSteps } from './run.mjs';

runSteps([
  ['migrations are embedded', process.execPath, 'scripts/embed-migrations.mjs', '--check'],
  ['format', 'prettier', '--check', '--log-level', 'warn', '.'],
  ['lint', 'eslint', '.'],
  ['types', 'tsc', '-p', 'tsconfig.json'],
  ['types with legacy decorators', 'tsc', '-p', 'test/facade/legacy/tsconfig.json'],
  ['layers', process.execPath, 'scripts/layers.mjs'],
  ['dead exports', 'knip'],
]);
