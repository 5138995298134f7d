// Messages, events and streams under kills and broken connections.
import { expect, test } from 'vitest';
import { sql, table } from '../../src/kernel/sql/sql.js';
import { forEachDialect, onlyOn, type TestDialect } from '../rig/dialects.js';
import { startProxy } from '../rig/proxy.js';
import { expectAllDone } from './invariants.js';
import { linesOf } from './journal.js';
import type { KillPoint } from './kill-points.js';
import { crashAndFinish, finishAll, killAtEach, play, type Played } from './kill-scenarios.js';
import { expectMail } from './mail.js';
import { disturb } from './network.js';
import { launchWorker } from './processes.js';
import { withSeed } from './random.js';
import { idsOf, launchHere, setScene } from './setup.js';
import type { Command } from './worker-process.js';
import { STREAMER_STEPS, STREAMER_VALUES } from './workflows.js';

const SCENARIO: readonly Command[] = [
  { do: 'launch' },
  { do: 'start', name: 'mail', workflowIDs: ['mail'] },
  { do: 'finish' },
  { do: 'shutdown' },
];

const BOUNDARIES = ['message', 'receipt', 'event', 'stream'];

async function crashAndRecover(dialect: TestDialect, killPoint: KillPoint): Promise<Played> {
  const scene = await setScene(dialect);
  const played = await play(scene, killPoint, SCENARIO);
  const tables = await crashAndFinish(scene, () => finishAll(scene, 'mail'));
  await scene.withDatabase((database) => expectMail(database, tables));
  return played;
}

forEachDialect((dialect) => {
  const moments = dialect.name === 'postgres' ? (['before', 'sent', 'after'] as const) : (['before', 'after'] as const);

  test.each(moments)(
    'a process killed at any commit of a conversation loses and repeats no message, event or value: %s',
    async (moment) => {
      const { commits } = await play(await setScene(dialect), { number: 0, moment }, SCENARIO);
      for (const boundary of BOUNDARIES) expect(commits.join()).toContain(boundary);

      await killAtEach(commits, moment, (killPoint) => crashAndRecover(dialect, killPoint));
    },
  );

  test('a stream that is read while its writer is killed has no gap and no repetition', async () => {
    const scene = await setScene(dialect);
    const { url, journal, journalPath, gate } = scene;
    const victim = await launchWorker({ url, journalPath, gate });
    const { DBOS } = await launchHere(scene);
    await victim.perform({ do: 'start', name: 'streamer', workflowIDs: ['streamer'] });

    const seen: unknown[] = [];
    for await (const value of DBOS.readStream('streamer', 'values')) {
      seen.push(value);
      if (seen.length === STREAMER_VALUES * 3) await victim.kill();
    }

    expect(seen).toEqual(Array.from({ length: STREAMER_STEPS * STREAMER_VALUES }, (_, number) => number));
    expect(linesOf(journal.read(), 'run')).toHaveLength(2);
    expectAllDone(await scene.tables(), journal.read());
  });
});

onlyOn('postgres', (dialect) => {
  test('connections that break at random moments lose and repeat no message, event or value', () =>
    withSeed(async (random) => {
      const scene = await setScene(dialect);
      const { journal } = scene;
      const proxy = await startProxy(scene.url);
      const { DBOS, workflows } = await launchHere({ url: proxy.url, journal });
      const ids = idsOf('mail', 30);
      let isOver = false;

      const disturbed = disturb(proxy, random, () => isOver);
      const handles = await Promise.all(ids.map((workflowID) => DBOS.startWorkflow(workflows.mail, { workflowID })()));
      for (let bulk = 0; bulk < 10; bulk += 1) {
        await DBOS.sendBulk(ids.map((destinationID) => ({ destinationID, message: bulk, topic: 'bulk' })));
      }
      await Promise.all(handles.map((handle) => handle.getResult()));
      isOver = true;
      await disturbed;

      const bulks = await Promise.all(ids.map((workflowID) => DBOS.getAllNotifications(workflowID)));
      for (const messages of bulks) {
        const sent = messages.filter(({ topic }) => topic === 'bulk').map(({ message }) => message);
        expect(sent).toEqual(Array.from({ length: 10 }, (_, number) => number));
      }
      const tables = await scene.tables();
      expectAllDone(tables, journal.read());
      await scene.withDatabase(async (database) => {
        await database.run(sql`DELETE FROM ${table('notifications')} WHERE topic = 'bulk'`);
        // The process never died, so no step was repeated.
        await expectMail(database, tables, { isStepOnce: true });
      });
    }));
});
