import { format, resolveConfig } from 'prettier';
import { expect, test } from 'vitest';
import { COMMANDS } from '../../../src/faces/cli/commands.js';
import { referencePage } from './reference-page.js';

const PAGE = new URL('../../../docs/reference/cli.md', import.meta.url).pathname;

// After changing the table: npx vitest run test/faces/cli/reference.test.ts -u
test('the reference page is that of the table of commands', async () => {
  const page = await format(referencePage(COMMANDS), { ...(await resolveConfig(PAGE)), parser: 'markdown' });

  await expect(page).toMatchFileSnapshot(PAGE);
});
