import { describe, expect, test } from 'vitest';
import { sql, table } from '../../../src/kernel/sql/sql.js';
import { forEachDialect, type TestDialect } from '../../rig/dialects.js';
import { createEngine } from '../../rig/engines.js';
import { ManualClock } from '../../rig/manual-clock.js';
import { createGenerations, createZombie, failureOf, newHalt } from '../../run/succession.js';

async function collect<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const values: T[] = [];
  for await (const value of stream) values.push(value);
  return values;
}

async function setup(dialect: TestDialect) {
  const { DBOS, url } = await createEngine(dialect);
  const write = DBOS.registerWorkflow(
    async (values: unknown[], isClosed = true) => {
      for (const value of values) await DBOS.writeStream('s', value);
      if (isClosed) await DBOS.closeStream('s');
    },
    { name: 'write' },
  );
  /** Writes, then waits to be told to end. */
  const hold = DBOS.registerWorkflow(
    async (values: unknown[]) => {
      for (const value of values) await DBOS.writeStream('s', value);
      await DBOS.recv('end', 20);
    },
    { name: 'hold' },
  );
  return { DBOS, url, write, hold };
}

const numbers = (count: number): number[] => Array.from({ length: count }, (_, number) => number);

describe('streams', () => {
  forEachDialect((dialect) => {
    test('values are read in their order, to the end of the stream', async () => {
      const { DBOS, write } = await setup(dialect);
      await DBOS.launch();
      const values = [1, 'two', new Date(3), undefined, { four: 4n }, null];

      await DBOS.startWorkflow(write, { workflowID: 'w' })(values);

      expect(await collect(DBOS.readStream('w', 's'))).toEqual(values);
      expect(await collect(DBOS.readStream('w', 's', { offset: 4 }))).toEqual(values.slice(4));
      expect(await collect(DBOS.readStream('w', 's', { offset: 99 }))).toEqual([]);
      expect(await DBOS.readStreamOffset('w', 's', 1)).toBe('two');
      expect(await DBOS.getAllStreamEntries('w')).toEqual({ s: values });
    });

    test('a stream that is not closed ends with its workflow', async () => {
      const { DBOS, hold } = await setup(dialect);
      await DBOS.launch();
      await DBOS.startWorkflow(hold, { workflowID: 'w' })([1, 2]);
      const reading = DBOS.readStream('w', 's');

      expect([(await reading.next()).value, (await reading.next()).value]).toEqual([1, 2]);
      const end = reading.next();
      await DBOS.send('w', 'now', 'end');

      expect(await end).toEqual({ value: undefined, done: true });
      expect(await collect(DBOS.readStream('w', 'other'))).toEqual([]);
    });

    test('a reader in another process follows while the stream is written, and learns of its end', async () => {
      const { DBOS, url, hold } = await setup(dialect);
      const { DBOS: other } = await createEngine(dialect, { systemDatabaseUrl: url });
      await DBOS.launch();
      await other.launch();
      await DBOS.startWorkflow(hold, { workflowID: 'w' })(numbers(300));

      const seen: unknown[] = [];
      for await (const value of other.readStream('w', 's')) {
        seen.push(value);
        if (seen.length === 300) await other.send('w', 'now', 'end');
      }

      expect(seen).toEqual(numbers(300));
    });

    test('steps write without a record of their own, and a step that is repeated writes again', async () => {
      const { DBOS } = await setup(dialect);
      const steps = DBOS.registerWorkflow(
        async () => {
          await DBOS.runStep(
            async () => {
              for (const number of numbers(100)) await DBOS.writeStream('s', number);
              if (DBOS.stepStatus?.currentAttempt === 1) throw new Error('once more');
            },
            { name: 'writes', retriesAllowed: true, intervalSeconds: 0 },
          );
          await DBOS.writeStream('s', 'from the workflow');
          await DBOS.runStep(() => DBOS.closeStream('s'), { name: 'closes' });
        },
        { name: 'steps' },
      );
      await DBOS.launch();

      await DBOS.startWorkflow(steps, { workflowID: 'w' })();

      expect(await collect(DBOS.readStream('w', 's'))).toEqual([...numbers(100), ...numbers(100), 'from the workflow']);
      expect((await DBOS.listWorkflowSteps('w'))!.map(({ name }) => name)).toEqual([
        'writes',
        'DBOS.writeStream',
        'closes',
      ]);
    });

    test('values that are written without waiting keep their order, in several streams', async () => {
      const { DBOS } = await setup(dialect);
      const many = DBOS.registerWorkflow(
        async () => {
          await Promise.all(numbers(50).flatMap((n) => [DBOS.writeStream('a', n), DBOS.writeStream('b', -n)]));
        },
        { name: 'many' },
      );
      await DBOS.launch();

      await DBOS.startWorkflow(many, { workflowID: 'w' })().then((handle) => handle.getResult());

      expect(await DBOS.getAllStreamEntries('w')).toEqual({ a: numbers(50), b: numbers(50).map((n) => -n) });
    });

    test('a recovered workflow goes on where its stream ends, without a gap or a repetition', async () => {
      const { first, second } = await createGenerations(dialect);
      const halt = newHalt();
      const register = (DBOS: typeof first, pause: () => Promise<void>) =>
        DBOS.registerWorkflow(
          async () => {
            for (const number of numbers(5)) await DBOS.writeStream('s', number);
            await DBOS.runStep(pause, { name: 'pause' });
            for (const number of numbers(5)) await DBOS.writeStream('s', 5 + number);
            await DBOS.closeStream('s');
          },
          { name: 'writer' },
        );
      const writer = register(first, () => halt.here());
      register(second, async () => {});
      await first.launch();
      await first.startWorkflow(writer, { workflowID: 'w' })();
      await halt.reached;
      await first.shutdown();
      await second.launch();

      expect(await collect(second.readStream('w', 's'))).toEqual(numbers(10));
    });

    test('a run that has lost its workflow appends nothing', async () => {
      const { first, second } = await createZombie(dialect);
      const halt = newHalt();
      const register = (DBOS: typeof first, pause: () => Promise<void>, value: string) =>
        DBOS.registerWorkflow(
          async () => {
            await DBOS.runStep(
              async () => {
                await pause();
                await DBOS.writeStream('s', `step ${value}`);
              },
              { name: 'pause' },
            );
            await DBOS.writeStream('s', value);
          },
          { name: 'writer' },
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

      expect(await second.getAllStreamEntries('w')).toEqual({ s: ['step of the owner', 'of the owner'] });
    });

    test('a workflow that reads a stream records each value and the end, and reads the same after a recovery', async () => {
      const { first, second } = await createGenerations(dialect);
      const halt = newHalt();
      const register = (DBOS: typeof first, pause: () => Promise<void>) => ({
        writer: DBOS.registerWorkflow(
          async () => {
            for (const number of numbers(4)) await DBOS.writeStream('s', number);
            await DBOS.closeStream('s');
          },
          { name: 'writer' },
        ),
        reader: DBOS.registerWorkflow(
          async () => {
            const seen: number[] = [];
            for await (const value of DBOS.readStream<number>('w', 's')) {
              seen.push(value);
              if (value === 1) await DBOS.runStep(pause, { name: 'pause' });
            }
            return [...seen, await DBOS.readStreamOffset('w', 's', 2)];
          },
          { name: 'reader' },
        ),
      });
      const { writer, reader } = register(first, () => halt.here());
      register(second, async () => {});
      await first.launch();
      await first.startWorkflow(writer, { workflowID: 'w' })();
      await first.startWorkflow(reader, { workflowID: 'r' })();
      await halt.reached;
      await first.shutdown();
      await second.launch();

      expect(await second.retrieveWorkflow('r').getResult()).toEqual([0, 1, 2, 3, 2]);
      const read = 'DBOS.readStream';
      expect((await second.listWorkflowSteps('r'))!.map(({ name }) => name)).toEqual([
        read,
        read,
        'pause',
        read,
        read,
        read,
        'DBOS.readStreamOffset',
      ]);
    });

    test('two reads of one workflow that overlap are refused', async () => {
      const { DBOS, hold } = await setup(dialect);
      const overlap = DBOS.registerWorkflow(
        async () => {
          const one = DBOS.readStream('w', 's').next();
          one.catch(() => {});
          await DBOS.readStream('w', 't').next();
        },
        { name: 'overlap' },
      );
      await DBOS.launch();
      await DBOS.startWorkflow(hold, { workflowID: 'w' })([]);

      expect(await failureOf(overlap())).toMatchObject({ code: 'STREAM_NONDETERMINISM' });
    });

    test('a value that does not come in time is an error, recorded in a workflow', async () => {
      const clock = new ManualClock();
      const { DBOS } = await createEngine(dialect, {}, clock.settings);
      const hold = DBOS.registerWorkflow(() => DBOS.recv('end', 1000), { name: 'hold' });
      const reader = DBOS.registerWorkflow(
        async () => {
          await DBOS.readStream('w', 's', { timeoutSeconds: 5 }).next();
        },
        { name: 'reader' },
      );
      await DBOS.launch();
      await DBOS.startWorkflow(hold, { workflowID: 'w' })();

      expect(await failureOf(DBOS.readStreamOffset('w', 's', 0, { timeoutSeconds: 0 }))).toMatchObject({
        code: 'STREAM_TIMEOUT',
        timeoutMS: 0,
      });
      const handle = await DBOS.startWorkflow(reader, { workflowID: 'r' })();
      await clock.untilArmed(5000);
      clock.advance(5000);
      expect(await failureOf(handle.getResult())).toMatchObject({ code: 'STREAM_TIMEOUT', timeoutMS: 5000 });
      expect((await DBOS.listWorkflowSteps('r'))![0]).toMatchObject({
        name: 'DBOS.readStream',
        error: { code: 'STREAM_TIMEOUT' },
      });
    });

    test('reading past the end of a stream, and of no workflow, is an error', async () => {
      const { DBOS, write, hold } = await setup(dialect);
      await DBOS.launch();
      await DBOS.startWorkflow(write, { workflowID: 'w' })([1]);
      await DBOS.startWorkflow(hold, { workflowID: 'h' })([1, '__DBOS_STREAM_CLOSED__', 2]);

      const ended = await failureOf(DBOS.readStreamOffset('w', 's', 7));
      expect(ended).toMatchObject({ code: 'STREAM_TIMEOUT', timeoutMS: undefined });
      // The workflow goes on, but a value like the mark has closed the stream.
      expect(await collect(DBOS.readStream('h', 's'))).toEqual([1]);
      expect(await failureOf(DBOS.readStream('nobody', 's').next())).toMatchObject({ code: 'NON_EXISTENT_WORKFLOW' });
    });

    test('a mark without quotes, as older releases wrote it, ends a stream', async () => {
      const { DBOS, url, hold } = await setup(dialect);
      const database = await dialect.open(url);
      await DBOS.launch();
      await DBOS.startWorkflow(hold, { workflowID: 'w' })([]);
      await database.run(sql`
        INSERT INTO ${table('streams')} (workflow_uuid, key, value, "offset") VALUES ('w', 'old', '__DBOS_STREAM_CLOSED__', 0)`);

      expect(await collect(DBOS.readStream('w', 'old'))).toEqual([]);
      expect(await DBOS.getAllStreamEntries('w')).toEqual({ old: [] });
      expect(await failureOf(DBOS.readStreamOffset('w', 'old', 5))).toMatchObject({ code: 'STREAM_TIMEOUT' });
    });

    test('a cancelled workflow stops reading', async () => {
      const { DBOS, hold } = await setup(dialect);
      const reader = DBOS.registerWorkflow(() => collect(DBOS.readStream('w', 's')), { name: 'reader' });
      await DBOS.launch();
      await DBOS.startWorkflow(hold, { workflowID: 'w' })([]);
      const handle = await DBOS.startWorkflow(reader, { workflowID: 'r' })();

      await DBOS.cancelWorkflow('r');

      expect(await failureOf(handle.getResult())).toMatchObject({ code: 'WORKFLOW_CANCELLED' });
    });

    test('places, offsets and values that are not allowed are refused', async () => {
      const { DBOS, write } = await setup(dialect);
      const badKey = DBOS.registerWorkflow(() => DBOS.writeStream('\0', 1), { name: 'badKey' });
      const badValue = DBOS.registerWorkflow(
        () => DBOS.writeStream('s', new Map([[1, 2]]), { serializationType: 'portable' }),
        { name: 'badValue' },
      );
      await DBOS.launch();
      await DBOS.startWorkflow(write, { workflowID: 'w' })([1]);

      for (const act of [() => DBOS.writeStream('s', 1), () => DBOS.closeStream('s')]) {
        expect(await failureOf(act())).toMatchObject({ code: 'INVALID_WORKFLOW_TRANSITION' });
      }
      expect((await failureOf(badKey())).message).toMatch(/NUL/);
      expect((await failureOf(badValue())).message).toMatch(/portable form/);
      for (const options of [
        { offset: -1 },
        { offset: 0.5 },
        { timeoutSeconds: -1 },
        { timeoutSeconds: NaN },
        { pollingIntervalMs: 0 },
      ]) {
        await expect(DBOS.readStream('w', 's', options).next()).rejects.toThrow(/must/);
      }
    });
  });
});
