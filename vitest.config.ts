import { defineConfig } from 'vitest/config';
import { LongestFirst } from './test/rig/longest-first.js';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts', 'dashboard/test/*.test.{ts,tsx}'],
    globalSetup: ['test/rig/global-setup.ts'],
    setupFiles: ['test/rig/leaks.ts'],
    pool: 'forks',
    // To load the library takes a process the better part of a second. It has no state at module level, so files of
    // tests may share it; only the `DBOS` that is exported is to be deregistered by those who use it.
    isolate: false,
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
    // For tests that hang. A busy machine takes ten times as long as a quiet one for what is no fault.
    testTimeout: 240_000,
    hookTimeout: 240_000,
  },
});
