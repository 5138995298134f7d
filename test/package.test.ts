import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildPackage, root } from './rig/built-package.js';

let folder: string;
let tarball: string;

function run(command: string, args: string[], cwd: string): string {
  return execFileSync(command, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}

/** What a file imports before it runs, directly or not, except for Node's own modules. */
function loadedBy(entry: string): string[] {
  const found = new Set<string>();
  const visit = (path: string): void => {
    const text = readFileSync(path, 'utf8');
    const targets = path.includes('/cjs/')
      ? text.matchAll(/^(?:const .* = )?require\("([^"]+)"\)/gm)
      : text.matchAll(/^(?:import|export|\}) ?.*?(?:from )?"([^"]+)";$/gm);
    for (const [, target = ''] of targets) {
      if (target.startsWith('node:')) continue;
      const name = target.startsWith('.') ? relative(dirname(entry), join(dirname(path), target)) : target;
      if (found.has(name)) continue;
      found.add(name);
      if (target.startsWith('.')) visit(join(dirname(path), target));
    }
  };
  visit(entry);
  return [...found].sort();
}

/** The package as it would be published, installed in a project of its own. */
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'everstep-package-'));
  await buildPackage();
  const [packed] = JSON.parse(
    run('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', folder], root),
  ) as [{ filename: string }];
  tarball = join(folder, packed.filename);
  writeFileSync(join(folder, 'package.json'), '{"name":"user","private":true}');
  run('npm', ['install', '--no-audit', '--no-fund', '--prefer-offline', tarball], folder);
}, 300_000);

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
      `const { Error: E, StatusString } = require('everstep');
      console.log(StatusString.PENDING, typeof E.DBOSError, require.resolve('everstep'));`,
    );

    expect(run('node', ['cjs.cjs'], folder)).toMatch(/^PENDING function .*\/dist\/cjs\/index\.js\n$/);
  });

  test('parks and wakes workflows where it is loaded with require()', () => {
    // In the repository itself, where SQLite is installed.
    const script = `
      const { DBOS } = require('everstep');
      const receiver = DBOS.registerWorkflow(() => DBOS.recv('topic', Infinity), { name: 'receiver' });
      (async () => {
        const systemDatabaseUrl = 'sqlite:///${join(folder, 'parking.sqlite')}';
        DBOS.setConfig({ name: 'parking', systemDatabaseUrl, parkAfterMs: 100, logLevel: 'error' });
        await DBOS.launch();
        const handle = await DBOS.startWorkflow(receiver, { workflowID: 'w' })();
        while (!(await handle.getStatus()).waitingFor) await new Promise((resolve) => setTimeout(resolve, 50));
        await DBOS.send('w', 'hello', 'topic');
        console.log(await handle.getResult());
        await DBOS.shutdown();
      })();`;

    expect(run('node', ['--input-type=commonjs', '-e', script], root)).toBe('hello\n');
  });

  test('offers the same in both formats at every entry', () => {
    // In the repository itself, where the optional peers are installed.
    const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { exports: object };
    const entries = Object.keys(exports)
      .filter((entry) => entry !== './package.json')
      .map((entry) => entry.replace(/^\./, 'everstep'));
    const script = `
      const { createRequire } = await import('node:module');
      const require = createRequire(process.cwd() + '/package.json');
      const namesIn = (module) => Object.keys(module).filter((name) => name !== '__esModule').sort().join();
      for (const entry of ${JSON.stringify(entries)}) {
        if (!require.resolve(entry).includes('/dist/cjs/')) throw new Error(entry + ' is no CommonJS');
        if (import.meta.resolve(entry).includes('/dist/cjs/')) throw new Error(entry + ' is no ES module');
        const [required, imported] = [namesIn(require(entry)), namesIn(await import(entry))];
        if (required !== imported) throw new Error(entry + ': ' + required + ' vs ' + imported);
      }`;

    expect(() => run('node', ['--input-type=module', '-e', script], root)).not.toThrow();
    expect(entries.length).toBeGreaterThan(20);
  });

  test('brings migrations, templates and no tests or sources', () => {
    const files = run('tar', ['-tzf', tarball], folder).split('\n');

    expect(files).toContain('package/migrations/postgres/0001_initial_tables.sql');
    expect(files).toContain('package/LICENSE');
    expect(files).toContain('package/templates/project/gitignore');
    expect(files.filter((file) => /^package\/(src|test|bench|examples)\//.test(file))).toEqual([]);
  });

  test('has a command that can be called by its name', () => {
    const command = join(folder, 'node_modules', '.bin', 'everstep');

    expect(run('npx', ['--no-install', 'everstep', '--version'], folder)).toMatch(/^\d+\.\d+\.\d+\n$/);
    expect(run(command, ['schema', '--print-migrations', '123'], folder)).toContain('-- Migration 123:');
    for (const file of ['dist/faces/cli/main.js', 'dist/faces/cli/dbos.js']) {
      expect(readFileSync(join(root, file), 'utf8')).toMatch(/^#!\/usr\/bin\/env node\n/);
      expect(statSync(join(root, file)).mode & 0o111).toBe(0o111);
    }
  });

  test('names the one command that helps when there is no SQLite library', () => {
    writeFileSync(
      join(folder, 'sqlite.mjs'),
      `import { DBOS } from 'everstep';
      DBOS.setConfig({ name: 'user', systemDatabaseUrl: 'sqlite:user.sqlite', logLevel: 'error' });
      try { await DBOS.launch(); console.log('launched'); } catch (error) { console.log(error.code, error.message); }
      await DBOS.shutdown();`,
    );
    const hasBuiltIn = process.getBuiltinModule('node:sqlite') !== undefined;

    const printed = run('node', ['sqlite.mjs'], folder);

    expect(printed).toMatch(hasBuiltIn ? /^launched/ : /^SQLITE_DRIVER_MISSING .*npm install better-sqlite3@12/);
  });

  test.each([
    ['index.js', ['client', 'core', 'library', 'run', 'services', 'store']],
    ['client.js', ['client', 'core', 'store']],
  ])('loads a few files for %s, and no dependency', (entry, shared) => {
    expect(loadedBy(join(root, 'dist', entry))).toEqual(shared.map((name) => `shared/${name}.js`));
    expect(loadedBy(join(root, 'dist/cjs', entry))).toEqual(shared.map((name) => `shared/${name}.js`));
  });

  test('brings the licences of what is part of its files', () => {
    for (const folder of ['dist/shared', 'dist/cjs/shared']) {
      expect(readFileSync(join(root, folder, 'core.js'), 'utf8')).toContain('superjson:\n\nMIT License');
      expect(readFileSync(join(root, folder, 'yaml.js'), 'utf8')).toContain('yaml:\n\nCopyright Eemeli Aro');
    }
    expect(readFileSync(join(root, 'dist/dashboard/LICENSES.txt'), 'utf8')).toContain('react-dom\n\nMIT License');
  });

  test('has exports that publint and attw accept', () => {
    const bin = (name: string): string => join(root, 'node_modules', '.bin', name);

    expect(() => run(bin('publint'), [tarball, '--strict'], root)).not.toThrow();
    // All modes: the older resolution of `moduleResolution: node`, Node's from both formats, and the bundlers'.
    expect(() => run(bin('attw'), [tarball], root)).not.toThrow();
  });

  test('locks public package names only', () => {
    expect(readFileSync(join(root, 'package-lock.json'), 'utf8')).not.toMatch(/"resolved": "(?!file:|dashboard")/);
  });
});
