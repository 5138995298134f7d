// The templates of `everstep init` apart from any database.
import { execFile } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { generateProject, TEMPLATES } from '../../src/faces/cli/project/generate.js';
import { find, link } from '../compat/project.js';
import { root } from '../rig/built-package.js';
import { createNextFolder, hasNext, next } from './next-app.js';

interface Manifest {
  readonly version: string;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
}

const INSTALLED = ['.', 'test/compat', 'test/frameworks'];

test.skipIf(!hasNext)('the template next builds', { timeout: 300_000 }, async () => {
  const app = await createNextFolder();
  onTestFinished(() => rmSync(app, { recursive: true, force: true }));
  for (const name of ['typescript', '@types/react', '@types/node']) link(find(name), join(app, 'node_modules', name));
  const files = generateProject({
    folder: join(app, 'app'),
    template: 'next',
    database: 'sqlite',
    needsSqliteLibrary: false,
  });

  await promisify(execFile)(process.execPath, [next, 'build'], {
    cwd: join(app, 'app'),
    env: { ...process.env, NODE_ENV: 'production', NEXT_TELEMETRY_DISABLED: '1' },
  });

  expect(files).toContain('next.config.ts');
  expect(existsSync(join(app, 'app/.next/server/app/orders/[id]/route.js'))).toBe(true);
});

test.each(TEMPLATES)('the template %s names the releases that these tests install', (template) => {
  const { dependencies, devDependencies } = readManifest(join(root, 'templates', template, 'package.json'));
  const outdated = Object.entries({ ...dependencies, ...devDependencies }).filter(([name, range]) => {
    const manifests = INSTALLED.map((folder) => join(root, folder, 'node_modules', name, 'package.json'));
    const versions = manifests.filter((path) => existsSync(path)).map((path) => readManifest(path).version);
    return versions.length > 0 && !versions.some((version) => majorOf(version) === majorOf(range));
  });

  expect(outdated).toEqual([]);
});

function readManifest(path: string): Manifest {
  return JSON.parse(readFileSync(path, 'utf8')) as Manifest;
}

/** The first number that is not 0, with those before it. */
function majorOf(range: string): string | undefined {
  return /^\^?((?:0\.)*\d+)/.exec(range)?.[1];
}
