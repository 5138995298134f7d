// What can be done with a workflow, on its page.
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { withBrowser } from '../rig/browser.js';
import { forEachDialect } from '../rig/dialects.js';
import { choose, confirm, setup, TIMEOUT } from './scene.js';

withBrowser((browser) => {
  forEachDialect((dialect) => {
    test('a workflow that waits says why, and gets its message', { timeout: TIMEOUT }, async () => {
      const { DBOS, ui, workflows } = await setup(dialect);
      await DBOS.startWorkflow(workflows.approve, { workflowID: 'order-17' })();
      const page = await browser.open(`${ui}/workflows/order-17`);

      await page.getByRole('region', { name: 'Why' }).waitFor();
      await choose(page, 'Send a message…');
      await page.getByLabel('Topic').fill('approval');
      await page.getByLabel('Message, as JSON').fill('{"ok": true}');
      await confirm(page, 'Send');
      await page.locator('.workflow-head .state', { hasText: 'done' }).waitFor();
      await page.getByRole('link', { name: 'Output' }).click();
      await page.getByText('ok:').waitFor();

      expect(await DBOS.retrieveWorkflow('order-17').getResult()).toEqual({ ok: true });
    });

    test('a failed workflow is forked from a step, and compared with its original', { timeout: TIMEOUT }, async () => {
      const { DBOS, ui, workflows } = await setup(dialect);
      await DBOS.startWorkflow(workflows.refuse, { workflowID: 'bad' })().then((one) =>
        one.getResult().catch(() => {}),
      );
      const page = await browser.open(`${ui}/workflows/bad`);

      await page.getByRole('button', { name: 'charge' }).click();
      await page.getByText('card declined').first().waitFor();
      expect(page.url()).toContain('row=1');
      await page.getByRole('button', { name: 'Fork from here' }).click();
      await page.getByLabel('ID of the copy').fill('again');
      await confirm(page, 'Fork');
      await page.locator('.workflow-head', { hasText: 'again' }).waitFor();
      await page.getByRole('link', { name: 'Compare' }).click();
      await page.getByText('2 steps are the same, and so is the outcome.').waitFor();

      expect((await DBOS.getWorkflowStatus('again'))?.forkedFrom).toBe('bad');
    });

    test('attributes, priority and delay are changed, and a workflow is deleted', { timeout: TIMEOUT }, async () => {
      const { DBOS, ui, call } = await setup(dialect);
      const body = { queueName: 'mail', workflowName: 'greet', workflowID: 'later', args: ['x'], delaySeconds: 3600 };
      await call('POST', '/api/v1/workflows', body);
      const page = await browser.open(`${ui}/workflows/later`);

      await choose(page, 'Edit attributes…');
      await page.getByRole('textbox', { name: 'Attributes' }).fill('{"customer": "c-17"}');
      await confirm(page, 'Save');
      await page.getByText('{"customer":"c-17"}').waitFor();
      await choose(page, 'Set the priority…');
      await page.getByLabel('Priority', { exact: true }).fill('7');
      await confirm(page, 'Set');
      await page.locator('.fact', { hasText: 'priority' }).getByText('7').waitFor();
      await choose(page, 'Set the delay…');
      await page.getByLabel('Seconds').fill('0');
      await confirm(page, 'Set');
      await page.locator('.workflow-head .state', { hasText: 'done' }).waitFor();
      await choose(page, 'Delete…');
      await confirm(page, 'Delete');
      await page.getByRole('heading', { name: 'Workflows' }).waitFor();

      expect(await DBOS.getWorkflowStatus('later')).toBeNull();
    });

    test('a workflow is rewound, restarted and exported', { timeout: TIMEOUT }, async () => {
      const { DBOS, ui, workflows } = await setup(dialect);
      const failed = await DBOS.startWorkflow(workflows.refuse, { workflowID: 'bad' })();
      await failed.getResult().catch(() => {});
      const page = await browser.open(`${ui}/workflows/bad?tab=history`);

      await choose(page, 'Rewind…');
      await page.getByLabel('First step that runs again').fill('1');
      await page.getByLabel('Reason, kept in the history').fill('the bank was down');
      await confirm(page, 'Rewind');
      await page.getByText('WorkflowRewound').waitFor();
      await page.getByText('the bank was down').waitFor();
      await DBOS.waitAll([DBOS.retrieveWorkflow('bad')]);
      await page.getByRole('button', { name: 'More actions' }).click();
      const downloading = page.waitForEvent('download');
      await page.getByRole('link', { name: 'Export' }).click();
      const file = await downloading;
      const exported = readFileSync(await file.path(), 'utf8');
      await choose(page, 'Restart…');
      await confirm(page, 'Restart');
      await page.getByRole('link', { name: 'Compare' }).click();
      await page.getByText('2 steps are the same, and so is the outcome.').waitFor();

      expect(file.suggestedFilename()).toBe('bad.ndjson');
      expect(exported).toContain('card declined');
      expect(await DBOS.listWorkflows({ forkedFrom: 'bad' })).toHaveLength(1);
    });
  });
});
