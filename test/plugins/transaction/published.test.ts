// Plugins that were written for DBOS, and published, run unchanged: the package takes the name of theirs.
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Project } from '../../compat/project.js';
import { postgres, wantsDialect } from '../../rig/dialects.js';
import { queryOn } from './scene.js';

let project: Project;

describe.skipIf(!wantsDialect('postgres'))('published data sources of DBOS', () => {
  beforeAll(async () => {
    project = await Project.create('@dbos-inc/dbos-sdk');
    for (const name of ['drizzle', 'knex', 'postgres']) project.addPlugin(`@dbos-inc/${name}-datasource`);
    project.addModules('drizzle-orm');
    project.write({ 'main.mjs': readFileSync(new URL('published-process.mjs', import.meta.url), 'utf8') });
  }, 300_000);

  afterAll(() => project.remove());

  test('run workflows, and replay what they have recorded', async () => {
    const url = await postgres.createURL({ isMigrated: false });
    const systemURL = await postgres.createURL();
    await queryOn(url)('CREATE TABLE effects (workflow_id TEXT, note TEXT)');
    const program = async (): Promise<unknown> =>
      JSON.parse(await project.run('node', ['main.mjs', JSON.stringify({ url, systemURL })]));
    const first = { note: 'registered', stepID: 0, isInTransaction: true };
    const results = ['knex', 'drizzle', 'postgres'].map((name) => [name, [first, '1970-01-01T00:00:00.000Z', 'no']]);
    const counted = 'SELECT workflow_id, note, COUNT(*)::int AS times FROM effects GROUP BY 1, 2 ORDER BY 1, 2';

    expect(await program()).toEqual({ results: Object.fromEntries(results), bodies: 9 });
    const effects = await queryOn(url)(counted);
    // As if all had died before their checkpoints: the engine knows nothing of the steps.
    await queryOn(systemURL)('DELETE FROM dbos.operation_outputs');
    await queryOn(systemURL)(
      `UPDATE dbos.workflow_status SET status = 'ENQUEUED', queue_name = '_dbos_internal_queue', output = NULL`,
    );
    await queryOn(url)(`DELETE FROM effects WHERE note = 'outside'`);

    expect(await program()).toEqual({ results: Object.fromEntries(results), bodies: 0 });
    expect(await queryOn(url)(counted)).toEqual(effects);
    expect(effects).toHaveLength(7);
  });
});
