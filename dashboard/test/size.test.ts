import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';

const ASSETS = fileURLToPath(new URL('../../dist/dashboard/assets', import.meta.url));
const MAX_KB = 180;

test.skipIf(!existsSync(ASSETS))(`all scripts together take at most ${MAX_KB} KB, gzipped`, () => {
  const scripts = readdirSync(ASSETS).filter((name) => name.endsWith('.js'));
  const sizes = scripts.map((name) => gzipSync(readFileSync(join(ASSETS, name)), { level: 9 }).byteLength);

  expect(scripts.length).toBeGreaterThan(0);
  expect(sizes.reduce((sum, size) => sum + size, 0) / 1024).toBeLessThanOrEqual(MAX_KB);
});
