import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));
let folder: string;
let tarball: string;

function run(command: string, args: string[], cwd: string): string {
  return execFileSync(command, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}

/** The package as it would be published, installed in a project of its own. */
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'everstep-package-'));
  run('node', ['scripts/build.mjs'], root);
  const [packed] = JSON.parse(
    run('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', folder], root),
  ) as [{ filename: string }];
  tarball = join(folder, packed.filename);
  writeFileSync(join(folder, 'package.json'), '{"name":"user","private":true}');
  run('npm', ['install', '--no-audit', '--no-fund', '--prefer-offline', tarball], folder);
}, 120_000);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('the published package', () => {
  test('can be imported from an ES module', () => {
    writeFileSync(
      join(folder, 'esm.mjs'),
      "import { Error as E, StatusString } from 'everstep'; console.log(StatusString.PENDING, typeof E.DBOSError);",
    );

    expect(run('node', ['esm.mjs'], folder).trim()).toBe('PENDING function');
  });

  test('can be loaded with require()', () => {
    writeFileSync(
      join(folder, 'cjs.cjs'),
      "const { Error: E, StatusString } = require('everstep'); console.log(StatusString.PENDING, typeof E.DBOSError);",
    );

    expect(run('node', ['cjs.cjs'], folder).trim()).toBe('PENDING function');
  });

  test('brings the migrations as SQL files and no tests or sources', () => {
    const files = run('tar', ['-tzf', tarball], folder).split('\n');

    expect(files).toContain('package/migrations/postgres/0001_initial_tables.sql');
    expect(files).toContain('package/LICENSE');
    expect(files.filter((file) => /^package\/(src|test|bench|examples)\//.test(file))).toEqual([]);
  });

  test('has a command that can be called by its name', () => {
    const command = join(folder, 'node_modules', '.bin', 'everstep');

    expect(run('npx', ['--no-install', 'everstep', '--version'], folder)).toMatch(/^\d+\.\d+\.\d+\n$/);
    expect(run(command, ['schema', '--print-migrations', '123'], folder)).toContain('-- Migration 123:');
    for (const file of ['dist/cli/main.js', 'dist/cli/dbos.js']) {
      expect(readFileSync(join(root, file), 'utf8')).toMatch(/^#!\/usr\/bin\/env node\n/);
      expect(statSync(join(root, file)).mode & 0o111).toBe(0o111);
    }
  });

  test('names the one command that helps when there is no SQLite library', () => {
    const library = join(folder, 'node_modules', 'everstep', 'dist', 'store', 'sqlite', 'sqlite-handle.js');
    writeFileSync(
      join(folder, 'sqlite.mjs'),
      `import { findSqliteLibrary } from ${JSON.stringify(library)};
      try { console.log(findSqliteLibrary().name); } catch (error) { console.log(error.code, error.message); }`,
    );
    const hasBuiltIn = process.getBuiltinModule('node:sqlite') !== undefined;

    const printed = run('node', ['sqlite.mjs'], folder);

    expect(printed).toMatch(hasBuiltIn ? /^node:sqlite/ : /^SQLITE_DRIVER_MISSING .*npm install better-sqlite3@12/);
  });

  test('has exports that publint and attw accept', () => {
    const bin = (name: string): string => join(root, 'node_modules', '.bin', name);

    expect(() => run(bin('publint'), [tarball, '--strict'], root)).not.toThrow();
    // On every Node we support, require() of an ES module works; attw still lists it.
    expect(() =>
      run(bin('attw'), [tarball, '--profile', 'node16', '--ignore-rules', 'cjs-resolves-to-esm'], root),
    ).not.toThrow();
  });

  test('locks public package names only', () => {
    expect(readFileSync(join(root, 'package-lock.json'), 'utf8')).not.toMatch(/"resolved": "(?!file:)/);
  });
});
