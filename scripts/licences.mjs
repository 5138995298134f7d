// Lists the licences of what is installed with the package: its dependencies and theirs, from the lock file and from each
// installed package.json. With --all, of the development dependencies too. Fails if a licence is unknown, or is not one
// that lets users ship the package.
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..');
const PERMISSIVE = new Set(['0BSD', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', 'BlueOak-1.0.0', 'ISC', 'MIT']);

const readJSON = (path) => JSON.parse(readFileSync(path, 'utf8'));

function licenceOf(path, locked) {
  const manifest = join(ROOT, path, 'package.json');
  const { license } = existsSync(manifest) ? readJSON(manifest) : locked;
  return (typeof license === 'object' ? license?.type : license) ?? locked.license ?? 'unknown';
}

const isAll = process.argv.includes('--all');
const packages = Object.entries(readJSON(join(ROOT, 'package-lock.json')).packages)
  .filter(([path, locked]) => path !== '' && (isAll || !(locked.dev || locked.peer || locked.devOptional)))
  .map(([path, locked]) => ({
    name: path.replace(/^.*node_modules\//, ''),
    version: locked.version,
    licence: licenceOf(path, locked),
  }))
  .sort((left, right) => (left.name < right.name ? -1 : 1));

for (const { name, version, licence } of packages) console.log(`${licence.padEnd(14)} ${name}@${version}`);

const doubtful = packages.filter(({ licence }) => !PERMISSIVE.has(licence));
if (!isAll && doubtful.length > 0) {
  console.error(`Check the licence of: ${doubtful.map(({ name }) => name).join(', ')}.`);
  process.exitCode = 1;
}
