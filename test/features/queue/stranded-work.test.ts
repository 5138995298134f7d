// Work that no live process can run is reported, not left waiting silently.
import { expect, test } from 'vitest';
import { silentLogger } from '../../../src/kernel/base/log.js';
import { sql, table } from '../../../src/kernel/sql/sql.js';
import { forEachDialect } from '../../rig/dialects.js';
import { createEngine, engineOf } from '../../rig/engines.js';
import { ManualClock, until } from '../../rig/manual-clock.js';

forEachDialect((dialect) => {
  test('the log says how many wait, which, and why, once a minute', async () => {
    const clock = new ManualClock();
    const warnings: string[] = [];
    const logger = { ...silentLogger, warn: (entry: unknown) => void warnings.push(String(entry)) };
    const { DBOS } = await createEngine(dialect, { logger, applicationVersion: 'new' }, clock.settings);
    const known = DBOS.registerWorkflow(async () => {}, { name: 'known' });
    await DBOS.launch();
    await DBOS.registerQueue('q');
    await DBOS.registerQueue('held');
    await DBOS.pauseQueue('held');
    const old = { queueName: 'q', enqueueOptions: { applicationVersion: 'old' } };
    await DBOS.startWorkflow(known, { ...old, workflowID: 'w' })();
    await DBOS.startWorkflow(known, old)();
    await DBOS.startWorkflow(known, { queueName: 'nowhere' })();
    await DBOS.startWorkflow(known, { queueName: 'held' })();
    await DBOS.pauseQueue('q');
    await DBOS.startWorkflow(known, { queueName: 'q', workflowID: 'pickled' })();
    const { database } = engineOf(DBOS).runtime;
    await database.run(sql`UPDATE ${table('workflow_status')} SET created_at = created_at - 10000`);
    await database.run(sql`
      UPDATE ${table('workflow_status')} SET serialization = 'py_pickle', inputs = 'gASVAQ==' WHERE workflow_uuid = 'pickled'`);
    await DBOS.resumeQueue('q');
    warnings.length = 0;

    clock.advance(5000);

    await until(() => warnings.length === 3);
    expect(warnings).toEqual([
      expect.stringContaining('1 workflow(s) "known" in queue "nowhere" cannot start'),
      expect.stringContaining(
        '2 workflow(s) "known" in queue "q" cannot start, such as "w". No live process of version "old" serves queue "q"',
      ),
      expect.stringContaining('No live process of version "new" can read its format "py_pickle". It is left'),
    ]);
    expect(warnings[0]).toContain('It is not registered.');
    warnings.length = 0;
    // The timer of the next look may not be armed yet.
    await until(() => {
      if (warnings.length < 3) clock.advance(15_000);
      return warnings.length === 3;
    });
  });
});
