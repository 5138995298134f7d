import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { describe, expect, test } from 'vitest';
import { DBOS, DBOSClient, DebouncerClient } from '../src/index.js';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Where the package's entry points are before it is built. */
const PATHS = {
  everstep: ['./src/index.ts'],
  'everstep/datasource/*': ['./src/plugins/transaction/adapters/*.ts'],
  'everstep/outbox/*': ['./src/plugins/outbox/relays/*.ts'],
  'everstep/receiver/*': ['./src/plugins/receiver/adapters/*.ts'],
  'everstep/receiver/http': ['./src/plugins/receiver/http/http.ts'],
  'everstep/*': ['./src/*.ts'],
};

function markdownFiles(): string[] {
  const inDocs = (readdirSync(join(root, 'docs'), { recursive: true }) as string[]).map((name) => join('docs', name));
  const atRoot = readdirSync(root);
  return [...atRoot, ...inDocs].filter((name) => name.endsWith('.md')).map((name) => join(root, name));
}

/** The TypeScript blocks of a page. Blocks marked `ts ignore` show something that is not code of ours. */
function codeBlocks(file: string): string[] {
  return [...readFileSync(file, 'utf8').matchAll(/^```ts\n([\s\S]*?)^```/gm)].map((match) => match[1] ?? '');
}

/** The names of the members that an object has of its class and the classes that this extends. */
function membersOf(object: object): string[] {
  const names = new Set(Object.keys(object));
  for (let at = object; at !== Object.prototype; at = Object.getPrototypeOf(at) as object) {
    for (const name of Object.getOwnPropertyNames(at)) names.add(name);
  }
  names.delete('constructor');
  return [...names];
}

/** GitHub's anchor of a heading. */
function anchors(file: string): string[] {
  return [...readFileSync(file, 'utf8').matchAll(/^#+ (.*)$/gm)].map((match) =>
    (match[1] ?? '')
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\- _]/gu, '')
      .replaceAll(' ', '-'),
  );
}

describe('docs', () => {
  test.each(markdownFiles().map((file) => relative(root, file)))('the links of %s lead somewhere', (name) => {
    const file = join(root, name);
    const text = readFileSync(file, 'utf8').replace(/^```[\s\S]*?^```/gm, '');
    const broken = [...text.matchAll(/\]\((?!https?:|mailto:)([^)\s]*)\)/g)]
      .map((match) => match[1] ?? '')
      .filter((link) => {
        const [path = '', anchor] = link.split('#');
        const target = path === '' ? file : resolve(dirname(file), path);
        if (!existsSync(target)) return true;
        return anchor !== undefined && statSync(target).isFile() && !anchors(target).includes(anchor);
      });

    expect(broken).toEqual([]);
  });

  test('the code blocks compile', () => {
    const blocks = new Map(
      markdownFiles().flatMap((file) =>
        codeBlocks(file).map((code, index) => [join(root, `${relative(root, file)}.${index}.ts`), code] as const),
      ),
    );
    const { config } = ts.readConfigFile(join(root, 'tsconfig.json'), (path) => ts.sys.readFile(path)) as {
      config: { compilerOptions: object };
    };
    const { options } = ts.convertCompilerOptionsFromJson(
      { ...config.compilerOptions, paths: PATHS, verbatimModuleSyntax: false },
      root,
    );
    const host = ts.createCompilerHost(options);
    const readFromDisk = host.readFile.bind(host);
    host.readFile = (path) => blocks.get(path) ?? readFromDisk(path);
    host.fileExists = (path) => blocks.has(path) || ts.sys.fileExists(path);
    const getFromDisk = host.getSourceFile.bind(host);
    host.getSourceFile = (path, ...rest) => {
      const code = blocks.get(path);
      // Each block is a module of its own.
      return code === undefined
        ? getFromDisk(path, ...rest)
        : ts.createSourceFile(path, `${code}\nexport {};`, rest[0]);
    };

    const program = ts.createProgram([...blocks.keys()], options, host);
    const problems = ts
      .getPreEmitDiagnostics(program)
      .filter((diagnostic) => blocks.has(diagnostic.file?.fileName ?? ''))
      .map(
        (diagnostic) =>
          `${diagnostic.file?.fileName}: ${ts.flattenDiagnosticMessageText(diagnostic.messageText, '\n')}`,
      );

    expect(problems).toEqual([]);
    // The clients that the pages import bring many types along.
  }, 180_000);

  test('the reference lists every member of DBOS, and no other', () => {
    const page = readFileSync(join(root, 'docs/reference/dbos.md'), 'utf8');
    const listed = [...page.matchAll(/^#### `(\w+)/gm)].map((match) => match[1]);

    expect(listed.toSorted()).toEqual(membersOf(DBOS).toSorted());
  });

  test('the reference lists every member of the clients, and no other', () => {
    const page = readFileSync(join(root, 'docs/reference/client.md'), 'utf8');
    const listed = [...page.matchAll(/^#### `(\w+)/gm)].map((match) => match[1]);
    const ofClasses = ['length', 'name', 'prototype'];
    const statics = Object.getOwnPropertyNames(DBOSClient).filter((name) => !ofClasses.includes(name));

    const members = [...statics, ...membersOf(DBOSClient.prototype), ...membersOf(DebouncerClient.prototype)];

    expect(listed.toSorted()).toEqual(members.toSorted());
  });
});
