// What the kit does by itself, with a source in memory.
import { describe, expect, test } from 'vitest';
import { deferred } from '../../../src/kernel/base/deferred.js';
import { type DLogger, silentLogger } from '../../../src/kernel/base/log.js';
import type { Adapter, ConsumerOptions, Position, Source } from '../../../src/plugins/receiver/adapter.js';
import { Mailbox } from '../../../src/plugins/receiver/mailbox.js';
import { Receiver } from '../../../src/plugins/receiver/receiver.js';
import { failureOf } from '../../run/succession.js';
import { forEachDialect } from '../../rig/dialects.js';
import { createEngine } from '../../rig/engines.js';
import { ManualClock, until } from '../../rig/manual-clock.js';
import { Spy, Tally } from './spy.js';
import { internals } from '../../../src/kernel/base/internals.js';

interface Note {
  readonly id: string;
  readonly text: string;
}

type Options = ConsumerOptions<Note> & { readonly box?: string };

/** Gives what is pushed into it. */
function memoryAdapter(changes: Partial<Source<Note>> = {}): {
  readonly adapter: Adapter<Note, Options>;
  readonly box: Mailbox<Note>;
  readonly positions: (Position | undefined)[];
} {
  const box = new Mailbox<Note>();
  const positions: (Position | undefined)[] = [];
  const adapter: Adapter<Note, Options> = {
    name: 'memory',
    describe: ({ box: name = 'box' }) => `box "${name}"`,
    workflowIDOf: ({ id }) => (id === '' ? undefined : `memory-${id}`),
    decode: ({ text }) => [text],
    async connect(_, { loadPosition }) {
      positions.push(await loadPosition());
      return {
        fetch: (max, signal) => box.take(max, signal),
        acknowledge: async () => {},
        close: async () => {},
        ...changes,
      };
    },
  };
  return { adapter, box, positions };
}

describe('the kit', () => {
  forEachDialect((dialect) => {
    test('serves static methods, with its decorator above or below @DBOS.workflow, of either kind', async () => {
      const { DBOS } = await createEngine(dialect);
      const { adapter, box } = memoryAdapter();
      const receiver = new Receiver(adapter, { dbos: DBOS });
      const ran = new Map<string, Tally>(['above', 'below', 'legacy'].map((name) => [name, new Tally()]));
      class Handlers {
        @receiver.consumer({})
        @DBOS.workflow()
        static async above(_text: string) {
          ran.get('above')?.add();
        }

        @DBOS.workflow()
        @receiver.consumer({})
        static async below(_text: string) {
          ran.get('below')?.add();
        }

        static async legacy(this: void, _text: string) {
          ran.get('legacy')?.add();
        }
      }
      const descriptor = { value: Handlers.legacy };
      DBOS.registerWorkflow(Handlers.legacy, { name: 'legacy', ctorOrProto: Handlers });
      receiver.consumer({})(Handlers, 'legacy', descriptor);
      await DBOS.launch();

      // All take from the one box, and each message goes to one of them.
      for (let n = 0; n < 9; n += 1) {
        box.push({ id: `${n}`, text: 'text' });
        await until(async () => (await DBOS.getWorkflowStatus(`memory-${n}`))?.status === 'SUCCESS');
      }

      const served = DBOS.getAssociatedInfo(receiver).map(({ methodReg }) => [methodReg.className, methodReg.name]);
      expect(served).toEqual([
        ['Handlers', 'above'],
        ['Handlers', 'below'],
        ['Handlers', 'legacy'],
      ]);
      expect([...ran.values()].map(({ count }) => count).reduce((sum, count) => sum + count)).toBe(9);
    });

    test('a position is committed with the workflows, and found when the source is opened again', async () => {
      const { DBOS, url } = await createEngine(dialect);
      const first = memoryAdapter({ positionAfter: (notes) => ({ value: notes.at(-1)?.text, updateSeq: 7n }) });
      const spy = new Spy();
      const receiver = new Receiver(spy.watch(first.adapter), { dbos: DBOS });
      receiver.registerConsumer(
        DBOS.registerWorkflow(async () => {}, { name: 'work' }),
        {},
      );
      await DBOS.launch();
      first.box.push({ id: '1', text: 'here' });
      await spy.acknowledged.reach(1);
      await DBOS.shutdown();

      const next = await createEngine(dialect, { systemDatabaseUrl: url });
      const second = memoryAdapter();
      const again = new Receiver(second.adapter, { dbos: next.DBOS });
      again.registerConsumer(
        next.DBOS.registerWorkflow(async () => {}, { name: 'work' }),
        {},
      );
      await next.DBOS.launch();

      expect(first.positions).toEqual([undefined]);
      expect(second.positions).toMatchObject([{ value: 'here', updateSeq: 7n }]);
    });

    test('a message without an ID, and one whose arguments are refused, are dead letters', async () => {
      const { DBOS } = await createEngine(dialect);
      const { adapter, box } = memoryAdapter();
      const spy = new Spy();
      const receiver = new Receiver(spy.watch(adapter), { dbos: DBOS });
      const refuse = () => {
        throw new Error('no text');
      };
      const work = DBOS.registerWorkflow(async () => {}, { name: 'work', inputSchema: { parse: refuse } });
      receiver.registerConsumer(work, {});
      await DBOS.launch();

      box.push({ id: '', text: 'nameless' });
      box.push({ id: '1', text: '' });
      await spy.acknowledged.reach(2);

      const letters = await receiver.listDeadLetters(work);
      expect(letters.map(({ error }) => error).sort()).toEqual([
        expect.stringContaining('no text'),
        expect.stringContaining('The message has no ID'),
      ]);
      expect(letters.find(({ id }) => id === 'memory-1')?.message).toEqual({ id: '1', text: '' });
    });

    test('what was fetched before a shutdown is committed and acknowledged during it', async () => {
      const { DBOS, url } = await createEngine(dialect);
      const { adapter, box } = memoryAdapter();
      const spy = new Spy();
      const isDecoding = deferred<void>();
      const gate = deferred<void>();
      const receiver = new Receiver(spy.watch(adapter), { dbos: DBOS });
      const decode = async ({ text }: Note): Promise<unknown[]> => {
        isDecoding.resolve();
        await gate.promise;
        return [text];
      };
      receiver.registerConsumer(
        DBOS.registerWorkflow(async () => {}, { name: 'work' }),
        { decode },
      );
      await DBOS.launch();
      box.push({ id: '1', text: 'last' });
      await isDecoding.promise;

      const shutdown = DBOS.shutdown();
      gate.resolve();
      await shutdown;

      expect(spy.acknowledged.count).toBe(1);
      const next = await createEngine(dialect, { systemDatabaseUrl: url });
      await next.DBOS.launch();
      expect(await next.DBOS.getWorkflowStatus('memory-1')).not.toBeNull();
    });

    test('a broker that does not answer an acknowledgement is given up, and connected to anew', async () => {
      const clock = new ManualClock();
      const { DBOS } = await createEngine(dialect, {}, clock.settings);
      let acknowledgements = 0;
      const acknowledge = (): Promise<void> => {
        acknowledgements += 1;
        return acknowledgements === 1 ? new Promise(() => {}) : Promise.resolve();
      };
      const { adapter, box } = memoryAdapter({ acknowledge });
      const spy = new Spy();
      new Receiver(spy.watch(adapter), { dbos: DBOS }).registerConsumer(
        DBOS.registerWorkflow(async () => {}, { name: 'work' }),
        {},
      );
      await DBOS.launch();
      box.push({ id: '1', text: 'a' });
      await until(() => acknowledgements === 1);

      clock.advance(30_000);
      await until(() => {
        clock.advance(100);
        return spy.connections.count === 2;
      });
      box.push({ id: '1', text: 'a' });
      await spy.acknowledged.reach(1);

      expect(acknowledgements).toBe(2);
    });

    test('a broker that cannot be reached is tried again and again after the launch', async () => {
      const warnings = new Tally();
      const logger: DLogger = { ...silentLogger, warn: () => warnings.add() };
      const { DBOS } = await createEngine(dialect, { logger });
      const { adapter, box } = memoryAdapter();
      let connects = 0;
      const tally = new Tally();
      const receiver = new Receiver<Note, Options>(
        {
          ...adapter,
          connect: async (options, context) => {
            connects += 1;
            if (connects === 2 || connects === 3) throw new Error('still away');
            return adapter.connect(options, context);
          },
        },
        { dbos: DBOS },
      );
      receiver.registerConsumer(
        DBOS.registerWorkflow(async () => tally.add(), { name: 'work' }),
        {
          deadLetter: () => Promise.reject(new Error('gone')),
          decode: ({ text }) => (text === 'bad' && connects === 1 ? [...(undefined as never)] : [text]),
        },
      );
      await DBOS.launch();

      box.push({ id: '1', text: 'bad' });
      await warnings.reach(3);
      box.push({ id: '2', text: 'good' });
      await tally.reach(1);

      expect(connects).toBe(4);
    });

    test.each<
      [string, (DBOS: Awaited<ReturnType<typeof createEngine>>['DBOS'], r: Receiver<Note, Options>) => void, RegExp]
    >([
      [
        'no workflow',
        (_, receiver) => receiver.registerConsumer(async () => {}, {}, { name: 'plain' }),
        /is not a workflow/,
      ],
      [
        'a method of an instance',
        (DBOS, receiver) => {
          class Instances {
            async work(this: void) {}
          }
          const { prototype } = Instances;
          DBOS.registerWorkflow(prototype.work, { name: 'work', ctorOrProto: prototype });
          receiver.registerConsumer(prototype.work, {});
        },
        /instance method/,
      ],
      [
        'a queue that cannot keep the order',
        (DBOS, receiver) => {
          DBOS[internals].registry.addQueue({ ...queueRecord, name: 'plain' });
          const work = DBOS.registerWorkflow(async () => {}, { name: 'work' });
          receiver.registerConsumer(work, { queueName: 'plain', orderingKey: ({ id }) => id });
        },
        /partitionConcurrency: 1/,
      ],
      [
        'a queue with partitions but no keys',
        (DBOS, receiver) => {
          DBOS[internals].registry.addQueue({
            ...queueRecord,
            name: 'parted',
            partitionConcurrency: 1,
            isPartitionQueue: true,
          });
          const work = DBOS.registerWorkflow(async () => {}, { name: 'work' });
          receiver.registerConsumer(work, { queueName: 'parted' });
        },
        /orderingKey/,
      ],
    ])('a launch refuses %s', async (_, register, message) => {
      const { DBOS } = await createEngine(dialect);
      register(DBOS, new Receiver(memoryAdapter().adapter, { dbos: DBOS }));

      const error = await failureOf(DBOS.launch());

      expect(error.name).toBe('InvalidReceiverError');
      expect(error.message).toMatch(message);
    });
  });

  test.each<[string, Options, RegExp]>([
    ['an empty batch', { batchSize: 0 }, /batchSize/],
    ['half a message', { maxQueueDepth: 1.5 }, /maxQueueDepth/],
    ['leaving messages to a broker that loses them', { deadLetter: 'broker' }, /cannot leave/],
  ])('options are checked when they are given: %s', async (_, options, message) => {
    const { createDBOS } = await import('../../../src/faces/library/dbos.js');
    const receiver = new Receiver(memoryAdapter().adapter, { dbos: createDBOS() });

    expect(() => receiver.registerConsumer(async () => {}, options)).toThrow(message);
  });
});

const queueRecord = {
  concurrency: null,
  workerConcurrency: null,
  rateLimitMax: null,
  rateLimitPeriodSec: null,
  isPriorityEnabled: true,
  isPartitionQueue: false,
  pollingIntervalSec: 1,
  partitionConcurrency: null,
  partitionWorkerConcurrency: null,
  partitionRateLimitMax: null,
  partitionRateLimitPeriodSec: null,
  applicationName: null,
};
