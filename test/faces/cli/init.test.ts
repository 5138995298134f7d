import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { LIBRARY_VERSION } from '../../../src/kernel/base/version.js';
import { call, type CallOptions } from './terminals.js';

function setup() {
  const folder = mkdtempSync(join(tmpdir(), 'everstep-init-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const read = (name: string): string => readFileSync(join(folder, name), 'utf8');
  const init = (words: string, options: CallOptions = {}) => call(`init ${words}`.trim(), { folder, ...options });
  return { folder, read, init };
}

test('a project is named after its folder', async () => {
  const { read, init } = setup();

  await init('My.Shop --template express --database postgres');

  expect(JSON.parse(read('My.Shop/package.json'))).toMatchObject({
    name: 'my-shop',
    type: 'module',
    dependencies: { everstep: `^${LIBRARY_VERSION}`, express: expect.any(String) },
  });
  expect(read('My.Shop/src/main.ts')).toContain("name: 'my-shop'");
  expect(read('My.Shop/src/database.ts')).toContain('/my_shop_test');
  expect(read('My.Shop/README.md').trimEnd().split('\n')).toHaveLength(5);
});

test('the next commands are printed', async () => {
  const { init } = setup();

  const { out, exitCode } = await init('shop');

  expect(exitCode).toBe(0);
  expect(out).toMatch(/ {2}cd shop\n {2}npm install\n {2}npm test\n {2}npm run dev\n/);
});

test('a new project is written to the current directory if none is named', async () => {
  const { folder, init } = setup();
  mkdirSync(join(folder, '.git'));

  const { out } = await init('');

  expect(existsSync(join(folder, '.gitignore'))).toBe(true);
  expect(out).not.toContain('cd ');
});

test('a folder with files is refused and left alone', async () => {
  const { folder, init } = setup();
  writeFileSync(join(folder, 'notes.txt'), 'mine');

  const called = await init('');

  expect(called.exitCode).toBe(1);
  expect(called.err).toMatch(/is not empty: it has "notes\.txt".*everstep init my-app/);
  expect(readdirSync(folder)).toEqual(['notes.txt']);
});

test('a file in place of the folder is refused', async () => {
  const { folder, init } = setup();
  writeFileSync(join(folder, 'shop'), '');

  expect(await init('shop')).toMatchObject({ exitCode: 1, err: expect.stringContaining('Cannot create a project') });
});

test('a person is asked for what is missing', async () => {
  const { init } = setup();

  const called = await init('shop --json', { isInteractive: true, input: ['hono', ''] });

  expect(called.err).toContain('Template (script, express, hono, fastify, next, nest) [script]: ');
  expect(called.json()).toMatchObject({ template: 'hono', database: 'sqlite' });
});

test('a person is not asked for what is given', async () => {
  const { init } = setup();

  const called = await init('shop --template nest --database postgres', { isInteractive: true });

  expect(called.err).toBe('');
});

test('an unknown template is refused with the names of all', async () => {
  const { init } = setup();

  expect(await init('shop --template koa')).toMatchObject({ exitCode: 2, err: expect.stringContaining('fastify') });
  const asked = await init('shop', { isInteractive: true, input: ['koa'] });
  expect(asked).toMatchObject({ exitCode: 2, err: expect.stringContaining('"koa" is none of script') });
});
