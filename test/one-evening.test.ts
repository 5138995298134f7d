// The page that names the files to read first. They have to stay few and short.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));

test('the engine can be read in one evening', () => {
  const page = readFileSync(`${root}/docs/internals/one-evening.md`, 'utf8');
  const files = [...page.matchAll(/^\| \d+ +\| `(.*?)`/gm)].map(([, file]) => `${root}/src/${file}`);
  const lines = files.map((file) => readFileSync(file, 'utf8').split('\n').length - 1);

  expect(files).toHaveLength(12);
  expect(lines.reduce((sum, count) => sum + count, 0)).toBeLessThan(3000);
});
