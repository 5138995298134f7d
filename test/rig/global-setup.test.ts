import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

test('a run without database tests needs no Postgres server', () => {
  const root = fileURLToPath(new URL('../..', import.meta.url));
  const vitest = fileURLToPath(new URL('../../node_modules/vitest/vitest.mjs', import.meta.url));
  // Setting up Postgres would fail: nothing listens there.
  const env = { ...process.env, DIALECTS: 'sqlite,postgres', TEST_POSTGRES_URL: 'postgresql://127.0.0.1:1/postgres' };

  const { status } = spawnSync(process.execPath, [vitest, 'run', 'test/kernel/base/batcher.test.ts'], {
    cwd: root,
    env,
  });

  expect(status).toBe(0);
});
