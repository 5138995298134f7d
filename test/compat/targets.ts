// Runs programs written for DBOS on Everstep, under an alias, and on the real thing.
import { execFile } from 'node:child_process';
import { existsSync, renameSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, inject } from 'vitest';
import { postgres, sqlite } from '../rig/dialects.js';

/** What a program runs on. */
export type Target = 'everstep' | 'everstep on SQLite' | 'dbos-5' | 'dbos-4';

interface Bundler {
  build(options: Record<string, unknown>): Promise<unknown>;
}

const PACKAGE = '@dbos-inc/dbos-sdk';
const requireHere = createRequire(import.meta.url);
const stubs = fileURLToPath(new URL('./stubs.ts', import.meta.url));
const sourceRoot = fileURLToPath(new URL('../../src', import.meta.url));

const releases = ['dbos-5', 'dbos-4'] as const;
/** The releases are installed in this folder, if at all. */
const installed = releases.filter((name) => existsSync(new URL(`./node_modules/${name}`, import.meta.url)));
const available: Target[] = ['everstep', 'everstep on SQLite', ...installed];

/** Where a release differs from what Everstep does on purpose, or for lack of the feature. */
export class Differs {
  constructor(
    readonly common: unknown,
    readonly by: Partial<Record<Target, unknown>>,
  ) {}
}

/** Runs the program on every target, and compares what each of its checks found. */
export async function compare(
  program: string,
  expected: Record<string, unknown>,
  on: (target: Target) => boolean = () => true,
): Promise<void> {
  const targets = available.filter(on);
  const found = await Promise.all(targets.map((target) => run(program, target).catch((error: unknown) => error)));
  targets.forEach((target, index) => {
    const here = Object.entries(expected).map(([check, value]) => {
      const isOther = value instanceof Differs && target in value.by;
      return [check, isOther ? value.by[target] : value instanceof Differs ? value.common : value];
    });
    expect.soft(found[index], `${program} on ${target}`).toEqual(Object.fromEntries(here));
  });
}

/** What each check of the program found, by name. */
async function run(program: string, target: Target): Promise<Record<string, unknown>> {
  const isEverstep = target.startsWith('everstep');
  const dialect = target === 'everstep on SQLite' ? sqlite : postgres;
  const url = await dialect.createURL({ isMigrated: isEverstep });
  const file = await bundle(program, isEverstep ? 'everstep' : target);
  const stdout = await execute([file, JSON.stringify({ url, target })]);
  if (process.env['COMPAT_SHOW']) console.log(target, stdout);
  const printed = /^@@(.*)$/m.exec(stdout)?.[1];
  if (printed === undefined) throw new Error(`The program printed no findings:\n${stdout}`);
  return JSON.parse(printed) as Record<string, unknown>;
}

function execute(args: string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(process.execPath, args, { timeout: 60_000, maxBuffer: 1 << 26 }, (error, stdout, stderr) => {
      if (error) reject(new Error(`${error.message}\n${stdout}\n${stderr}`));
      else resolve(stdout);
    });
  });
}

const bundles = new Map<string, Promise<string>>();

function bundle(program: string, name: string): Promise<string> {
  const key = `${program} ${name}`;
  let made = bundles.get(key);
  if (!made) bundles.set(key, (made = bundleOnce(program, name)));
  return made;
}

async function bundleOnce(program: string, name: string): Promise<string> {
  const source = fileURLToPath(new URL(`./programs/${program}.ts`, import.meta.url));
  const path = join(inject('folder'), `compat-${basename(program)}-${name}.cjs`);
  const bundler = createRequire(requireHere.resolve('tsx'))('esbuild') as Bundler;
  await bundler.build({
    entryPoints: [source],
    outfile: `${path}.${process.pid}`,
    bundle: true,
    platform: 'node',
    format: 'cjs',
    keepNames: true,
    tsconfigRaw: { compilerOptions: { experimentalDecorators: true, target: 'ES2022' } },
    // The driver of SQLite is of this repository, and loaded from it.
    external: ['pg-native', 'better-sqlite3'],
    supported: { 'dynamic-import': false },
    banner: { js: `require = require('node:module').createRequire(${JSON.stringify(import.meta.url)});` },
    define: { 'import.meta.url': JSON.stringify(import.meta.url) },
    plugins: [aliasOf(name)],
  });
  renameSync(`${path}.${process.pid}`, path);
  return path;
}

/** What the programs import: our source, or a release, which is loaded from where it is installed. */
function aliasOf(name: string) {
  return {
    name: 'alias',
    setup(build: { onResolve(filter: { filter: RegExp }, resolve: (args: { path: string }) => object): void }) {
      build.onResolve({ filter: /^(@opentelemetry\/|reflect-metadata$)/ }, () => ({ path: stubs }));
      build.onResolve({ filter: /^@dbos-inc\/dbos-sdk/ }, ({ path }) => {
        const subpath = path.slice(PACKAGE.length + 1);
        if (name === 'everstep') return { path: join(sourceRoot, `${subpath || 'index'}.ts`) };
        return { path: requireHere.resolve(path.replace(PACKAGE, name)), external: true };
      });
    },
  };
}
