// Installs what the tests in `test/compat/` run beside or under: releases and plugins of DBOS, Jest, an older TypeScript.
// Does nothing if that is as new as the lock file.
import { statSync } from 'node:fs';
import { runSteps } from './run.mjs';

const FOLDER = 'test/compat';
const changedAt = (file) => statSync(`${FOLDER}/${file}`, { throwIfNoEntry: false })?.mtimeMs ?? 0;

if (changedAt('node_modules/.package-lock.json') < changedAt('package-lock.json')) {
  // Not `npm ci`: it refuses a lock file that lacks optional packages for other platforms. Plugins find the package that a
  // test puts in place of DBOS, so peers are not installed.
  const options = [
    '--no-save',
    '--legacy-peer-deps',
    '--ignore-scripts',
    '--no-audit',
    '--no-fund',
    '--prefer-offline',
  ];
  runSteps([['install', 'npm', 'install', '--prefix', FOLDER, ...options]]);
}
