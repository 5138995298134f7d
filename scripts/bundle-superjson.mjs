// Writes superjson and its one dependency as a CommonJS module, in the place of the one that would require superjson. Both
// are published as ES modules only, which Node can require, but Jest cannot.
import { readFileSync } from 'node:fs';
import { build } from 'vite';

const PACKAGES = ['superjson', 'copy-anything'];

const licences = PACKAGES.map((name) => `${name}:\n\n${readFileSync(`node_modules/${name}/LICENSE`, 'utf8').trim()}`);

await build({
  configFile: false,
  logLevel: 'warn',
  // Not even to convert the syntax: it would drop the licences.
  esbuild: false,
  build: {
    outDir: 'dist/cjs/codec',
    emptyOutDir: false,
    minify: false,
    target: 'es2022',
    lib: { entry: 'node_modules/superjson/dist/index.js', formats: ['cjs'], fileName: () => 'superjson-library.js' },
    rollupOptions: { output: { exports: 'named', banner: `/*\n${licences.join('\n\n')}\n*/` } },
  },
});
