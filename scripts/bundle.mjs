// Writes the JavaScript that is published: a file per entry of package.json and a few that they share, as ES modules in
// `dist/` and as CommonJS in `dist/cjs/`. Loading 300 files would take five times as much CPU as loading four. Development
// dependencies that the sources import are part of these files: superjson is published as ES modules only, which Jest cannot
// require, and `yaml` calls `require`, which fails in bundles.
import { readFileSync } from 'node:fs';
import { build } from 'vite';
import { kindOf } from './layers.mjs';

const { exports, bin, dependencies, peerDependencies } = JSON.parse(readFileSync('package.json', 'utf8'));

/**
 * Loaded only when they are used: for a Postgres URL, at launch, for a dbos-config.yaml. The client uses one file of the
 * facade and must not load the rest.
 */
const APART = [
  [
    /^src\/database\/(?:postgres\/(?!is-postgres|silence|postgres-errors|postgres-url|advisory-locks)|migrations\/create-)/,
    'postgres',
  ],
  [/^src\/database\/migrations\/(?!schema-name)/, 'migrations'],
  [/^src\/database\/config\/yaml\.ts$/, 'yaml'],
  [/^src\/faces\/library\/workflow-queue\.ts$/, 'client'],
];
/** Layers that are always loaded together, without what the client does not use. The others have a file each. */
const TOGETHER = {
  core: ['base', 'kernel'],
  store: ['partitions', 'database', 'rows', 'verbs'],
};

const paths = [...Object.values(exports).flatMap((entry) => entry.import?.default ?? []), ...Object.values(bin)];
const entries = new Map(
  paths.map((path) => path.replace(/^\.?\/?dist\/|\.js$/g, '')).map((name) => [name, `src/${name}.ts`]),
);
const isEntry = new Set(entries.values());

/** What the client loads at once, directly or not. */
function loadedByClient(getModuleInfo) {
  const found = new Set();
  const visit = (id) => {
    if (found.has(id)) return;
    found.add(id);
    for (const imported of getModuleInfo(id)?.importedIds ?? []) visit(imported);
  };
  visit(`${process.cwd()}/src/client.ts`);
  return found;
}

let clientModules;

function chunkOf(id, { getModuleInfo }) {
  clientModules ??= loadedByClient(getModuleInfo);
  const path = id.replace(`${process.cwd()}/`, '');
  const [, name] = APART.find(([pattern]) => pattern.test(path)) ?? [];
  if (name) return name;
  const [, dependency] = /^(?:.*\/)?node_modules\/([^/]+)\//.exec(path) ?? [];
  if (dependency) return dependency === 'yaml' ? 'yaml' : 'core';
  if (isEntry.has(path)) return undefined;
  const layer = kindOf(path.replace('src/', ''));
  const isShared = Object.values(TOGETHER).some((together) => together.includes(layer));
  if (isShared && !clientModules.has(id)) return 'services';
  return Object.keys(TOGETHER).find((chunk) => TOGETHER[chunk].includes(layer)) ?? layer;
}

function licencesOf(chunk) {
  const names = new Set(chunk.moduleIds.flatMap((id) => /node_modules\/([^/]+)\//.exec(id)?.[1] ?? []));
  const texts = [...names].map((name) => `${name}:\n\n${readFileSync(`node_modules/${name}/LICENSE`, 'utf8').trim()}`);
  return texts.length === 0 ? '' : `/*!\n${texts.join('\n\n')}\n*/`;
}

async function bundle(format, folder) {
  const external = Object.keys({ ...dependencies, ...peerDependencies });
  await build({
    configFile: false,
    logLevel: 'warn',
    esbuild: { legalComments: 'inline' },
    // The build of `yaml` for browsers is the one without `require`.
    resolve: { conditions: ['import', 'default'] },
    build: {
      outDir: folder,
      emptyOutDir: false,
      minify: false,
      sourcemap: format === 'es',
      target: 'es2022',
      lib: {
        entry: Object.fromEntries([...entries].filter(([name]) => format === 'es' || !name.startsWith('faces/cli/'))),
        formats: [format],
      },
      rollupOptions: {
        external: (id) => id.startsWith('node:') || external.some((name) => id === name || id.startsWith(`${name}/`)),
        output: {
          entryFileNames: '[name].js',
          chunkFileNames: 'shared/[name].js',
          manualChunks: chunkOf,
          exports: 'named',
          interop: 'auto',
          // Jest cannot import().
          dynamicImportInCjs: false,
          hoistTransitiveImports: false,
          banner: licencesOf,
        },
      },
    },
  });
}

await bundle('es', 'dist');
await bundle('cjs', 'dist/cjs');
