// Required roles hold for workflows that were enqueued without a check: by name, by a client, by a schedule.
import { expect, onTestFinished, test } from 'vitest';
import { DBOSClient } from '../../../src/index.js';
import { forEachDialect, type TestDialect } from '../../rig/dialects.js';
import { createEngine } from '../../rig/engines.js';
import { failureOf } from '../../run/succession.js';

/** A launched engine with a workflow that needs the role `owner`, and one that starts it as a child. */
async function setup(dialect: TestDialect) {
  const { DBOS, url } = await createEngine(dialect);
  const opened: string[] = [];
  class Vault {
    static async open(this: void, by = '') {
      opened.push(by);
      return `opened as ${DBOS.assumedRole}`;
    }
  }
  Vault.open = DBOS.registerWorkflow(Vault.open, { name: 'open', ctorOrProto: Vault });
  DBOS.requiredRole(['owner'])(Vault, 'open', Object.getOwnPropertyDescriptor(Vault, 'open')!);
  const visit = DBOS.registerWorkflow(
    async () => (await DBOS.startWorkflow(Vault, { queueName: 'q' }).open('a visitor')).getResult(),
    { name: 'visit' },
  );
  await DBOS.launch();
  await DBOS.registerQueue('q');
  const byName = { queueName: 'q', workflowName: 'open', workflowClassName: 'Vault' };
  return { DBOS, url, Vault, visit, opened, byName };
}

forEachDialect((dialect) => {
  test.each([[[]], [['guest']], [['own']], [['not-owner']]])(
    'by name with the roles %j it is refused',
    async (roles) => {
      const { DBOS, opened, byName } = await setup(dialect);

      const handle = await DBOS.enqueueWorkflowWithOptions({ ...byName, authenticatedRoles: roles }, 'ann');

      expect(await failureOf(handle.getResult())).toMatchObject({ code: 'NOT_AUTHORIZED' });
      expect(await handle.getStatus()).toMatchObject({ status: 'ERROR' });
      expect(opened).toEqual([]);
    },
  );

  test('by name with the role it runs, in that role', async () => {
    const { DBOS, byName } = await setup(dialect);

    const handle = await DBOS.enqueueWorkflowWithOptions({ ...byName, authenticatedRoles: ['guest', 'owner'] }, 'ann');

    expect(await handle.getResult()).toBe('opened as owner');
  });

  test('by a client it needs the role', async () => {
    const { url, opened, byName } = await setup(dialect);
    const client = await DBOSClient.create({ systemDatabaseUrl: url });
    onTestFinished(() => client.destroy());

    const without = await client.enqueue(byName, 'bob');
    const within = await client.enqueue({ ...byName, authenticatedRoles: ['owner'] }, 'ann');

    expect(await failureOf(without.getResult())).toMatchObject({ code: 'NOT_AUTHORIZED' });
    expect(await within.getResult()).toBe('opened as owner');
    expect(opened).toEqual(['ann']);
  });

  test('a child on a queue has the roles of its parent', async () => {
    const { DBOS, visit } = await setup(dialect);

    const result = await DBOS.withAuthedContext('ann', ['owner'], () => visit());

    expect(result).toBe('opened as owner');
  });

  test('an occurrence of a schedule has no roles', async () => {
    const { DBOS, Vault, opened } = await setup(dialect);
    const schedule = { scheduleName: 's', workflowFn: Vault.open as never, schedule: '0 0 1 1 *' };
    await DBOS.createSchedule(schedule);

    const handle = await DBOS.triggerSchedule('s');

    expect(await failureOf(handle.getResult())).toMatchObject({ code: 'NOT_AUTHORIZED' });
    expect(opened).toEqual([]);
  });
});
