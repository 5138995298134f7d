// Makes the emitted declarations independent of a project's settings and other type packages:
// - An optional property may also be undefined, as in `{ systemDatabaseUrl: process.env.URL }`. With
//   `exactOptionalPropertyTypes` that has to be said.
// - The types of `pg` come from a file of ours, so that no project needs @types/pg. Only the data source for `pg` names the real
//   ones.
import { copyFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import ts from 'typescript';

const FOLDER = 'dist';
const OWN_PG_TYPES = ['plugins/transaction/adapters/node-postgres.d.ts'];

/** Types that end where a union would go on. */
const NEEDS_PARENTHESES = new Set([
  ts.SyntaxKind.FunctionType,
  ts.SyntaxKind.ConstructorType,
  ts.SyntaxKind.ConditionalType,
  ts.SyntaxKind.InferType,
]);

function allowUndefined(text) {
  const edits = [];
  const visit = (node) => {
    const isOptional =
      (ts.isPropertySignature(node) || ts.isPropertyDeclaration(node) || ts.isMappedTypeNode(node)) &&
      node.questionToken !== undefined;
    if (isOptional && node.type) {
      const [open, close] = NEEDS_PARENTHESES.has(node.type.kind) ? ['(', ')'] : ['', ''];
      edits.push([node.type.getStart(), open], [node.type.end, `${close} | undefined`]);
    }
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile('file.d.ts', text, ts.ScriptTarget.Latest, true));
  return edits
    .toSorted(([left], [right]) => right - left)
    .reduce((edited, [at, added]) => edited.slice(0, at) + added + edited.slice(at), text);
}

function redirectPg(file, text) {
  if (OWN_PG_TYPES.includes(file)) return text;
  const path = relative(dirname(file), 'pg-types.js').replaceAll('\\', '/');
  return text.replaceAll(/from 'pg'/g, `from '${path.startsWith('.') ? path : `./${path}`}'`);
}

copyFileSync('scripts/pg-types.d.ts', join(FOLDER, 'pg-types.d.ts'));
for (const file of readdirSync(FOLDER, { recursive: true, encoding: 'utf8' })) {
  if (!file.endsWith('.d.ts') || file.startsWith('cjs')) continue;
  const path = join(FOLDER, file);
  writeFileSync(path, redirectPg(file, allowUndefined(readFileSync(path, 'utf8'))));
}
