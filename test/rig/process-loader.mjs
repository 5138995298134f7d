// Runs a bundle with the code that V8 has compiled for an earlier process of it. To compile it takes a third of the time
// in which such a process starts, and there are hundreds in a test run. The first one that ends by itself leaves its code.
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { Script } from 'node:vm';

const [, , bundle, source] = process.argv;
// The bundle shall find its own arguments where they are without this.
process.argv.splice(1, 3, bundle);

const cache = `${bundle}.cache`;
const cachedData = existsSync(cache) ? readFileSync(cache) : undefined;
// The driver for Postgres tells by it that this is Node, without loading all that belongs to fetch. Node 21 has it.
globalThis.navigator ??= { userAgent: 'Node.js' };

const script = new Script(`(require, module) => {${readFileSync(bundle, 'utf8')}\n}`, { filename: bundle, cachedData });
if (!cachedData) {
  process.on('exit', () => {
    const ownCache = `${cache}.${process.pid}`;
    writeFileSync(ownCache, script.createCachedData());
    renameSync(ownCache, cache);
  });
}
// Packages that are not in the bundle are found from where the source stands.
script.runInThisContext()(createRequire(source), { exports: {} });
