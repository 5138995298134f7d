// An engine whose database goes away: it ends when it is told to, and what it has promised holds when the database is
// back.
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { type Sql, sql, table } from '../../src/kernel/sql/sql.js';
import { PostgresDatabase } from '../../src/database/postgres/postgres-database.js';
import { forEachDialect, onlyOn, type TestDialect } from '../rig/dialects.js';
import { ManualClock, until } from '../rig/manual-clock.js';
import { type Proxy, startProxy } from '../rig/proxy.js';
import { inTables, keepingLogger, MINUTE, setup, START } from '../features/schedule/schedule-scene.js';
import { failureOf } from './succession.js';
import { engineOf } from '../rig/engines.js';

type Method = 'run' | 'read' | 'commit' | 'transaction';

/** Calls `before` ahead of each call of the method that is about this text, and `after` when it is done. */
function around(
  method: Method,
  text: string,
  { before, after }: { readonly before?: () => void; readonly after?: () => void },
): void {
  // eslint-disable-next-line @typescript-eslint/unbound-method -- Given its object when it is called.
  const original = PostgresDatabase.prototype[method] as (this: PostgresDatabase, argument: never) => Promise<never>;
  const spy = vi.spyOn(PostgresDatabase.prototype, method) as unknown as {
    mockImplementation(f: (this: PostgresDatabase, argument: Sql) => Promise<never>): { mockRestore(): void };
  };
  const mocked = spy.mockImplementation(async function (argument) {
    const isMeant = method === 'transaction' || JSON.stringify(argument).includes(text);
    if (isMeant) before?.();
    const answer = await original.call(this, argument as never);
    if (isMeant) after?.();
    return answer;
  });
  onTestFinished(() => mocked.mockRestore());
}

/** An engine behind a proxy, launched, on a clock that is moved by hand. Nobody pushes anything to it. */
async function setScene(dialect: TestDialect) {
  const proxy: Proxy = await startProxy(await dialect.createURL());
  const clock = new ManualClock(START);
  const { logger, lines } = keepingLogger();
  const config = {
    systemDatabaseUrl: proxy.url,
    logger,
    useListenNotify: false,
    schedulerPollingIntervalMs: 24 * 60 * MINUTE,
  };
  const { first, runs } = await setup(dialect, { config, settings: [clock.settings] });
  await first.DBOS.launch();
  /** Lets time pass bit by bit until the condition holds. */
  const passUntil = (condition: () => boolean) =>
    until(() => {
      clock.advance(5);
      return condition();
    });
  const isRetrying = () => lines.some((line) => line.includes('Retrying until it succeeds'));
  return { ...first, proxy, clock, runs, passUntil, isRetrying };
}

onlyOn('postgres', (dialect) => {
  describe('shutdown while the database is away', () => {
    test('ends the attempts to fire a schedule', async () => {
      const { DBOS, tick, proxy, clock, passUntil, isRetrying } = await setScene(dialect);
      await DBOS.createSchedule({ scheduleName: 's', workflowFn: tick, schedule: '* * * * *' });
      around('commit', 'last_fired_at', { before: () => proxy.cut() });
      clock.advance(MINUTE);
      await passUntil(isRetrying);

      await DBOS.shutdown();

      expect(DBOS.isInitialized()).toBe(false);
    });

    test('ends the attempts to give back what a claim may have taken', async () => {
      const { DBOS, tick, proxy, passUntil, isRetrying } = await setScene(dialect);
      await DBOS.registerQueue('q');
      around('commit', 'unversioned AS', { before: () => proxy.cut() });
      await DBOS.startWorkflow(tick, { queueName: 'q' })(new Date());
      await passUntil(isRetrying);

      await DBOS.shutdown();

      expect(DBOS.isInitialized()).toBe(false);
    });

    test('ends the attempts to say that arguments cannot be read, and nothing is lost', async () => {
      const { DBOS, tick, proxy, passUntil, isRetrying } = await setScene(dialect);
      await DBOS.startWorkflow(tick, { queueName: 'q', workflowID: 'w' })(new Date());
      await inTables(DBOS, sql`UPDATE ${table('workflow_status')} SET inputs = 'no JSON'`);
      const isAway = { before: () => proxy.cut() };
      for (const method of ['run', 'commit'] as const)
        around(method, 'SET status = r.status, output = r.output', isAway);
      await DBOS.registerQueue('q');
      await passUntil(isRetrying);

      let isEnded = false;
      const ending = DBOS.shutdown().then(() => (isEnded = true));
      await passUntil(() => isEnded);
      await ending;

      vi.restoreAllMocks();
      proxy.restore();
      await DBOS.launch();
      expect((await DBOS.getWorkflowStatus('w'))?.status).toBe('PENDING');
      const engine = engineOf(DBOS);
      await engine.liveness.recoverExecutor(engine.runtime.config.executorID);
      await expect(DBOS.retrieveWorkflow('w').getResult()).rejects.toThrow(/JSON/);
    });

    test('ends the attempts to read a schedule that was changed, and says so', async () => {
      const { DBOS, tick, proxy, passUntil, isRetrying } = await setScene(dialect);
      around('transaction', '', { after: () => proxy.cut() });
      const creating = failureOf(DBOS.createSchedule({ scheduleName: 's', workflowFn: tick, schedule: '* * * * *' }));
      await passUntil(isRetrying);

      await DBOS.shutdown();

      expect(await creating).toMatchObject({ code: 'DATABASE_CLOSED' });
    });
  });

  test('a schedule is in force when its creation has returned, although the database was away meanwhile', async () => {
    const { DBOS, tick, proxy, clock, runs, passUntil, isRetrying } = await setScene(dialect);
    around('transaction', '', { after: () => proxy.cut() });
    let isCreated = false;

    const creating = DBOS.createSchedule({ scheduleName: 's', workflowFn: tick, schedule: '* * * * *' });
    void creating.then(() => (isCreated = true));
    await passUntil(() => isRetrying() || isCreated);
    expect(isCreated).toBe(false);
    proxy.restore();
    await passUntil(() => isCreated);
    clock.advance(MINUTE);

    await until(() => runs.length > 0);
  });
});

forEachDialect((dialect) => {
  test('shutdown ends the making up for missed runs, and the next launch goes on with it', async () => {
    const clock = new ManualClock(START);
    const { logger, lines } = keepingLogger();
    const { first, second, dues } = await setup(dialect, {
      config: { logger },
      settings: [clock.settings, clock.settings],
    });
    await first.DBOS.launch();
    await first.DBOS.createSchedule({
      scheduleName: 's',
      workflowFn: first.tick,
      schedule: '* * * * *',
      options: { automaticBackfill: true },
    });
    clock.advance(MINUTE);
    await until(() => dues().length === 1);
    await first.DBOS.shutdown();
    clock.advance(250 * MINUTE);
    await first.DBOS.launch();
    await until(() => lines.some((line) => line.includes('has missed 250 runs')));

    await first.DBOS.shutdown();

    expect(lines.join('\n')).not.toContain('of 250 done');
    await second.DBOS.launch();
    await until(() => new Set(dues()).size === 251);
    const [counted] = await inTables(second.DBOS, sql`SELECT COUNT(*) AS number FROM ${table('workflow_status')}`);
    expect(Number(counted?.['number'])).toBe(251);
  });
});
