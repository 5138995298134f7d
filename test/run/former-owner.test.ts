// A process that was taken for dead while it could not know: when it continues, it begins nothing of what is no longer its.
import { expect, test } from 'vitest';
import type { DBOSInstance } from '../../src/index.js';
import type { Database } from '../../src/database/database.js';
import { forEachDialect, hasPush, onlyOn } from '../rig/dialects.js';
import { createEngine, engineOf } from '../rig/engines.js';
import { ManualClock, until } from '../rig/manual-clock.js';
import { startProxy } from '../rig/proxy.js';
import { type Halt, newHalt } from './succession.js';

const MINUTE = 60_000;
const config = { applicationVersion: 'v1', executorID: 'one', useListenNotify: false };

/** A workflow that sleeps and then runs a step. Notes who ran the step. */
function registerSleeper(DBOS: DBOSInstance, name: string, ran: string[]) {
  return DBOS.registerWorkflow(
    async () => {
      await DBOS.sleep(MINUTE);
      await DBOS.runStep(() => Promise.resolve(void ran.push(name)), { name: 'charge' });
    },
    { name: 'sleeper' },
  );
}

forEachDialect((dialect) => {
  test('a former owner that wakes up after its lease has ended begins no step whose checkpoint is durable', async () => {
    const ran: string[] = [];
    const clock = new ManualClock();
    const { DBOS: first, url } = await createEngine(dialect, config, clock.settings);
    const sleeper = registerSleeper(first, 'first', ran);
    await first.launch();
    const handle = await first.startWorkflow(sleeper, { workflowID: 'w' })();
    await until(async () => (await first.listWorkflowSteps('w'))?.length === 1);
    // Later by its own clock, it takes over what the first owns and ends it.
    const later = new ManualClock(clock.now() + 10 * MINUTE);
    const { DBOS: second } = await createEngine(dialect, { ...config, systemDatabaseUrl: url }, later.settings);
    registerSleeper(second, 'second', ran);
    await second.launch();
    await second.retrieveWorkflow('w').getResult();

    clock.advance(10 * MINUTE);

    await handle.getResult();
    await first.shutdown();
    expect(ran).toEqual(['second']);
  });

  test('a former owner that has renewed its lease begins no step before it has looked', async () => {
    const ran: string[] = [];
    const halt = newHalt();
    const register = (DBOS: DBOSInstance, name: string) =>
      DBOS.registerWorkflow(
        async () => {
          if (name === 'first') await halt.here();
          await DBOS.runStep(() => Promise.resolve(void ran.push(name)), { name: 'charge' });
        },
        { name: 'charging' },
      );
    const clock = new ManualClock();
    const { DBOS: first, url } = await createEngine(dialect, config, clock.settings);
    const charging = register(first, 'first');
    await first.launch();
    const handle = await first.startWorkflow(charging, { workflowID: 'w' })();
    await halt.reached;
    const later = new ManualClock(clock.now() + 10 * MINUTE);
    const { DBOS: second } = await createEngine(dialect, { ...config, systemDatabaseUrl: url }, later.settings);
    register(second, 'second');
    await second.launch();
    await second.retrieveWorkflow('w').getResult();

    // Its heartbeat comes before the step, and the check of what it owns after it.
    const { ownership, runtime } = engineOf(first);
    Object.assign(ownership, { verify: () => Promise.resolve() });
    clock.advance(10 * MINUTE);
    await runtime.lease.renew();
    halt.release();

    await handle.getResult();
    expect(ran).toEqual(['second']);
  });

  test('an owner that slept longer than its lease continues if no other took over', async () => {
    const ran: string[] = [];
    const clock = new ManualClock();
    const { DBOS } = await createEngine(dialect, config, clock.settings);
    const sleeper = registerSleeper(DBOS, 'first', ran);
    await DBOS.launch();
    const handle = await DBOS.startWorkflow(sleeper, { workflowID: 'w' })();
    await clock.untilArmed(MINUTE);

    clock.advance(10 * MINUTE);

    await handle.getResult();
    expect(ran).toEqual(['first']);
  });

  test('a former owner begins no further attempt of a step after a pause', async () => {
    const attempts: string[] = [];
    const register = (DBOS: DBOSInstance, name: string) =>
      DBOS.registerWorkflow(
        () =>
          DBOS.runStep(
            async () => {
              attempts.push(name);
              if (name === 'first') throw new Error('again');
              return name;
            },
            { name: 'charge', retriesAllowed: true, intervalSeconds: 60 },
          ),
        { name: 'retrying' },
      );
    const clock = new ManualClock();
    const { DBOS: first, url } = await createEngine(dialect, config, clock.settings);
    const retrying = register(first, 'first');
    await first.launch();
    const handle = await first.startWorkflow(retrying, { workflowID: 'w' })();
    await clock.untilArmed(MINUTE);
    // Later by its own clock: the next attempt is due.
    const later = new ManualClock(clock.now() + 10 * MINUTE);
    const { DBOS: second } = await createEngine(dialect, { ...config, systemDatabaseUrl: url }, later.settings);
    register(second, 'second');
    await second.launch();
    await second.retrieveWorkflow('w').getResult();

    clock.advance(10 * MINUTE);

    expect(await handle.getResult()).toBe('second');
    expect(attempts).toEqual(['first', 'second']);
  });

  test('a former owner begins no attempt after a look at those of earlier runs that took long', async () => {
    const attempts: string[] = [];
    const looking = newHalt();
    const halt = newHalt();
    const register = (DBOS: DBOSInstance, name: string) =>
      DBOS.registerWorkflow(
        async () => {
          if (name === 'earlier') return halt.here();
          if (name === 'first') holdNextRead(engineOf(DBOS).runtime.database, looking);
          const charge = () => Promise.resolve(void attempts.push(name));
          return DBOS.runStep(charge, { name: 'charge', retriesAllowed: true });
        },
        { name: 'charging' },
      );
    const { DBOS: earlier, url } = await createEngine(dialect, config);
    const charging = register(earlier, 'earlier');
    await earlier.launch();
    await earlier.startWorkflow(charging, { workflowID: 'w' })();
    await halt.reached;
    await earlier.shutdown();
    const clock = new ManualClock(Date.now() + MINUTE);
    const { DBOS: first } = await createEngine(dialect, { ...config, systemDatabaseUrl: url }, clock.settings);
    register(first, 'first');
    await first.launch();
    await looking.reached;
    const later = new ManualClock(clock.now() + 10 * MINUTE);
    const { DBOS: second } = await createEngine(dialect, { ...config, systemDatabaseUrl: url }, later.settings);
    register(second, 'second');
    await second.launch();
    await second.retrieveWorkflow('w').getResult();

    clock.advance(10 * MINUTE);
    looking.release();

    await first.retrieveWorkflow('w').getResult();
    await first.shutdown();
    expect(attempts).toEqual(['second']);
  });
});

/** Holds the next query of the database back until it is let go. */
function holdNextRead(database: Database, hold: Halt): void {
  const read = database.read.bind(database);
  database.read = async (statement) => {
    database.read = read;
    await hold.here();
    return read(statement);
  };
}

onlyOn('postgres', (dialect) => {
  test.skipIf(!hasPush)('a former owner that has lost its lock begins no step before it has looked', async () => {
    const ran: string[] = [];
    const halt = newHalt();
    const proxy = await startProxy(await dialect.createURL());
    const register = (DBOS: DBOSInstance, name: string) =>
      DBOS.registerWorkflow(
        async () => {
          if (name === 'first') await halt.here();
          await DBOS.runStep(() => Promise.resolve(void ran.push(name)), { name: 'charge' });
          return name;
        },
        { name: 'charging' },
      );
    // Time stands still, so that it does not listen again.
    const clock = new ManualClock();
    const pushed = { ...config, useListenNotify: true };
    const { DBOS: first } = await createEngine(dialect, { ...pushed, systemDatabaseUrl: proxy.url }, clock.settings);
    const charging = register(first, 'first');
    await first.launch();
    const handle = await first.startWorkflow(charging, { workflowID: 'w' })();
    await halt.reached;
    proxy.cut();
    proxy.restore();
    const { DBOS: second } = await createEngine(dialect, { ...pushed, systemDatabaseUrl: proxy.url });
    register(second, 'second');
    await second.launch();
    await second.retrieveWorkflow('w').getResult();

    halt.release();

    expect(await handle.getResult()).toBe('second');
    expect(ran).toEqual(['second']);
  });
});
