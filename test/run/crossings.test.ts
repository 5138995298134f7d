// Branches under `Promise.all` whose later operations take each other's numbers in a replay.
import { describe, expect, test } from 'vitest';
import { silentLogger } from '../../src/kernel/base/log.js';
import type { DBOSInstance } from '../../src/index.js';
import { sql, table } from '../../src/kernel/sql/sql.js';
import { forEachDialect } from '../rig/dialects.js';
import { engineOf } from '../rig/engines.js';
import { until } from '../rig/manual-clock.js';
import { createGenerations, failureOf, newHalt } from './succession.js';

type Call = (what: string) => Promise<string>;

/** Registers an operation under the name. */
type Register = (DBOS: DBOSInstance, call: Call, name: string) => Call;

const asStep: Register = (DBOS, call, name) => DBOS.registerStep(call, { name });
const asChild: Register = (DBOS, call, name) => DBOS.registerWorkflow(call, { name });
const asAnonymousStep: Register = (DBOS, call, name) => (what) => DBOS.runStep(() => call(what), { name });

/** What the branches do, with the operations "quote" and "pay". `isLeft` in the process that ends in the middle. */
interface Scene {
  readonly DBOS: DBOSInstance;
  readonly isLeft: boolean;
  readonly quote: Call;
  readonly pay: Call;
}

const PEOPLE = ['alice', 'bob'];

const crossing = ({ quote, pay }: Scene): Promise<string[]> =>
  Promise.all(PEOPLE.map(async (who) => `${who}: ${await pay(await quote(who))}`));

forEachDialect((dialect) => {
  /**
   * Leaves the workflow in the first engine when `recorded` operations are recorded, and recovers it in the second. In the
   * first one, the quote for alice comes last.
   */
  async function setup(
    branches: (scene: Scene) => Promise<unknown>,
    {
      register = asStep,
      quotedBefore,
      recorded = 4,
      hangsAt,
      change,
    }: {
      readonly register?: Register;
      /** Recorded before alice has her quote. */
      readonly quotedBefore: number;
      readonly recorded?: number;
      /** A payment that never ends in the first engine. */
      readonly hangsAt?: string;
      /** What happens to the checkpoints meanwhile. */
      readonly change?: (DBOS: DBOSInstance) => Promise<unknown>;
    },
  ) {
    const errors: string[] = [];
    const logger = { ...silentLogger, error: (entry: unknown) => void errors.push(String(entry)) };
    const { first, second } = await createGenerations(dialect, { logger });
    const slow = newHalt();
    const registerAll = (DBOS: DBOSInstance) => {
      const isLeft = DBOS === first;
      const quote = asStep(
        DBOS,
        async (who) => {
          if (isLeft && who === 'alice') await slow.here();
          return `quote for ${who}`;
        },
        'quote',
      );
      const pay = register(
        DBOS,
        async (what) => (isLeft && what === hangsAt ? new Promise<never>(() => {}) : `paid ${what}`),
        'pay',
      );
      return DBOS.registerWorkflow(
        async () => {
          const result = await branches({ DBOS, isLeft, quote, pay });
          await DBOS.runStep(() => (isLeft ? new Promise<void>(() => {}) : Promise.resolve()), { name: 'after' });
          return result;
        },
        { name: 'buy' },
      );
    };
    const buy = registerAll(first);
    registerAll(second);
    await first.launch();
    await first.startWorkflow(buy, { workflowID: 'w' })();
    const count = async () => ((await first.listWorkflowSteps('w')) ?? []).length;
    await until(async () => (await count()) === quotedBefore);
    slow.release();
    await until(async () => (await count()) === recorded);
    await change?.(first);
    await first.shutdown();
    errors.length = 0;
    await second.launch();
    return { second, result: second.retrieveWorkflow('w').getResult(), errors };
  }

  describe('branches under Promise.all that cross in a replay', () => {
    test.each([
      ['steps', asStep, 2, 4],
      ['children', asChild, 3, 6],
    ] as const)(
      "%s: the run is stopped before one gets the other's result",
      async (_, register, quotedBefore, recorded) => {
        const { result, errors } = await setup(crossing, { register, quotedBefore, recorded });

        const failure = await failureOf(result);

        expect(failure).toMatchObject({ code: 'UNEXPECTED_STEP', workflowID: 'w', stepID: 2, recordedName: 'pay' });
        expect(failure.message).toContain('DBOS.parallel');
        expect(errors).toHaveLength(1);
      },
    );

    test('so is a run whose branches await children that they have started before', async () => {
      const awaiting = async ({ DBOS, quote, pay }: Scene): Promise<string[]> => {
        const handles = await Promise.all(PEOPLE.map((who) => DBOS.startWorkflow(pay)(who)));
        const result = async (who: string, index: number): Promise<string> => {
          await quote(who);
          return `${who}: ${await handles[index]?.getResult()}`;
        };
        return Promise.all(PEOPLE.map(result));
      };

      const { result } = await setup(awaiting, { register: asChild, quotedBefore: 4, recorded: 6 });

      const expected = { code: 'UNEXPECTED_STEP', stepID: 4, recordedName: 'DBOS.getResult' };
      expect(await failureOf(result)).toMatchObject(expected);
    });

    test('so is a run of which only one branch has come that far', async () => {
      const { result } = await setup(crossing, { quotedBefore: 2, recorded: 3, hangsAt: 'quote for alice' });

      expect(await failureOf(result)).toMatchObject({ code: 'UNEXPECTED_STEP', stepID: 2 });
    });

    test('so is a run whose three branches have moved on by one', async () => {
      const three = ({ quote, pay }: Scene): Promise<string[]> =>
        Promise.all(['alice', 'bob', 'carol'].map(async (who) => `${who}: ${await pay(await quote(who))}`));

      const { result } = await setup(three, { quotedBefore: 4, recorded: 6 });

      expect(await failureOf(result)).toMatchObject({ code: 'UNEXPECTED_STEP', workflowID: 'w' });
    });

    test('records without a hash, as DBOS writes them, replay as before', async () => {
      const { result } = await setup(crossing, {
        quotedBefore: 2,
        change: (DBOS) =>
          engineOf(DBOS).runtime.database.transaction((tx) =>
            tx.run(sql`UPDATE ${table('operation_outputs')} SET arguments_hash = NULL`),
          ),
      });

      expect(await result).toEqual(['alice: paid quote for bob', 'bob: paid quote for alice']);
    });

    test('steps without arguments cannot be told apart', async () => {
      const { result } = await setup(crossing, { register: asAnonymousStep, quotedBefore: 2 });

      expect(await result).toEqual(['alice: paid quote for bob', 'bob: paid quote for alice']);
    });
  });

  describe('a replay goes on', () => {
    test('if workers take what is next, and another one is faster', async () => {
      const pool = async ({ quote, pay }: Scene): Promise<string[]> => {
        const waiting = ['bob', 'carol', 'dave'];
        const paid: string[] = [];
        const worker = async (first: Promise<string>): Promise<void> => {
          await first;
          for (let who = waiting.shift(); who !== undefined; who = waiting.shift()) paid.push(await pay(who));
        };
        await Promise.all([worker(quote('alice')), worker(quote('bob'))]);
        return paid.sort();
      };

      const { result } = await setup(pool, { quotedBefore: 4, recorded: 5 });

      expect(await result).toEqual(['paid bob', 'paid carol', 'paid dave']);
    });

    test('if arguments differ from run to run', async () => {
      const varying = async ({ isLeft, quote, pay }: Scene): Promise<string[]> => {
        const day = isLeft ? 'Monday' : 'Tuesday';
        const quoted = await Promise.all(PEOPLE.map((who) => quote(who)));
        const together = await Promise.all([pay(`${day} 1`), pay(`${day} 2`)]);
        return [...quoted, ...together, await pay(isLeft ? 'Sunday' : 'Monday 1')];
      };

      const { result } = await setup(varying, { quotedBefore: 1, recorded: 5 });

      expect(await result).toEqual([
        'quote for alice',
        'quote for bob',
        'paid Monday 1',
        'paid Monday 2',
        'paid Sunday',
      ]);
    });

    test('if arguments count what the process has done', async () => {
      const counting = async ({ isLeft, quote, pay }: Scene): Promise<string[]> => {
        let next = isLeft ? 0 : 1;
        const quoted = await Promise.all(PEOPLE.map((who) => quote(who)));
        return [...quoted, ...(await Promise.all([1, 2, 3].map(() => pay(String((next += 1))))))];
      };

      const { result } = await setup(counting, { quotedBefore: 1, recorded: 5 });

      expect(await result).toEqual(['quote for alice', 'quote for bob', 'paid 1', 'paid 2', 'paid 3']);
    });

    test('if the branches have come in the same order', async () => {
      const ordered = async ({ quote, pay }: Scene): Promise<string[]> => {
        const quoted = await Promise.all(PEOPLE.map((who) => quote(who)));
        return Promise.all(quoted.map(async (what) => pay(await pay(what))));
      };

      const { result } = await setup(ordered, { quotedBefore: 1, recorded: 6 });

      expect(await result).toEqual(['paid paid quote for alice', 'paid paid quote for bob']);
    });
  });
});
