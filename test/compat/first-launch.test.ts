// Everstep and DBOS launched at the same time on an empty database.
import { describe, expect, it } from 'vitest';
import { silentLogger } from '../../src/kernel/base/log.js';
import { migrate } from '../../src/database/migrations/migrate.js';
import { postgres, wantsDialect } from '../rig/dialects.js';
import { readCatalog, readVersionRows } from '../database/migrations/catalog.js';
import { EVERSTEP_LATEST, expectedSchema, LATEST } from '../database/migrations/setup.js';
import { createSharedDatabase, type DbosKind, startPeer } from './peers.js';

/** Rounds of each; 30 and more take minutes. */
const ROUNDS = Number(process.env['COMPAT_LAUNCHES'] ?? 4);
/** By how much one is ahead of the other, in ms. */
const HEAD_STARTS = [0, 40, -40, 120, -120, 10, -10, 80, -80, 200];

describe.skipIf(!wantsDialect('postgres')).each<DbosKind>(['dbos-4', 'dbos-5'])('beside %s', (kind) => {
  it.each(Array.from({ length: ROUNDS }, (_, round) => HEAD_STARTS[round % HEAD_STARTS.length] ?? 0))(
    'both launch on an empty database, %i ms apart, and run each other’s workflows',
    async (headStartMs) => {
      const { url } = await createSharedDatabase();
      const [theirs, ours] = await Promise.all([startPeer({ kind, url }), startPeer({ kind: 'everstep', url })]);
      const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, Math.max(0, ms)));

      await Promise.all([
        pause(-headStartMs).then(() => theirs.perform('launch')),
        pause(headStartMs).then(() => ours.perform('launch')),
      ]);

      expect(await theirs.perform('run', { workflow: 'echo', args: [1] })).toBe(1);
      expect(await ours.perform('run', { workflow: 'echo', args: [2] })).toBe(2);
      const database = await postgres.open(url);
      expect(await readVersionRows(database)).toEqual([[LATEST], [EVERSTEP_LATEST]]);
      await Promise.all([theirs.end(), ours.end()]);
      // A launch that finds the tables complete changes nothing.
      expect(await migrate(database, { logger: silentLogger })).toEqual({ from: LATEST, to: LATEST });
    },
  );

  it('a DBOS that migrates over complete tables leaves them complete', async () => {
    const { url, query } = await createSharedDatabase({ isMigrated: true });
    const database = await postgres.open(url);
    await query('UPDATE dbos.dbos_migrations SET version = 0');
    const theirs = await startPeer({ kind, url });

    await theirs.perform('launch');
    await theirs.end();
    await migrate(database, { logger: silentLogger });

    const { columns, functions } = await readCatalog(database);
    const wanted = expectedSchema(database);
    expect(columns).toEqual(wanted.columns);
    expect(functions).toEqual(wanted.functions);
    const bodies = await query<{ body: string }>(
      `SELECT prosrc AS body FROM pg_proc WHERE proname IN ('enqueue_workflow', 'notifications_function')`,
    );
    expect(bodies.map(({ body }) => /everstep(_queues|\.quiet)/.test(body))).toEqual([true, true]);
  });
});
