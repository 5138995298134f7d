import { existsSync, rmSync } from 'node:fs';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { type Clock, systemClock } from '../../src/kernel/base/clock.js';
import type { DLogger } from '../../src/index.js';
import { locateDatabase } from '../../src/kernel/base/url.js';
import { silentLogger } from '../../src/kernel/base/log.js';
import { render } from '../../src/kernel/sql/sql.js';
import type { Database } from '../../src/database/database.js';
import { PostgresDatabase } from '../../src/database/postgres/postgres-database.js';
import { SqliteDatabase } from '../../src/database/sqlite/sqlite-database.js';
import { forEachDialect, onlyOn } from '../rig/dialects.js';
import { createEngine } from '../rig/engines.js';
import { ManualClock, until } from '../rig/manual-clock.js';
import { createGenerations, failureOf, newHalt } from './succession.js';

function collectingLogger(): { logger: DLogger; warnings: string[]; errors: unknown[] } {
  const warnings: string[] = [];
  const errors: unknown[] = [];
  const logger = {
    ...silentLogger,
    warn: (entry: unknown) => void warnings.push(String(entry)),
    error: (entry: unknown) => void errors.push(entry),
  };
  return { logger, warnings, errors };
}

/** Calls `before` ahead of the first commit that holds this text, and waits for it. */
function onCommitOf(text: string, before: () => Promise<void>): void {
  let isOver = false;
  for (const { prototype } of [PostgresDatabase, SqliteDatabase] as { prototype: Database }[]) {
    // eslint-disable-next-line @typescript-eslint/unbound-method -- Given its object when it is called.
    const original = prototype.commit.bind.bind(prototype.commit) as (database: Database) => Database['commit'];
    const spy = vi.spyOn(prototype, 'commit').mockImplementation(async function (this: Database, statements) {
      const content = statements.map((statement) => render(statement, this.dialect).values.map(String).join()).join();
      if (!isOver && content.includes(text)) {
        isOver = true;
        await before();
      }
      return original(this)(statements);
    });
    onTestFinished(() => spy.mockRestore());
  }
}

forEachDialect((dialect) => {
  describe('launch', () => {
    test('makes the engine ready, and the second time does nothing', async () => {
      const { DBOS } = await createEngine(dialect);
      const initialized: string[] = [];
      DBOS.registerLifecycleCallback({ initialize: async () => void initialized.push('once') });
      expect(DBOS.isInitialized()).toBe(false);
      await Promise.all([DBOS.launch(), DBOS.launch()]);

      await DBOS.launch();

      expect(DBOS.isInitialized()).toBe(true);
      expect(initialized).toEqual(['once']);
    });

    test('makes handles from before a shutdown work again', async () => {
      const { DBOS } = await createEngine(dialect, { applicationVersion: 'v1' });
      const halt = newHalt();
      const workflow = DBOS.registerWorkflow(
        async (x: number) => {
          await halt.here();
          return x;
        },
        { name: 'workflow' },
      );
      await DBOS.launch();
      await DBOS.registerQueue('q');
      const started = await DBOS.startWorkflow(workflow)(1);
      await halt.reached;
      const delayed = await DBOS.startWorkflow(workflow, { queueName: 'q', enqueueOptions: { delaySeconds: 0.1 } })(2);
      const retrieved = DBOS.retrieveWorkflow<number>(started.workflowID);
      await DBOS.shutdown();
      halt.release();

      await DBOS.launch();

      expect(await started.getResult()).toBe(1);
      expect(await retrieved.getResult()).toBe(1);
      expect(await delayed.getResult()).toBe(2);
      expect((await started.getStatus())?.status).toBe('SUCCESS');
      expect(await delayed.getWorkflowInputs()).toEqual([2]);
      expect((await delayed.history().next()).done).toBe(false);
    });

    test('is not needed for the version, the executor and a sleep outside of workflows', async () => {
      const { DBOS, url } = await createEngine(dialect, { applicationVersion: 'v7', executorID: 'e7' });
      const identity = (): string[] => [DBOS.applicationVersion, DBOS.executorID];

      expect(identity()).toEqual(['v7', 'e7']);
      await DBOS.sleep(1);
      await DBOS.sleepSeconds(0.001);
      await expect(DBOS.sleep(NaN)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
      await DBOS.launch();
      await DBOS.shutdown();
      expect(identity()).toEqual(['v7', 'e7']);
      DBOS.setConfig({ name: 'test', systemDatabaseUrl: url });
      expect(identity()).toEqual(['', 'local']);
      await DBOS.sleep(1);
    });

    test.each([
      [3 * 3_600_000, 'The local clock is 10800 s ahead of'],
      [-3 * 3_600_000, 'The local clock is 10800 s behind'],
      [2000, undefined],
    ])('warns of a clock that is %d ms ahead of the database: %s', async (aheadMs, expected) => {
      const warnings: string[] = [];
      const logger = { ...silentLogger, warn: (entry: unknown) => void warnings.push(String(entry)) };
      const clock: Clock = { ...systemClock, now: () => Date.now() + aheadMs };
      const { DBOS } = await createEngine(dialect, { logger }, { clock, databaseNow: () => Date.now() });

      await DBOS.launch();

      expect(warnings).toEqual(expected === undefined ? [] : [expect.stringContaining(expected)]);
    });

    test('closes the door to another configuration until the shutdown', async () => {
      const { DBOS, url } = await createEngine(dialect);
      const config = { name: 'other', systemDatabaseUrl: url, logger: silentLogger };
      const launching = DBOS.launch();

      expect(() => DBOS.setConfig(config)).toThrow('Cannot call DBOS.setConfig after DBOS.launch()');
      await launching;
      expect(() => DBOS.setConfig(config)).toThrow('Cannot call DBOS.setConfig after DBOS.launch()');
      await DBOS.shutdown();
      expect(() => DBOS.setConfig(config)).not.toThrow();
    });

    test('can be tried again when it has failed', async () => {
      const { DBOS } = await createEngine(dialect);
      let attempts = 0;
      DBOS.registerLifecycleCallback({
        async initialize() {
          attempts += 1;
          if (attempts === 1) throw new Error('plugin failed');
        },
      });
      await expect(DBOS.launch()).rejects.toThrow('plugin failed');
      expect(DBOS.isInitialized()).toBe(false);
      const workflow = DBOS.registerWorkflow(async () => 1, { name: 'registered after the failure' });

      await DBOS.launch();

      expect(await workflow()).toBe(1);
    });

    test('is possible again after a shutdown, with what was registered before and since', async () => {
      const { DBOS } = await createEngine(dialect);
      const old = DBOS.registerWorkflow(async () => 'old', { name: 'old' });
      await DBOS.launch();
      await DBOS.shutdown();
      const added = DBOS.registerWorkflow(async () => 'added', { name: 'added' });

      await DBOS.launch();

      expect([await old(), await added()]).toEqual(['old', 'added']);
    });

    test('warns when another version of the application is the latest', async () => {
      const { logger, warnings } = collectingLogger();
      const { DBOS: older, url } = await createEngine(dialect, { applicationVersion: 'v1', logger });
      await older.launch();
      const { DBOS: newer } = await createEngine(dialect, { applicationVersion: 'v2', systemDatabaseUrl: url });
      await newer.launch();
      await older.shutdown();
      expect(warnings).toEqual([]);

      await older.launch();

      expect(warnings).toEqual(['This process runs application version "v1", but the latest is "v2".']);
    });
  });

  describe('shutdown', () => {
    test('may be called twice, at the same time, and unlaunched', async () => {
      const { DBOS } = await createEngine(dialect);
      await DBOS.shutdown();
      await DBOS.launch();

      await Promise.all([DBOS.shutdown(), DBOS.shutdown()]);
      await DBOS.shutdown();

      expect(DBOS.isInitialized()).toBe(false);
    });

    test('during a launch waits for it and then ends it', async () => {
      const { DBOS } = await createEngine(dialect);
      const launching = DBOS.launch();

      await DBOS.shutdown();

      await launching;
      expect(DBOS.isInitialized()).toBe(false);
    });

    test('that is under way keeps a launch from beginning', async () => {
      const { DBOS } = await createEngine(dialect);
      await DBOS.launch();
      const stopping = DBOS.shutdown();

      await expect(DBOS.launch()).rejects.toThrow('DBOS is shutting down');
      await stopping;
      await DBOS.launch();
      expect(DBOS.isInitialized()).toBe(true);
    });

    test.each([-1, NaN, 2_147_483_648])('refuses to wait for %d ms', async (workflowCompletionTimeoutMS) => {
      const { DBOS } = await createEngine(dialect);
      await DBOS.launch();

      await expect(DBOS.shutdown({ workflowCompletionTimeoutMS })).rejects.toThrow(
        'options.workflowCompletionTimeoutMS must be',
      );
      expect(DBOS.isInitialized()).toBe(true);
    });

    test('forgets all registrations if wanted', async () => {
      const { DBOS } = await createEngine(dialect);
      const calls: string[] = [];
      DBOS.registerLifecycleCallback({ initialize: async () => void calls.push('initialize') });
      DBOS.registerWorkflow(async () => 1, { name: 'workflow' });
      await DBOS.launch();
      await DBOS.shutdown({ deregister: true });
      const again = DBOS.registerWorkflow(async () => 2, { name: 'workflow' });

      await DBOS.launch();

      expect(await again()).toBe(2);
      expect(calls).toEqual(['initialize']);
    });

    test('waits for running workflows as long as it may', async () => {
      const clock = new ManualClock();
      const { DBOS } = await createEngine(dialect, {}, clock.settings);
      const halt = newHalt();
      const workflow = DBOS.registerWorkflow(
        async () => {
          await DBOS.runStep(() => halt.here());
          return 'ended in time';
        },
        { name: 'workflow' },
      );
      await DBOS.launch();
      const handle = await DBOS.startWorkflow(workflow)();
      await halt.reached;
      const stopping = DBOS.shutdown({ workflowCompletionTimeoutMS: 4_321 });
      await clock.untilArmed(4_321);
      expect(DBOS.isInitialized()).toBe(false);

      halt.release();

      expect(await handle.getResult()).toBe('ended in time');
      await stopping;
      expect(clock.isArmed(4_321)).toBe(false);
    });

    test('lets a workflow that ends in time give a handle', async () => {
      const { DBOS } = await createEngine(dialect);
      const halt = newHalt();
      const child = DBOS.registerWorkflow(async () => 1, { name: 'child' });
      const parent = DBOS.registerWorkflow(
        async () => {
          await halt.here();
          return DBOS.startWorkflow(child)();
        },
        { name: 'parent' },
      );
      await DBOS.launch();
      const handle = await DBOS.startWorkflow(parent, { workflowID: 'p' })();
      await halt.reached;
      const stopping = DBOS.shutdown({ workflowCompletionTimeoutMS: 60_000 });

      halt.release();

      expect((await handle.getResult()).workflowID).toBe('p-0');
      await stopping;
    });

    test('hands back what has not ended in time, and the next launch continues it', async () => {
      const clock = new ManualClock();
      const { logger, warnings } = collectingLogger();
      const { first, second } = await createGenerations(dialect, { logger }, clock.settings);
      const halt = newHalt();
      const calls: string[] = [];
      const register = (DBOS: typeof first, name: string) =>
        DBOS.registerWorkflow(
          async () => {
            await DBOS.runStep(async () => calls.push(`${name}: begun`), { name: 'begin' });
            if (DBOS === first) await halt.here();
            return name;
          },
          { name: 'workflow' },
        );
      const workflow = register(first, 'first');
      register(second, 'second');
      await first.launch();
      await first.startWorkflow(workflow, { workflowID: 'w' })();
      await halt.reached;
      const stopping = first.shutdown({ workflowCompletionTimeoutMS: 4_321 });
      await clock.untilArmed(4_321);
      clock.advance(4_321);
      await stopping;

      await second.launch();

      expect(await second.retrieveWorkflow('w').getResult()).toBe('second');
      expect(calls).toEqual(['first: begun']);
      expect(warnings.join()).toContain('1 workflow(s) still running');
      expect(warnings.join()).toContain(': w');
      expect((await second.getWorkflowStatus('w'))?.recoveryAttempts).toBe(1);
    });

    test('hands back a child that was on its way, and counts no attempt of it', async () => {
      const { logger, warnings } = collectingLogger();
      const { first, second } = await createGenerations(dialect, { logger });
      const halt = newHalt();
      const register = (DBOS: typeof first) => {
        const child = DBOS.registerWorkflow(
          async () => {
            if (DBOS === first) await halt.here();
            return 'done';
          },
          { name: 'child' },
        );
        const parent = DBOS.registerWorkflow(
          async () => (await DBOS.startWorkflow(child, { workflowID: 'child' })()).getResult(),
          { name: 'parent' },
        );
        return parent;
      };
      const parent = register(first);
      register(second);
      await first.launch();
      let stopping: Promise<void> | undefined;
      // When the child is about to be written, the shutdown comes in between.
      onCommitOf('child', async () => {
        stopping = first.shutdown();
        await until(() => warnings.some((warning) => warning.includes('1 workflow(s) still running')));
      });

      await first.startWorkflow(parent, { workflowID: 'parent' })();
      await until(() => stopping !== undefined);
      await stopping;

      await second.launch();
      expect(await second.retrieveWorkflow('parent').getResult()).toBe('done');
      expect((await second.getWorkflowStatus('child'))?.recoveryAttempts).toBe(1);
    });

    test('rejects those who wait for a workflow that is running here', async () => {
      const { DBOS } = await createEngine(dialect);
      const halt = newHalt();
      const workflow = DBOS.registerWorkflow(() => DBOS.runStep(() => halt.here()), { name: 'workflow' });
      await DBOS.launch();
      const handle = await DBOS.startWorkflow(workflow)();
      await halt.reached;
      const waiting = failureOf(handle.getResult());

      await DBOS.shutdown();

      expect(await waiting).toMatchObject({ code: 'DATABASE_CLOSED' });
    });

    test('rejects those who wait for a workflow that is running elsewhere', async () => {
      const { DBOS } = await createEngine(dialect);
      await DBOS.launch();
      const waiting = [
        failureOf(DBOS.retrieveWorkflow('elsewhere').getResult()),
        failureOf(DBOS.getResult('elsewhere', 3600)),
        failureOf(DBOS.waitFirst([DBOS.retrieveWorkflow('elsewhere')])),
      ];

      await DBOS.shutdown();

      for (const error of await Promise.all(waiting)) expect(error).toMatchObject({ code: 'DATABASE_CLOSED' });
    });

    test('leaves no handle waiting that is asked only afterwards', async () => {
      const { DBOS } = await createEngine(dialect);
      await DBOS.launch();
      const handle = DBOS.retrieveWorkflow('elsewhere');
      await DBOS.shutdown();

      await expect(handle.getResult()).rejects.toMatchObject({ code: 'DATABASE_CLOSED' });
    });

    test('lets the code that was left behind do no more', async () => {
      const { DBOS } = await createEngine(dialect);
      const halt = newHalt();
      const ends: unknown[] = [];
      const workflow = DBOS.registerWorkflow(
        async () => {
          try {
            await DBOS.runStep(() => halt.here());
            await DBOS.runStep(async () => ends.push('must not run'));
          } catch (error) {
            ends.push((error as { code: string }).code);
            throw error;
          }
        },
        { name: 'workflow' },
      );
      await DBOS.launch();
      await DBOS.startWorkflow(workflow)();
      await halt.reached;
      await DBOS.shutdown();

      halt.release();

      for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setImmediate(resolve));
      expect(ends).toEqual([]);
    });
  });

  describe('lifecycle callbacks', () => {
    test('are called once at launch and at shutdown, and log what they serve at launch and on demand', async () => {
      const { DBOS } = await createEngine(dialect);
      const calls: unknown[] = [];
      const callback = {
        initialize: async () => void calls.push(['initialize', DBOS.isInitialized()]),
        destroy: async () => void calls.push('destroy'),
        logRegisteredEndpoints: () => void calls.push('log'),
      };
      DBOS.registerLifecycleCallback(callback);
      DBOS.registerLifecycleCallback(callback);
      DBOS.registerLifecycleCallback({});
      await DBOS.launch();
      DBOS.logRegisteredEndpoints();

      await DBOS.shutdown();

      expect(calls).toEqual([['initialize', true], 'log', 'log', 'destroy']);
    });

    test('that fail at shutdown are logged and keep nothing from ending', async () => {
      const { logger, errors } = collectingLogger();
      const { DBOS } = await createEngine(dialect, { logger });
      const calls: string[] = [];
      DBOS.registerLifecycleCallback({ destroy: async () => Promise.reject(new Error('stuck')) });
      DBOS.registerLifecycleCallback({
        destroy() {
          throw new Error('stuck at once');
        },
      });
      DBOS.registerLifecycleCallback({ destroy: async () => void calls.push('destroyed') });
      await DBOS.launch();

      await DBOS.shutdown();

      expect(calls).toEqual(['destroyed']);
      expect(errors.toSorted()).toEqual(['stuck', 'stuck at once']);
      await DBOS.launch();
      expect(DBOS.isInitialized()).toBe(true);
    });
  });

  test('migrate brings a database to its version without launching', async () => {
    const url = await dialect.createURL({ isMigrated: false });
    const { DBOS } = await createEngine(dialect, { systemDatabaseUrl: url, runMigrations: false });
    await expect(DBOS.launch()).rejects.toThrow();

    await DBOS.migrate(url);

    await DBOS.launch();
    expect(DBOS.isInitialized()).toBe(true);
  });
});

onlyOn('sqlite', (dialect) => {
  test('an engine whose file is deleted says so, acknowledges nothing more, and stops', async () => {
    const errors: string[] = [];
    const logger = { ...silentLogger, error: (entry: unknown) => void errors.push(String(entry)) };
    const { DBOS, url } = await createEngine(dialect, { logger, shutdownTimeoutMs: 1000 });
    const workflow = DBOS.registerWorkflow(async (n: number) => DBOS.runStep(async () => n), { name: 'workflow' });
    await DBOS.launch();
    expect(await workflow(1)).toBe(1);
    const { path } = locateDatabase(url) as { readonly path: string };

    for (const suffix of ['', '-wal', '-shm']) rmSync(path + suffix, { force: true });
    const late = DBOS.startWorkflow(workflow, { workflowID: 'late' })(2);

    await expect(late).rejects.toThrow();
    await vi.waitUntil(() => !DBOS.isInitialized(), { timeout: 10_000 });
    expect(errors[0]).toContain(`Shutting down: The SQLite file "${path}" was deleted or replaced`);
    expect(existsSync(path)).toBe(false);
  });
});
