// The dead letters of receivers, from outside of the process that receives.
import { describe, expect, onTestFinished, test } from 'vitest';
import { createAdmin } from '../../../src/faces/http/admin.js';
import { silentLogger } from '../../../src/kernel/base/log.js';
import { DBOSClient } from '../../../src/faces/client/client.js';
import { internals } from '../../../src/kernel/base/internals.js';
import { RECEIVED_LETTERS, ReceivedLetters } from '../../../src/features/dead-letter/received-letters.js';
import { upsertEventDispatchState } from '../../../src/run/rows/event-dispatch.js';
import { callerOf, TOKEN } from '../../faces/http/scene.js';
import { call } from '../../faces/cli/terminals.js';
import { forEachDialect, type TestDialect } from '../../rig/dialects.js';

async function setup(dialect: TestDialect, count: number) {
  const url = await dialect.createURL();
  const client = await DBOSClient.create({ systemDatabaseUrl: url, logger: silentLogger });
  onTestFinished(() => client.destroy());
  const { operator } = client[internals];
  // Several have the same time, so that it alone gives no order.
  const states = Array.from({ length: count }, (_, n) => ({
    service: RECEIVED_LETTERS,
    workflowFnName: n % 3 === 0 ? 'other' : 'work',
    key: `m${String(n).padStart(4, '0')}`,
    value: JSON.stringify({ error: n % 2 === 0 ? `bad ${n}` : 'worse', message: { n } }),
    updateTime: 1_700_000_000_000 + Math.floor(n / 10),
  }));
  for (let from = 0; from < count; from += 200) {
    await operator.database.commit(states.slice(from, from + 200).map((state) => upsertEventDispatchState(state)));
  }
  const everstep = (line: string) => call(`receiver dlq ${line} -s ${url}`);
  return { client, operator, letters: new ReceivedLetters(operator), everstep };
}

forEachDialect((dialect) => {
  describe('dead letters of receivers', () => {
    test('are read page by page, each once, the newest first', async () => {
      const { letters } = await setup(dialect, 450);

      const seen: { id: string; receivedAt: number }[] = [];
      let cursor: string | undefined;
      do {
        const page = await letters.list({ limit: 70, ...(cursor !== undefined && { cursor }) });
        seen.push(...page.letters);
        cursor = page.cursor;
      } while (cursor !== undefined);

      expect(new Set(seen.map(({ id }) => id)).size).toBe(450);
      expect(seen.map(({ receivedAt }) => receivedAt)).toEqual(
        seen.map(({ receivedAt }) => receivedAt).toSorted((a, b) => b - a),
      );
      await expect(letters.list({ cursor: 'x' })).rejects.toThrow('cursor');
    });

    test('are grouped, archived and discarded in pages', async () => {
      const { letters, operator } = await setup(dialect, 450);

      const groups = await letters.groups();
      const ofWork = await new ReceivedLetters(operator, 'work').groups();
      const [worst] = groups;
      const archived = await letters.archive({ fingerprint: worst?.fingerprint ?? '' });
      const discarded = await letters.discard({ all: true }, { limit: 10 });

      expect(groups.map(({ count }) => count)).toEqual([150, 150, 75, 75]);
      expect(ofWork).toHaveLength(2);
      expect(archived).toEqual({ archived: 225 });
      expect(discarded).toEqual({ discarded: 10 });
      expect(await letters.discard({ all: true }, { dryRun: true })).toEqual({ discarded: 215 });
      expect(await letters.discard({ all: true, archived: true })).toEqual({ discarded: 225 });
      await expect(letters.discard({})).rejects.toThrow('all: true');
    });

    test('have their commands', async () => {
      const { everstep } = await setup(dialect, 6);

      const listed = await everstep('list --limit 2 --json');
      const groups = await everstep('groups -f work --json');
      const shown = await everstep('get m0001');
      const missing = await everstep('get none');
      const discarded = await everstep('discard m0001 m0002');
      const archived = await everstep('archive -f work --yes --json');
      const refused = await everstep('discard');
      const left = await everstep('list --ids');

      expect(JSON.parse(listed.out)).toMatchObject({ letters: [{ id: 'm0000' }, { id: 'm0003' }] });
      expect(JSON.parse(groups.out)).toHaveLength(2);
      expect(shown.out).toContain('worse');
      expect(missing.exitCode).not.toBe(0);
      expect(discarded.out).toContain('2 dead letters deleted');
      expect(JSON.parse(archived.out)).toMatchObject({ archived: 2 });
      expect(refused.exitCode).not.toBe(0);
      expect(left.out.trim().split('\n')).toEqual(['m0000', 'm0003']);
    });

    test('have their routes', async () => {
      const { client } = await setup(dialect, 6);
      const admin = createAdmin({ source: client, token: TOKEN });
      onTestFinished(() => admin.close());
      const request = callerOf(admin.fetch);
      const API = '/api/v1/receivers';

      const first = await request('GET', `${API}/dead-letters?limit=4&functionName=work`);
      const groups = await request('GET', `${API}/dead-letter-groups`);
      const one = await request('GET', `${API}/dead-letters/m0001`);
      const missing = await request('GET', `${API}/dead-letters/none`);
      const archived = await request('POST', `${API}/bulk/archive`, { ids: ['m0001'] });
      const discarded = await request('POST', `${API}/bulk/discard`, { functionName: 'work' });
      const refused = await request('POST', `${API}/bulk/discard`, {});

      expect(first.body).toMatchObject({ letters: [{ id: 'm0001' }, {}, {}, {}], cursor: null });
      expect(groups.body).toMatchObject({ groups: [{ count: 2 }, { count: 2 }, { count: 1 }, { count: 1 }] });
      expect(one.body).toMatchObject({ functionName: 'work', error: 'worse', archivedAt: null });
      expect(missing.status).toBe(404);
      expect(archived.body).toEqual({ archived: 1 });
      expect(discarded.body).toEqual({ discarded: 3 });
      expect(refused.status).toBe(400);
    });
  });
});
