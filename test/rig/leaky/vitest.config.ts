import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/rig/leaky/*.spec.ts'],
    setupFiles: ['test/rig/leaks.ts'],
    pool: 'forks',
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
