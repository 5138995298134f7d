// Installs the frameworks, bundlers and runtimes whose applications `test/frameworks/` builds and runs, if they are not there. They are large, and
// nothing else needs them: without a registry, those tests are skipped.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';

const FOLDER = 'test/frameworks';

const REQUIRED = ['next', 'webpack', 'tsup', 'bun', 'deno'];

if (!REQUIRED.every((name) => existsSync(`${FOLDER}/node_modules/${name}/package.json`))) {
  const options = ['--no-save', '--no-package-lock', '--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline'];
  const args = ['install', '--prefix', FOLDER, ...options, '--fetch-retries=1', '--fetch-timeout=60000'];
  const { status } = spawnSync('npm', args, { stdio: ['ignore', 'ignore', 'inherit'], timeout: 300_000 });
  if (status !== 0)
    console.log(
      'Next.js, webpack, tsup, Bun and Deno could not be installed. Tests of those that are missing are skipped.',
    );
}
