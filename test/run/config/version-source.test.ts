import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { resolveConfig } from '../../../src/run/config/config.js';

function setup() {
  const folder = mkdtempSync(join(tmpdir(), 'everstep-version-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const git = (...args: string[]): string => {
    const options = ['-c', 'user.name=t', '-c', 'user.email=t@localhost', '-c', 'commit.gpgsign=false'];
    return execFileSync('git', [...options, ...args], { cwd: folder, encoding: 'utf8', stdio: 'pipe' }).trim();
  };
  const versionIn = (within: string, applicationVersion: string): string | undefined =>
    resolveConfig({ name: 'app', applicationVersion }, {}, { folder: join(folder, within) }).applicationVersion;
  return { folder, git, versionIn };
}

describe("applicationVersion: 'git'", () => {
  test('is the checked-out commit: of a branch, of packed branches, detached, in a folder below', () => {
    const { folder, git, versionIn } = setup();
    git('init', '-q');
    git('commit', '-q', '--allow-empty', '-m', 'first');
    const commit = git('rev-parse', 'HEAD');
    mkdirSync(join(folder, 'packages/app'), { recursive: true });

    expect(versionIn('.', 'git')).toBe(commit);
    expect(versionIn('packages/app', 'git')).toBe(commit);
    git('pack-refs', '--all');
    expect(versionIn('.', 'git')).toBe(commit);
    git('checkout', '-q', '--detach');
    expect(versionIn('.', 'git')).toBe(commit);
  });

  test('is the commit of a worktree', () => {
    const { git, versionIn } = setup();
    git('init', '-q');
    git('commit', '-q', '--allow-empty', '-m', 'first');
    git('worktree', 'add', '-q', '-b', 'other', 'tree');
    git('commit', '-q', '--allow-empty', '-m', 'second');

    expect(versionIn('tree', 'git')).toBe(git('rev-parse', 'other'));
  });

  test('is refused without a commit', () => {
    const { git, versionIn } = setup();
    git('init', '-q');

    expect(() => versionIn('.', 'git')).toThrow("applicationVersion is 'git', but there is no commit");
  });
});

describe("applicationVersion: 'package'", () => {
  test('is the version in the nearest package.json', () => {
    const { folder, versionIn } = setup();
    writeFileSync(join(folder, 'package.json'), '{ "version": "1.2.3" }');
    mkdirSync(join(folder, 'src'));

    expect(versionIn('src', 'package')).toBe('1.2.3');
  });

  test('is refused without a version', () => {
    const { folder, versionIn } = setup();
    writeFileSync(join(folder, 'package.json'), '{}');

    expect(() => versionIn('.', 'package')).toThrow('has no version');
  });
});

test('any other version is taken as it is', () => {
  expect(setup().versionIn('.', 'v7')).toBe('v7');
});
