// Operations that workflow code forgets to await: the log names them, however early the workflow ends.
import { describe, expect, test } from 'vitest';
import { silentLogger } from '../../src/kernel/base/log.js';
import { registerDataSource, registerTransaction } from '../../src/plugins/transaction/datasource.js';
import type { DBOSInstance } from '../../src/index.js';
import { forEachDialect } from '../rig/dialects.js';
import { createEngine } from '../rig/engines.js';

type Code = (DBOS: DBOSInstance) => unknown;

const transactions = new WeakMap<DBOSInstance, () => Promise<string>>();
const children = new WeakMap<DBOSInstance, () => Promise<string>>();
const transactionOf = (DBOS: DBOSInstance) => transactions.get(DBOS) as () => Promise<string>;
const childOf = (DBOS: DBOSInstance) => children.get(DBOS) as () => Promise<string>;

const FORGOTTEN: readonly (readonly [string, Code])[] = [
  ['step', (DBOS) => void DBOS.runStep(async () => 1, { name: 'step' })],
  ['retried', (DBOS) => void DBOS.runStep(async () => 1, { name: 'retried', retriesAllowed: true })],
  ['transaction', (DBOS) => void transactionOf(DBOS)()],
  ['child', (DBOS) => void DBOS.startWorkflow(childOf(DBOS))()],
  ['child', (DBOS) => void childOf(DBOS)()],
  ['DBOS.sleep', (DBOS) => void DBOS.sleep(60_000)],
  ['DBOS.cancelWorkflow', (DBOS) => void DBOS.cancelWorkflow('other')],
];

forEachDialect((dialect) => {
  async function setup() {
    const warnings: string[] = [];
    const logger = { ...silentLogger, warn: (entry: unknown) => void warnings.push(String(entry)) };
    const { DBOS } = await createEngine(dialect, { logger });
    registerDataSource(plainSource, DBOS);
    transactions.set(
      DBOS,
      registerTransaction('source', async () => 'done', { name: 'transaction' }, DBOS),
    );
    children.set(
      DBOS,
      DBOS.registerWorkflow(async () => 'done', { name: 'child' }),
    );
    return { DBOS, warnings };
  }

  /** Runs a workflow, whose row is still being written when its code begins. Returns the warnings about it. */
  async function warningsOf(code: Code): Promise<string[]> {
    const { DBOS, warnings } = await setup();
    const workflow = DBOS.registerWorkflow(
      async () => {
        const value: unknown = code(DBOS);
        return value instanceof Promise ? ((await value) as unknown) : 'ended';
      },
      { name: 'forgetful' },
    );
    await DBOS.launch();
    const handle = await DBOS.startWorkflow(workflow)();
    await handle.getResult();
    await DBOS.shutdown();
    return warnings.filter((text) => text.includes(handle.workflowID) && text.includes('has ended while'));
  }

  test.each(FORGOTTEN)('%s as the first operation', async (name, code) => {
    expect(await warningsOf(code)).toEqual([
      expect.stringMatching(
        new RegExp(
          `^Workflow "[^"]+" \\(forgetful\\) has ended while operations of it were in progress: "${name}" \\(0\\). ` +
            'Their outcomes are lost. Await every operation, or pass those of which only the first matters to DBOS.race.$',
        ),
      ),
    ]);
  });

  test.each<[string, Code]>([
    [
      'a sleep that loses a race',
      (DBOS) => DBOS.race([DBOS.runStep(async () => 1, { name: 's' }), DBOS.sleep(60_000)]),
    ],
    [
      'a sleep within what loses a race',
      (DBOS) => DBOS.race([DBOS.now(), (async () => DBOS.sleep(60_000).then(() => DBOS.now()))()]),
    ],
    [
      'a sleep that is not among those that settle in time',
      (DBOS) => DBOS.wait([DBOS.sleep(60_000)], { timeoutMs: 1 }).then(({ done }) => done.length),
    ],
    ['a sleep beside the first to succeed', (DBOS) => DBOS.any([DBOS.now(), DBOS.sleep(60_000)])],
    ['an awaited operation', (DBOS) => DBOS.sleep(1)],
  ])('%s is not forgotten', async (_, code) => {
    expect(await warningsOf(code)).toEqual([]);
  });

  describe('startWorkflow', () => {
    test('that is awaited without a call of what it returns is warned of once for each place', async () => {
      const { DBOS, warnings } = await setup();
      await DBOS.launch();

      for (let time = 0; time < 3; time += 1) {
        // eslint-disable-next-line @typescript-eslint/await-thenable -- The mistake under test.
        await DBOS.startWorkflow(childOf(DBOS));
      }
      // eslint-disable-next-line @typescript-eslint/await-thenable -- The same in another place.
      await DBOS.startWorkflow(childOf(DBOS));

      expect(warnings).toEqual([
        expect.stringMatching(
          /^DBOS.startWorkflow\(child\) is awaited at .*unawaited-operations.test.ts:\d+:\d+\)?, .*\(child\)\(…\)/,
        ),
        expect.stringContaining('DBOS.startWorkflow(child) is awaited at'),
      ]);
      expect(await DBOS.listWorkflows({})).toEqual([]);
    });

    test('that is called is not', async () => {
      const { DBOS, warnings } = await setup();
      await DBOS.launch();

      const start = DBOS.startWorkflow(childOf(DBOS));
      await (await start()).getResult();

      expect(warnings).toEqual([]);
    });
  });
});

/** A data source without a database. */
const plainSource = {
  name: 'source',
  dsType: 'test',
  initialize: () => Promise.resolve(),
  destroy: () => Promise.resolve(),
  invokeTransactionFunction: <This, Args extends unknown[], Return>(
    _: unknown,
    target: This,
    func: (this: This, ...args: Args) => Promise<Return>,
    ...args: Args
  ) => func.apply(target, args),
};
