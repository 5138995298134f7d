// The walk of docs/guides/migrating-from-dbos.md with real processes: from DBOS to Everstep in the middle of workflows, and
// back. Each process is killed, not shut down.
import { describe, expect, it, vi } from 'vitest';
import { call } from '../faces/cli/terminals.js';
import { wantsDialect } from '../rig/dialects.js';
import { createSharedDatabase, type DbosKind, launchPeer, type SharedDatabase } from './peers.js';

interface Adoption {
  readonly adopted: number;
  readonly groups: readonly { executorID: string; applicationVersion: string; running: number; waiting: number }[];
}

async function migrate(url: string, ...options: string[]): Promise<Adoption> {
  const { exitCode, err, json } = await call(['migrate', ...options, '--json', '-s', url]);
  expect([exitCode, err]).toEqual([0, '']);
  return json<{ adoption: Adoption }>().adoption;
}

/** The workflow has recorded its first step and stands still. */
async function untilInside({ query }: SharedDatabase, id: string, steps: number): Promise<void> {
  await vi.waitUntil(
    async () => {
      const rows = await query('SELECT 1 FROM dbos.operation_outputs WHERE workflow_uuid = $1', [id]);
      return rows.length >= steps;
    },
    { timeout: 100_000, interval: 20 },
  );
}

async function effectsOf({ query }: SharedDatabase, id: string): Promise<string[]> {
  const rows = await query<{ effect: string }>(
    `SELECT step || ' ' || kind AS effect FROM public.effects WHERE workflow = $1 ORDER BY number`,
    [id],
  );
  return rows.map(({ effect }) => effect);
}

const gated = (id: string): Record<string, unknown> => ({ workflow: 'gated', args: [id, 7], workflowID: id });

describe.skipIf(!wantsDialect('postgres')).each<DbosKind>(['dbos-4', 'dbos-5'])('an application on %s', (kind) => {
  it('moves to Everstep in the middle of its workflows, and back', async () => {
    const shared = await createSharedDatabase();
    const { url, query } = shared;
    const queues = [['later', { workerConcurrency: 1 }]] as const;

    // On DBOS: two workflows in flight, one waiting for a message, one on a queue behind another.
    const theirs = await launchPeer({ kind, url, queues });
    await theirs.perform('start', gated('one'));
    await theirs.perform('start', { workflow: 'mixed', args: ['hello'], workflowID: 'two' });
    await theirs.perform('start', { ...gated('three'), queueName: 'later' });
    await theirs.perform('start', { workflow: 'steps', args: [2], workflowID: 'four', queueName: 'later' });
    await untilInside(shared, 'one', 1);
    await untilInside(shared, 'two', 3);
    await untilInside(shared, 'three', 1);
    await theirs.kill();

    // The switch.
    const shown = await migrate(url, '--adopt');
    expect(shown.groups).toMatchObject([{ executorID: 'local', running: 3 }]);
    const oldVersion = shown.groups[0]?.applicationVersion ?? '';
    const explained = await call(['workflow', 'explain', 'one', '-s', url]);
    expect(explained.out).toContain('everstep migrate --adopt');
    expect(await migrate(url, '--adopt', '--gone')).toMatchObject({ adopted: 4 });
    expect(await migrate(url, '--adopt', '--gone')).toMatchObject({ groups: [], adopted: 0 });

    const ours = await launchPeer({ kind: 'everstep', url, queues });
    await query(`INSERT INTO public.gates VALUES ('one'), ('three')`);
    await ours.perform('call', { on: 'DBOS', method: 'send', args: ['two', 'ping', 'topic'] });
    expect(await ours.perform('result', { id: 'one' })).toEqual({ first: 'first', last: 'last', at: 7 });
    expect(await ours.perform('result', { id: 'two' })).toMatchObject({ message: 'hello', received: 'ping' });
    expect(await ours.perform('result', { id: 'three' })).toMatchObject({ last: 'last' });
    expect(await ours.perform('result', { id: 'four' })).toEqual(['s0', 's1']);
    expect(await effectsOf(shared, 'one')).toEqual([`first ${kind}`, 'last everstep']);
    expect(await effectsOf(shared, 'two')).toEqual([`before ${kind}`, 'after everstep']);
    expect(await effectsOf(shared, 'four')).toEqual(['s0 everstep', 's1 everstep']);

    // And back.
    await ours.perform('start', gated('five'));
    await untilInside(shared, 'five', 1);
    await ours.kill();
    expect((await migrate(url, '--release', '--to-version', oldVersion)).groups).toMatchObject([{ running: 1 }]);
    await migrate(url, '--release', '--to-version', oldVersion, '--gone');
    const again = await launchPeer({ kind, url, queues });
    await query(`INSERT INTO public.gates VALUES ('five')`);
    expect(await again.perform('result', { id: 'five' })).toMatchObject({ last: 'last' });
    expect(await effectsOf(shared, 'five')).toEqual(['first everstep', `last ${kind}`]);
  });
});
