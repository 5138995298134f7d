// What an engine costs the database while it has nothing to do.
import pg from 'pg';
import { expect, onTestFinished, test, vi } from 'vitest';
import type { DBOSInstance } from '../../../src/faces/library/dbos.js';
import { StatementSender } from '../../../src/database/postgres/statement-sender.js';
import { hasPush, onlyOn } from '../../rig/dialects.js';
import { createEngine } from '../../rig/engines.js';
import { ManualClock, until } from '../../rig/manual-clock.js';

const STEP_MS = 2500;
const PASSED_MS = 600_000;
const SETTLE_MS = 60_000;
const ENGINES = 3;
/** What the listener sends on its own connection. */
const KEEPALIVE = 'SELECT 1';
/** Turns of the event loop between two statements of a service. */
const TURNS = 10;

type Method = (this: unknown, sent: unknown, ...rest: unknown[]) => Promise<unknown>;

/** Counts the statements of all system databases, with those that a commit starts with, and says when none is in flight. */
function countStatements() {
  const count = { statements: 0, inFlight: 0, byText: new Map<string, number>() };
  const note = (text: string): void => {
    count.statements += 1;
    count.byText.set(text, (count.byText.get(text) ?? 0) + 1);
  };
  const send = Reflect.get(StatementSender.prototype, 'send');
  const spy = vi.spyOn(StatementSender.prototype, 'send').mockImplementation(async function (this: unknown, ...sent) {
    for (const { strings } of sent[1]) note(strings.join('?').replaceAll(/\s+/g, ' ').slice(0, 120));
    count.inFlight += 1;
    return send.call(this, ...sent).finally(() => (count.inFlight -= 1));
  });
  onTestFinished(() => spy.mockRestore());
  const query = Reflect.get(pg.Client.prototype, 'query') as unknown as Method;
  const keepalives = vi.spyOn(pg.Client.prototype, 'query').mockImplementation(function (this: unknown, sent, ...rest) {
    if (sent === KEEPALIVE) note(KEEPALIVE);
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
  // Behind a pooler in transaction mode engines poll.
  test.skipIf(!hasPush)(
    'idle engines send at most three statements in ten seconds each, and none because of each other',
    async () => {
      const random = vi.spyOn(Math, 'random').mockReturnValue(0.5);
      onTestFinished(() => random.mockRestore());
      const clock = new ManualClock(Date.now());
      const systemDatabaseUrl = await dialect.createURL();
      const engines = await Promise.all(Array.from({ length: ENGINES }, () => createIdle(clock, systemDatabaseUrl)));
      await engines[0]?.registerQueue('mail', { concurrency: 5 });
      const count = countStatements();
      // What the launches have caused.
      clock.advance(SETTLE_MS);
      await untilQuiet(count);
      count.statements = 0;
      count.byText.clear();

      for (let passedMs = 0; passedMs < PASSED_MS; passedMs += STEP_MS) {
        clock.advance(STEP_MS);
        await untilQuiet(count);
      }

      expect(count.statements).toBeGreaterThan(0);
      const counted = [...count.byText].map(([text, times]) => `${times} ${text}`).join('\n');
      expect(count.statements, counted).toBeLessThanOrEqual((PASSED_MS / 10_000) * 3 * ENGINES);
    },
    120_000,
  );

  async function createIdle(clock: ManualClock, systemDatabaseUrl: string): Promise<DBOSInstance> {
    // With more connections, those that the launch has opened would be tested at each use: they are closed in real time.
    const config = { systemDatabaseUrl, systemDatabasePoolSize: 1 };
    const { DBOS } = await createEngine(dialect, config, clock.settings);
    DBOS.registerWorkflow(async () => {}, { name: 'workflow' });
    await DBOS.launch();
    return DBOS;
  }
});
