// superjson, published as an ES module only. In `dist/cjs/`, `scripts/bundle-superjson.mjs` replaces this file by a copy.
export { SuperJSON } from 'superjson';
