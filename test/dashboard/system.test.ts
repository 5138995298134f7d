// Executors, versions, indexes, retention and the archive.
import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { fileArchive } from '../../src/features/retention/file-archive.js';
import { sql, table } from '../../src/kernel/sql/sql.js';
import { withBrowser } from '../rig/browser.js';
import { forEachDialect } from '../rig/dialects.js';
import { createEngine, engineOf } from '../rig/engines.js';
import { confirm, setup, TIMEOUT } from './scene.js';

withBrowser((browser) => {
  forEachDialect((dialect) => {
    test('an earlier version is made the latest', { timeout: TIMEOUT }, async () => {
      const { DBOS, ui, url } = await setup(dialect, undefined, { applicationVersion: 'v1' });
      const { DBOS: next } = await createEngine(dialect, { systemDatabaseUrl: url, applicationVersion: 'v2' });
      await next.launch();
      const page = await browser.open(`${ui}/executors`);
      const latest = (version: string) => page.getByRole('cell', { name: `${version} latest` }).waitFor();

      await latest('v2');
      await page.getByRole('button', { name: 'Make latest… v1' }).click();
      await page.getByRole('heading', { name: 'Make version v1 the latest?' }).waitFor();
      await confirm(page, 'Make latest');
      await latest('v1');

      expect((await DBOS.getLatestApplicationVersion()).versionName).toBe('v1');
    });

    test('the workflows of a dead executor are recovered', { timeout: TIMEOUT }, async () => {
      const { DBOS, ui, call } = await setup(dialect, undefined, { applicationVersion: 'v1' });
      const later = { queueName: 'mail', workflowName: 'greet', workflowID: 'left', args: ['x'], delaySeconds: 3600 };
      await call('POST', '/api/v1/workflows', later);
      // As a process of another library leaves it behind, which has no lease.
      await engineOf(DBOS).runtime.database.run(sql`
        UPDATE ${table('workflow_status')}
        SET status = 'PENDING', executor_id = 'gone', application_version = 'v1'
        WHERE workflow_uuid = 'left'`);
      const page = await browser.open(`${ui}/settings`);
      // A live engine cleans up after dead ones, so none would be listed for long. Not asked for in the handler: the page may
      // close meanwhile.
      const { executors } = (await call('GET', '/api/v1/executors')).body as { executors: object[] };
      const dead = { ...executors[0], executorID: 'gone', incarnationID: 'dead', isAlive: false };
      await page.route('**/api/v1/executors', (route) => route.fulfill({ json: { executors: [...executors, dead] } }));

      await page.getByRole('link', { name: 'Executors' }).click();
      await page.getByRole('button', { name: 'Recover gone' }).click();
      await page.getByText('Put back 1 workflow.').waitFor();

      expect(await DBOS.retrieveWorkflow('left').getResult()).toBe('Hello x');
    });

    test('an optional index is built and dropped', { timeout: TIMEOUT }, async () => {
      const { ui, call } = await setup(dialect);
      const page = await browser.open(`${ui}/settings`);
      const isThere = async (): Promise<unknown> => {
        const { indexes } = (await call('GET', '/api/v1/health')).body as { indexes: { index: string }[] };
        return indexes.find(({ index }) => index === 'scheduleName');
      };

      await page.getByRole('button', { name: 'Build scheduleName' }).click();
      await page.getByRole('button', { name: 'Drop scheduleName' }).waitFor();
      const built = await isThere();
      await page.getByRole('button', { name: 'Drop scheduleName' }).click();
      await page.getByRole('button', { name: 'Build scheduleName' }).waitFor();

      expect(built).toMatchObject({ isThere: true });
      expect(await isThere()).toMatchObject({ isThere: false });
    });

    test('retention says what it would delete, and old workflows are deleted', { timeout: TIMEOUT }, async () => {
      const { DBOS, ui, workflows } = await setup(dialect, undefined, { retention: { completed: '30 days' } });
      await DBOS.startWorkflow(workflows.greet, { workflowID: 'old' })('world').then((one) => one.getResult());
      await DBOS.startWorkflow(workflows.approve, { workflowID: 'active' })();
      const page = await browser.open(`${ui}/retention`);

      await page.getByText('30 days', { exact: true }).waitFor();
      await page.getByText('None is configured: what retention deletes is gone.').waitFor();
      await page.getByRole('button', { name: 'Show what it would delete now' }).click();
      await page.getByText('Nothing.').waitFor();
      await page.getByLabel('Delete workflows that ended more than').fill('0');
      await page.getByRole('button', { name: 'Delete…' }).click();
      await page.getByRole('heading', { name: 'Delete workflows that ended more than 0 days ago?' }).waitFor();
      await confirm(page, 'Delete');
      await page.getByText('1 workflow deleted.').waitFor();

      expect((await DBOS.listWorkflows({})).map(({ workflowID }) => workflowID)).toEqual(['active']);
    });

    test('an archived workflow is looked up and restored', { timeout: TIMEOUT }, async () => {
      const archive = fileArchive(mkdtempSync(join(inject('folder'), 'archive-')));
      const { DBOS, ui, workflows } = await setup(dialect, undefined, { archive });
      await DBOS.startWorkflow(workflows.greet, { workflowID: 'old' })('world').then((one) => one.getResult());
      await DBOS.applyRetention({ completed: 0 });
      const page = await browser.open(`${ui}/workflows/old`);

      await page.getByRole('link', { name: 'Look into the archive' }).click();
      await page.getByRole('group', { name: 'Archived workflow old' }).getByText('workflow_uuid: "old"').waitFor();
      await page.getByLabel('Workflow ID', { exact: true }).fill('other');
      await page.getByRole('button', { name: 'Look up' }).click();
      await page.getByText('The archive has no workflow other.').waitFor();
      await page.goBack();
      await page.getByRole('button', { name: 'Restore…' }).click();
      await confirm(page, 'Restore');
      await page.getByRole('link', { name: 'Open it' }).click();
      await page.getByRole('button', { name: 'greet step' }).waitFor();

      expect(await DBOS.retrieveWorkflow('old').getResult()).toBe('Hello world');
    });
  });
});
