// Prepares a release: dates the changelog section, sets the version, commits and tags. Works in the current folder.
//
//   node scripts/release.mjs <version|major|minor|patch> [--dry-run] [--publish]
//
// `--dry-run` only says what would happen. `--publish` publishes to npm as well; that needs an environment that can
// attest provenance, so it is usually left to the workflow that runs when the tag is pushed.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';

const USAGE = 'Usage: node scripts/release.mjs <version|major|minor|patch> [--dry-run] [--publish]';
const VERSION = /^(\d+)\.(\d+)\.(\d+)$/;
const VERSION_FILE = 'src/kernel/base/version.ts';
const PUBLISH = ['publish', '--provenance'];

try {
  release(readArguments());
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}

function release({ bump, isDryRun, isPublished }) {
  const current = JSON.parse(readFileSync('package.json', 'utf8')).version;
  const version = nextVersion(current, bump);
  refuseUnlessReady(version);
  const files = new Map([
    ['CHANGELOG.md', withRelease(readFileSync('CHANGELOG.md', 'utf8'), version)],
    ['package.json', withPackageVersion('package.json', version)],
    ['package-lock.json', withPackageVersion('package-lock.json', version)],
    [VERSION_FILE, withLibraryVersion(readFileSync(VERSION_FILE, 'utf8'), version)],
  ]);

  const step = (text, perform) => {
    console.log(isDryRun ? `Would ${text}` : `${text[0].toUpperCase()}${text.slice(1)}`);
    if (!isDryRun) perform();
  };
  for (const [file, text] of files) step(`write ${file} for ${version}`, () => writeFileSync(file, text));
  step(`commit "Release ${version}"`, () => git('commit', '--quiet', '--all', '--message', `Release ${version}`));
  step(`tag v${version}`, () => git('tag', '--annotate', `v${version}`, '--message', `Everstep ${version}`));
  if (isPublished) step(`run npm ${PUBLISH.join(' ')}`, () => execFileSync('npm', PUBLISH, { stdio: 'inherit' }));
  console.log(`Next: git push --follow-tags${isPublished ? '' : `, then npm ${PUBLISH.join(' ')}`}`);
}

function readArguments() {
  const options = { 'dry-run': { type: 'boolean' }, publish: { type: 'boolean' } };
  const { values, positionals } = parseArgs({ options, allowPositionals: true });
  const [bump] = positionals;
  if (positionals.length !== 1 || !/^(major|minor|patch)$|^\d/.test(bump)) throw new Error(USAGE);
  return { bump, isDryRun: values['dry-run'] === true, isPublished: values.publish === true };
}

function nextVersion(current, bump) {
  const [major, minor, patch] = numbersOf(current);
  if (bump === 'major') return `${major + 1}.0.0`;
  if (bump === 'minor') return `${major}.${minor + 1}.0`;
  if (bump === 'patch') return `${major}.${minor}.${patch + 1}`;
  const numbers = numbersOf(bump);
  const first = numbers.findIndex((number, index) => number !== [major, minor, patch][index]);
  if (first !== -1 && numbers[first] < [major, minor, patch][first]) {
    throw new Error(`Version ${bump} is lower than the current one, ${current}.`);
  }
  return bump;
}

function numbersOf(version) {
  const match = VERSION.exec(version);
  if (!match) throw new Error(`"${version}" is not a version. Use one like 1.2.3.`);
  return match.slice(1, 4).map(Number);
}

function refuseUnlessReady(version) {
  const branch = git('rev-parse', '--abbrev-ref', 'HEAD');
  if (branch !== 'main') throw new Error(`Release from main, not from ${branch}.`);
  const changes = git('status', '--porcelain');
  if (changes !== '') throw new Error(`Commit or stash these changes first:\n${changes}`);
  if (git('tag', '--list', `v${version}`) !== '') throw new Error(`Tag v${version} exists already.`);
}

/** Moves what stands under "Unreleased" to a dated section, together with an undated one of the version if it exists. */
function withRelease(changelog, version) {
  const [introduction, ...sections] = changelog.split(/^(?=## )/m);
  const isTaken = (section) => ['## Unreleased', `## ${version}`].includes(section.split('\n', 1)[0]);
  const notes = sections
    .filter(isTaken)
    .map((section) => section.replace(/^.*\n/, '').trim())
    .filter((text) => text !== '');
  if (notes.length === 0) throw new Error('CHANGELOG.md has nothing under "## Unreleased" to release.');
  const date = new Date().toISOString().slice(0, 10);
  const released = `## ${version} - ${date}\n\n${notes.join('\n')}\n\n`;
  const others = sections.filter((section) => !isTaken(section)).join('');
  return `${`${introduction}## Unreleased\n\n${released}${others}`.trimEnd()}\n`;
}

function withPackageVersion(file, version) {
  const content = JSON.parse(readFileSync(file, 'utf8'));
  content.version = version;
  if (content.packages) content.packages[''].version = version;
  return `${JSON.stringify(content, null, 2)}\n`;
}

function withLibraryVersion(source, version) {
  const text = source.replace(/LIBRARY_VERSION = '[^']*'/, `LIBRARY_VERSION = '${version}'`);
  if (!text.includes(`'${version}'`)) throw new Error(`${VERSION_FILE} has no LIBRARY_VERSION.`);
  return text;
}

function git(...args) {
  return execFileSync('git', args, { encoding: 'utf8' }).trim();
}
