// TypeScript as one file of JavaScript in the folder of the test run, for processes of their own. Packages stay outside.
import { existsSync, renameSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** What we use of esbuild, which comes with tsx. */
interface Bundler {
  build(options: Record<string, unknown>): Promise<unknown>;
}

/** Makes the file once a test run, and gives its path. */
export async function bundle(source: string, folder: string, name: string): Promise<string> {
  const path = join(folder, name);
  if (existsSync(path)) return path;
  linkPackages(join(folder, 'node_modules'));
  const bundler = createRequire(createRequire(import.meta.url).resolve('tsx'))('esbuild') as Bundler;
  const ownPath = `${path}.${process.pid}`;
  await bundler.build({
    entryPoints: [source],
    outfile: ownPath,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    packages: 'external',
  });
  renameSync(ownPath, path);
  return path;
}

function linkPackages(path: string): void {
  try {
    symlinkSync(fileURLToPath(new URL('../../../node_modules', import.meta.url)), path);
  } catch (error) {
    // It is there already, or another test file was faster.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}
