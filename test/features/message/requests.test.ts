import { describe, expect, test } from 'vitest';
import type { IncomingRequest } from '../../../src/index.js';
import { forEachDialect, type TestDialect } from '../../rig/dialects.js';
import { createEngine } from '../../rig/engines.js';
import { ManualClock } from '../../rig/manual-clock.js';
import { createGenerations, failureOf, newHalt } from '../../run/succession.js';

type Add = (amount: number) => number;
type Fail = (message: string) => never;
type Close = () => string;

const positive = {
  '~standard': {
    version: 1,
    vendor: 'test',
    validate: (value: unknown) =>
      typeof value === 'number' && value > 0 ? { value } : { issues: [{ message: 'must be a positive number' }] },
  },
} as const;

async function setup(dialect: TestDialect, DBOS?: Awaited<ReturnType<typeof createEngine>>['DBOS']) {
  const engine = DBOS ? { DBOS, url: '' } : await createEngine(dialect);
  const runs = { adds: 0 };
  const account = engine.DBOS.registerWorkflow(
    async () => {
      let balance = 0;
      const end = await engine.DBOS.handleRequests<{ add: Add; fail: Fail; close: Close; bad: () => unknown }>({
        add: {
          schema: positive,
          handle: async (amount) => {
            await engine.DBOS.runStep(async () => (runs.adds += 1), { name: 'add' });
            balance += amount;
            return balance;
          },
        },
        fail: (message) => {
          throw Object.assign(new RangeError(message), { code: 'E_FAIL' });
        },
        bad: () => {
          const circle: Record<string, unknown> = { symbol: Symbol('x') };
          return Object.defineProperty(circle, 'x', {
            enumerable: true,
            get: () => {
              throw new Error('unreadable');
            },
          });
        },
        close: (_, request: IncomingRequest) => {
          request.stop();
          return 'closed';
        },
      });
      return [end, balance];
    },
    { name: 'account' },
  );
  return { ...engine, account, runs };
}

describe('requests', () => {
  forEachDialect((dialect) => {
    test('a running workflow answers requests one after the other, each once', async () => {
      const { DBOS, account } = await setup(dialect);
      await DBOS.launch();
      const handle = await DBOS.startWorkflow(account, { workflowID: 'a' })();

      const answers = await Promise.all([5, 7, 1].map((amount) => DBOS.sendRequest<Add>('a', 'add', amount)));
      const last: string = await DBOS.sendRequest<Close>('a', 'close', undefined);

      expect(answers).toEqual([5, 12, 13]);
      expect(last).toBe('closed');
      expect(await handle.getResult()).toEqual(['stopped', 13]);
    });

    test('a request of another process is answered, and a repeated one gets the same answer', async () => {
      const { DBOS, url, account } = await setup(dialect);
      const { DBOS: other } = await createEngine(dialect, { systemDatabaseUrl: url });
      await DBOS.launch();
      await other.launch();
      await DBOS.startWorkflow(account, { workflowID: 'a' })();
      const options = { idempotencyKey: 'payment-7' };

      const answers = await Promise.all(
        [other, DBOS, other].map((one) => one.sendRequest<Add>('a', 'add', 5, options)),
      );

      expect(answers).toEqual([5, 5, 5]);
      expect(await other.sendRequest<Add>('a', 'add', 1)).toBe(6);
    });

    test('errors of a handler, of its schema and of its name are the answer, and the workflow goes on', async () => {
      const { DBOS, account } = await setup(dialect);
      await DBOS.launch();
      await DBOS.startWorkflow(account, { workflowID: 'a' })();

      expect(await failureOf(DBOS.sendRequest<Fail>('a', 'fail', 'oh'))).toMatchObject({
        name: 'RangeError',
        message: 'oh',
        code: 'E_FAIL',
      });
      expect(await failureOf(DBOS.sendRequest<Add>('a', 'add', -1))).toMatchObject({
        message: 'The payload of request "add" is not valid: must be a positive number',
      });
      expect(await failureOf(DBOS.sendRequest('a', 'toString', 1))).toMatchObject({ code: 'REQUEST_REFUSED' });
      expect((await failureOf(DBOS.sendRequest('a', 'bad', 1))).message).toMatch(/unreadable/);
      for (const junk of [
        'no request at all',
        {},
        { requestID: 'x\0', name: 'add' },
        { requestID: 'x'.repeat(1024), name: 'add' },
      ]) {
        await DBOS.send('a', junk, '__everstep_requests__');
      }
      expect(await DBOS.sendRequest<Add>('a', 'add', 3)).toBe(3);
    });

    test('a request to no workflow, or to one that has ended or ends, is refused at once', async () => {
      const { DBOS, account } = await setup(dialect);
      await DBOS.launch();
      await DBOS.startWorkflow(account, { workflowID: 'a' })();

      expect(await failureOf(DBOS.sendRequest('nobody', 'add', 1))).toMatchObject({ code: 'NON_EXISTENT_WORKFLOW' });
      const [closed, late] = await Promise.allSettled([
        DBOS.sendRequest('a', 'close', 0),
        DBOS.sendRequest('a', 'add', 1),
      ]);
      expect(closed.status).toBe('fulfilled');
      expect(late).toMatchObject({ reason: { code: 'REQUEST_REFUSED' } });
      expect((await failureOf(DBOS.sendRequest('a', 'add', 1))).message).toMatch(/has ended with status SUCCESS/);
    });

    test('a request that is not answered in time is an error, and is answered later all the same', async () => {
      const clock = new ManualClock();
      const { DBOS } = await createEngine(dialect, {}, clock.settings);
      const slow = DBOS.registerWorkflow(
        async () => {
          await DBOS.recv('begin', 1000);
          return DBOS.handleRequests({ ask: () => 'answer' }, { timeoutSeconds: 0 });
        },
        { name: 'slow' },
      );
      await DBOS.launch();
      const handle = await DBOS.startWorkflow(slow, { workflowID: 's' })();

      const asked = DBOS.sendRequest('s', 'ask', null, { timeoutMs: 5000, idempotencyKey: 'k' });
      await clock.untilArmed(5000);
      clock.advance(5000);
      expect(await failureOf(asked)).toMatchObject({ code: 'REQUEST_TIMEOUT', timeoutMs: 5000 });
      await DBOS.send('s', 'now', 'begin');

      expect(await handle.getResult()).toBe('timeout');
      expect(await DBOS.sendRequest('s', 'ask', null, { idempotencyKey: 'k' })).toBe('answer');
    });

    test('the answering side goes on after a crash: nothing is answered twice', async () => {
      const { first, second } = await createGenerations(dialect);
      const one = await setup(dialect, first);
      const two = await setup(dialect, second);
      await first.launch();
      await first.startWorkflow(one.account, { workflowID: 'a' })();
      expect(await first.sendRequest<Add>('a', 'add', 5)).toBe(5);
      await first.shutdown();
      await second.launch();

      expect(await second.sendRequest<Add>('a', 'add', 2)).toBe(7);
      expect([one.runs.adds, two.runs.adds]).toEqual([1, 1]);
    });

    test('the asking workflow goes on after a crash: it asks once and gets the same answer', async () => {
      const { first, second } = await createGenerations(dialect);
      const halt = newHalt();
      const register = async (DBOS: typeof first, pause: () => Promise<void>) => ({
        ...(await setup(dialect, DBOS)),
        asker: DBOS.registerWorkflow(
          async () => {
            const answers = [await DBOS.sendRequest<Add>('a', 'add', 5)];
            await DBOS.runStep(pause, { name: 'pause' });
            return [
              ...answers,
              await DBOS.sendRequest<Add>('a', 'add', 1),
              await failureOf(DBOS.sendRequest<Fail>('a', 'fail', 'x')).then(({ message }) => message),
            ];
          },
          { name: 'asker' },
        ),
      });
      const { account, asker } = await register(first, () => halt.here());
      await register(second, async () => {});
      await first.launch();
      await first.startWorkflow(account, { workflowID: 'a' })();
      await first.startWorkflow(asker, { workflowID: 'r' })();
      await halt.reached;
      await first.shutdown();
      await second.launch();

      expect(await second.retrieveWorkflow('r').getResult()).toEqual([5, 6, 'x']);
      const names = (await second.listWorkflowSteps('r'))!.map(({ functionID, name }) => [functionID, name]);
      expect(names.filter(([, name]) => name !== 'DBOS.sleep')).toEqual([
        [0, 'DBOS.request'],
        [1, 'DBOS.answer'],
        [3, 'pause'],
        [4, 'DBOS.request'],
        [5, 'DBOS.answer'],
        [7, 'DBOS.request'],
        [8, 'DBOS.answer'],
      ]);
    });

    test('places and limits that are not allowed are refused at once', async () => {
      const { DBOS } = await setup(dialect);
      await DBOS.launch();

      expect(await failureOf(DBOS.handleRequests({}))).toMatchObject({ code: 'INVALID_WORKFLOW_TRANSITION' });
      expect((await failureOf(DBOS.sendRequest('a', 'x\0', 1))).message).toMatch(/^name must not contain a NUL/);
      expect((await failureOf(DBOS.sendRequest('a', 'x', 1, { timeoutMs: NaN }))).message).toMatch(/timeoutMs/);
      const options = { idempotencyKey: 'k'.repeat(1020) };
      expect((await failureOf(DBOS.sendRequest('a', 'x', 1, options))).message).toMatch(/longer than 1024 bytes/);
    });
  });
});
