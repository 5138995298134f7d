// What an engine costs the database while it has nothing to do.
import pg from 'pg';
import { expect, onTestFinished, test, vi } from 'vitest';
import { PostgresDatabase } from '../../../src/store/postgres/postgres-database.js';
import { onlyOn } from '../../rig/dialects.js';
import { createEngine } from '../../rig/engines.js';
import { ManualClock, until } from '../../rig/manual-clock.js';

const STEP_MS = 2500;
const PASSED_MS = 600_000;
const ORPHANS_MS = 660_000;
/** What the listener sends on its own connection. */
const KEEPALIVE = 'SELECT 1';
/** Turns of the event loop between two statements of a service. */
const TURNS = 10;

type Method = (this: unknown, sent: unknown, ...rest: unknown[]) => Promise<unknown>;

/** Counts the statements of all system databases, and says when none is in flight. */
function countStatements() {
  const count = { statements: 0, inFlight: 0 };
  const prototype = PostgresDatabase.prototype as unknown as Record<'read' | 'run' | 'commit', Method>;
  for (const name of ['read', 'run', 'commit'] as const) {
    const original = prototype[name];
    const spy = vi.spyOn(prototype, name).mockImplementation(async function (this: unknown, sent, ...rest) {
      count.statements += Array.isArray(sent) ? sent.length : 1;
      count.inFlight += 1;
      return original.call(this, sent, ...rest).finally(() => (count.inFlight -= 1));
    });
    onTestFinished(() => spy.mockRestore());
  }
  const query = Reflect.get(pg.Client.prototype, 'query') as unknown as Method;
  const keepalives = vi.spyOn(pg.Client.prototype, 'query').mockImplementation(function (this: unknown, sent, ...rest) {
    if (sent === KEEPALIVE) count.statements += 1;
    return query.call(this, sent, ...rest) as never;
  });
  onTestFinished(() => keepalives.mockRestore());
  return count;
}

async function untilQuiet(count: { readonly inFlight: number }): Promise<void> {
  let quietTurns = 0;
  await until(() => {
    quietTurns = count.inFlight === 0 ? quietTurns + 1 : 0;
    return quietTurns > TURNS;
  });
}

onlyOn('postgres', (dialect) => {
  test('an idle engine sends at most three statements in ten seconds', async () => {
    const random = vi.spyOn(Math, 'random').mockReturnValue(0.5);
    onTestFinished(() => random.mockRestore());
    const clock = new ManualClock(Date.now());
    // With more connections, those that the launch has opened would be tested at each use: they are closed in real time.
    const { DBOS } = await createEngine(dialect, { systemDatabasePoolSize: 1 }, clock.settings);
    DBOS.registerWorkflow(async () => {}, { name: 'workflow' });
    await DBOS.launch();
    await DBOS.registerQueue('mail', { concurrency: 5 });
    const count = countStatements();
    // For a while an engine looks for what it may have left behind itself.
    clock.advance(ORPHANS_MS);
    await untilQuiet(count);
    count.statements = 0;

    for (let passedMs = 0; passedMs < PASSED_MS; passedMs += STEP_MS) {
      clock.advance(STEP_MS);
      await untilQuiet(count);
    }

    expect(count.statements).toBeGreaterThan(0);
    expect(count.statements).toBeLessThanOrEqual((PASSED_MS / 10_000) * 3);
  }, 120_000);
});
