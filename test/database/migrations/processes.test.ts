// Ten processes that start at the same moment on an empty database.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { expect, it } from 'vitest';
import { bundled } from '../../rig/bundle.js';
import { forEachDialect } from '../../rig/dialects.js';
import { readCatalog, readVersionRows } from './catalog.js';
import { EVERSTEP_LATEST, expectedSchema, LATEST } from './setup.js';

const PROCESSES = 10;

interface Runner {
  /** Lets it start, and returns the lines it has printed since, standard error included, when it has ended. */
  go(): Promise<string>;
}

async function startRunner(url: string): Promise<Runner> {
  const program = await bundled(new URL('./migrate-process.ts', import.meta.url));
  const child = spawn(process.execPath, [...program, url], { stdio: 'pipe' });
  let output = '';
  child.stderr.on('data', (chunk) => (output += String(chunk)));
  const lines = createInterface({ input: child.stdout });
  await once(lines, 'line');
  lines.on('line', (line) => (output += line));
  return {
    async go() {
      child.stdin.write('go\n');
      await once(child, 'close');
      return output;
    },
  };
}

forEachDialect((dialect) => {
  it('ten processes at once give one result and no error', async () => {
    const url = await dialect.createURL({ isMigrated: false });
    const runners = await Promise.all(Array.from({ length: PROCESSES }, () => startRunner(url)));

    const outputs = await Promise.all(runners.map((runner) => runner.go()));

    for (const output of outputs) expect(JSON.parse(output)).toMatchObject({ to: LATEST });
    const database = await dialect.open(url);
    expect(await readVersionRows(database)).toEqual([[LATEST], [EVERSTEP_LATEST]]);
    expect(await readCatalog(database)).toEqual(expectedSchema(database));
  });
});
