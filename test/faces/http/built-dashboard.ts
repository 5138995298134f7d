// A folder as the build of the dashboard leaves it, removed when the test ends.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

export const SCRIPT = 'console.log("dashboard");\n'.repeat(50);

export function emptyFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'everstep-dashboard-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

export function builtDashboard(): string {
  const folder = emptyFolder();
  mkdirSync(join(folder, 'assets'));
  writeFileSync(
    join(folder, 'index.html'),
    '<!doctype html><html><head><script type="module" src="./assets/index-a1b2.js"></script></head><body></body></html>',
  );
  writeFileSync(join(folder, 'assets', 'index-a1b2.js'), SCRIPT);
  writeFileSync(join(folder, 'icon.svg'), '<svg xmlns="http://www.w3.org/2000/svg"></svg>');
  return folder;
}
