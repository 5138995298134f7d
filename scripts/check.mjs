// Everything that can be said about the code without running it. Needs no database. What a check may reuse the next
// time is kept in `.tmp/`. Lint has no cache: its rules read the types of other files, which a cache by file overlooks.
import './generate.mjs';
import './install-compat.mjs';
import { runTogether } from './run.mjs';

const incremental = (name) => ['--incremental', '--tsBuildInfoFile', `.tmp/${name}.tsbuildinfo`];
const prettierCache = ['--cache', '--cache-strategy', 'content', '--cache-location', '.tmp/prettier'];

// The slowest come first, so that the rest fits beside them.
await runTogether([
  ['lint', 'eslint', '.'],
  ['types', 'tsc', '-p', 'tsconfig.json', ...incremental('types')],
  ['types of the dashboard', 'tsc', '-p', 'dashboard/tsconfig.json', ...incremental('dashboard-types')],
  ['format', 'prettier', '--check', '--log-level', 'warn', ...prettierCache, '.'],
  ['dead exports', 'knip'],
  [
    'types with legacy decorators',
    'tsc',
    '-p',
    'test/faces/library/legacy/tsconfig.json',
    ...incremental('legacy-decorator-types'),
  ],
  ['types of programs for DBOS', 'tsc', '-p', 'test/compat/tsconfig.json', ...incremental('compat-types')],
  ['layers', process.execPath, 'scripts/layers.mjs'],
]);
