// Schedules that one library creates fire on workers of the other.
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { silentLogger } from '../../src/kernel/base/log.js';
import { DBOSClient } from '../../src/faces/client/client.js';
import { wantsDialect } from '../rig/dialects.js';
import { createSharedDatabase, type DbosKind, launchPeer, type SharedDatabase } from './peers.js';

async function ticked({ query }: SharedDatabase): Promise<{ workflow: string; kind: string }> {
  return vi.waitUntil(
    async () =>
      (await query<{ workflow: string; kind: string }>('SELECT workflow, kind FROM public.effects LIMIT 1'))[0],
    { timeout: 100_000, interval: 50 },
  );
}

describe.skipIf(!wantsDialect('postgres')).each<DbosKind>(['dbos-4', 'dbos-5'])('beside %s', (kind) => {
  it('a schedule that our client creates fires on its worker', async () => {
    const shared = await createSharedDatabase({ isMigrated: true });
    await launchPeer({ kind, url: shared.url });
    const client = await DBOSClient.create({ systemDatabaseUrl: shared.url, logger: silentLogger });
    onTestFinished(() => client.destroy());

    await client.createSchedule({ scheduleName: 'ours', workflowName: 'tick', schedule: '* * * * * *' });

    expect(await ticked(shared)).toMatchObject({ workflow: expect.stringMatching(/^sched-ours-/), kind });
  });

  it('a schedule that its client creates fires on our worker', async () => {
    const shared = await createSharedDatabase({ isMigrated: true });
    const theirs = await launchPeer({ kind, url: shared.url, config: { name: 'another' } });
    const schedule = { scheduleName: 'theirs', workflowName: 'tick', schedule: '* * * * * *' };

    await theirs.perform('call', {
      on: 'client',
      method: 'createSchedule',
      args: [{ ...schedule, applicationName: 'shared' }],
    });
    await theirs.end();
    await launchPeer({ kind: 'everstep', url: shared.url });

    expect(await ticked(shared)).toMatchObject({ workflow: expect.stringMatching(/^sched-theirs-/), kind: 'everstep' });
  });
});
