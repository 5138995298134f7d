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

test('the source keeps to its rooms', () => {
  expect(findViolations(fileURLToPath(new URL('../src', import.meta.url)))).toEqual([]);
});

test.each([
  ['a lower room importing a higher one', { 'base/a.ts': "import { x } from '../store/b.js';", 'store/b.ts': '' }],
  ['a room that does not exist', { 'misc/a.ts': '' }],
  [
    'a cycle',
    { 'base/a.ts': "import './b.js'; export { b } from './b.js';", 'base/b.ts': "export { a } from './a.js';" },
  ],
  ['the environment', { 'store/a.ts': "const home = process.env['HOME'];" }],
  ['state at module level', { 'store/a.ts': 'let count = 0;' }],
  ['a collection at module level', { 'store/a.ts': 'export const known = new Map<string, number>();' }],
  ['a sub-room that does not exist', { 'store/misc/a.ts': '' }],
  ['a default export', { 'base/a.ts': 'export default 1;' }],
])('%s is found', (_, files) => {
  expect(findViolations(sourceWith(files))).not.toEqual([]);
});

test('constants, comments and plugins that use engine/plugin.ts are allowed', () => {
  const files = {
    'base/a.ts': "// let it be; process.env\nexport const NAMES = new Set(['a']);",
    'engine/plugin.ts': '',
    'datasource/a.ts': "import { x } from '../engine/plugin.js';",
  };

  expect(findViolations(sourceWith(files))).toEqual([]);
});
