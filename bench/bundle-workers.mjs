// Writes the worker processes of the benchmarks as plain JavaScript, into the folder that is given. They are bundled as the
// published package is: what a TypeScript loader adds to each function, or hundreds of files to a start, would count against
// Everstep.
import { build } from 'vite';
import { fileURLToPath } from 'node:url';

const WORKERS = [
  'engine/everstep-worker',
  'engine/dbos-worker',
  'messages/everstep-worker',
  'messages/dbos-worker',
  'plugins/everstep-worker',
  'plugins/dbos-worker',
  'outbox/worker',
  'parked/engine',
  'queues/worker',
];
const root = fileURLToPath(new URL('..', import.meta.url));

await build({
  configFile: false,
  logLevel: 'warn',
  root,
  resolve: { conditions: ['import', 'default'] },
  ssr: { noExternal: ['superjson', 'yaml'] },
  build: {
    ssr: true,
    outDir: process.argv[2],
    emptyOutDir: true,
    target: 'es2022',
    minify: false,
    rollupOptions: {
      input: Object.fromEntries(WORKERS.map((name) => [`bench/${name}`, `${root}bench/${name}.ts`])),
      output: { entryFileNames: '[name].js', chunkFileNames: 'shared/[name]-[hash].js', format: 'es' },
    },
  },
});
