import { describe, expect, test } from 'vitest';
import { sql, table } from '../../../src/kernel/sql/sql.js';
import { insertMessages } from '../../../src/features/message/messages.sql.js';
import { forEachDialect, type TestDialect } from '../../rig/dialects.js';
import { topics } from '../../../src/database/notify/topics.js';
import { createEngine, engineOf } from '../../rig/engines.js';
import { ManualClock, until } from '../../rig/manual-clock.js';
import { newMessage } from '../../rig/records.js';
import { createGenerations, createZombie, failureOf, newHalt } from '../../run/succession.js';
import { internals } from '../../../src/kernel/base/internals.js';

async function setup(dialect: TestDialect) {
  const { DBOS, url } = await createEngine(dialect);
  /** Receives so many messages of a topic. */
  const receiver = DBOS.registerWorkflow(
    async (count: number, topic?: string) => {
      const received: unknown[] = [];
      while (received.length < count) received.push(await DBOS.recv(topic, 20));
      return received;
    },
    { name: 'receiver' },
  );
  const sender = DBOS.registerWorkflow(
    async (destinationID: string, messages: unknown[], topic?: string) => {
      for (const message of messages) await DBOS.send(destinationID, message, topic);
    },
    { name: 'sender' },
  );
  const start = (workflowID: string, count = 1, topic?: string) =>
    DBOS.startWorkflow(receiver, { workflowID })(count, topic);
  return { DBOS, url, receiver, sender, start };
}

const stepNames = async (DBOS: Awaited<ReturnType<typeof setup>>['DBOS'], workflowID: string) =>
  (await DBOS.listWorkflowSteps(workflowID))!.map(({ functionID, name }) => [functionID, name]);

describe('messages', () => {
  forEachDialect((dialect) => {
    test('a message sent from outside is received, whether the receiver waits already or not', async () => {
      const { DBOS, start } = await setup(dialect);
      await DBOS.launch();

      const waiting = await start('waiting');
      await DBOS.send('waiting', { hello: new Date(5) });
      expect(await waiting.getResult()).toEqual([{ hello: new Date(5) }]);

      const late = await start('late', 2);
      await DBOS.send('late', 1);
      await DBOS.send('late', undefined);
      expect(await late.getResult()).toEqual([1, undefined]);
    });

    test('messages are received in the order in which they were sent, by topic', async () => {
      const { DBOS, start } = await setup(dialect);
      await DBOS.launch();
      const numbers = Array.from({ length: 50 }, (_, number) => number);

      await start('r', 50, 'numbers');
      await DBOS.send('r', 'other topic', 'others');
      await DBOS.send('r', 'no topic');
      for (const number of numbers) await DBOS.send('r', number, 'numbers');

      expect(await DBOS.retrieveWorkflow('r').getResult()).toEqual(numbers);
    });

    test('messages sent at the same time keep their order, with keys of their own or without', async () => {
      const { DBOS, start } = await setup(dialect);
      await DBOS.launch();
      const numbers = Array.from({ length: 30 }, (_, number) => number);
      const halfKeyed = numbers.map((number) => ({
        destinationID: 'r',
        message: number,
        ...(number % 3 > 0 && { idempotencyKey: `key ${99 - number}` }),
      }));

      const handle = await start('r', 60);
      await Promise.all(
        numbers.map((number) => DBOS.send('r', number, undefined, number % 2 ? `k${99 - number}` : undefined)),
      );
      await DBOS.sendBulk(halfKeyed);

      expect(await handle.getResult()).toEqual([...numbers, ...numbers]);
    });

    test('a send from a workflow is a step, and a receive is two', async () => {
      const { DBOS, sender, start } = await setup(dialect);
      await DBOS.launch();

      const received = await start('r', 2);
      const sent = await DBOS.startWorkflow(sender, { workflowID: 's' })('r', ['a', 'b']);
      await sent.getResult();

      expect(await received.getResult()).toEqual(['a', 'b']);
      expect(await stepNames(DBOS, 's')).toEqual([
        [0, 'DBOS.send'],
        [1, 'DBOS.send'],
      ]);
      const names = await stepNames(DBOS, 'r');
      expect(names.filter(([, name]) => name === 'DBOS.recv')).toEqual([
        [0, 'DBOS.recv'],
        [2, 'DBOS.recv'],
      ]);
    });

    test('a step may send, without a record of it', async () => {
      const { DBOS, start } = await setup(dialect);
      const sender = DBOS.registerWorkflow(() => DBOS.runStep(() => DBOS.send('r', 'from a step'), { name: 'sends' }), {
        name: 'stepSender',
      });
      await DBOS.launch();

      const received = await start('r');
      await DBOS.startWorkflow(sender, { workflowID: 's' })();

      expect(await received.getResult()).toEqual(['from a step']);
      expect(await stepNames(DBOS, 's')).toEqual([[0, 'sends']]);
    });

    test('null is received when the time is up, and at once without any time', async () => {
      const clock = new ManualClock();
      const { DBOS } = await createEngine(dialect, {}, clock.settings);
      const impatient = DBOS.registerWorkflow(() => DBOS.recv('t', 0), { name: 'impatient' });
      const patient = DBOS.registerWorkflow(() => DBOS.recv('t'), { name: 'patient' });
      await DBOS.launch();

      expect(await impatient()).toBeNull();
      const handle = await DBOS.startWorkflow(patient)();
      await clock.untilArmed(60_000);
      clock.advance(60_000);
      expect(await handle.getResult()).toBeNull();
    });

    test('the time of a receive goes on over a recovery', async () => {
      const clock = new ManualClock();
      const { first, second } = await createGenerations(dialect, {}, clock.settings);
      for (const DBOS of [first, second]) DBOS.registerWorkflow(() => DBOS.recv('t', 100), { name: 'waits' });
      await first.launch();
      await first.startWorkflow(first[internals].registry.findWorkflow(null, 'waits')?.registeredFunction as never, {
        workflowID: 'w',
      })();
      await until(async () => (await first.listWorkflowSteps('w'))!.length === 1);
      await first.shutdown();

      clock.advance(70_000);
      await second.launch();
      await clock.untilArmed(30_000);
      clock.advance(30_000);

      expect(await second.retrieveWorkflow('w').getResult()).toBeNull();
    });

    test('the same idempotency key delivers once, also from two processes', async () => {
      const { DBOS, url, start } = await setup(dialect);
      const { DBOS: other } = await createEngine(dialect, { systemDatabaseUrl: url });
      await DBOS.launch();
      await other.launch();
      const handle = await start('r', 2);

      await Promise.all(
        Array.from({ length: 10 }, (_, n) => (n % 2 ? DBOS : other).send('r', `attempt ${n}`, undefined, 'once')),
      );
      await DBOS.send('r', 'last');

      expect(await handle.getResult()).toEqual([expect.stringMatching(/^attempt \d$/), 'last']);
    });

    test('keys and destinations that contain colons are kept apart', async () => {
      const { DBOS, start } = await setup(dialect);
      await DBOS.launch();
      const pairs: [key: string, destination: string][] = [
        ['a', 'b::c'],
        ['a::b', 'c'],
        ['k', ':d'],
        ['k:', 'd'],
        ['1::x', 'y'],
        ['1', 'x::y'],
        ['x', 'y'],
      ];
      const handles = await Promise.all(
        [...new Set(pairs.map(([, destination]) => destination))].map(async (destination) => {
          const sent = pairs.filter((pair) => pair[1] === destination).map(([key]) => key);
          return { sent, handle: await start(destination, sent.length) };
        }),
      );

      for (const [key, destination] of [...pairs, ...pairs]) await DBOS.send(destination, key, undefined, key);

      for (const { sent, handle } of handles) expect(await handle.getResult()).toEqual(sent);
    });

    test('ten senders against one receiver: nothing is lost and nothing doubled', async () => {
      const { DBOS, sender, start } = await setup(dialect);
      await DBOS.launch();
      const handle = await start('r', 200);

      const sent = Array.from({ length: 10 }, (_, from) => Array.from({ length: 20 }, (_, n) => `${from}:${n}`));
      await Promise.all(sent.map((messages) => sender('r', messages)));

      const received = (await handle.getResult()) as string[];
      expect([...received].sort()).toEqual(sent.flat().sort());
      for (const messages of sent) expect(received.filter((one) => messages.includes(one))).toEqual(messages);
    });

    test('a message to another process wakes its receiver', async () => {
      const { DBOS, url, start } = await setup(dialect);
      const { DBOS: other } = await createEngine(dialect, { systemDatabaseUrl: url });
      await DBOS.launch();
      await other.launch();

      const handle = await start('r', 20);
      for (let n = 0; n < 20; n += 1) await other.send('r', n);

      expect(await handle.getResult()).toHaveLength(20);
    });

    test('two receives at once take two messages', async () => {
      const { DBOS } = await setup(dialect);
      const both = DBOS.registerWorkflow(() => Promise.all([DBOS.recv<number>('t', 20), DBOS.recv<number>('t', 20)]), {
        name: 'both',
      });
      await DBOS.launch();

      const handle = await DBOS.startWorkflow(both, { workflowID: 'r' })();
      await DBOS.sendBulk([1, 2].map((message) => ({ destinationID: 'r', message, topic: 't' })));

      expect((await handle.getResult()).sort()).toEqual([1, 2]);
    });

    test('a bulk of messages is sent as a whole or not at all', async () => {
      const { DBOS, start } = await setup(dialect);
      const bulk = DBOS.registerWorkflow(
        (destinations: string[]) =>
          DBOS.sendBulk(destinations.map((destinationID, message) => ({ destinationID, message }))),
        { name: 'bulk' },
      );
      await DBOS.launch();
      const handles = [await start('a'), await start('b')];

      expect(
        await failureOf(
          DBOS.sendBulk([
            { destinationID: 'a', message: 0 },
            { destinationID: 'none', message: 1 },
          ]),
        ),
      ).toMatchObject({
        code: 'NON_EXISTENT_WORKFLOW',
      });
      expect(await failureOf(bulk(['b', 'none']))).toMatchObject({ code: 'NON_EXISTENT_WORKFLOW' });
      expect([...(await DBOS.getAllNotifications('a')), ...(await DBOS.getAllNotifications('b'))]).toEqual([]);

      await bulk(['a', 'b']);
      expect(await Promise.all(handles.map((handle) => handle.getResult()))).toEqual([[0], [1]]);
      await DBOS.sendBulk([]);
    });

    test('a missing or deleted destination is an error of its own call only, and recorded in a workflow', async () => {
      const { DBOS, url, sender, start } = await setup(dialect);
      const database = await dialect.open(url);
      await DBOS.launch();
      await start('deleted');
      const handle = await start('r');
      await DBOS.cancelWorkflow('deleted');
      await database.run(sql`DELETE FROM ${table('workflow_status')} WHERE workflow_uuid = 'deleted'`);

      const results = await Promise.allSettled([
        DBOS.send('nobody', 1),
        DBOS.send('r', 'arrives'),
        DBOS.send('deleted', 1),
        DBOS.startWorkflow(sender, { workflowID: 's' })('nobody', [1]).then((sent) => sent.getResult()),
      ]);

      expect(results.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'rejected', 'rejected']);
      expect((results[0] as PromiseRejectedResult).reason).toMatchObject({
        code: 'NON_EXISTENT_WORKFLOW',
        message: 'Sent to non-existent destination workflow UUID: nobody',
      });
      expect(await handle.getResult()).toEqual(['arrives']);
      expect((await DBOS.listWorkflowSteps('s'))![0]?.error?.message).toContain('nobody');
    });

    test('a message to a finished workflow is kept and received by nobody', async () => {
      const { DBOS, start } = await setup(dialect);
      await DBOS.launch();
      const handle = await start('done', 0);
      await handle.getResult();

      await DBOS.send('done', 'too late', 'topic');

      expect(await DBOS.getAllNotifications('done')).toEqual([
        { topic: 'topic', message: 'too late', createdAtEpochMs: expect.any(Number), consumed: false },
      ]);
    });

    test('a message that was received is not received again by the workflow when it is recovered', async () => {
      const { first, second } = await createGenerations(dialect);
      const halt = newHalt();
      const run = (DBOS: typeof first, pause: () => Promise<void>) =>
        DBOS.registerWorkflow(
          async () => {
            const one = await DBOS.recv('t', 20);
            await DBOS.runStep(pause, { name: 'pause' });
            return [one, await DBOS.recv('t', 20)];
          },
          { name: 'twice' },
        );
      const twice = run(first, () => halt.here());
      run(second, async () => {});
      await first.launch();
      await first.startWorkflow(twice, { workflowID: 'w' })();
      await first.sendBulk([1, 2].map((message) => ({ destinationID: 'w', message, topic: 't' })));
      await halt.reached;
      await first.shutdown();
      await second.launch();

      expect(await second.retrieveWorkflow('w').getResult()).toEqual([1, 2]);
    });

    test('a run that has lost its workflow neither sends nor receives', async () => {
      const { first, second } = await createZombie(dialect);
      const halts = [newHalt(), newHalt()];
      const register = (DBOS: typeof first, halt?: (typeof halts)[number]) => ({
        receiver: DBOS.registerWorkflow(
          async () => {
            await DBOS.runStep(async () => halt?.here(), { name: 'pause' });
            return DBOS.recv('t', 20);
          },
          { name: 'receiver' },
        ),
        sender: DBOS.registerWorkflow(
          async () => {
            await DBOS.runStep(
              async () => {
                if (halt !== halts[0]) return;
                await halts[1]?.here();
                await DBOS.send('r', 'from a step of the zombie', 't');
              },
              { name: 'pause' },
            );
            await DBOS.send('r', 'from the workflow', 't');
          },
          { name: 'sender' },
        ),
      });
      const zombies = register(first, halts[0]);
      register(second);
      await first.launch();
      await first.startWorkflow(zombies.receiver, { workflowID: 'r' })();
      const zombie = await first.startWorkflow(zombies.sender, { workflowID: 's' })();
      await Promise.all(halts.map((halt) => halt.reached));

      await second.launch();
      await second.retrieveWorkflow('s').getResult();
      expect(await second.retrieveWorkflow('r').getResult()).toBe('from the workflow');
      for (const halt of halts) halt.release();
      await zombie.getResult();

      expect(await second.getAllNotifications('r')).toMatchObject([{ message: 'from the workflow', consumed: true }]);
    });

    test('messages are received without any wake-up from other processes', async () => {
      const clock = new ManualClock(Date.now());
      const { DBOS, url } = await createEngine(dialect, { useListenNotify: false }, { clock });
      const receiver = DBOS.registerWorkflow(() => DBOS.recv('t', 1000), { name: 'receiver' });
      await DBOS.launch();
      const handle = await DBOS.startWorkflow(receiver, { workflowID: 'r' })();
      await until(async () => (await DBOS.listWorkflowSteps('r'))!.length === 1);
      const database = await dialect.open(url);

      await database.run(insertMessages([{ message: newMessage({ destinationID: 'r', text: '"silent"' }) }]));
      clock.advance(1000);

      expect(await handle.getResult()).toBe('silent');
    });

    test('wake-ups that come twice, or for nothing, deliver nothing twice', async () => {
      const { DBOS, start } = await setup(dialect);
      await DBOS.launch();
      const handle = await start('r', 3);
      const { bus, watchers } = engineOf(DBOS).runtime;
      const wakeUp = (): void => {
        watchers.onSent({ workflowID: 'r', topic: '__null__topic__' });
        bus.publishHere(topics.messages, 'r::__null__topic__');
      };

      for (const message of [1, 2, 3]) {
        wakeUp();
        await DBOS.send('r', message);
        wakeUp();
        wakeUp();
      }

      expect(await handle.getResult()).toEqual([1, 2, 3]);
    });

    test('a fork has messages of its own', async () => {
      const { DBOS, url, start } = await setup(dialect);
      const database = await dialect.open(url);
      await DBOS.launch();
      const original = await start('original', 2);
      await DBOS.send('original', 'to the original');
      await until(async () => (await DBOS.getAllNotifications('original'))[0]?.consumed === true);
      // As a fork from the beginning leaves it: the row of the original under another ID, and no messages.
      await database.run(sql`
        INSERT INTO ${table('workflow_status')}
          (workflow_uuid, status, name, inputs, serialization, application_version, application_name, forked_from)
        SELECT 'fork', 'CANCELLED', w.name, w.inputs, w.serialization, w.application_version, w.application_name, 'original'
        FROM ${table('workflow_status')} AS w WHERE w.workflow_uuid = 'original'`);
      await DBOS.resumeWorkflow('fork');

      await DBOS.sendBulk(['a', 'b'].map((message) => ({ destinationID: 'fork', message })));
      await DBOS.send('original', 'and again');

      expect(await DBOS.retrieveWorkflow('fork').getResult()).toEqual(['a', 'b']);
      expect(await original.getResult()).toEqual(['to the original', 'and again']);
    });

    test('a cancelled receiver stops waiting', async () => {
      const { DBOS, start } = await setup(dialect);
      await DBOS.launch();
      const handle = await start('r');

      await DBOS.cancelWorkflow('r');

      expect(await failureOf(handle.getResult())).toMatchObject({ code: 'WORKFLOW_CANCELLED' });
    });

    test.each([
      ['an ID that is no text', (send: SendAnything) => send(7, 'x'), /destinationID must be a string/],
      [
        'a topic with NUL',
        (send: SendAnything) => send('r', 'x', 'a\0b'),
        /topic must not contain a NUL character, but is "a\\u0000b"/,
      ],
      ['half a surrogate pair', (send: SendAnything) => send('r', 'x', '\ud800'), /surrogate/],
      ['a topic that is too long', (send: SendAnything) => send('r', 'x', 'a'.repeat(2000)), /longer than 1024 bytes/],
      ['a key with NUL', (send: SendAnything) => send('r', 'x', undefined, '\0'), /idempotencyKey/],
      [
        'a value without a form',
        (send: SendAnything) => send('r', new Map([[1, 2]]), undefined, undefined, { serializationType: 'portable' }),
        /portable form/,
      ],
      [
        'an unknown format',
        (send: SendAnything) => send('r', 1, undefined, undefined, { serializationType: 'xml' }),
        /serialization format/,
      ],
    ])('%s is refused at once, and nothing is written', async (_, act, message) => {
      const { DBOS, start } = await setup(dialect);
      await DBOS.launch();
      await start('r');

      const error = await failureOf((async () => act(DBOS.send.bind(DBOS) as unknown as SendAnything))());

      expect(error.message).toMatch(message);
      expect(await DBOS.getAllNotifications('r')).toEqual([]);
    });

    test('a NUL that a serializer writes is refused at once', async () => {
      const serializer = { name: () => 'nul', stringify: () => 'a\0b', parse: () => undefined };
      const { DBOS } = await createEngine(dialect, { serializer });
      await DBOS.launch();

      expect((await failureOf(DBOS.send('r', 1))).message).toMatch(/"nul" wrote a NUL/);
    });

    test('large and awkward values arrive as they were', async () => {
      const { DBOS, start } = await setup(dialect);
      await DBOS.launch();
      const values = ['x'.repeat(5_000_000), 'a\0b\ud800', new Map([[1, new Set([2n])]]), null, NaN, { a: undefined }];

      const handle = await start('r', values.length);
      for (const value of values) await DBOS.send('r', value);

      expect(await handle.getResult()).toEqual(values);
    });

    test.each([[-1], [NaN], [{ timeoutSeconds: -0.5 }], [{ deadlineEpochMS: Infinity }], [{ pollingIntervalMs: 0 }]])(
      'a receive with the limit %j is refused',
      async (limit) => {
        const { DBOS } = await setup(dialect);
        const receive = DBOS.registerWorkflow(() => DBOS.recv('t', limit), { name: 'bad' });
        await DBOS.launch();

        expect(await failureOf(receive())).toMatchObject({ code: 'INVALID_ARGUMENT' });
      },
    );

    test('receiving outside of workflow code is refused', async () => {
      const { DBOS } = await setup(dialect);
      const inStep = DBOS.registerWorkflow(() => DBOS.runStep(() => DBOS.recv()), { name: 'inStep' });
      await DBOS.launch();

      expect(await failureOf(DBOS.recv())).toMatchObject({ code: 'INVALID_WORKFLOW_TRANSITION' });
      expect(await failureOf(inStep())).toMatchObject({ code: 'INVALID_WORKFLOW_TRANSITION' });
    });
  });
});

type SendAnything = (...args: unknown[]) => Promise<void>;
