// The documents for contributors name files. This holds them to the files that are there.
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));

const DOCUMENTS = [
  'ARCHITECTURE.md',
  'CONTRIBUTING.md',
  ...readdirSync(join(root, 'docs/decisions')).map((name) => `docs/decisions/${name}`),
];

/** A file by its extension, or a folder by its slash at the end. `*` and `{a,b}` are allowed. */
const PATH = /^(?:[\w.@{},*-]+\/)*(?:[\w.{},*-]+\.(?:ts|mts|mjs|js|json|md|sql|yml)|[\w.@{},*-]+\/)$/;

/** The paths in the code of a document, section by section. */
function pathsIn(text: string): string[][] {
  return text.split(/^(?=## )/m).map((section) => {
    const code = [...section.matchAll(/^```[^\n]*\n([^]*?)^```|`([^`\n]+)`/gm)].map(([, block, span]) => block ?? span);
    return code.flatMap((piece = '') => piece.split(/\s+/)).filter((word) => PATH.test(word));
  });
}

/** Paths stand below the root, below `src/`, or below a folder that the same section names. */
function missingPaths(text: string): string[] {
  return pathsIn(text).flatMap((paths) => {
    const near = paths.filter((path) => path.endsWith('/'));
    const bases = ['', 'src', ...near, ...near.map((folder) => join('src', folder))];
    return paths.filter((path) => !expandBraces(path).every((one) => bases.some((base) => exists(join(base, one)))));
  });
}

function expandBraces(path: string): string[] {
  const [, before, choices, after] = /^(.*?)\{(.*?)\}(.*)$/.exec(path) ?? [];
  if (choices === undefined) return [path];
  return choices.split(',').flatMap((choice) => expandBraces(`${before}${choice}${after}`));
}

function exists(path: string): boolean {
  if (path.endsWith('/')) return statSync(join(root, path), { throwIfNoEntry: false })?.isDirectory() === true;
  const folder = join(root, dirname(path));
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return false;
  const pattern = basename(path).replaceAll('.', '\\.').replaceAll('*', '.*').replace('NNNN_name', '\\d{4}_.*');
  return readdirSync(folder).some((name) => new RegExp(`^${pattern}$`).test(name));
}

test.each(DOCUMENTS)('the paths that %s names exist', (document) => {
  expect(missingPaths(readFileSync(join(root, document), 'utf8'))).toEqual([]);
});

test.each([
  ['a file that is gone', 'See `engine/gone.ts`.'],
  ['a folder that is gone', 'See `src/gone/`.'],
  ['a file in a block of code', '```sh\nnode scripts/gone.mjs\n```\n'],
  ['a file that is one of several', '`migrations/{postgres,gone}/NNNN_name.sql`'],
  ['a pattern that matches nothing', '`model/gone*.ts`'],
  ['a file of a folder that another section names', '## One\n\n`src/kernel/base/`\n\n## Two\n\n`clock.ts`\n'],
])('%s is found', (_, text) => {
  expect(missingPaths(text)).toHaveLength(1);
});

test('files, folders, patterns, and what is no path are accepted', () => {
  const text =
    '`src/kernel/base/`: `clock.ts`, `kernel/base/ids.ts`, `docs/decisions/*.md`, `package.json`, `/dev/shm`, `everstep/admin`';

  expect(missingPaths(text)).toEqual([]);
  expect(pathsIn(text).flat()).toHaveLength(5);
});
