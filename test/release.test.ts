import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';

const SCRIPT = fileURLToPath(new URL('../scripts/release.mjs', import.meta.url));
const TODAY = new Date().toISOString().slice(0, 10);
const CHANGELOG = '# Change log\n\n## Unreleased\n\n- New.\n\n## 0.1.0 - 2026-01-31\n\n- First.\n';

interface Repository {
  readonly release: (...args: string[]) => { status: number | null; output: string };
  readonly git: (...args: string[]) => string;
  readonly read: (file: string) => string;
  readonly write: (file: string, text: string) => void;
}

/** A committed repository on main at version 0.1.0. Its `npm` only records how it was called. */
function setup(files: Record<string, string> = {}): Repository {
  const folder = mkdtempSync(join(tmpdir(), 'everstep-release-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const identity = {
    GIT_AUTHOR_NAME: 'A',
    GIT_AUTHOR_EMAIL: 'a@b.c',
    GIT_COMMITTER_NAME: 'A',
    GIT_COMMITTER_EMAIL: 'a@b.c',
  };
  const programs = join(folder, '.git', 'programs');
  const env = {
    ...process.env,
    ...identity,
    GIT_CONFIG_GLOBAL: '/dev/null',
    PATH: `${programs}:${process.env['PATH']}`,
  };
  const git = (...args: string[]): string => execFileSync('git', args, { cwd: folder, env, encoding: 'utf8' }).trim();
  const read = (file: string): string => readFileSync(join(folder, file), 'utf8');
  const write = (file: string, text: string): void => {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    writeFileSync(join(folder, file), text);
  };
  const release: Repository['release'] = (...args) => {
    const { status, stdout, stderr } = spawnSync(process.execPath, [SCRIPT, ...args], {
      cwd: folder,
      env,
      encoding: 'utf8',
    });
    return { status, output: stdout + stderr };
  };

  git('init', '--quiet', '--initial-branch', 'main');
  write('.git/programs/npm', '#!/bin/sh\necho "npm $*" > .git/published\n');
  chmodSync(join(programs, 'npm'), 0o755);
  const all = {
    'package.json': '{\n  "name": "everstep",\n  "version": "0.1.0"\n}\n',
    'package-lock.json': '{ "name": "everstep", "version": "0.1.0", "packages": { "": { "version": "0.1.0" } } }\n',
    'src/kernel/base/version.ts': "export const LIBRARY_VERSION = '0.1.0';\n",
    'CHANGELOG.md': CHANGELOG,
    ...files,
  };
  for (const [file, text] of Object.entries(all)) write(file, text);
  git('add', '.');
  git('commit', '--quiet', '--message', 'Begin');
  return { release, git, read, write };
}

test('a release dates the changelog, sets the version everywhere, commits and tags', () => {
  const { release, git, read } = setup();

  const { status, output } = release('minor');

  expect(status).toBe(0);
  expect(output).toContain('Next: git push --follow-tags, then npm publish --provenance');
  expect(read('CHANGELOG.md')).toBe(
    `# Change log\n\n## Unreleased\n\n## 0.2.0 - ${TODAY}\n\n- New.\n\n## 0.1.0 - 2026-01-31\n\n- First.\n`,
  );
  expect(read('package.json')).toBe('{\n  "name": "everstep",\n  "version": "0.2.0"\n}\n');
  expect(JSON.parse(read('package-lock.json'))).toMatchObject({
    version: '0.2.0',
    packages: { '': { version: '0.2.0' } },
  });
  expect(read('src/kernel/base/version.ts')).toBe("export const LIBRARY_VERSION = '0.2.0';\n");
  expect(git('log', '-1', '--format=%s')).toBe('Release 0.2.0');
  expect(git('rev-parse', 'v0.2.0^{commit}')).toBe(git('rev-parse', 'HEAD'));
  expect(git('status', '--porcelain')).toBe('');
});

test.each([
  ['major', '1.0.0'],
  ['patch', '0.1.1'],
  ['0.1.0', '0.1.0'],
  ['0.3.0', '0.3.0'],
])('%s after 0.1.0 is %s', (bump, version) => {
  const { release, git } = setup();

  expect(release(bump).status).toBe(0);
  expect(git('tag')).toBe(`v${version}`);
});

test('a section that was prepared for the version becomes part of the release', () => {
  const { release, read } = setup({
    'CHANGELOG.md': '# Change log\n\n## Unreleased\n\n- Late.\n\n## 0.1.0\n\n- First.\n',
  });

  release('0.1.0');

  expect(read('CHANGELOG.md')).toBe(`# Change log\n\n## Unreleased\n\n## 0.1.0 - ${TODAY}\n\n- Late.\n- First.\n`);
});

test('a dry run says what would happen and changes nothing', () => {
  const { release, git, read } = setup();

  const { status, output } = release('patch', '--dry-run', '--publish');

  expect(status).toBe(0);
  expect(output).toContain('Would commit "Release 0.1.1"');
  expect(output).toContain('Would run npm publish --provenance');
  expect(git('log', '--format=%s')).toBe('Begin');
  expect(git('status', '--porcelain') + git('tag')).toBe('');
  expect(() => read('.git/published')).toThrow();
});

test('with --publish the package is published', () => {
  const { release, read } = setup();

  expect(release('patch', '--publish').status).toBe(0);
  expect(read('.git/published')).toBe('npm publish --provenance\n');
});

test.each<[string, string[], (repository: Repository) => void, string]>([
  [
    'another branch',
    ['patch'],
    ({ git }) => void git('switch', '--quiet', '--create', 'side'),
    'Release from main, not from side.',
  ],
  ['changes that are not committed', ['patch'], ({ write }) => write('new.txt', ''), '?? new.txt'],
  ['a tag that exists', ['patch'], ({ git }) => void git('tag', 'v0.1.1'), 'Tag v0.1.1 exists already.'],
  ['a lower version', ['0.0.9'], () => {}, 'Version 0.0.9 is lower than the current one, 0.1.0.'],
  ['a prerelease', ['0.2.0-rc.1'], () => {}, '"0.2.0-rc.1" is not a version.'],
  ['no version', [], () => {}, 'Usage:'],
])('%s is refused', (_, args, prepare, message) => {
  const repository = setup();
  prepare(repository);
  const before = repository.git('log', '--format=%s');

  const { status, output } = repository.release(...args);

  expect(status).toBe(1);
  expect(output).toContain(message);
  expect(repository.git('log', '--format=%s')).toBe(before);
  expect(repository.read('CHANGELOG.md')).toBe(CHANGELOG);
});

test('a changelog without news is refused', () => {
  const { release } = setup({ 'CHANGELOG.md': '# Change log\n\n## Unreleased\n\n## 0.1.0 - 2026-01-31\n\n- First.\n' });

  expect(release('patch')).toMatchObject({
    status: 1,
    output: expect.stringContaining('nothing under "## Unreleased"') as string,
  });
});
