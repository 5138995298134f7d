import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { findViolations } from '../scripts/layers.mjs';

/** A source folder with the given files. */
function sourceWith(files: Record<string, string>): string {
  const folder = mkdtempSync(join(tmpdir(), 'everstep-layers-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  return folder;
}

test('the source keeps to its layers', () => {
  expect(findViolations(fileURLToPath(new URL('../src', import.meta.url)))).toEqual([]);
});

test.each([
  [
    'a lower layer importing a higher one',
    { 'kernel/base/a.ts': "import { x } from '../../database/b.js';", 'database/b.ts': '' },
  ],
  ['a verb that needs an engine', { 'features/a/a.ts': "import { x } from './b.run.js';", 'features/a/b.run.ts': '' }],
  [
    'statements that use a verb',
    {
      'features/a/a.sql.ts': "import { x } from './b.js';",
      'features/a/b.ts': "import { y } from './c.sql.js';",
      'features/a/c.sql.ts': '',
    },
  ],
  ['a folder that does not exist', { 'misc/a.ts': '' }],
  ['a cycle', { 'kernel/base/a.ts': "export { b } from './b.js';", 'kernel/base/b.ts': "export { a } from './a.js';" }],
  ['the environment', { 'database/a.ts': "const home = process.env['HOME'];" }],
  ['state at module level', { 'database/a.ts': 'let count = 0;' }],
  ['a collection at module level', { 'database/a.ts': 'export const known = new Map<string, number>();' }],
  ['a default export', { 'kernel/base/a.ts': 'export default 1;' }],
])('%s is found', (_, files) => {
  expect(findViolations(sourceWith(files))).not.toEqual([]);
});

test('constants, comments, pure records and plugins that use run/plugin.ts are allowed', () => {
  const files = {
    'kernel/base/a.ts': "// let it be; process.env\nexport const NAMES = new Set(['a']);",
    'run/plugin.ts': '',
    'plugins/receiver/a.ts': "import { x } from '../../run/plugin.js';",
    'features/a/record.ts': "import { x } from '../../kernel/base/a.js';",
    'features/a/a.sql.ts': "import { y } from './record.js';",
  };

  expect(findViolations(sourceWith(files))).toEqual([]);
});
