// The data source of the guide, as a user would write it.
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { conformance } from './conformance.js';

const read = (path: string): string => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8');

test('the guide shows the file that is tested', () => {
  const file = read('examples/datasource/connecting-data-source.ts');

  const shown = file.replace("'../../src/datasource.js'", "'everstep/datasource'");

  expect(read('docs/guides/transactions.md')).toContain(`\`\`\`ts\n${shown}\`\`\``);
});

conformance('documented');
