import { expect, test } from 'vitest';
import type { AdoptOptions } from '../../../src/index.js';
import { silentLogger } from '../../../src/kernel/base/log.js';
import { sql, table } from '../../../src/kernel/sql/sql.js';
import { forEachDialect, type TestDialect } from '../../rig/dialects.js';
import { createEngine } from '../../rig/engines.js';

/** Two workflows that two executors of DBOS have left running, and how to launch on their database. */
async function setup(dialect: TestDialect) {
  const url = await dialect.createURL();
  const launch = async (applicationVersion: string, adopt?: AdoptOptions) => {
    const lines: string[] = [];
    const logger = { ...silentLogger, info: (line: unknown) => void lines.push(String(line)) };
    const config = { systemDatabaseUrl: url, applicationVersion, executorID: 'ours', adopt, logger };
    const { DBOS } = await createEngine(dialect, config);
    const work = DBOS.registerWorkflow(async (n: number) => n + 1, { name: 'work' });
    await DBOS.launch();
    return { DBOS, lines, work };
  };
  const { DBOS, work } = await launch('theirs');
  for (const workflowID of ['a', 'b']) await (await DBOS.startWorkflow(work, { workflowID })(1)).getResult();
  await DBOS.shutdown();
  const database = await dialect.open(url);
  await database.run(sql`
    UPDATE ${table('workflow_status')}
    SET status = 'PENDING', owner_xid = 'xid', executor_id = 'executor-' || workflow_uuid, output = NULL
    WHERE workflow_uuid IN ('a', 'b')`);
  return { launch };
}

forEachDialect((dialect) => {
  test('a launch says what DBOS has left, and leaves it alone until its processes are declared gone', async () => {
    const { launch } = await setup(dialect);

    const { DBOS, lines } = await launch('ours', {});

    expect(lines.filter((line) => line.includes('left in flight'))).toHaveLength(2);
    expect(lines.join()).toContain('executor "executor-a", version "theirs": 1 running, 0 waiting');
    expect((await DBOS.getWorkflowStatus('a'))?.status).toBe('PENDING');
  });

  test('a launch takes over what it is told to', async () => {
    const { launch } = await setup(dialect);

    const { DBOS } = await launch('ours', { gone: true, executorIDs: ['executor-a'] });

    expect(await DBOS.retrieveWorkflow('a').getResult()).toBe(2);
    expect(await DBOS.getWorkflowStatus('b')).toMatchObject({ status: 'PENDING', executorId: 'executor-b' });
  });

  test('a misspelt part of the setting is refused', async () => {
    const misspelt = { executorIds: ['a'] } as AdoptOptions;

    await expect(createEngine(dialect, { adopt: misspelt })).rejects.toThrow('executorIds');
  });
});
