import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { wantsDialect } from './dialects.js';
import { postgresURL } from './postgres-url.js';

interface Report {
  readonly testResults: readonly {
    readonly assertionResults: readonly { readonly title: string; readonly status: string }[];
  }[];
}

test('a test that leaves a timer, a service, a file or a connection behind fails', async () => {
  const hasPostgres = wantsDialect('postgres');
  const root = fileURLToPath(new URL('../..', import.meta.url));
  const vitest = fileURLToPath(new URL('../../node_modules/vitest/vitest.mjs', import.meta.url));

  const { stdout } = spawnSync(
    process.execPath,
    [vitest, 'run', '--root', root, '--config', 'test/rig/leaky/vitest.config.ts', '--reporter', 'json'],
    {
      cwd: root,
      encoding: 'utf8',
      env: {
        ...process.env,
        LEAKS_GOODBYE_MS: '500',
        LEAKY_POSTGRES_URL: hasPostgres ? await postgresURL() : '',
      },
    },
  );

  const report = JSON.parse(stdout.slice(stdout.indexOf('{'))) as Report;
  const results = report.testResults.flatMap((file) =>
    file.assertionResults.map(({ title, status }) => [title, status]),
  );
  expect(results).toEqual([
    ['tidy', 'passed'],
    ['leaves a timer', 'failed'],
    ['leaves a service', 'failed'],
    ['leaves a file', 'failed'],
    ['leaves a connection', hasPostgres ? 'failed' : 'skipped'],
  ]);
});
