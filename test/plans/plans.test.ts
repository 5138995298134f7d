// The plan of every statement: none is so costly that a server would compile it, and none contains a node that our settings
// rule out. On Debian's Postgres with its default configuration, which compiles plans that look expensive, and on the embedded
// server, which cannot.
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { newID } from '../../src/kernel/base/ids.js';
import { wantsDialect } from '../rig/dialects.js';
import { startPostgres, stockBinaries } from '../rig/postgres-server.js';
import { scratchFolder } from '../rig/scratch.js';
import { EXPLAINING, type Explained, readPlans } from './explained.js';
import { playScenario } from './scenario.js';

/** Far above what our statements cost, far below the 1e10 of a node that settings have disabled. */
const COST_MAX = 1e6;
/** Our sessions; those of the test itself have another name. */
const OURS = /^everstep/;
/** Runs once. */
const MIGRATION = /CREATE TABLE IF NOT EXISTS/;

const stock = stockBinaries();
const servers: { readonly name: string; readonly binaries: string | undefined }[] = [
  { name: 'the embedded server', binaries: undefined },
];
if (stock) servers.push({ name: 'a stock server', binaries: stock });
else console.warn('No stock server: there is no Postgres in /usr/lib/postgresql.');

async function analyze(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url, application_name: 'test' });
  await client.connect();
  await client.query('ANALYZE');
  await client.end();
}

/** One line for each text, so that a failure names the statements. */
function describeEach(plans: readonly Explained[]): string[] {
  const lines = plans.map(({ text, cost, scanned }) => `cost ${cost}, scans [${scanned.join()}]: ${text}`);
  return [...new Set(lines)];
}

describe.skipIf(!wantsDialect('postgres')).each(servers)('on $name', ({ binaries }) => {
  test('JIT: no statement has a plan that a server would compile, analysed or not', async () => {
    const logPath = join(inject('folder'), `${newID()}.log`);
    const server = await startPostgres(EXPLAINING, scratchFolder(), { binaries, logPath });
    onTestFinished(async () => {
      await server.stop();
      rmSync(logPath, { force: true });
    });
    const url = server.url.replace(/postgres$/, 'plans');

    await playScenario(url, 'fresh');
    await analyze(url);
    await playScenario(url, 'analysed');

    await server.stop();
    const plans = readPlans(logPath).filter(({ session, text }) => OURS.test(session) && !MIGRATION.test(text));
    const texts = new Set(plans.map(({ text }) => text));
    console.info(`${plans.length} plans of ${texts.size} statements.`);
    expect(texts.size).toBeGreaterThan(150);
    expect(describeEach(plans.filter(({ isCompiled }) => isCompiled))).toEqual([]);
    expect(describeEach(plans.filter(({ cost }) => cost >= COST_MAX))).toEqual([]);
    expect(describeEach(plans.filter(({ isDisabled }) => isDisabled))).toEqual([]);
  });
});
