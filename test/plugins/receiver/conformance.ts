// What every receiver must do, whatever its broker: exactly one workflow for each message, through redelivery, bad messages
// and restarts of all three: receiver, broker and database.
import { describe, expect, test } from 'vitest';
import type { DLogger } from '../../../src/kernel/base/log.js';
import { silentLogger } from '../../../src/kernel/base/log.js';
import { newID } from '../../../src/kernel/base/ids.js';
import type { DBOSConfig } from '../../../src/run/config/config.js';
import type { DBOSInstance } from '../../../src/faces/library/dbos.js';
import type { Adapter, ConsumerOptions } from '../../../src/plugins/receiver/adapter.js';
import { Receiver } from '../../../src/plugins/receiver/receiver.js';
import { sql, table } from '../../../src/kernel/sql/sql.js';
import { failureOf } from '../../run/succession.js';
import { forEachDialect, onlyOn, type TestDialect } from '../../rig/dialects.js';
import { createEngine, engineOf } from '../../rig/engines.js';
import { startProxy } from '../../rig/proxy.js';
import { Spy, Tally } from './spy.js';

/** A broker under test. */
export interface Rig<Message, Options extends ConsumerOptions<Message>> {
  readonly name: string;
  adapter(): Adapter<Message, Options>;
  /** Creates something to read from and gives its name. */
  createTopic(): Promise<string>;
  /** How to read it; what is not acknowledged comes again soon. */
  options(topic: string): Options;
  /** Sends messages with these texts, in order, each with an ID of its own. */
  publish(topic: string, texts: readonly string[]): Promise<void>;
  textOf(message: Message): string;
  stop(): Promise<void>;
  start(): Promise<void>;
  /** A variant of a broker that is tested in full elsewhere. */
  readonly isBrief?: boolean;
  /** Options that name what is not there, and a word of the error. */
  readonly missing?: { readonly options: Options; readonly says: string };
}

interface Body {
  readonly n: number;
  readonly key: string;
}

interface Bundle<Message, Options extends ConsumerOptions<Message>> {
  readonly DBOS: DBOSInstance;
  readonly url: string;
  readonly spy: Spy;
  readonly receiver: Receiver<Message, Options>;
  readonly handle: (body: Body) => Promise<void>;
}

interface SetupOptions<Options> {
  readonly topic: string;
  /** Told of each message that a workflow runs for. */
  readonly onRun: (body: Body) => void | Promise<void>;
  readonly options?: Partial<Options>;
  readonly config?: Partial<DBOSConfig>;
}

const numbers = (count: number, from = 0): number[] => Array.from({ length: count }, (_, index) => from + index);
const texts = (of: readonly number[]): string[] => of.map((n) => JSON.stringify({ n, key: `key-${n % 3}` }));

export function describeReceiver<Message, Options extends ConsumerOptions<Message>>(rig: Rig<Message, Options>): void {
  const setup = async (
    dialect: TestDialect,
    { topic, onRun, options, config }: SetupOptions<Options>,
  ): Promise<Bundle<Message, Options>> => {
    const { DBOS, url } = await createEngine(dialect, config);
    const spy = new Spy();
    const receiver = new Receiver(spy.watch(rig.adapter()), { dbos: DBOS });
    const handle = DBOS.registerWorkflow(async (body: Body) => onRun(body), { name: 'handle' });
    const decode = (message: Message) => [JSON.parse(rig.textOf(message)) as Body];
    receiver.registerConsumer(handle, { ...rig.options(topic), decode, ...options });
    return { DBOS, url, spy, receiver, handle };
  };

  /** Notes the numbers of the messages that workflows run for. */
  const newRecord = () => {
    const tally = new Tally();
    const ran: number[] = [];
    const onRun = ({ n }: Body): void => {
      ran.push(n);
      tally.add();
    };
    return { ran, onRun, reach: (count: number) => tally.reach(count) };
  };

  const sorted = (values: readonly number[]): number[] => [...values].sort((a, b) => a - b);

  describe(rig.name, () => {
    forEachDialect((dialect) => {
      test('each message starts one workflow, several of them in one commit', async () => {
        const topic = await rig.createTopic();
        const { ran, onRun, reach } = newRecord();
        const options = { batchSize: 8 } as Partial<Options>;
        const { DBOS, spy } = await setup(dialect, { topic, onRun, options });
        await rig.publish(topic, texts(numbers(30)));

        await DBOS.launch();
        await reach(30);
        await rig.publish(topic, texts(numbers(5, 30)));
        await spy.acknowledged.reach(35);
        await reach(35);

        expect(sorted(ran)).toEqual(numbers(35));
        expect(await countWorkflows(DBOS)).toBe(35);
        expect(Math.max(...spy.batchSizes)).toBeGreaterThan(1);
        expect(Math.max(...spy.batchSizes)).toBeLessThanOrEqual(8);
      });

      test('messages with the same key are handled one after the other, in order, over many batches', async () => {
        const topic = await rig.createTopic();
        const tally = new Tally();
        const order = new Map<string, number[]>();
        const active = new Set<string>();
        const onRun = async ({ n, key }: Body): Promise<void> => {
          expect(active).not.toContain(key);
          active.add(key);
          await new Promise((resolve) => setImmediate(resolve));
          active.delete(key);
          order.set(key, [...(order.get(key) ?? []), n]);
          tally.add();
        };
        const orderingKey = (message: Message) => (JSON.parse(rig.textOf(message)) as Body).key;
        const options = { batchSize: 7, orderingKey } as Partial<Options>;
        const { DBOS } = await setup(dialect, { topic, onRun, options });
        await rig.publish(topic, texts(numbers(40)));

        await DBOS.launch();
        await tally.reach(40);

        expect([...order.keys()].sort()).toEqual(['key-0', 'key-1', 'key-2']);
        for (const handled of order.values()) expect(handled).toEqual(sorted(handled));
      });

      test('a receiver that is stopped and started again loses nothing and doubles nothing', async () => {
        const topic = await rig.createTopic();
        const { ran, onRun, reach } = newRecord();
        const options = { batchSize: 5 } as Partial<Options>;
        const first = await setup(dialect, { topic, onRun, options });
        await rig.publish(topic, texts(numbers(20)));
        await first.DBOS.launch();
        await reach(5);

        await first.DBOS.shutdown({ workflowCompletionTimeoutMS: 10_000 });
        await rig.publish(topic, texts(numbers(20, 20)));
        const second = await setup(dialect, { topic, onRun, options, config: { systemDatabaseUrl: first.url } });
        await second.DBOS.launch();
        await reach(40);

        expect(sorted(ran)).toEqual(numbers(40));
        expect(await countWorkflows(second.DBOS)).toBe(40);
      });
    });

    if (rig.isBrief) return;
    onlyOn('postgres', (dialect) => {
      test('a message that is delivered again because it was not acknowledged starts no second workflow', async () => {
        const topic = await rig.createTopic();
        const { ran, onRun, reach } = newRecord();
        const { DBOS, spy } = await setup(dialect, { topic, onRun });
        let failures = 0;
        spy.beforeAcknowledge = () => {
          failures += 1;
          if (failures <= 2) throw new Error('the process ends after the commit');
        };
        await rig.publish(topic, texts(numbers(10)));

        await DBOS.launch();
        await spy.acknowledged.reach(10);
        await reach(10);

        expect(spy.fetched.count).toBeGreaterThan(10);
        expect(sorted(ran)).toEqual(numbers(10));
        expect(await countWorkflows(DBOS)).toBe(10);
      });

      test('a message that cannot be decoded is kept and logged, and holds up no other', async () => {
        const topic = await rig.createTopic();
        const { ran, onRun, reach } = newRecord();
        const errors: unknown[] = [];
        const logger: DLogger = { ...silentLogger, error: (entry) => errors.push(entry) };
        const { DBOS, spy, receiver, handle } = await setup(dialect, { topic, onRun, config: { logger } });
        const [first = '', second = ''] = texts([0, 1]);
        await rig.publish(topic, [first, 'not JSON', second]);

        await DBOS.launch();
        await reach(2);
        await spy.acknowledged.reach(3);

        expect(sorted(ran)).toEqual([0, 1]);
        expect(errors).toEqual([expect.stringContaining('JSON')]);
        const letters = await receiver.listDeadLetters(handle);
        expect(letters).toMatchObject([{ functionName: 'handle', error: expect.stringContaining('JSON') as string }]);
        await receiver.deleteDeadLetter(handle, letters[0]?.id ?? '');
        expect(await receiver.listDeadLetters(handle)).toEqual([]);
      });

      test('a handler gets what cannot be decoded, again if it fails', async () => {
        const topic = await rig.createTopic();
        const { ran, onRun, reach } = newRecord();
        const given: string[] = [];
        const deadLetter = async (message: Message): Promise<void> => {
          given.push(rig.textOf(message));
          if (given.length === 1) throw new Error('no disk');
        };
        const { DBOS, spy } = await setup(dialect, {
          topic,
          onRun,
          options: { deadLetter } as unknown as Partial<Options>,
        });
        await rig.publish(topic, ['not JSON', ...texts([0])]);

        await DBOS.launch();
        await spy.acknowledged.reach(2);
        await reach(1);

        expect(given).toEqual(['not JSON', 'not JSON']);
        expect(ran).toEqual([0]);
      });

      test.skipIf(!rig.adapter().canReject)('what cannot be decoded can be left to the broker', async () => {
        const topic = await rig.createTopic();
        const { ran, onRun, reach } = newRecord();
        const options = { deadLetter: 'broker' } as Partial<Options>;
        const { DBOS, spy, receiver, handle } = await setup(dialect, { topic, onRun, options });
        await rig.publish(topic, ['not JSON', ...texts([0])]);

        await DBOS.launch();
        await spy.rejected.reach(1);
        await spy.acknowledged.reach(1);
        await reach(1);

        expect(ran).toEqual([0]);
        expect(await receiver.listDeadLetters(handle)).toEqual([]);
      });

      test('nothing is fetched while the queue is as full as it may be', async () => {
        const topic = await rig.createTopic();
        const { ran, onRun, reach } = newRecord();
        const pauses = new Tally();
        const logger: DLogger = {
          ...silentLogger,
          warn: (entry) => (String(entry).includes('Pausing fetches') ? pauses.add() : undefined),
        };
        // Nobody takes workflows from a queue that is not registered.
        const options = { queueName: 'later', maxQueueDepth: 10, batchSize: 4 } as Partial<Options>;
        const { DBOS } = await setup(dialect, { topic, onRun, options, config: { logger } });
        await rig.publish(topic, texts(numbers(30)));

        await DBOS.launch();
        await pauses.reach(1);
        const [stats] = await DBOS.getQueueStats({ queueName: 'later' });
        await DBOS.registerQueue('later');
        await reach(30);

        expect(stats?.enqueued).toBe(10);
        expect(sorted(ran)).toEqual(numbers(30));
      });

      test('two receivers at once share the messages', async () => {
        const topic = await rig.createTopic();
        const { ran, onRun, reach } = newRecord();
        const first = await setup(dialect, { topic, onRun, options: { batchSize: 5 } as Partial<Options> });
        const config = { systemDatabaseUrl: first.url };
        const second = await setup(dialect, { topic, onRun, options: { batchSize: 5 } as Partial<Options>, config });
        await first.DBOS.launch();
        await second.DBOS.launch();

        await rig.publish(topic, texts(numbers(60)));
        await reach(60);

        expect(sorted(ran)).toEqual(numbers(60));
        expect(await countWorkflows(first.DBOS)).toBe(60);
      });

      test('a restart of the broker in the middle of the work loses nothing and doubles nothing', async () => {
        const topic = await rig.createTopic();
        const { ran, onRun, reach } = newRecord();
        const options = { batchSize: 10 } as Partial<Options>;
        const { DBOS, spy } = await setup(dialect, { topic, onRun, options });
        await rig.publish(topic, texts(numbers(200)));
        await DBOS.launch();
        await reach(20);

        await rig.stop();
        await rig.start();
        await rig.publish(topic, texts(numbers(10, 200)));
        await reach(210);

        expect(sorted(ran)).toEqual(numbers(210));
        expect(await countWorkflows(DBOS)).toBe(210);
        expect(spy.connections.count).toBeGreaterThan(1);
      });

      test('a database that is away is waited for, and nothing is acknowledged before it is back', async () => {
        const topic = await rig.createTopic();
        const { ran, onRun, reach } = newRecord();
        const proxy = await startProxy(await dialect.createURL());
        const { DBOS, spy } = await setup(dialect, { topic, onRun, config: { systemDatabaseUrl: proxy.url } });
        await DBOS.launch();
        await rig.publish(topic, texts([0]));
        await spy.acknowledged.reach(1);

        proxy.cut();
        await rig.publish(topic, texts(numbers(9, 1)));
        await spy.fetched.reach(2);
        const acknowledgedMeanwhile = spy.acknowledged.count;
        proxy.restore();
        await reach(10);

        expect(acknowledgedMeanwhile).toBe(1);
        expect(sorted(ran)).toEqual(numbers(10));
        expect(await countWorkflows(DBOS)).toBe(10);
      });

      test('a shutdown interrupts the waiting for messages', async () => {
        // Uninterrupted, it takes 5 seconds and more each time, however fast the machine is.
        let tookMs = Infinity;
        for (let round = 0; round < 5 && tookMs >= 4000; round += 1) {
          const { DBOS } = await setup(dialect, { topic: await rig.createTopic(), onRun: () => {} });
          await DBOS.launch();
          const begunAt = performance.now();
          await DBOS.shutdown();
          tookMs = performance.now() - begunAt;
        }

        expect(tookMs).toBeLessThan(4000);
      });

      test.skipIf(!rig.missing)('a launch fails with a clear error where there is nothing to read', async () => {
        const options = rig.missing?.options as Options;
        const { DBOS } = await setup(dialect, { topic: newID(), onRun: () => {}, options });

        const error = await failureOf(DBOS.launch());

        expect(error.name).toBe('ReceiverUnavailableError');
        expect(error.message).toContain('"handle"');
        expect(error.message).toContain(rig.missing?.says);
      });
    });
  });
}

async function countWorkflows(DBOS: DBOSInstance): Promise<number> {
  const [row] = await engineOf(DBOS).runtime.database.read(sql`SELECT COUNT(*) AS n FROM ${table('workflow_status')}`);
  return Number(row?.['n']);
}
