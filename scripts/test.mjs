// The whole test run: checks, build, all tests on this Node, those of the store and the engine again on Debian's Postgres, and
// the SQLite part again on a Node that has SQLite built in (fetched as the npm package "node") when this one has not.
import { runSteps } from './run.mjs';
import { hasStockPostgres, STOCK, SUITES } from './servers.mjs';

const NODE_WITH_SQLITE = '24.21.0';
const hasBuiltInSqlite = Boolean(process.getBuiltinModule?.('node:sqlite'));

runSteps(
  [
    ['checks', process.execPath, 'scripts/check.mjs'],
    ['build', process.execPath, 'scripts/build.mjs'],
    ['frameworks', process.execPath, 'scripts/install-frameworks.mjs'],
    [`tests on Node ${process.versions.node}`, 'vitest', 'run', ...process.argv.slice(2)],
  ],
  { isLoud: true },
);

if (hasStockPostgres()) {
  const settings = [`TEST_POSTGRES=${STOCK}`, 'DIALECTS=postgres'];
  runSteps([[`tests on Debian's Postgres`, 'env', ...settings, 'vitest', 'run', ...SUITES]], { isLoud: true });
} else {
  console.log("Skipped: tests on Debian's Postgres, which is not installed.");
}

if (!hasBuiltInSqlite) {
  const vitest =
    'node node_modules/vitest/vitest.mjs run test/database test/run test/features test/operator test/faces/client --passWithNoTests';
  runSteps(
    [
      [
        `SQLite tests on Node ${NODE_WITH_SQLITE}`,
        'env',
        'DIALECTS=sqlite',
        'npm',
        'exec',
        '--yes',
        `--package=node@${NODE_WITH_SQLITE}`,
        '-c',
        vitest,
      ],
    ],
    { isLoud: true },
  );
}
