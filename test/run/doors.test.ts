// What cannot be stored is refused by the call that brings it, before it can spoil a commit of others.
import { describe, expect, onTestFinished, test } from 'vitest';
import { DBOSClient, Debouncer } from '../../src/index.js';
import type { DBOSInstance } from '../../src/faces/library/dbos.js';
import type { StartWorkflowParams } from '../../src/features/queue/enqueue.js';
import { forEachDialect, type TestDialect } from '../rig/dialects.js';
import { createEngine } from '../rig/engines.js';

const HALF = 'a\ud800';
const NUL = 'a\0b';

/** Parameters that no call may accept. The types refuse some of them already. */
const BAD: [string, Record<string, unknown>][] = [
  ...[HALF, NUL, 5, true, ['a']].flatMap((bad): [string, Record<string, unknown>][] => [
    [`workflowID ${JSON.stringify(bad)}`, { workflowID: bad }],
    [`queueName ${JSON.stringify(bad)}`, { queueName: bad }],
    [`deduplicationID ${JSON.stringify(bad)}`, { enqueueOptions: { deduplicationID: bad } }],
    [`queuePartitionKey ${JSON.stringify(bad)}`, { enqueueOptions: { queuePartitionKey: bad } }],
    [`applicationVersion ${JSON.stringify(bad)}`, { enqueueOptions: { applicationVersion: bad } }],
    [`authenticatedUser ${JSON.stringify(bad)}`, { authenticatedUser: bad }],
  ]),
  ['a role with NUL', { authenticatedRoles: [NUL] }],
  ['an attribute with NUL', { workflowAttributes: { note: NUL } }],
  ['an attribute with half of a surrogate pair', { workflowAttributes: { note: HALF } }],
  ['a priority beyond 32 bits', { enqueueOptions: { priority: 2 ** 31 } }],
  ['a delay of millions of years', { enqueueOptions: { delaySeconds: 1e16 } }],
  ['a timeout that is no number of milliseconds', { timeoutMS: 1e300 }],
];

type Start = (params: StartWorkflowParams) => Promise<unknown>;

async function setup(dialect: TestDialect) {
  const { DBOS, url } = await createEngine(dialect);
  const workflow = DBOS.registerWorkflow(async () => 'done', { name: 'workflow' });
  let body: () => Promise<unknown> = async () => undefined;
  const calling = DBOS.registerWorkflow(() => body(), { name: 'calling' });
  await DBOS.launch();
  await DBOS.registerQueue('q');
  const client = await DBOSClient.create({ systemDatabaseUrl: url });
  onTestFinished(() => client.destroy());
  const inWorkflow = (call: typeof body): Promise<unknown> => {
    body = call;
    return calling();
  };
  return { DBOS, workflow, inWorkflow, client, starts: startsOf(DBOS, workflow, client) };
}

/** Every way to start a workflow with parameters. */
function startsOf(DBOS: DBOSInstance, workflow: () => Promise<string>, client: DBOSClient): [string, Start][] {
  const byName = ({ enqueueOptions, workflowAttributes, timeoutMS, ...params }: StartWorkflowParams) => {
    const { applicationVersion, ...rest } = enqueueOptions ?? {};
    return {
      workflowName: 'workflow',
      queueName: 'q',
      ...params,
      ...rest,
      ...(timeoutMS != null && { workflowTimeoutMS: timeoutMS }),
      ...(workflowAttributes && { attributes: workflowAttributes }),
      ...(applicationVersion !== undefined && { appVersion: applicationVersion }),
    };
  };
  return [
    ['startWorkflow', async (params) => DBOS.startWorkflow(workflow, { queueName: 'q', ...params })()],
    ['startWorkflows', async (params) => DBOS.startWorkflows(workflow, [{ args: [] }], { queueName: 'q', ...params })],
    ['enqueueWorkflowWithOptions', async (params) => DBOS.enqueueWorkflowWithOptions(byName(params))],
    ['client.enqueue', async (params) => client.enqueue(byName(params))],
    [
      'contexts',
      async ({ workflowID, queueName, authenticatedUser, authenticatedRoles, timeoutMS, ...params }) =>
        DBOS.runWithContext(
          {
            ...(workflowID !== undefined && { idAssignedForNextWorkflow: workflowID }),
            ...(queueName !== undefined && { queueAssignedForWorkflows: queueName }),
            ...(authenticatedUser !== undefined && { authenticatedUser }),
            ...(authenticatedRoles !== undefined && { authenticatedRoles }),
            ...(timeoutMS !== undefined && { workflowTimeoutMS: timeoutMS }),
          },
          async () => DBOS.startWorkflow(workflow, queueName === undefined ? { queueName: 'q', ...params } : params)(),
        ),
    ],
  ];
}

describe('the doors', () => {
  forEachDialect((dialect) => {
    test('no entry takes a name, text or number that cannot be stored as it is', async () => {
      const { DBOS, workflow, starts } = await setup(dialect);
      const accepted: string[] = [];

      for (const [entry, start] of starts) {
        for (const [what, params] of BAD) {
          // Twice: the second would look for the first.
          for (let attempt = 0; attempt < 2; attempt += 1) {
            const code = await start(params).then(
              () => 'accepted',
              (error: Error & { code?: string }) => error.code ?? error.message,
            );
            if (!/^INVALID_(ARGUMENT|QUEUE_PRIORITY)$/.test(code)) accepted.push(`${entry} with ${what}: ${code}`);
          }
        }
      }

      expect(accepted).toEqual([]);
      expect(await workflow()).toBe('done');
      expect(await DBOS.listWorkflows({})).toHaveLength(1);
    });

    test.each([HALF, NUL, 5 as unknown as string])('no name of another kind may be %j', async (bad) => {
      const { DBOS, workflow, inWorkflow, client } = await setup(dialect);
      const calls: Record<string, () => Promise<unknown>> = {
        setEvent: () => DBOS.setEvent(bad, 1),
        writeStream: () => DBOS.writeStream(bad, 1),
        recv: () => DBOS.recv(bad, 0),
        'send to': () => DBOS.send(bad, 1),
        'send under a topic': () => DBOS.send('w', 1, bad),
        'send with a key': () => DBOS.send('w', 1, 'topic', bad),
        getEvent: () => DBOS.getEvent('w', bad, 0),
        'start a child': () => DBOS.startWorkflow(workflow, { workflowID: bad })(),
      };
      const outside: Record<string, () => Promise<unknown>> = {
        withNextWorkflowID: () => DBOS.withNextWorkflowID(bad, () => workflow()),
        withWorkflowQueue: () => DBOS.withWorkflowQueue(bad, () => DBOS.startWorkflow(workflow)()),
        withAuthedContext: () => DBOS.withAuthedContext(bad, [], () => DBOS.startWorkflow(workflow)()),
        sendBulk: () => DBOS.sendBulk([{ destinationID: 'w', message: 1, topic: bad }]),
        fork: () => DBOS.forkWorkflow('w', 0, { newWorkflowID: bad }),
        registerQueue: () => DBOS.registerQueue(bad),
        createSchedule: () => client.createSchedule({ scheduleName: bad, workflowName: 'w', schedule: '0 0 1 1 *' }),
        'client.send': () => client.send('w', 1, bad),
      };
      await DBOS.startWorkflow(workflow, { workflowID: 'w' })();
      const accepted: string[] = [];
      const expectRefusal = async (what: string, call: () => Promise<unknown>) => {
        const code = await call().then(
          () => 'accepted',
          (error: Error & { code?: string }) => error.code ?? error.message,
        );
        if (!/^INVALID_/.test(code)) accepted.push(`${what}: ${code}`);
      };

      for (const [what, call] of Object.entries(calls)) await expectRefusal(what, () => inWorkflow(call));
      for (const [what, call] of Object.entries(outside)) await expectRefusal(what, async () => call());

      expect(accepted).toEqual([]);
    });

    test('a debounce key that cannot be stored as it is is refused', async () => {
      const { DBOS, workflow } = await setup(dialect);
      const debouncer = new Debouncer({ workflow }, DBOS);

      for (const key of [HALF, NUL, 5 as unknown as string]) {
        await expect(debouncer.debounce(key, 1000)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
      }
    });

    test('a sleep that cannot be stored is refused where it is called', async () => {
      const { DBOS } = await createEngine(dialect);
      const sleeper = DBOS.registerWorkflow(async () => DBOS.sleep(1e19), { name: 'sleeper' });
      await DBOS.launch();

      await expect(sleeper()).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    });
  });
});
