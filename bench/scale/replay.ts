// The replay of a long history, and how long other work waits for its turn meanwhile.
import { createDBOS } from '../../src/faces/library/dbos.js';
import type { Databases } from '../engine/databases.js';
import { printTable, timed } from '../report.js';

const STEPS = Number(process.env['BENCH_STEPS'] ?? 100_000);

export async function printReplay(databases: Databases): Promise<void> {
  for (const dialect of ['postgres', 'sqlite'] as const) {
    const DBOS = createDBOS();
    const systemDatabaseUrl = dialect === 'postgres' ? await databases.postgres() : databases.sqlite();
    DBOS.setConfig({ name: 'bench', systemDatabaseUrl, applicationVersion: '1', logLevel: 'error' });
    const work = DBOS.registerWorkflow(
      async () => {
        let sum = 0;
        for (let n = 0; n < STEPS; n += 1) sum += await DBOS.runStep(() => Promise.resolve(n), { name: 'step' });
        return sum;
      },
      { name: 'work' },
    );
    await DBOS.launch();
    await DBOS.withNextWorkflowID('w', () => work());
    const turns = watchTurns();
    const ms = await timed(async () => (await DBOS.forkWorkflow('w', STEPS)).getResult());
    printTable(`Fork at the end of ${STEPS.toLocaleString('en')} steps, ${dialect}`, [
      { label: 'until the result', value: `${Math.round(ms)} ms` },
      { label: 'longest turn of the event loop', value: `${Math.round(turns.stop())} ms` },
    ]);
    await DBOS.shutdown();
  }
}

function watchTurns(): { stop(): number } {
  let longest = 0;
  let lastAt = performance.now();
  const timer = setInterval(() => {
    const now = performance.now();
    longest = Math.max(longest, now - lastAt);
    lastAt = now;
  }, 1);
  return {
    stop: () => {
      clearInterval(timer);
      return longest;
    },
  };
}
