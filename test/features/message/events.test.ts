import { describe, expect, test } from 'vitest';
import { sql, table } from '../../../src/kernel/sql/sql.js';
import { forEachDialect, type TestDialect } from '../../rig/dialects.js';
import { createEngine } from '../../rig/engines.js';
import { ManualClock, until } from '../../rig/manual-clock.js';
import { createGenerations, createZombie, failureOf, newHalt } from '../../run/succession.js';

async function setup(dialect: TestDialect) {
  const { DBOS, url } = await createEngine(dialect);
  const publish = DBOS.registerWorkflow(
    async (entries: [key: string, value: unknown][]) => {
      for (const [key, value] of entries) await DBOS.setEvent(key, value);
    },
    { name: 'publish' },
  );
  return { DBOS, url, publish };
}

describe('events', () => {
  forEachDialect((dialect) => {
    test('an event is read by those who wait for it and by those who come later', async () => {
      const { DBOS, publish } = await setup(dialect);
      await DBOS.launch();

      const waiting = DBOS.getEvent('w', 'when');
      await DBOS.startWorkflow(publish, { workflowID: 'w' })([['when', new Date(7)]]);

      expect(await waiting).toEqual(new Date(7));
      expect(await DBOS.getEvent('w', 'when', 0)).toEqual(new Date(7));
    });

    test('setting a key again replaces its value, and history keeps both', async () => {
      const { DBOS, url, publish } = await setup(dialect);
      const database = await dialect.open(url);
      await DBOS.launch();

      await DBOS.startWorkflow(publish, { workflowID: 'w' })([
        ['a', 1],
        ['a', 2],
        ['b', 'x'],
      ]).then((handle) => handle.getResult());

      expect(await DBOS.getAllEvents('w')).toEqual({ a: 2, b: 'x' });
      const history = await database.read(sql`
        SELECT h.function_id, h.key, h.value FROM ${table('workflow_events_history')} AS h ORDER BY h.function_id`);
      expect(history.map((row) => [row['function_id'], row['key'], jsonOf(row['value'])])).toEqual([
        [0, 'a', 1],
        [1, 'a', 2],
        [2, 'b', 'x'],
      ]);
      expect((await DBOS.listWorkflowSteps('w'))!.map(({ name }) => name)).toEqual(Array(3).fill('DBOS.setEvent'));
    });

    test('an event that is overwritten while it is waited for gives one of its values, whole', async () => {
      const { DBOS, url, publish } = await setup(dialect);
      const { DBOS: other } = await createEngine(dialect, { systemDatabaseUrl: url });
      await DBOS.launch();
      await other.launch();
      const values = Array.from({ length: 40 }, (_, n) => ['k', `${n}:${'x'.repeat(n * 10)}`] as [string, string]);

      const read = Array.from({ length: 20 }, (_, n) => (n % 2 ? DBOS : other).getEvent('w', 'k', 20));
      const handle = await DBOS.startWorkflow(publish, { workflowID: 'w' })(values);
      const seen = await Promise.all(read);
      await handle.getResult();

      const written = new Set(values.map(([, value]) => value));
      for (const value of seen) expect(written).toContain(value);
      expect(await other.getEvent('w', 'k', 0)).toBe(values.at(-1)?.[1]);
    });

    test('several keys set at once are all set', async () => {
      const { DBOS } = await setup(dialect);
      const both = DBOS.registerWorkflow(
        async () => {
          await Promise.all([DBOS.setEvent('a', 1), DBOS.setEvent('a', 2), DBOS.setEvent('b', 3)]);
        },
        { name: 'both' },
      );
      await DBOS.launch();

      await DBOS.startWorkflow(both, { workflowID: 'w' })().then((handle) => handle.getResult());

      expect(await DBOS.getAllEvents('w')).toEqual({ a: 2, b: 3 });
    });

    test('null is given when the time is up, also for a workflow that does not exist', async () => {
      const clock = new ManualClock();
      const { DBOS } = await createEngine(dialect, {}, clock.settings);
      await DBOS.launch();

      expect(await DBOS.getEvent('nobody', 'k', 0)).toBeNull();
      const waiting = DBOS.getEvent('nobody', 'k');
      await clock.untilArmed(60_000);
      clock.advance(60_000);
      expect(await waiting).toBeNull();
    });

    test('a workflow that reads an event reads the same after a recovery, and its time goes on', async () => {
      const clock = new ManualClock();
      const { first, second } = await createGenerations(dialect, {}, clock.settings);
      const register = (DBOS: typeof first) => ({
        reader: DBOS.registerWorkflow(
          async () => [await DBOS.getEvent('p', 'k', 100), await DBOS.getEvent('p', 'never', 100)],
          { name: 'reader' },
        ),
        publisher: DBOS.registerWorkflow(
          async () => {
            await DBOS.setEvent('k', 'first');
            await DBOS.recv('go', 1000);
            await DBOS.setEvent('k', 'second');
          },
          { name: 'publisher' },
        ),
      });
      const { reader, publisher } = register(first);
      register(second);
      await first.launch();
      await first.startWorkflow(publisher, { workflowID: 'p' })();
      await first.getEvent('p', 'k', 10);
      await first.startWorkflow(reader, { workflowID: 'r' })();
      await until(async () => (await first.listWorkflowSteps('r'))!.length === 2);
      await first.send('p', 'go', 'go');
      await first.retrieveWorkflow('p').getResult();
      await first.shutdown();

      clock.advance(60_000);
      await second.launch();
      await clock.untilArmed(40_000);
      clock.advance(40_000);

      expect(await second.retrieveWorkflow('r').getResult()).toEqual(['first', null]);
      expect(await second.getEvent('p', 'k', 0)).toBe('second');
    });

    test('a run that has lost its workflow sets nothing', async () => {
      const { first, second } = await createZombie(dialect);
      const halt = newHalt();
      const register = (DBOS: typeof first, pause: () => Promise<void>, value: string) =>
        DBOS.registerWorkflow(
          async () => {
            await DBOS.runStep(pause, { name: 'pause' });
            await DBOS.setEvent('k', value);
          },
          { name: 'publisher' },
        );
      const zombie = register(first, () => halt.here(), 'of the zombie');
      register(second, async () => {}, 'of the owner');
      await first.launch();
      const handle = await first.startWorkflow(zombie, { workflowID: 'w' })();
      await halt.reached;

      await second.launch();
      await second.retrieveWorkflow('w').getResult();
      halt.release();
      await handle.getResult();

      expect(await second.getAllEvents('w')).toEqual({ k: 'of the owner' });
    });

    test('many thousand waiters share wake-ups and queries', async () => {
      const { DBOS, url, publish } = await setup(dialect);
      const { DBOS: other } = await createEngine(dialect, { systemDatabaseUrl: url });
      await DBOS.launch();
      await other.launch();
      const keys = Array.from({ length: 3000 }, (_, n) => `k${n}`);

      const waiting = Promise.all(keys.map((key) => other.getEvent('w', key, 20)));
      await DBOS.startWorkflow(publish, { workflowID: 'w' })([...keys.slice(0, 50)].map((key) => [key, key]));
      expect(await other.getEvent('w', 'k49', 20)).toBe('k49');
      const database = await dialect.open(url);
      await database.run(sql`
        INSERT INTO ${table('workflow_events')} (workflow_uuid, key, value, serialization)
        SELECT 'w', k.value, '1', 'portable_json' FROM ${listOf(dialect, keys.slice(50))} AS k WHERE TRUE`);

      expect((await waiting).filter((value) => value === null)).toEqual([]);
    });

    test('places and values that are not allowed are refused at once', async () => {
      const { DBOS, publish } = await setup(dialect);
      const inStep = DBOS.registerWorkflow(() => DBOS.runStep(() => DBOS.setEvent('k', 1)), { name: 'inStep' });
      const getInStep = DBOS.registerWorkflow(() => DBOS.runStep(() => DBOS.getEvent('w', 'k')), { name: 'getInStep' });
      await DBOS.launch();

      for (const act of [() => DBOS.setEvent('k', 1), inStep, getInStep]) {
        expect(await failureOf(act())).toMatchObject({ code: 'INVALID_WORKFLOW_TRANSITION' });
      }
      const bad = await DBOS.startWorkflow(publish, { workflowID: 'bad' })([
        ['good', 1],
        ['a\0', 2],
      ]);
      expect((await failureOf(bad.getResult())).message).toMatch(/NUL/);
      expect(await DBOS.getAllEvents('bad')).toEqual({ good: 1 });
      expect((await failureOf(DBOS.getEvent('w', 'k', -1))).message).toMatch(/timeoutSeconds/);
    });
  });
});

/** What a stored text holds. */
function jsonOf(text: unknown): unknown {
  return (JSON.parse(text as string) as { json: unknown }).json;
}

/** A list of texts as a table with the column `value`. */
function listOf(dialect: TestDialect, values: readonly string[]) {
  return dialect.name === 'sqlite'
    ? sql`json_each(${JSON.stringify(values)})`
    : sql`(SELECT json_array_elements_text(${JSON.stringify(values)}::json) AS value)`;
}
