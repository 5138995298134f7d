// Servers that lack something: a proxy refuses it. Engines find it out at launch, do not ask for it again, and do their work.
import { expect, onTestFinished, test } from 'vitest';
import { DBOSClient } from '../../../src/index.js';
import { diagnose } from '../../../src/features/diagnosis/diagnosis.js';
import { sql } from '../../../src/kernel/sql/sql.js';
import { Store } from '../../../src/run/writer/store.js';
import { hasPush, onlyOn } from '../../rig/dialects.js';
import { createEngine, engineOf } from '../../rig/engines.js';
import { operatorOn } from '../../rig/operators.js';
import { startPooler } from '../../rig/pooler.js';
import { startRefusingProxy } from '../../rig/refusing-proxy.js';
import { keepingLogger } from '../migrations/setup.js';

const REFUSED = {
  'session settings': /\bset_config\b|^\s*SET\b/i,
  'advisory locks': /advisory/i,
  notifications: /\bLISTEN\b|\bNOTIFY\b|pg_notify/i,
  'SKIP LOCKED': /SKIP LOCKED/i,
  timelines: /pg_walfile_name/,
  'system identifiers': /pg_control_system/,
  triggers: /CREATE (OR REPLACE )?TRIGGER/i,
  functions: /CREATE (OR REPLACE )?FUNCTION/i,
};

onlyOn('postgres', (dialect) => {
  for (const [name, pattern] of Object.entries(REFUSED)) {
    test(
      `an engine and a client work on a server without ${name}, which doctor lists`,
      { timeout: 120_000 },
      async () => {
        const proxy = await startRefusingProxy(await dialect.createURL({ isMigrated: false }), pattern);
        const logger = keepingLogger();
        const { DBOS } = await createEngine(dialect, { systemDatabaseUrl: proxy.url, logger });
        const child = DBOS.registerWorkflow(async (n: number) => DBOS.runStep(async () => n * 2), { name: 'child' });
        const parent = DBOS.registerWorkflow(
          async (n: number) => {
            const handle = await DBOS.startWorkflow(child, { queueName: 'q' })(n);
            await DBOS.setEvent('doubled', await handle.getResult());
            return DBOS.recv<string>('topic', 600);
          },
          { name: 'parent' },
        );
        await DBOS.launch();
        await DBOS.registerQueue('q', { concurrency: 2 });
        const client = await DBOSClient.create({ systemDatabaseUrl: proxy.url, logger });
        onTestFinished(() => client.destroy());
        proxy.takeRefused();

        const handles = await Promise.all(
          [1, 2, 3, 4].map((n) => DBOS.startWorkflow(parent, { workflowID: `w${n}` })(n)),
        );
        await Promise.all(handles.map(({ workflowID }) => client.send(workflowID, `to ${workflowID}`, 'topic')));
        const results = await Promise.all(
          handles.map(({ workflowID }) => client.retrieveWorkflow(workflowID).getResult()),
        );

        expect(results).toEqual(['to w1', 'to w2', 'to w3', 'to w4']);
        expect(await client.getEvent('w3', 'doubled', 60)).toBe(6);
        const { findings } = await diagnose(engineOf(DBOS).runtime);
        const missing = findings.filter(({ subject }) => subject === 'server').map(({ message }) => message);
        expect(missing).toContainEqual(expect.stringContaining(`The server lacks ${name}`));
        expect(logger.warnings).toContainEqual(expect.stringContaining(`The server lacks ${name}`));
        expect(proxy.takeRefused()).toEqual([]);
      },
    );
  }

  test('startup options in the URL are set by a statement where they are refused', async () => {
    const url = new URL(await startPooler(await dialect.createURL(), 'refuses'));
    url.searchParams.set('options', String.raw`-c work_mem=7MB --application_name=it\'s\ ours`);
    const logger = keepingLogger();

    const store = await Store.open({ url: url.href, logger });

    onTestFinished(() => store.close());
    const settings = sql`
      SELECT current_setting('work_mem') AS memory, current_setting('application_name') AS name,
        current_setting('enable_seqscan') AS seqscan`;
    const ours = { memory: '7MB', name: "it's ours", seqscan: 'off' };
    if (hasPush) expect(await store.database.read(settings)).toEqual([ours]);
    expect(logger.warnings).toEqual([expect.stringContaining('refuses startup options')]);
    const { findings } = await diagnose(operatorOn(store.database));
    expect(findings).toMatchObject([{ message: expect.stringContaining('lacks startup options') }]);
  });
});
