import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));

test('everything that is installed with the package has a permissive licence', () => {
  const listed = execFileSync(process.execPath, ['scripts/licences.mjs'], { cwd: root, encoding: 'utf8' });

  const { dependencies } = JSON.parse(readFileSync(`${root}/package.json`, 'utf8')) as { dependencies: object };
  for (const name of Object.keys(dependencies)) expect(listed).toMatch(new RegExp(`^(MIT|ISC) +${name}@`, 'm'));
});
