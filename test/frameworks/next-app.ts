// Folders for applications of Next.js, with the built package and what it needs.
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildPackage, root } from '../rig/built-package.js';

export const frameworks = join(root, 'test/frameworks');
export const next = join(frameworks, 'node_modules/next/dist/bin/next');
export const hasNext = existsSync(next);
if (!hasNext) console.log('Skipped: Next.js is not installed. Run: node scripts/install-frameworks.mjs');

/** Returns the folder, in which `node_modules` are copies: Next.js reads nothing outside of its root. */
export async function createNextFolder(): Promise<string> {
  await buildPackage();
  mkdirSync(join(frameworks, '.tmp'), { recursive: true });
  const folder = mkdtempSync(join(frameworks, '.tmp', 'next-'));
  for (const name of ['dist', 'templates', 'package.json']) {
    cpSync(join(root, name), join(folder, 'node_modules/everstep', name), { recursive: true });
  }
  for (const name of ['better-sqlite3', 'pg']) copyPackage(folder, name);
  return folder;
}

function copyPackage(folder: string, name: string): void {
  const target = join(folder, 'node_modules', name);
  if (existsSync(target)) return;
  cpSync(join(root, 'node_modules', name), target, { recursive: true, dereference: true });
  const manifest = JSON.parse(readFileSync(join(target, 'package.json'), 'utf8')) as { dependencies?: object };
  for (const dependency of Object.keys(manifest.dependencies ?? {})) {
    if (existsSync(join(root, 'node_modules', dependency))) copyPackage(folder, dependency);
  }
}
