// Builds what is published: the migrations embedded as code, then JavaScript and type declarations, as ES modules in
// `dist/` with the command ready to be run, and as CommonJS in `dist/cjs/`. JavaScript is bundled, declarations are not.
// The dashboard goes to `dist/dashboard/`.
import { chmodSync, cpSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import './generate.mjs';
import { runSteps, runTogether } from './run.mjs';

// A test that builds has another one, with which React would be the one for development.
process.env.NODE_ENV = 'production';
rmSync('dist', { recursive: true, force: true });
await runTogether([
  ['declarations', 'tsc', '-p', 'tsconfig.build.json'],
  ['bundles', process.execPath, 'scripts/bundle.mjs'],
]);
runSteps([['dashboard', 'vite', 'build', '-c', 'dashboard/vite.config.ts', 'dashboard']], { isLoud: true });
runSteps([['types of others', process.execPath, 'scripts/declarations.mjs']]);
// The declarations read the same in both formats. What they mean depends on the nearest package.json.
copyDeclarations('dist', 'dist/cjs');
for (const name of ['main', 'dbos']) chmodSync(`dist/faces/cli/${name}.js`, 0o755);
writeFileSync('dist/cjs/package.json', '{ "type": "commonjs", "sideEffects": false }\n');

function copyDeclarations(from, to) {
  const files = readdirSync(from, { recursive: true, encoding: 'utf8' });
  const isCopied = (file) => file.endsWith('.d.ts') && !/^(?:cjs|faces[/\\]cli|dashboard)[/\\]/.test(file);
  for (const file of files.filter(isCopied)) cpSync(join(from, file), join(to, file));
}
