// Source files that tests start as processes, made into one file of JavaScript each: it starts five times as fast as
// through tsx.
import { existsSync, renameSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { inject } from 'vitest';

/** What we use of esbuild, which comes with tsx. */
interface Bundler {
  build(options: Record<string, unknown>): Promise<unknown>;
}

const LOADER = fileURLToPath(new URL('./process-loader.mjs', import.meta.url));

const bundles = new Map<string, Promise<string>>();

/** The arguments with which Node runs a source file; those for the program come after them. Made once a test run. */
export async function bundled(source: URL, { minify = false } = {}): Promise<string[]> {
  const key = `${source.href} ${minify}`;
  let bundle = bundles.get(key);
  if (!bundle) bundles.set(key, (bundle = bundleOnce(source, minify)));
  return [LOADER, await bundle, source.href];
}

async function bundleOnce(source: URL, minify: boolean): Promise<string> {
  const path = join(inject('folder'), `${basename(source.pathname, '.ts')}${minify ? '.min' : ''}.cjs`);
  if (existsSync(path)) return path;
  const bundler = createRequire(createRequire(import.meta.url).resolve('tsx'))('esbuild') as Bundler;
  const ownPath = `${path}.${process.pid}`;
  await bundler.build({
    entryPoints: [fileURLToPath(source)],
    outfile: ownPath,
    bundle: true,
    minify,
    platform: 'node',
    format: 'cjs',
    external: ['pg-native', 'better-sqlite3'],
    // The loader finds what a bundle requires, not what it imports.
    supported: { 'dynamic-import': false },
    define: { 'import.meta.url': JSON.stringify(source.href) },
  });
  renameSync(ownPath, path);
  return path;
}
