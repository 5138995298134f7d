// A standby that lags is promoted: the last commits are lost, and engines remember more than the database has.
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { deferred } from '../../src/kernel/base/deferred.js';
import { NodePostgresDataSource } from '../../src/plugins/transaction/adapters/node-postgres.js';
import { urlsOf } from '../../src/database/postgres/postgres-url.js';
import { onlyOn } from '../rig/dialects.js';
import { createEngine } from '../rig/engines.js';
import { startPostgres } from '../rig/postgres-server.js';
import { startProxy } from '../rig/proxy.js';
import { keepingLogger } from '../database/migrations/setup.js';
import { until as untilWithin } from './processes.js';
import type { ReplicasCommand } from './replicas-process.js';
import { holdServer } from './server-processes.js';

async function query(url: string, text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(text)).rows;
  } finally {
    await client.end();
  }
}

const until = (description: string, isMet: () => boolean | Promise<boolean>): Promise<void> =>
  untilWithin(description, isMet, { boundMs: 120_000 });

/** Empty as long as the standby has not even the table. */
const stepsOf = (url: string): Promise<Record<string, unknown>[]> =>
  query(
    url,
    `SELECT function_id, output FROM dbos.operation_outputs WHERE workflow_uuid = 'w' ORDER BY function_id`,
  ).catch(() => []);

onlyOn('postgres', (dialect) => {
  async function setup() {
    const replicas = await holdServer<ReplicasCommand>(new URL('./replicas-process.ts', import.meta.url));
    const [formerURL = '', promotedURL = ''] = urlsOf(replicas.url).map((one) => one.replace(/\?.*/, ''));
    return { replicas, formerURL, promotedURL };
  }

  /** `joined`: the steps that are transactions in the system database. */
  async function launch(systemDatabaseUrl: string, joined: readonly string[] = []) {
    const logger = keepingLogger();
    const { DBOS } = await createEngine(dialect, { systemDatabaseUrl, logger });
    const source =
      joined.length > 0
        ? new NodePostgresDataSource('app', { connectionString: systemDatabaseUrl }, { owner: DBOS })
        : undefined;
    const step = (name: string, body: () => Promise<string>): Promise<string> =>
      source && joined.includes(name) ? source.runTransaction(body, { name }) : DBOS.runStep(body, { name });
    const gates = [deferred<void>(), deferred<void>()] as const;
    let runs = 0;
    const workflow = DBOS.registerWorkflow(
      async () => {
        const run = (runs += 1);
        const values = [await DBOS.runStep(async () => `one in run ${run}`, { name: 'one' })];
        await gates[0].promise;
        values.push(await step('two', async () => `two in run ${run}`));
        await gates[1].promise;
        values.push(await step('three', async () => `three in run ${run}`));
        return values;
      },
      { name: 'workflow' },
    );
    await DBOS.launch();
    return { DBOS, workflow, gates, logger };
  }

  test.each(['several hosts in the URL', 'a proxy that switches'])(
    'a run does not continue on checkpoints that were lost: %s',
    { timeout: 300_000 },
    async (way) => {
      const { replicas, formerURL, promotedURL } = await setup();
      // The database is created through it.
      const proxy = way === 'a proxy that switches' ? await startProxy(formerURL) : undefined;
      const { DBOS, workflow, gates, logger } = await launch(proxy?.url ?? replicas.url);
      const handle = await DBOS.startWorkflow(workflow, { workflowID: 'w' })();
      await until('the first step is replicated', async () => (await stepsOf(promotedURL)).length === 1);
      await replicas.perform('lag');
      gates[0].resolve();
      await until('the second step is recorded', async () => (await stepsOf(formerURL)).length === 2);

      await replicas.perform('fail');
      proxy?.switchTo(promotedURL);
      gates[1].resolve();

      const values = await handle.getResult();
      expect(values[0]).toBe('one in run 1');
      expect(values).not.toContain('two in run 1');
      expect(values).not.toContain('three in run 1');
      const outputs = (await stepsOf(promotedURL)).map(({ output }) => String(output));
      for (const [index, value] of values.entries()) expect(outputs[index]).toContain(value);
      expect(logger.warnings).toContainEqual(expect.stringContaining('go back to their last checkpoint'));
    },
  );

  test('nor on a checkpoint that had joined a transaction', { timeout: 300_000 }, async () => {
    const { replicas, formerURL, promotedURL } = await setup();
    const proxy = await startProxy(formerURL);
    const { DBOS, workflow, gates } = await launch(proxy.url, ['two', 'three']);
    const handle = await DBOS.startWorkflow(workflow, { workflowID: 'w' })();
    await until('the first step is replicated', async () => (await stepsOf(promotedURL)).length === 1);
    await replicas.perform('lag');
    gates[0].resolve();
    await until('the second step is recorded', async () => (await stepsOf(formerURL)).length === 2);

    await replicas.perform('fail');
    proxy.switchTo(promotedURL);
    gates[1].resolve();

    const values = await handle.getResult();
    expect(values[0]).toBe('one in run 1');
    expect(values).not.toContain('two in run 1');
    expect(values).not.toContain('three in run 1');
  });

  test.each([[[]], [['two']]])(
    'an answer that the former primary gave before, and that arrives after the comparison, does not count (joined: %j)',
    { timeout: 300_000 },
    async (joined) => {
      const { replicas, formerURL, promotedURL } = await setup();
      const proxy = await startProxy(formerURL);
      const { DBOS, workflow, gates } = await launch(proxy.url, joined);
      const handle = await DBOS.startWorkflow(workflow, { workflowID: 'w' })();
      await until('the first step is replicated', async () => (await stepsOf(promotedURL)).length === 1);
      await replicas.perform('lag');
      proxy.holdNextAnswer(/two in run 1/);
      gates[0].resolve();
      await until('the second step is recorded', async () => (await stepsOf(formerURL)).length === 2);

      await replicas.perform('fail');
      proxy.switchTo(promotedURL);
      // Over a connection that finds the promoted server, and compares.
      expect(await DBOS.listWorkflows({})).toHaveLength(1);
      proxy.releaseAnswer();
      gates[1].resolve();

      const values = await handle.getResult();
      const steps = await stepsOf(promotedURL);
      expect(steps.map((step) => step['function_id'])).toEqual([0, 1, 2]);
      for (const [index, value] of values.entries()) expect(String(steps[index]?.['output'])).toContain(value);
    },
  );

  test('an engine follows its tables to another cluster, whose timeline is lower', { timeout: 300_000 }, async () => {
    const { replicas, formerURL, promotedURL } = await setup();
    const proxy = await startProxy(formerURL);
    const { DBOS, workflow, gates, logger } = await launch(proxy.url);
    for (const gate of gates) gate.resolve();
    await replicas.perform('fail');
    proxy.switchTo(promotedURL);
    await (await DBOS.startWorkflow(workflow, { workflowID: 'before' })()).getResult();
    const cluster = await startPostgres();
    onTestFinished(() => cluster.stop());
    const clusterURL = cluster.url.replace(/\/[^/]*$/, new URL(formerURL).pathname);
    const { DBOS: other } = await createEngine(dialect, { systemDatabaseUrl: clusterURL });
    await other.launch();
    await other.shutdown();

    proxy.switchTo(clusterURL);
    const handle = await DBOS.startWorkflow(workflow, { workflowID: 'w' })();

    expect(await handle.getResult()).toHaveLength(3);
    expect(await stepsOf(clusterURL)).toHaveLength(3);
    expect(logger.warnings).toContainEqual(expect.stringContaining('not moved to its cluster'));
    proxy.switchTo(promotedURL);
    const started = DBOS.startWorkflow(workflow, { workflowID: 'meanwhile' })();
    await until('it is refused', () => logger.warnings.some((warning) => warning.includes('is a former primary')));
    proxy.switchTo(clusterURL);
    expect(await (await started).getResult()).toHaveLength(3);
    expect(await query(promotedURL, 'SELECT workflow_uuid FROM dbos.workflow_status')).toHaveLength(1);
  });

  test('a former primary to which a proxy switches back is not written to', { timeout: 300_000 }, async () => {
    const { replicas, formerURL, promotedURL } = await setup();
    const proxy = await startProxy(formerURL);
    const { DBOS, workflow, gates, logger } = await launch(proxy.url);
    for (const gate of gates) gate.resolve();
    await replicas.perform('fail');
    proxy.switchTo(promotedURL);
    await (await DBOS.startWorkflow(workflow, { workflowID: 'before' })()).getResult();
    await replicas.perform('return');

    proxy.switchTo(formerURL);
    const started = DBOS.startWorkflow(workflow, { workflowID: 'meanwhile' })();
    await until('it is refused', () => logger.warnings.some((warning) => warning.includes('is a former primary')));
    proxy.switchTo(promotedURL);

    expect(await (await started).getResult()).toHaveLength(3);
    expect(await query(formerURL, 'SELECT workflow_uuid FROM dbos.workflow_status')).toEqual([]);
  });
});
