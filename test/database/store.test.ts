import { describe, expect, test } from 'vitest';
import { silentLogger } from '../../src/kernel/base/log.js';
import { InvalidDatabaseURLError } from '../../src/kernel/errors/database-errors.js';
import { DBOSInitializationError } from '../../src/kernel/errors/errors.js';
import { Store } from '../../src/run/writer/store.js';
import { topics } from '../../src/database/notify/topics.js';
import { findWorkflows } from '../../src/run/rows/workflows.js';
import { forEachDialect, onlyOn } from '../rig/dialects.js';
import { newWorkflow } from '../rig/records.js';

describe('Store', () => {
  forEachDialect((dialect) => {
    test('an empty database is migrated, written to and read again after a restart', async () => {
      const url = await dialect.createURL({ isMigrated: false });
      const workflow = newWorkflow();

      const first = await Store.open({ url, logger: silentLogger });
      const started = first.writer.start(workflow);
      await first.close();
      const second = await Store.open({ url, logger: silentLogger, runMigrations: false });

      expect((await started).kind).toBe('created');
      expect(await findWorkflows(second.database, [workflow.workflowID])).toHaveLength(1);
      await second.close();
    });

    test('without migrations an empty database is refused, and nothing stays open', async () => {
      const url = await dialect.createURL({ isMigrated: false });

      await expect(Store.open({ url, logger: silentLogger, runMigrations: false })).rejects.toThrow(
        DBOSInitializationError,
      );
    });
  });

  onlyOn('postgres', (dialect) => {
    test('without LISTEN and NOTIFY it works as well', async () => {
      const store = await Store.open({ url: await dialect.createURL(), logger: silentLogger, useListenNotify: false });

      store.listener.notify(topics.events.channel, 'nobody listens');
      await store.writer.start(newWorkflow());

      await store.close();
    });
  });

  test.each(['mysql://user:s3cret@host/db', '', 'app.sqlite'])(
    'the URL "%s" is refused, without its password',
    async (url) => {
      const opening = Store.open({ url, logger: silentLogger });

      await expect(opening).rejects.toThrow(InvalidDatabaseURLError);
      await expect(opening).rejects.not.toThrow(/s3cret/);
    },
  );
});
